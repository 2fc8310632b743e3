//! The laws for one key, one verb at a time, for an observer who knows the time only roughly.
//!
//! An independent second statement of [`idem_core::model`]: that one says what a store must
//! answer at a known moment, this one which answers were possible between two moments.

use std::time::Duration;

use bytes::Bytes;
use idem_core::{Attempt, AttemptId, Fingerprint, Record, State as Shown};

use crate::history::operation::{Answer, Call, Operation};
use crate::lab::Moment;

/// All that is known of the key after some verbs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// Free; nothing below this fence will be issued, and this attempt has released it.
    Free {
        next_fence: u64,
        released_by: Option<AttemptId>,
    },
    Held(Held),
    Completed {
        by: Holder,
        payload: Vec<u8>,
    },
}

/// Who has the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    id: AttemptId,
    fingerprint: Fingerprint,
    attempts: u32,
    /// The fence is at least this, and exactly this once it has been seen.
    fence: u64,
    fence_is_known: bool,
}

/// A reservation, and between which two moments its lease ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    by: Holder,
    earliest_end: Duration,
    latest_end: Duration,
}

impl State {
    /// Before anything has happened.
    pub(crate) const START: Self = Self::Free { next_fence: 0, released_by: None };

    /// Every state that the operation may have led to, given its answer. None if no such answer
    /// could have been given in this state.
    ///
    /// `slack` is how far an answer's remaining lease may be off.
    pub(crate) fn after(&self, operation: &Operation, slack: Duration) -> Vec<Self> {
        let seen = Seen { answer: operation.answer.as_ref(), at: operation.moment, slack };
        match &operation.call {
            Call::Reserve(attempt) => self.reserved(attempt, &seen),
            Call::Renew(id, by) => vec_of(self.renewed(*id, *by, &seen)),
            Call::Complete(id, payload) => vec_of(self.completed(*id, payload, &seen)),
            Call::Release(id) => vec_of(self.released(*id, &seen)),
        }
    }

    fn reserved(&self, attempt: &Attempt, seen: &Seen<'_>) -> Vec<Self> {
        match self {
            Self::Free { released_by, .. } if *released_by == Some(attempt.id()) => {
                vec_of(seen.is_lost().then(|| self.clone()))
            }
            Self::Free { next_fence, .. } => vec_of(seen.grant(attempt, 1, *next_fence)),
            Self::Completed { by, payload } => {
                let shown = (by.fingerprint == attempt.fingerprint()).then_some(payload);
                let by = seen.completion(by, shown);
                vec_of(by.map(|by| Self::Completed { by, payload: payload.clone() }))
            }
            Self::Held(held) => {
                let may_take = held.by.id != attempt.id()
                    && held.by.fingerprint == attempt.fingerprint()
                    && attempt.may_take_over();
                let mut after = Vec::new();
                if may_take && held.may_have_ended(seen.at) {
                    after.extend(seen.grant(attempt, held.by.attempts + 1, held.by.fence + 1));
                }
                if !may_take || held.may_be_live(seen.at) {
                    after.extend(seen.reservation(held, may_take).map(Self::Held));
                }
                after
            }
        }
    }

    fn renewed(&self, id: AttemptId, by: Duration, seen: &Seen<'_>) -> Option<Self> {
        match self {
            Self::Held(held) if held.by.id == id => {
                let mut held = held.clone();
                if by.is_zero() {
                    held.earliest_end = held.earliest_end.min(seen.at.earliest);
                    held.latest_end = held.latest_end.min(seen.at.latest);
                } else {
                    held.earliest_end = held.earliest_end.max(seen.at.earliest + by);
                    held.latest_end = held.latest_end.max(seen.at.latest.saturating_add(by));
                }
                match seen.answer {
                    None => Some(Self::Held(held)),
                    Some(Answer::Left(left)) if by.is_zero() == left.is_zero() => {
                        seen.left(held, *left).map(Self::Held)
                    }
                    Some(_) => None,
                }
            }
            _ => seen.is_lost().then(|| self.clone()),
        }
    }

