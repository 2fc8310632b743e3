//! Each verb beside the commands that it stands for, by as many callers at once.

use std::time::Duration;

use bytes::Bytes;
use idem_bench::{Better, BoxError, Comparison, Options, fresh_attempts, time};
use idem_core::{Attempt, Fence, Lease, State, Store};
use idem_redis::RedisStore;
use tokio::runtime::Runtime;

use crate::bare::Bare;

const DAY: Duration = Duration::from_hours(24);
/// The size of an answer.
const ANSWER: Bytes = Bytes::from_static(&[7; 1 << 10]);
/// The size of a record without one.
const RECORD: Bytes = Bytes::from_static(&[7; 78]);

const ONE: Bytes = Bytes::from_static(b"1");
const NX: Bytes = Bytes::from_static(b"NX");
const PX: Bytes = Bytes::from_static(b"PX");
const DAY_MS: Bytes = Bytes::from_static(b"86400000");

/// As little as a script can be, and one that does no more than the command does.
const NOTHING: &str = "return false";
const SET: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', '86400000')";
const GET: &str = "return redis.call('GET', KEYS[1])";

pub(crate) fn compare(
    options: &Options,
    runtime: &Runtime,
    bare: &Bare,
    store: &RedisStore,
    callers: usize,
) -> Result<(), BoxError> {
    // About as long for one caller as for many.
    let calls = if callers == 1 { options.count(4_000, 64) } else { options.count(16_000, 64) };
    let bench = Bench { runtime, bare, store, callers, each: calls / callers };
    let targets = if callers == 1 {
        [Some(">= 0.90"), None, Some(">= 0.90"), Some(">= 0.90")]
    } else {
        [Some(">= 0.90"), None, Some(">= 0.90"), Some(">= 0.75 at 64")]
    };
    let title = format!("redis, {bare}, {callers} caller(s)");
    let phases = ["reserve", "complete", "replay", "fresh"];
    Comparison::new(title, "us/call", Better::Higher, phases)
        .way("SET NX PX, SET PX, GET", || bench.bare(None))
        .way("the same, in scripts", || bench.bare(Some([SET, GET])))
        .way("scripts of nothing", || bench.bare(Some([NOTHING, NOTHING])))
        .way_with_targets("RedisStore", targets, || bench.store())
        .run(options)
}

struct Bench<'a> {
    runtime: &'a Runtime,
    bare: &'a Bare,
    store: &'a RedisStore,
    callers: usize,
    each: usize,
}

impl Bench<'_> {
    fn attempts(&self) -> Result<Vec<Vec<Attempt>>, BoxError> {
        fresh_attempts(self.callers, self.each)
    }

    /// Each turn begins with an empty server that knows its scripts.
    fn clear(&self) -> Result<(), BoxError> {
        self.runtime.block_on(self.bare.send("FLUSHALL", []))?;
        Ok(())
    }

    fn bare(&self, scripts: Option<[&'static str; 2]>) -> Result<[f64; 4], BoxError> {
        self.clear()?;
        let by = self.runtime.block_on(By::new(self.bare.clone(), scripts))?;
        let names = || -> Result<Vec<Vec<Bytes>>, BoxError> {
            let name = |attempt: &Attempt| self.store.record_name(attempt.key()).into();
            Ok(self.attempts()?.iter().map(|all| all.iter().map(name).collect()).collect())
        };
        let keys = names()?;
        let own = by.clone();
        let reserve = time(self.runtime, keys.clone(), move |key| own.clone().reserve(key))?;
        let own = by.clone();
        let complete = time(self.runtime, keys.clone(), move |key| own.clone().complete(key))?;
        let own = by.clone();
        let replay = time(self.runtime, keys, move |key| own.clone().replay(key))?;
        let fresh = time(self.runtime, names()?, move |key| {
            let by = by.clone();
            async move {
                by.clone().reserve(key.clone()).await?;
                by.complete(key).await
            }
        })?;
        Ok([reserve, complete, replay, fresh])
    }

    fn store(&self) -> Result<[f64; 4], BoxError> {
        self.clear()?;
        let attempts = self.attempts()?;
        let retries: Vec<Vec<Attempt>> =
            attempts.iter().map(|all| all.iter().map(again).collect()).collect();
        let leases: Vec<Vec<Lease>> =
            attempts.iter().map(|all| all.iter().map(lease).collect()).collect();
        let store = self.store.clone();
        let reserve = time(self.runtime, attempts, move |attempt| {
            let store = store.clone();
            async move { take(&store, &attempt).await }
        })?;
        let store = self.store.clone();
        let complete = time(self.runtime, leases, move |lease| {
            let store = store.clone();
            async move { finish(&store, &lease).await }
        })?;
        let store = self.store.clone();
        let replay = time(self.runtime, retries, move |retry| {
            let store = store.clone();
            async move {
                match store.reserve(&retry).await?.state {
                    State::Completed { payload: Some(_) } => Ok(()),
                    other => Err(format!("not replayed: {other:?}").into()),
                }
            }
        })?;
        let store = self.store.clone();
        let fresh = time(self.runtime, self.attempts()?, move |attempt| {
            let store = store.clone();
            async move {
                take(&store, &attempt).await?;
                finish(&store, &lease(&attempt)).await
            }
        })?;
        Ok([reserve, complete, replay, fresh])
    }
}

