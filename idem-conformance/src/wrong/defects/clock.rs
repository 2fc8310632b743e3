//! Stores that ask another clock, or tell the time badly (L7).

use std::time::Duration;

use idem_core::model::{Phase, Timestamp};
use idem_core::{Attempt, Record, State};

use crate::wrong::laws::{Answer, At, Laws, granting};

pub(super) const ALL: &[&dyn Laws] = &[
    &JudgedByTheClientsClock,
    &LeasedByTheClientsClock,
    &LeasedByAClientAhead,
    &LeftIsRoundedDown,
    &LeftIsTheWholeLease,
    &LeftIsNothing,
    &LeaseHasASecondOfGrace,
];

/// C28: whether a lease has ended is decided by whoever looks.
#[derive(Debug)]
struct JudgedByTheClientsClock;

impl Laws for JudgedByTheClientsClock {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let now = at.client;
        At { now, ..at }.reserve(attempt)
    }
}

fn leased_from(start: Timestamp, at: &At, attempt: &Attempt) -> Answer<Record> {
    let now = at.now;
    granting(at.reserve(attempt), |row, record| {
        let end = start.after(attempt.lease_for());
        if let Phase::Pending { lease_until, .. } = &mut row.phase {
            *lease_until = end;
        }
        record.state = State::Pending { left: now.until(end) };
    })
}

/// C28: the end of a lease is written by a client whose clock is behind.
#[derive(Debug)]
struct LeasedByTheClientsClock;

impl Laws for LeasedByTheClientsClock {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        leased_from(at.client.min(at.now), &at, attempt)
    }
}

/// C28: the end of a lease is written by a client whose clock is ahead.
#[derive(Debug)]
struct LeasedByAClientAhead;

impl Laws for LeasedByAClientAhead {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        leased_from(at.client.max(at.now), &at, attempt)
    }
}

fn left(answer: Answer<Record>, change: impl FnOnce(Duration) -> Duration) -> Answer<Record> {
    let mut step = answer?;
    if let State::Pending { left } = &mut step.answer.state {
        *left = change(*left);
    }
    Ok(step)
}

/// In its last second a lease has nothing left, and a waiter does not wait.
#[derive(Debug)]
struct LeftIsRoundedDown;

impl Laws for LeftIsRoundedDown {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        left(
            at.reserve(attempt),
            |left| {
                if left < Duration::from_secs(1) { Duration::ZERO } else { left }
            },
        )
    }
}

/// `Retry-After` is always the whole lease.
#[derive(Debug)]
struct LeftIsTheWholeLease;

impl Laws for LeftIsTheWholeLease {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        left(at.reserve(attempt), |left| if left.is_zero() { left } else { attempt.lease_for() })
    }
}

/// There is no `Retry-After`.
#[derive(Debug)]
struct LeftIsNothing;

impl Laws for LeftIsNothing {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        left(at.reserve(attempt), |_| Duration::ZERO)
    }
}

/// A lease that ends by itself is taken over only a second later.
#[derive(Debug)]
struct LeaseHasASecondOfGrace;

impl Laws for LeaseHasASecondOfGrace {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let (now, grace) = (at.now, Duration::from_secs(1));
        at.seeing(|row| match &mut row.phase {
            Phase::Pending { lease_until, .. } if lease_until.after(grace) > now => {
                *lease_until = (*lease_until).max(Timestamp(now.0 + 1));
            }
            _ => {}
        })
        .reserve(attempt)
    }
}
