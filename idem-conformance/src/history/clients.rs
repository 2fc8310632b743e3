//! Clients that do random things to one key at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use idem_core::{Applied, Attempt, Fence, Lease, Store, StoreError};
use tokio::task::JoinSet;

use crate::failure::Verdict;
use crate::faulty::{Faulty, Trouble};
use crate::harness::{Fault, HookError};
use crate::history::operation::{Answer, Call, Operation};
use crate::lab::{KEPT, LONG, Lab, Moment, OTHER, REQUEST};

/// What the clients of one history have in common.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    /// Operations of each.
    pub(crate) operations: usize,
    /// Whether answers are lost, and calls fail if the harness can make them.
    pub(crate) faults: bool,
}

/// Runs one history on a fresh key.
pub(crate) async fn history(lab: &Lab, plan: &Plan, rng: &mut Rng) -> Verdict<Vec<Operation>> {
    let key = lab.attempt()?.key().clone();
    let counter = Arc::new(AtomicU64::new(0));
    let mut running = JoinSet::new();
    for number in 0..plan.clients {
        let handle = if number % 2 == 0 { lab.store() } else { lab.fork_or_store().await? };
        let attempt = Attempt::new(key.clone(), REQUEST);
        let client = Client {
            lab: lab.clone(),
            store: Faulty::new(handle.into_inner()),
            counter: Arc::clone(&counter),
            attempt: Arc::new(attempt),
            rng: Rng::with_seed(rng.u64(..)),
            faults: plan.faults,
        };
        running.spawn(client.run(plan.operations));
    }
    let mut history = Vec::new();
    while let Some(client) = running.join_next().await {
        history.extend(client??);
    }
    Ok(history)
}

struct Client {
    lab: Lab,
    store: Faulty<Arc<dyn Store>>,
    counter: Arc<AtomicU64>,
    /// The attempt whose lease it uses, whether it was granted or not.
    attempt: Arc<Attempt>,
    rng: Rng,
    faults: bool,
}

impl Client {
    async fn run(mut self, operations: usize) -> Verdict<Vec<Operation>> {
        self.attempt = self.new_attempt();
        let mut seen = Vec::new();
        for _ in 0..operations {
            if self.rng.u8(..8) == 0 {
                self.wait().await?;
            }
            if self.rng.bool() {
                tokio::task::yield_now().await;
            }
            let call = self.choose();
            if self.faults {
                self.provoke().await?;
            }
            seen.extend(self.try_call(call).await?);
        }
        Ok(seen)
    }

    fn new_attempt(&mut self) -> Arc<Attempt> {
        let request = if self.rng.u8(..8) == 0 { OTHER } else { REQUEST };
        let lease = if self.rng.bool() { self.lab.short() } else { LONG };
        let attempt = Attempt::new(self.attempt.key().clone(), request);
        let takeover = self.rng.u8(..5) != 0;
        Arc::new(attempt.lease(lease).retention(KEPT).takeover(takeover))
    }

    /// Lets part of a short lease pass; seldom, where that really takes its time.
    async fn wait(&mut self) -> Verdict {
        if self.lab.has_virtual_clock() {
            return self.lab.pass(self.lab.short() / self.rng.u32(1..4)).await;
        }
        if self.rng.u8(..6) == 0 { self.lab.pass(self.lab.short()).await } else { Ok(()) }
    }

    fn choose(&mut self) -> Call {
        let id = self.attempt.id();
        match self.rng.u8(..16) {
            0..6 => {
                self.attempt = self.new_attempt();
                Call::Reserve(Arc::clone(&self.attempt))
            }
            6..8 => Call::Reserve(Arc::clone(&self.attempt)),
            8 => Call::Renew(id, Duration::ZERO),
            9 => Call::Renew(id, self.lab.short()),
            10 => Call::Renew(id, LONG),
            11..14 => Call::Release(id),
            _ => Call::Complete(id, vec![self.rng.u8(..)]),
        }
    }

    /// Sometimes something goes wrong with the next call: here, or at the store, and then with
    /// anybody's.
    async fn provoke(&mut self) -> Verdict {
        let fault = match self.rng.u8(..16) {
            0..3 => {
                self.store.next_of_any(Trouble::ReplyLost);
                return Ok(());
            }
            3 => Fault::Before,
            4 => Fault::After,
            _ => return Ok(()),
        };
        match self.lab.harness().fail_next(fault).await {
            Ok(()) | Err(HookError::Missing(_)) => Ok(()),
            Err(failed) => Err(failed.into()),
        }
    }

    /// What became of the call; nothing, if it was certainly not applied.
    async fn try_call(&self, call: Call) -> Verdict<Option<Operation>> {
        let (sent, began) = (self.counter.fetch_add(1, Ordering::SeqCst), self.lab.now());
        let answer = self.send(&call).await;
        let (ended, answered) = (self.lab.now(), self.counter.fetch_add(1, Ordering::SeqCst));
        let earliest = began.earliest;
        let operation = match answer {
            Ok(answer) => {
                let moment = Moment { earliest, latest: ended.latest };
                Operation { sent, answered, moment, call, answer: Some(answer) }
            }
            Err(StoreError::Unavailable { applied: Applied::No, .. }) => return Ok(None),
            Err(StoreError::Unavailable { applied: Applied::Unknown, .. }) => {
                let moment = Moment { earliest, latest: Duration::MAX };
                Operation { sent, answered: u64::MAX, moment, call, answer: None }
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Some(operation))
    }

    async fn send(&self, call: &Call) -> Result<Answer, StoreError> {
        // The id alone makes a holder (law L4), so that a client need not have been told a fence.
        let lease = |id| Lease::new(self.attempt.key().clone(), id, Fence(0));
        match call {
            Call::Reserve(attempt) => Answer::of(self.store.reserve(attempt).await, Answer::Record),
            Call::Renew(id, by) => {
                Answer::of(self.store.renew(&lease(*id), *by).await, Answer::Left)
            }
            Call::Complete(id, payload) => {
                let payload = Bytes::from(payload.clone());
                let done = self.store.complete(&lease(*id), &payload, KEPT).await;
                Answer::of(done, |()| Answer::Done)
            }
            Call::Release(id) => {
                Answer::of(self.store.release(&lease(*id)).await, |()| Answer::Done)
            }
        }
    }
}
