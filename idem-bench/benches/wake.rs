//! How soon those who wait for a key have its answer, on the memory store.

use std::sync::Arc;
use std::time::Instant;

use idem_bench::wake::{SETTLE, coordinated, delays, in_rounds};
use idem_bench::{Better, BoxError, Charge, Comparison, Options, key_text};
use idem_memory::MemoryStore;
use tokio::sync::watch;
use tokio::task::JoinSet;

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    let runtime =
        &tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for waiters in [1, 100, options.count(1_000, 200)] {
        Comparison::new(
            format!("wake-up, {waiters} waiter(s) on one key"),
            "us",
            Better::Lower,
            ["median", "last"],
        )
        .way("tokio watch, same value", || in_rounds(&options, || runtime.block_on(bare(waiters))))
        .way("another coordinator", || {
            in_rounds(&options, || {
                let store = Arc::new(MemoryStore::new());
                runtime.block_on(coordinated(store.clone(), store, &key_text(1), waiters))
            })
        })
        .run(&options)?;
    }
    Ok(())
}

/// As little as a wake-up can be: a channel that all waiters watch.
async fn bare(waiters: usize) -> Result<[f64; 2], BoxError> {
    let (send, receive) = watch::channel(None::<Arc<Charge>>);
    let mut waiting = JoinSet::new();
    for _ in 0..waiters {
        let mut receive = receive.clone();
        waiting.spawn(async move {
            let charge = receive.wait_for(Option::is_some).await?.as_deref().cloned();
            charge.ok_or("no charge")?;
            Ok(Instant::now())
        });
    }
    tokio::time::sleep(SETTLE).await;
    let started = Instant::now();
    send.send(Some(Arc::new(Charge::sample())))?;
    delays(started, waiting).await
}
