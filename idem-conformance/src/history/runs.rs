//! Random verbs, one after the other, with the model as the oracle.

use std::time::Duration;

use bytes::Bytes;
use idem_core::model::{self, Row, Timestamp};
use idem_core::{Attempt, Fence, Key, Lease, Record, State, StoreError};
use proptest::prelude::*;
use proptest::sample::select;

use crate::failure::{Failure, Verdict, ensure};
use crate::harness::HookError;
use crate::lab::{KEPT, LONG, Lab, OTHER, REQUEST, attempt_at};
use crate::subject::Subject;

/// How many clients there are; each has one attempt at a time.
const CLIENTS: usize = 3;

/// One step of a run.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A client makes a new attempt.
    Attempt { client: usize, other_request: bool, long: bool, kept: Duration, takeover: bool },
    /// A client sends its attempt once more.
    Repeat { client: usize },
    /// A client renews.
    Renew { client: usize, by: By },
    /// A client completes.
    Complete { client: usize, payload: Vec<u8>, kept: Duration },
    /// A client releases.
    Release { client: usize },
    /// Time passes.
    Pass(Duration),
    /// The store is swept.
    Purge,
}

/// By how much a lease is renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Nothing,
    Short,
    Long,
}

/// Random runs, with or without the passing of time.
pub(crate) fn runs(short: Option<Duration>) -> impl Strategy<Value = Vec<Step>> {
    let minute = Duration::from_mins(1);
    let kept = move || select(if short.is_some() { vec![minute, KEPT] } else { vec![KEPT] });
    let pass = short.map_or(Duration::ZERO, |short| short / 2);
    let pass = select(vec![pass / 2, pass, pass * 2, minute, minute + pass * 2]);
    let client = || 0..CLIENTS;
    let attempt = (client(), prop::bool::weighted(0.15), any::<bool>(), kept(), any::<bool>());
    let step = prop_oneof![
        6 => attempt.prop_map(|(client, other_request, long, kept, takeover)| {
            Step::Attempt { client, other_request, long, kept, takeover }
        }),
        3 => client().prop_map(|client| Step::Repeat { client }),
        4 => (client(), select(vec![By::Nothing, By::Short, By::Long]))
            .prop_map(|(client, by)| Step::Renew { client, by }),
        2 => (client(), prop::collection::vec(any::<u8>(), 0..4), kept())
            .prop_map(|(client, payload, kept)| Step::Complete { client, payload, kept }),
        2 => client().prop_map(|client| Step::Release { client }),
        // Without a short lease time is not told, and this step does nothing.
        if short.is_some() { 4 } else { 1 } => pass.prop_map(Step::Pass),
        1 => Just(Step::Purge),
    ];
    prop::collection::vec(step, 1..24)
}

/// The store's answers to a run, compared with the model's.
pub(crate) struct Oracle {
    lab: Lab,
    store: Subject,
    key: Key,
    attempts: [Attempt; CLIENTS],
    row: Option<Row>,
    now: Timestamp,
    /// Whether time stands still unless it is moved, so that what is left is known exactly.
    exact: bool,
}

impl Oracle {
    pub(crate) fn new(lab: &Lab, exact: bool) -> Verdict<Self> {
        let key = lab.attempt()?.key().clone();
        let attempts = std::array::from_fn(|_| attempt_at(key.clone()));
        let (store, now) = (lab.store(), Timestamp(1));
        Ok(Self { lab: lab.clone(), store, key, attempts, row: None, now, exact })
    }

