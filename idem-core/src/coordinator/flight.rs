//! Calls under way in this process, so that callers with one key share one remote wait, one run
//! and one answer, also while the store is down.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::CallError;
use super::sync::{Mutex, MutexGuard};
use crate::fingerprint::Fingerprint;
use crate::key::Key;

/// How a flight ended for those who followed it.
#[derive(Clone, Debug)]
pub(super) enum Landed {
    /// With an answer: the bytes of an envelope.
    Answer {
        answer: Bytes,
        /// Whether the store has it.
        recorded: bool,
    },
    /// With an error that holds for every caller of the same request.
    Refused(CallError),
    /// Without either: look again.
    Again,
}

/// What those who follow a flight can see of it.
#[derive(Clone, Debug)]
enum State {
    /// Asking or waiting for the store; some other attempt's lease is known to end then.
    Seeking {
        until: Option<Instant>,
    },
    /// The action runs here, under a lease that is known to last until then, or unprotected.
    Running {
        until: Option<Instant>,
    },
    Landed(Landed),
}

/// All flights of a coordinator.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<Key, Vec<Arc<Entry>>>>>);

#[derive(Debug)]
struct Entry {
    fingerprint: Fingerprint,
    state: watch::Sender<State>,
}

/// A place in the flight for a key.
#[derive(Debug)]
pub(super) enum Seat {
    Lead(Flight),
    Follow(Follower),
}

/// Leads: asks the store, runs the action, and lets the followers know.
///
/// Dropped before it has landed, it sends its followers to look again.
#[derive(Debug)]
pub(super) struct Flight {
    flights: Flights,
    key: Key,
    entry: Arc<Entry>,
}

/// Waits for what the leader finds.
#[derive(Debug)]
pub(super) struct Follower(watch::Receiver<State>);

/// Why an action must not run, although the store would let it or does not answer.
#[derive(Debug)]
pub(super) enum Standing {
    /// It runs in this process already, with another request under the key.
    OtherRequest(Fingerprint),
    /// It runs in this process already.
    SameRequest(Follower),
}

impl Flights {
    /// Follows the flight of the same request, or leads one.
    pub(super) fn board(&self, key: &Key, fingerprint: Fingerprint) -> Seat {
        let mut flights = self.entries();
        let of_key = flights.entry(key.clone()).or_default();
        if let Some(entry) = of_key.iter().find(|entry| entry.fingerprint == fingerprint) {
            return Seat::Follow(Follower(entry.state.subscribe()));
        }
        Seat::Lead(self.lead(of_key, key, fingerprint))
    }

    /// Leads a flight of one's own, whoever else flies; only an answer that is there already, and
    /// that the store may not have yet, is followed.
    pub(super) fn board_alone(&self, key: &Key, fingerprint: Fingerprint) -> Seat {
        let mut flights = self.entries();
        let of_key = flights.entry(key.clone()).or_default();
        let answered = of_key.iter().find(|entry| {
            entry.fingerprint == fingerprint
                && matches!(*entry.state.borrow(), State::Landed(Landed::Answer { .. }))
        });
        if let Some(entry) = answered {
            return Seat::Follow(Follower(entry.state.subscribe()));
        }
        Seat::Lead(self.lead(of_key, key, fingerprint))
    }

    /// Whether nobody flies.
    #[cfg(all(test, shuttle))]
    pub(super) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    fn lead(&self, of_key: &mut Vec<Arc<Entry>>, key: &Key, fingerprint: Fingerprint) -> Flight {
        let state = watch::Sender::new(State::Seeking { until: None });
        let entry = Arc::new(Entry { fingerprint, state });
        of_key.push(Arc::clone(&entry));
        Flight { flights: self.clone(), key: key.clone(), entry }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<Entry>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Some other attempt holds the key until then.
    pub(super) fn seeking(&self, until: Instant) {
        self.set(State::Seeking { until: Some(until) });
    }

    /// The action runs, under a lease until then or without one, unless it runs in this process
    /// already: whatever the store said meanwhile, one process runs it once.
    pub(super) fn run(&self, until: Option<Instant>) -> Result<(), Standing> {
        let flights = self.flights.entries();
        let others = flights.get(&self.key).into_iter().flatten();
        for other in others.filter(|other| !Arc::ptr_eq(other, &self.entry)) {
            let stands = match &*other.state.borrow() {
                State::Running { .. } | State::Landed(Landed::Answer { .. }) => true,
                State::Seeking { .. } | State::Landed(_) => false,
            };
            if stands && other.fingerprint == self.entry.fingerprint {
                return Err(Standing::SameRequest(Follower(other.state.subscribe())));
            }
            if stands {
                return Err(Standing::OtherRequest(other.fingerprint));
            }
        }
        self.set(State::Running { until });
        Ok(())
    }

    /// The lease that the action runs under was renewed.
    pub(super) fn renewed(&self, until: Instant) {
        self.set(State::Running { until: Some(until) });
    }

    /// Tells the followers, and whoever comes until this is dropped, an answer that the store does
    /// not have yet.
    pub(super) fn answered(&self, answer: Bytes) {
        self.set(State::Landed(Landed::Answer { answer, recorded: false }));
    }

    /// Tells the followers, and is gone.
    pub(super) fn land(&self, landed: Landed) {
        self.leave();
        self.set(State::Landed(landed));
    }

    fn set(&self, state: State) {
        self.entry.state.send_if_modified(|current| {
            // The first landing stands.
            let open = !matches!(current, State::Landed(_));
            if open {
                *current = state;
            }
            // Waking is dear, even of nobody. Who begins to follow now reads the state after this
            // has written it, or was counted.
            open && self.entry.state.receiver_count() > 0
        });
    }

    fn leave(&self) {
        let mut flights = self.flights.entries();
        if let Some(of_key) = flights.get_mut(&self.key) {
            of_key.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
            if of_key.is_empty() {
                flights.remove(&self.key);
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.land(Landed::Again);
    }
}

impl Follower {
    /// Waits until the flight has landed.
    pub(super) async fn landed(&mut self) -> Landed {
        let landed = self.0.wait_for(|state| matches!(state, State::Landed(_))).await;
        match landed.as_deref() {
            Ok(State::Landed(landed)) => landed.clone(),
            _ => Landed::Again,
        }
    }

    /// Until when the key is known to be held.
    pub(super) fn held_until(&self) -> Option<Instant> {
        match &*self.0.borrow() {
            State::Seeking { until } | State::Running { until } => *until,
            State::Landed(_) => None,
        }
    }
}