/// The commands, or scripts in their place.
#[derive(Clone)]
struct By {
    bare: Bare,
    scripts: Option<[Bytes; 2]>,
}

impl By {
    async fn new(bare: Bare, scripts: Option<[&'static str; 2]>) -> Result<Self, BoxError> {
        let Some([set, get]) = scripts else { return Ok(Self { bare, scripts: None }) };
        let scripts = Some([load(&bare, set).await?, load(&bare, get).await?]);
        Ok(Self { bare, scripts })
    }

    async fn reserve(self, key: Bytes) -> Result<(), BoxError> {
        match self.scripts {
            Some([set, _]) => self.bare.send("EVALSHA", [set, ONE, key, RECORD]).await?,
            None => self.bare.send("SET", [key, RECORD, NX, PX, DAY_MS]).await?,
        };
        Ok(())
    }

    async fn complete(self, key: Bytes) -> Result<(), BoxError> {
        match self.scripts {
            Some([set, _]) => self.bare.send("EVALSHA", [set, ONE, key, ANSWER]).await?,
            None => self.bare.send("SET", [key, ANSWER, PX, DAY_MS]).await?,
        };
        Ok(())
    }

    async fn replay(self, key: Bytes) -> Result<(), BoxError> {
        match self.scripts {
            Some([_, get]) => self.bare.send("EVALSHA", [get, ONE, key]).await?,
            None => self.bare.send("GET", [key]).await?,
        };
        Ok(())
    }
}

async fn load(bare: &Bare, script: &'static str) -> Result<Bytes, BoxError> {
    let words = [Bytes::from_static(b"LOAD"), Bytes::from_static(script.as_bytes())];
    Ok(bare.send("SCRIPT", words).await?.text().ok_or("no name of a script")?.into())
}

async fn take(store: &RedisStore, attempt: &Attempt) -> Result<(), BoxError> {
    let record = store.reserve(attempt).await?;
    if record.holder == attempt.id() { Ok(()) } else { Err("not granted".into()) }
}

async fn finish(store: &RedisStore, lease: &Lease) -> Result<(), BoxError> {
    Ok(store.complete(lease, &ANSWER, DAY).await?)
}

fn again(attempt: &Attempt) -> Attempt {
    Attempt::new(attempt.key().clone(), attempt.fingerprint())
}

/// The lease that the attempt will be granted. A store does not check its fence.
fn lease(attempt: &Attempt) -> Lease {
    Lease::new(attempt.key().clone(), attempt.id(), Fence(1))
}
