//! The coordinator beside the same verbs called by hand.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_bench::{Better, BoxError, Charge, Comparison, Options, Remote, key_text};
use idem_core::envelope::{Body, CodecId, Envelope};
use idem_core::{Attempt, Coordinator, Fingerprint, Key, Operation, Scope, Store, Verdict};
use idem_memory::MemoryStore;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const OPERATION: &str = "payment.charge";
const FINGERPRINT: Fingerprint = Fingerprint::from_bytes([7; 32]);
/// A round trip to a store in the same data centre.
const ROUND_TRIP: Duration = Duration::from_micros(150);

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for callers in [1, 64] {
        let title = format!("coordinator, memory store, {callers} caller(s)");
        let load = Load { runtime: &runtime, callers, calls: options.count(50_000, 640) };
        compare(title, [None; 2], &load, MemoryStore::new, &options)?;
    }
    for callers in [1, 64] {
        let title = format!("coordinator, store 150 us away, {callers} caller(s)");
        let calls = options.count(if callers == 1 { 1_000 } else { 20_000 }, 640);
        let load = Load { runtime: &runtime, callers, calls };
        let far = || Remote::new(MemoryStore::new(), ROUND_TRIP);
        compare(title, [Some(">= .95"); 2], &load, far, &options)?;
    }
    Ok(())
}

fn compare<S: Store + 'static>(
    title: String,
    targets: [Option<&'static str>; 2],
    load: &Load<'_>,
    store: impl Fn() -> S,
    options: &Options,
) -> Result<(), BoxError> {
    Comparison::new(title, "us/call", Better::Higher, ["fresh", "replay"])
        .way("verbs by hand", || load.measure(&Arc::new(ByHand::new(store())?)))
        .way_with_targets("coordinator", targets, || load.measure(&Arc::new(Whole::new(store())?)))
        .run(options)
}

/// A charge under a key, whichever way. Says whether it was replayed.
trait Charging: Send + Sync + 'static {
    fn charge(&self, key: &str) -> impl Future<Output = Result<(Charge, bool), BoxError>> + Send;
}

/// The action: a provider that answers at once.
#[expect(clippy::unused_async, reason = "an action is async")]
async fn provider(answer: Arc<Charge>) -> Result<Charge, Infallible> {
    Ok((*answer).clone())
}

/// Reserves, judges, runs, encodes and completes, and does nothing else: no time budget, no
/// heartbeat, no waiting, no check that a replay will be alike.
struct ByHand<S> {
    store: S,
    scope: Scope,
    answer: Arc<Charge>,
}

impl<S> ByHand<S> {
    fn new(store: S) -> Result<Self, BoxError> {
        Ok(Self { store, scope: Scope::new(OPERATION)?, answer: Arc::new(Charge::sample()) })
    }
}

impl<S: Store + 'static> Charging for ByHand<S> {
    async fn charge(&self, key: &str) -> Result<(Charge, bool), BoxError> {
        let key = Key::new(self.scope.clone(), key)?;
        let attempt = Attempt::new(key, FINGERPRINT);
        match self.store.reserve(&attempt).await?.verdict(&attempt)? {
            Verdict::Acquired { lease, .. } => {
                let charge = provider(Arc::clone(&self.answer)).await?;
                let body = Body::Value(serde_json::to_vec(&charge)?.into());
                let payload = Envelope { codec: CodecId::JSON, body }.encode();
                self.store.complete(&lease, &payload, attempt.retention_for()).await?;
                Ok((charge, false))
            }
            Verdict::Replay(payload) => match Envelope::decode(&payload)?.body {
                Body::Value(bytes) => Ok((serde_json::from_slice(&bytes)?, true)),
                _ => Err("not a value".into()),
            },
            other => Err(format!("unexpected {other:?}").into()),
        }
    }
}

/// Leaves it all to the coordinator.
struct Whole {
    operation: Operation,
    answer: Arc<Charge>,
}

impl Whole {
    fn new(store: impl Store + 'static) -> Result<Self, BoxError> {
        let operation = Coordinator::builder(store).build()?.operation(OPERATION);
        Ok(Self { operation, answer: Arc::new(Charge::sample()) })
    }
}

impl Charging for Whole {
    async fn charge(&self, key: &str) -> Result<(Charge, bool), BoxError> {
        let call = self.operation.key(key).fingerprint(FINGERPRINT);
        let answer = Arc::clone(&self.answer);
        let outcome = call.run(move |_| provider(answer)).await?;
        Ok((outcome.value, outcome.replayed))
    }
}

/// How many calls are made, by how many callers at a time.
struct Load<'a> {
    runtime: &'a Runtime,
    callers: usize,
    calls: usize,
}

impl Load<'_> {
    fn measure(&self, charging: &Arc<impl Charging>) -> Result<[f64; 2], BoxError> {
        let fresh = self.runtime.block_on(self.all(charging, false))?;
        let replay = self.runtime.block_on(self.all(charging, true))?;
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 calls")]
        let micros = |took: Duration| took.as_secs_f64() * 1e6 / self.calls as f64;
        Ok([micros(fresh), micros(replay)])
    }

    /// One call under each key.
    async fn all(
        &self,
        charging: &Arc<impl Charging>,
        replayed: bool,
    ) -> Result<Duration, BoxError> {
        let started = Instant::now();
        let mut callers = JoinSet::new();
        for caller in 0..self.callers {
            let charging = Arc::clone(charging);
            let keys = (caller..self.calls).step_by(self.callers);
            callers.spawn(async move {
                for key in keys {
                    if charging.charge(&key_text(key)).await?.1 != replayed {
                        return Err("a call did something else".into());
                    }
                }
                Ok::<_, BoxError>(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(started.elapsed())
    }
}