    fn completed(&self, id: AttemptId, payload: &[u8], seen: &Seen<'_>) -> Option<Self> {
        match self {
            Self::Held(held) if held.by.id == id => seen
                .is_done()
                .then(|| Self::Completed { by: held.by.clone(), payload: payload.to_vec() }),
            Self::Completed { by, .. } if by.id == id => seen.is_done().then(|| self.clone()),
            _ => seen.is_lost().then(|| self.clone()),
        }
    }

    fn released(&self, id: AttemptId, seen: &Seen<'_>) -> Option<Self> {
        match self {
            Self::Held(held) if held.by.id == id => seen
                .is_done()
                .then(|| Self::Free { next_fence: held.by.fence + 1, released_by: Some(id) }),
            Self::Free { released_by, .. } if *released_by == Some(id) => {
                seen.is_done().then(|| self.clone())
            }
            _ => seen.is_lost().then(|| self.clone()),
        }
    }
}

fn vec_of(state: Option<State>) -> Vec<State> {
    state.into_iter().collect()
}

impl Held {
    fn may_have_ended(&self, at: Moment) -> bool {
        self.earliest_end <= at.latest
    }

    fn may_be_live(&self, at: Moment) -> bool {
        at.earliest < self.latest_end
    }
}

impl Holder {
    /// This holder, if the record can be its own, with the fence that the record shows.
    fn shown_in(&self, record: &Record) -> Option<Self> {
        let fence = record.fence.0;
        let fence_fits =
            if self.fence_is_known { fence == self.fence } else { fence >= self.fence };
        let fits = fence_fits
            && record.holder == self.id
            && record.fingerprint == self.fingerprint
            && record.attempts == self.attempts;
        fits.then(|| Self { fence, fence_is_known: true, ..self.clone() })
    }
}

/// An answer, when it was true, and how exactly.
struct Seen<'a> {
    answer: Option<&'a Answer>,
    at: Moment,
    slack: Duration,
}

impl Seen<'_> {
    fn is_lost(&self) -> bool {
        matches!(self.answer, None | Some(Answer::LeaseLost))
    }

    fn is_done(&self) -> bool {
        matches!(self.answer, None | Some(Answer::Done))
    }

    /// The attempt was granted the key.
    fn grant(&self, attempt: &Attempt, attempts: u32, least_fence: u64) -> Option<State> {
        let by = Holder {
            id: attempt.id(),
            fingerprint: attempt.fingerprint(),
            attempts,
            fence: least_fence,
            fence_is_known: false,
        };
        let lease = attempt.lease_for();
        let held = Held {
            by,
            earliest_end: self.at.earliest + lease,
            latest_end: self.at.latest.saturating_add(lease),
        };
        self.reservation(&held, true).map(State::Held)
    }

    /// The reservation was shown; live, if anything less would have been taken over.
    fn reservation(&self, held: &Held, is_live: bool) -> Option<Held> {
        match self.answer {
            None => Some(held.clone()),
            Some(Answer::Record(record)) => {
                let Shown::Pending { left } = record.state else { return None };
                if is_live && left.is_zero() {
                    return None;
                }
                let by = held.by.shown_in(record)?;
                self.left(Held { by, ..held.clone() }, left)
            }
            Some(_) => None,
        }
    }

    /// What is left of the lease narrows down when it ends.
    fn left(&self, mut held: Held, left: Duration) -> Option<Held> {
        if left.is_zero() {
            held.latest_end = held.latest_end.min(self.at.latest.saturating_add(self.slack));
        } else {
            let earliest = (self.at.earliest + left).saturating_sub(self.slack);
            let latest = self.at.latest.saturating_add(left).saturating_add(self.slack);
            held.earliest_end = held.earliest_end.max(earliest);
            held.latest_end = held.latest_end.min(latest);
        }
        (held.earliest_end <= held.latest_end).then_some(held)
    }

    /// The completion was shown, with its payload if the request is the same.
    fn completion(&self, by: &Holder, payload: Option<&Vec<u8>>) -> Option<Holder> {
        match self.answer {
            None => Some(by.clone()),
            Some(Answer::Record(record)) => {
                let Shown::Completed { payload: shown } = &record.state else { return None };
                let same =
                    shown.as_ref() == payload.map(|bytes| Bytes::from(bytes.clone())).as_ref();
                if same { by.shown_in(record) } else { None }
            }
            Some(_) => None,
        }
    }
}
