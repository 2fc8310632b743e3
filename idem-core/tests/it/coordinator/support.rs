//! A provider that counts its charges, and a store that fails when told to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) use idem_conformance::{Trouble, Verb};
use idem_core::observe::Event;
use idem_core::{
    Attempt, Builder, Call, Coordinator, Fingerprint, Key, Outcome, Refusal, RunError,
    RunningAttempt, Scope, Store, StoreBudget,
};
use idem_memory::MemoryStore;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SEC: Duration = Duration::from_secs(1);

/// Charges cards, and remembers every charge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provider(Arc<AtomicU32>);

impl Provider {
    /// How many charges were made.
    pub(crate) fn charges(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Makes a charge at once, and answers after `takes`.
    pub(crate) async fn charge(self, takes: Duration) -> Result<String, String> {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(takes).await;
        Ok(format!("ch_{number}"))
    }

    /// An action that charges.
    pub(crate) fn action(
        &self,
        takes: Duration,
    ) -> impl FnOnce(RunningAttempt) -> futures::Charge + Send + 'static {
        let provider = self.clone();
        move |_| Box::pin(provider.charge(takes))
    }
}

pub(crate) mod futures {
    use std::future::Future;
    use std::pin::Pin;

    /// A charge that is being made.
    pub(crate) type Charge = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
}

/// What a call to [`Provider::action`] comes to.
pub(crate) type Charged = Result<Outcome<String>, RunError<String>>;

pub(crate) fn fingerprint(of: u8) -> Fingerprint {
    Fingerprint::from_bytes([of; 32])
}

pub(crate) fn coordinator(store: impl Store + 'static) -> Builder {
    Coordinator::builder(store)
}

/// The call that every test makes: operation `charge`, key `k`, request 1.
pub(crate) fn call(coordinator: &Coordinator) -> Call {
    coordinator.operation("charge").key("k").fingerprint(fingerprint(1))
}

pub(crate) fn key() -> Key {
    Key::new(Scope::new("charge").unwrap(), "k").unwrap()
}

/// Another process's attempt at the same request.
pub(crate) fn rival(lease: Duration) -> Attempt {
    Attempt::new(key(), fingerprint(1)).lease(lease)
}

/// Lets the tasks that can run do so, at the same virtual moment.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// A budget whose tries fail fast.
pub(crate) fn hasty() -> StoreBudget {
    StoreBudget::default().per_try(100 * MS).tries(2).total(SEC).breaker(1_000, SEC)
}

/// A memory store that fails when told to, and counts what it is asked.
pub(crate) type Faulty = Arc<idem_conformance::Faulty<MemoryStore>>;

pub(crate) fn faulty() -> Faulty {
    Arc::new(idem_conformance::Faulty::new(MemoryStore::new()))
}

/// The store has no room.
pub(crate) const FULL: Trouble = Trouble::Refused(Refusal::Full);
/// The store lacks a right.
pub(crate) const PERMISSION: Trouble = Trouble::Refused(Refusal::Permission);

/// Remembers the names of all transitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<&'static str>>>);

impl Events {
    pub(crate) fn observer(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let events = self.clone();
        move |event| events.0.lock().unwrap().push(event.what.name())
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|event| **event == name).count()
    }
}
