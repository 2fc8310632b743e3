//! The scripts of `docs/operating.md`, as they are printed there.

use std::net::SocketAddr;
use std::time::Duration;

use idem_conformance::servers;
use idem_core::{Coordinator, Fingerprint, Store, Verdict};
use idem_redis::RedisStore;

use crate::support::wire::ask;
use crate::support::{acquire, attempt, fresh_key};

const PAGE: &str = include_str!("../../docs/operating.md");

async fn run(server: SocketAddr, script: &str, name: &str, words: &[&str]) -> String {
    let mut eval = vec![&b"EVAL"[..], script.as_bytes(), b"1", name.as_bytes()];
    eval.extend(words.iter().map(|word| word.as_bytes()));
    ask(server, &eval).await.text()
}

// C27
#[tokio::test]
async fn an_abandoned_key_is_found_and_resolved_by_hand() {
    let scripts: Vec<_> = PAGE.split("```lua\n").skip(1).collect();
    let scripts: Vec<_> = scripts.iter().map(|rest| rest.split("```").next().unwrap()).collect();
    let [inspect, free, complete] = scripts[..] else { panic!("the page has changed") };
    let server = servers::redis().own().await.unwrap();
    let at = server.addr();
    let store = RedisStore::builder().connect(server.url()).await.unwrap();
    let key = fresh_key();
    let name = store.record_name(&key);
    let says = async |script| run(at, script, &name, &["\"ch_1\""]).await;

    assert_eq!(says(inspect).await, "no record");
    assert_eq!(says(free).await, "not abandoned");
    let first = attempt(&key, 1);
    let lease = acquire(&store, &first).await;
    // Nobody takes the key from a worker that is alive.
    let fence = lease.fence().0;
    assert_eq!(says(inspect).await, format!("pending, attempt 1, fence {fence}"));
    assert_eq!(says(free).await, "not abandoned");
    assert_eq!(says(complete).await, "not abandoned");

    // Somebody waits, which the record says too.
    let _watch = store.watch(&key).await.unwrap();
    store.renew(&lease, Duration::ZERO).await.unwrap();
    assert_eq!(says(inspect).await, format!("abandoned, attempt 1, fence {fence}"));
    assert_eq!(says(free).await, "free");
    assert!(says(inspect).await.starts_with("released"));
    let second = attempt(&key, 1).takeover(false);
    let next = acquire(&store, &second).await;
    assert!(next.fence() > lease.fence(), "L3");

    store.renew(&next, Duration::ZERO).await.unwrap();
    let third = attempt(&key, 1).takeover(false);
    let verdict = store.reserve(&third).await.unwrap().verdict(&third).unwrap();
    assert_eq!(verdict, Verdict::Abandoned { attempts: 1 });
    assert_eq!(says(complete).await, "completed");
    assert!(says(inspect).await.starts_with("completed"));
    let idem = Coordinator::builder(store).build().unwrap();
    let replayed = idem
        .operation("payment.charge")
        .key(key.text())
        .fingerprint(Fingerprint::from_bytes([1; 32]))
        .run(async |_| Err::<String, _>("it ran"))
        .await
        .unwrap();
    assert_eq!((replayed.value.as_str(), replayed.replayed), ("ch_1", true));
}
