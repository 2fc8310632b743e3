//! A provider that counts its charges, and a store that fails when told to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::observe::Event;
use idem_core::{
    Applied, Attempt, Builder, Call, Coordinator, Fingerprint, Key, Lease, Outcome, Record,
    RunError, RunningAttempt, Scope, Store, StoreBudget, StoreError, Watch,
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

/// Which verb a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Reserve,
    Renew,
    Complete,
    Release,
    Watch,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The request never arrives.
    NotApplied,
    /// The request is carried out, and the answer lost.
    ReplyLost,
    /// No answer, ever; not carried out.
    Hangs,
    /// The answer comes, late.
    Late(Duration),
    /// The store has no room.
    Full,
    /// The store lacks a right.
    Permission,
    /// The record cannot be read.
    Corrupt,
    /// The driver has a bug.
    Panics,
    /// The request is carried out late, even if nobody waits for the answer any more. Renewals only.
    OnTheWire(Duration),
}

/// A memory store that fails when told to, and counts what it is asked.
#[derive(Clone, Default)]
pub(crate) struct Faulty(Arc<Inner>);

#[derive(Default)]
struct Inner {
    store: MemoryStore,
    next: Mutex<VecDeque<(Verb, Fault)>>,
    always: Mutex<Vec<(Verb, Fault)>>,
    asked: Mutex<Vec<Verb>>,
    watching: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The store behind the faults: what another process sees.
    pub(crate) fn store(&self) -> &MemoryStore {
        &self.0.store
    }

    /// The next call of the verb fails so.
    pub(crate) fn next(&self, verb: Verb, fault: Fault) {
        self.0.next.lock().unwrap().push_back((verb, fault));
    }

    /// Every call of the verb fails so, until [`heal`](Self::heal).
    pub(crate) fn always(&self, verb: Verb, fault: Fault) {
        self.0.always.lock().unwrap().push((verb, fault));
    }

    /// Every call of every verb fails so.
    pub(crate) fn down(&self, fault: Fault) {
        for verb in [Verb::Reserve, Verb::Renew, Verb::Complete, Verb::Release, Verb::Watch] {
            self.always(verb, fault);
        }
    }

    pub(crate) fn heal(&self) {
        self.0.always.lock().unwrap().clear();
        self.0.next.lock().unwrap().clear();
    }

    /// How often the verb was asked for.
    pub(crate) fn asked(&self, verb: Verb) -> usize {
        self.0.asked.lock().unwrap().iter().filter(|asked| **asked == verb).count()
    }

    /// How many watches were begun.
    pub(crate) fn watches(&self) -> usize {
        self.0.watching.load(Ordering::SeqCst)
    }

    fn fault(&self, verb: Verb) -> Option<Fault> {
        self.0.asked.lock().unwrap().push(verb);
        let mut next = self.0.next.lock().unwrap();
        if let Some(at) = next.iter().position(|(of, _)| *of == verb) {
            return next.remove(at).map(|(_, fault)| fault);
        }
        let always = self.0.always.lock().unwrap();
        always.iter().find(|(of, _)| *of == verb).map(|(_, fault)| *fault)
    }

    async fn with<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        Self::suffer(self.fault(verb), call).await
    }

    async fn suffer<T>(
        fault: Option<Fault>,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        use idem_core::Refusal;
        match fault {
            None | Some(Fault::OnTheWire(_)) => call.await,
            Some(Fault::NotApplied) => Err(StoreError::unavailable(Applied::No, "refused")),
            Some(Fault::ReplyLost) => {
                let _ = call.await;
                Err(StoreError::unavailable(Applied::Unknown, "reset"))
            }
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::Late(by)) => {
                tokio::time::sleep(by).await;
                call.await
            }
            Some(Fault::Full) => Err(StoreError::refused(Refusal::Full, "full")),
            Some(Fault::Permission) => Err(StoreError::refused(Refusal::Permission, "noperm")),
            Some(Fault::Panics) => panic!("a bug in the driver"),
            Some(Fault::Corrupt) => Err(StoreError::corrupt("garbage")),
        }
    }
}

#[async_trait]
impl Store for Faulty {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.with(Verb::Reserve, self.0.store.reserve(attempt)).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        let fault = self.fault(Verb::Renew);
        if let Some(Fault::OnTheWire(by)) = fault {
            let (store, lease) = (self.clone(), lease.clone());
            let sent = tokio::spawn(async move {
                tokio::time::sleep(by).await;
                store.0.store.renew(&lease, duration).await
            });
            return sent.await.unwrap();
        }
        Self::suffer(fault, self.0.store.renew(lease, duration)).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.with(Verb::Complete, self.0.store.complete(lease, payload, retention)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.with(Verb::Release, self.0.store.release(lease)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        self.0.watching.fetch_add(1, Ordering::SeqCst);
        self.with(Verb::Watch, self.0.store.watch(key)).await
    }
}

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
