//! A store that fails when told to.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{Applied, Attempt, Key, Lease, Record, Refusal, Store, StoreError, Watch};

/// A verb of [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the verbs are the contract's")]
pub enum Verb {
    /// [`Store::reserve`].
    Reserve,
    /// [`Store::renew`].
    Renew,
    /// [`Store::complete`].
    Complete,
    /// [`Store::release`].
    Release,
    /// [`Store::watch`].
    Watch,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 5] =
        [Self::Reserve, Self::Renew, Self::Complete, Self::Release, Self::Watch];
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The request does not arrive, and the caller is told so.
    NotApplied,
    /// The request is carried out and its reply lost (case C103): the caller is told that it may
    /// have been.
    ReplyLost,
    /// Nothing is carried out, and nothing is answered, ever (case C102).
    Hangs,
    /// The request is carried out after so long, and then answered.
    Late(Duration),
    /// The request is carried out at once, and answered after so long.
    LateReply(Duration),
    /// The store refuses; nothing is carried out.
    Refused(Refusal),
    /// There is a record that cannot be read.
    Corrupt,
    /// The driver has a bug.
    Panics,
    /// For a renewal: it is carried out after so long, even if nobody waits for it any more.
    OnTheWire(Duration),
    /// For a watch: it is granted, and never hints.
    NeverHints,
}

/// A store that fails when told to, and counts what it is asked. Works over any store.
///
/// It is how the coordinator is tried on a store that is right, and out of reach. See
/// [`wrong`](crate::wrong) for stores that are wrong.
pub struct Faulty<S> {
    store: Arc<S>,
    script: Mutex<Script>,
}

#[derive(Debug, Default)]
struct Script {
    /// `None` stands for whichever verb comes first.
    next: VecDeque<(Option<Verb>, Trouble)>,
    always: Vec<(Verb, Trouble)>,
    asked: Vec<Verb>,
}

impl<S> Faulty<S> {
    /// The store, without a fault yet.
    pub fn new(store: S) -> Self {
        Self { store: Arc::new(store), script: Mutex::default() }
    }

    /// The store behind the faults: what another process, with no trouble, sees.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// One call of the verb goes wrong so: the first that has no earlier trouble of its own.
    pub fn next(&self, verb: Verb, trouble: Trouble) {
        self.script().next.push_back((Some(verb), trouble));
    }

    /// The next call of a verb, whichever it is, goes wrong so. A watch is none.
    pub fn next_of_any(&self, trouble: Trouble) {
        self.script().next.push_back((None, trouble));
    }

    /// Every call of the verb goes wrong so, until [`heal`](Self::heal).
    pub fn always(&self, verb: Verb, trouble: Trouble) {
        self.script().always.push((verb, trouble));
    }

    /// Every call of every verb goes wrong so, until [`heal`](Self::heal).
    pub fn down(&self, trouble: Trouble) {
        for verb in Verb::ALL {
            self.always(verb, trouble);
        }
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        let mut script = self.script();
        script.next.clear();
        script.always.clear();
    }

    /// How often the verb was asked for.
    pub fn asked(&self, verb: Verb) -> usize {
        self.script().asked.iter().filter(|asked| **asked == verb).count()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self, verb: Verb) -> Option<Trouble> {
        let mut script = self.script();
        script.asked.push(verb);
        let due = |of: &Option<Verb>| of.map_or(verb != Verb::Watch, |of| of == verb);
        if let Some(at) = script.next.iter().position(|(of, _)| due(of)) {
            return script.next.remove(at).map(|(_, trouble)| trouble);
        }
        script.always.iter().find(|(of, _)| *of == verb).map(|(_, trouble)| *trouble)
    }

    async fn with<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        suffer(self.trouble(verb), call).await
    }
}

#[expect(clippy::panic, reason = "as told")]
async fn suffer<T>(
    trouble: Option<Trouble>,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match trouble {
        None | Some(Trouble::NeverHints | Trouble::OnTheWire(_)) => call.await,
        Some(Trouble::NotApplied) => {
            Err(StoreError::unavailable(Applied::No, "the connection was refused"))
        }
        Some(Trouble::ReplyLost) => {
            // Whatever it came to, nobody learns of it.
            let _ = call.await;
            Err(StoreError::unavailable(Applied::Unknown, "the connection was reset"))
        }
        Some(Trouble::Hangs) => std::future::pending().await,
        Some(Trouble::Late(by)) => {
            tokio::time::sleep(by).await;
            call.await
        }
        Some(Trouble::LateReply(by)) => {
            let reply = call.await;
            tokio::time::sleep(by).await;
            reply
        }
        Some(Trouble::Refused(refusal)) => Err(StoreError::refused(refusal, "as told")),
        Some(Trouble::Corrupt) => Err(StoreError::corrupt("as told")),
        Some(Trouble::Panics) => panic!("a bug in the driver"),
    }
}

#[async_trait]
impl<S: Store + 'static> Store for Faulty<S> {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        self.with(Verb::Reserve, self.store.reserve(attempt)).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        let trouble = self.trouble(Verb::Renew);
        if let Some(Trouble::OnTheWire(by)) = trouble {
            let (store, lease) = (Arc::clone(&self.store), lease.clone());
            let sent = tokio::spawn(async move {
                tokio::time::sleep(by).await;
                store.renew(&lease, duration).await
            });
            return sent.await.unwrap_or_else(|_| {
                Err(StoreError::unavailable(Applied::Unknown, "the runtime was shut down"))
            });
        }
        suffer(trouble, self.store.renew(lease, duration)).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        self.with(Verb::Complete, self.store.complete(lease, payload, retention)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.with(Verb::Release, self.store.release(lease)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let deaf = {
            let script = self.script();
            script.always.contains(&(Verb::Watch, Trouble::NeverHints))
        };
        let watch = self.with(Verb::Watch, self.store.watch(key)).await?;
        if deaf { Ok(Watch::new(Deaf(watch))) } else { Ok(watch) }
    }
}

/// A subscription whose hints are lost, as when its connection has died unnoticed.
struct Deaf(#[expect(dead_code, reason = "kept, so that it stays subscribed")] Watch);

impl futures_core::Stream for Deaf {
    type Item = ();

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<()>> {
        std::task::Poll::Pending
    }
}

impl<S> fmt::Debug for Faulty<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("script", &self.script).finish_non_exhaustive()
    }
}