    /// Takes one step on both sides.
    pub(crate) async fn take(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Attempt { client, other_request, long, kept, takeover } => {
                let lease = if *long { LONG } else { self.lab.short() };
                let request = if *other_request { OTHER } else { REQUEST };
                let attempt = Attempt::new(self.key.clone(), request).lease(lease).retention(*kept);
                *self.attempt_of(*client) = attempt.takeover(*takeover);
                self.reserve(*client).await
            }
            Step::Repeat { client } => self.reserve(*client).await,
            Step::Renew { client, by } => self.renew(*client, *by).await,
            Step::Complete { client, payload, kept } => {
                self.complete(*client, payload, *kept).await
            }
            Step::Release { client } => self.release(*client).await,
            Step::Pass(by) if self.exact => {
                self.now = self.now.after(*by);
                self.lab.pass(*by).await
            }
            Step::Pass(_) => Ok(()),
            Step::Purge => match self.lab.harness().purge().await {
                Ok(()) | Err(HookError::Missing(_)) => Ok(()),
                Err(failed) => Err(failed.into()),
            },
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a step names one of the clients")]
    fn attempt_of(&mut self, client: usize) -> &mut Attempt {
        &mut self.attempts[client]
    }

    fn lease(&mut self, client: usize) -> Lease {
        Lease::new(self.key.clone(), self.attempt_of(client).id(), Fence(0))
    }

    #[expect(clippy::indexing_slicing, reason = "a step names one of the clients")]
    async fn reserve(&mut self, client: usize) -> Verdict {
        let attempt = &self.attempts[client];
        let seen = self.store.reserve(attempt).await;
        let step = match model::reserve(self.row.as_ref(), attempt, self.now) {
            Ok(step) => step,
            Err(expected) => return same_error(&expected, seen),
        };
        let seen = seen?;
        let mut expected = step.answer;
        if let Some(mut written) = step.write {
            // The store's clock mints the fence, and the model does not know what it shows.
            let before = self.row.as_ref().map_or(Fence(0), |row| row.fence);
            ensure!(seen.fence > before, "fence {} came after {before}", seen.fence);
            written.fence = seen.fence;
            expected.fence = seen.fence;
            self.row = Some(written);
        }
        self.same_record(&expected, &seen)
    }

    fn same_record(&self, expected: &Record, seen: &Record) -> Verdict {
        let same_state = match (&expected.state, &seen.state) {
            (State::Pending { left: expected }, State::Pending { left: seen }) => {
                self.same_left(*expected, *seen)
            }
            (expected, seen) => expected == seen,
        };
        let same = Record { state: expected.state.clone(), ..seen.clone() } == *expected;
        ensure!(same && same_state, "expected {expected:?}, got {seen:?}");
        Ok(())
    }

    fn same_left(&self, expected: Duration, seen: Duration) -> bool {
        if self.exact { expected == seen } else { expected.is_zero() == seen.is_zero() }
    }

    async fn renew(&mut self, client: usize, by: By) -> Verdict {
        let by = match by {
            By::Nothing => Duration::ZERO,
            By::Short => self.lab.short(),
            By::Long => LONG * 2,
        };
        let lease = self.lease(client);
        let seen = self.store.renew(&lease, by).await;
        match model::renew(self.row.as_ref(), &lease, by, self.now) {
            Ok(step) => {
                let seen = seen?;
                let same = self.same_left(step.answer, seen);
                ensure!(same, "expected {:?} left, got {seen:?}", step.answer);
                self.row = step.write.or(self.row.take());
                Ok(())
            }
            Err(expected) => same_error(&expected, seen),
        }
    }

    async fn complete(&mut self, client: usize, payload: &[u8], kept: Duration) -> Verdict {
        let lease = self.lease(client);
        let seen = self.store.complete_for(&lease, payload, kept).await;
        let bytes = Bytes::copy_from_slice(payload);
        match model::complete(self.row.as_ref(), &lease, &bytes, kept, self.now) {
            Ok(step) => {
                seen?;
                self.row = step.write.or(self.row.take());
                Ok(())
            }
            Err(expected) => same_error(&expected, seen),
        }
    }

    async fn release(&mut self, client: usize) -> Verdict {
        let lease = self.lease(client);
        let seen = self.store.release(&lease).await;
        match model::release(self.row.as_ref(), &lease, self.now) {
            Ok(step) => {
                seen?;
                self.row = step.write.or(self.row.take());
                Ok(())
            }
            Err(expected) => same_error(&expected, seen),
        }
    }
}

fn same_error<T: std::fmt::Debug>(expected: &StoreError, seen: Result<T, StoreError>) -> Verdict {
    match seen {
        Err(seen) if seen.code() == expected.code() => Ok(()),
        seen => Err(Failure::violated(format!("expected {expected:?}, got {seen:?}"))),
    }
}
