//! How soon those who wait in one process have the answer of another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_bench::wake::{coordinated, in_rounds, median};
use idem_bench::{Better, BoxError, Comparison, Options};
use idem_core::AttemptId;
use idem_memory::MemoryStore;
use idem_redis::RedisStore;
use tokio::runtime::Runtime;

use crate::bare::Bare;

/// After this long without a word, a round trip has to wake everyone on its way.
const IDLE: Duration = Duration::from_millis(5);

/// The unit is a cold round trip: a `PING` after a pause. What the coordinators take by themselves,
/// to decode the answer for each waiter most of all, is shown by the memory store.
pub(crate) fn compare(
    options: &Options,
    runtime: &Runtime,
    bare: &Bare,
    [owner, waits]: [&RedisStore; 2],
    waiters: usize,
) -> Result<(), BoxError> {
    let target = match waiters {
        1 => "<= 2",
        100 => "<= 2.5",
        _ => "<= 6",
    };
    let title = format!("redis wake-up, {bare}, {waiters} waiter(s) on one key");
    Comparison::new(title, "us", Better::Lower, ["median", "last"])
        .way("PING after a pause", || in_rounds(options, || runtime.block_on(cold(bare))))
        .way("MemoryStore, without a trip", || {
            in_rounds(options, || {
                let store = Arc::new(MemoryStore::new());
                runtime.block_on(coordinated(store.clone(), store, "k", waiters))
            })
        })
        .way_with_targets("RedisStore", [Some(target), None], || {
            in_rounds(options, || {
                let key = format!("{:?}", AttemptId::random());
                let (here, there) = (Arc::new(waits.clone()), Arc::new(owner.clone()));
                runtime.block_on(coordinated(here, there, &key, waiters))
            })
        })
        .run(options)
}

async fn cold(bare: &Bare) -> Result<[f64; 2], BoxError> {
    let mut trips = Vec::new();
    for _ in 0..9 {
        tokio::time::sleep(IDLE).await;
        let began = Instant::now();
        bare.send("PING", []).await?;
        trips.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok([median(trips.into_iter()); 2])
}
