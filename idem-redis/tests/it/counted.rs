//! What a call costs, counted by the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use idem_conformance::servers;
use idem_core::{Coordinator, Fingerprint, InFlight};
use idem_redis::RedisStore;

use crate::support::client::Client;
use crate::support::soon;
use crate::support::wire::say;

/// What the commands of the scripts count as, and what these tests send themselves.
const INSIDE: &[&str] = &["time", "get", "set", "setrange", "publish", "info", "config|resetstat"];

/// How often clients sent each command since the last time.
pub(crate) async fn sent(server: SocketAddr) -> BTreeMap<String, u64> {
    let stats = say(server, "INFO commandstats").await.text();
    say(server, "CONFIG RESETSTAT").await;
    let lines = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_"));
    let counts = lines.map(|line| {
        let (command, stats) = line.split_once(":calls=").unwrap();
        let calls = stats.split(',').next().unwrap().parse().unwrap();
        (command.to_owned(), calls)
    });
    counts.filter(|(command, _)| !INSIDE.contains(&command.as_str())).collect()
}

fn evalsha(times: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("evalsha".to_owned(), times)])
}

async fn run(idem: &Coordinator, key: &str, request: u8, fails: bool) -> &'static str {
    let call = idem
        .operation("payment.charge")
        .key(key)
        .fingerprint(Fingerprint::from_bytes([request; 32]));
    let ran = call
        .run(move |_| async move { if fails { Err("declined") } else { Ok("ch_1".to_owned()) } });
    match ran.await {
        Ok(outcome) if outcome.replayed => "replayed",
        Ok(_) => "fresh",
        Err(error) if error.call().is_some() => "refused",
        Err(_) => "failed",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_call_is_two_commands_a_replay_and_a_mismatch_one_a_failed_action_two() {
    for &client in Client::SINGLE {
        let server = servers::redis().own().await.unwrap();
        let at = server.addr();
        let builder = RedisStore::builder().deadline(Duration::from_secs(5));
        let store = client.connect(builder, &[at]).await.unwrap();
        let idem = Coordinator::builder(store).build().unwrap();
        // The server learns the scripts.
        assert_eq!(run(&idem, "warm", 1, false).await, "fresh");
        assert_eq!(run(&idem, "warm too", 1, true).await, "failed");
        sent(at).await;

        assert_eq!(run(&idem, "k", 1, false).await, "fresh");
        assert_eq!(sent(at).await, evalsha(2), "fresh, {client:?}");
        assert_eq!(run(&idem, "k", 1, false).await, "replayed");
        assert_eq!(sent(at).await, evalsha(1), "replay, {client:?}");
        assert_eq!(run(&idem, "k", 2, false).await, "refused");
        assert_eq!(sent(at).await, evalsha(1), "mismatch, {client:?}");
        assert_eq!(run(&idem, "k2", 1, true).await, "failed");
        assert_eq!(sent(at).await, evalsha(2), "failed action, {client:?}");
    }
}

// Of a thousand callers in one process, one waits at the server; nothing is published to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waiters_are_one_remote_wait() {
    for &client in Client::SINGLE {
        let server = servers::redis().own().await.unwrap();
        let at = server.addr();
        let builder = || RedisStore::builder().deadline(Duration::from_secs(20));
        let owner = client.connect(builder(), &[at]).await.unwrap();
        let waiters = client.connect(builder(), &[at]).await.unwrap();
        let wait = InFlight::Wait { at_most: Duration::from_secs(25) };
        let owner = Coordinator::builder(owner).build().unwrap();
        let waiters = Coordinator::builder(waiters).in_flight(wait).poll(Duration::from_secs(20));
        let waiters = waiters.build().unwrap();
        run(&owner, "warm", 1, false).await;
        run(&waiters, "warm", 1, false).await;
        sent(at).await;

        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let call = owner.operation("payment.charge").key("k").without_fingerprint();
        let running = tokio::spawn(call.run(|_| async move {
            finished.await.unwrap();
            Ok::<_, String>("ch_1".to_owned())
        }));
        let reserved = async {
            while !sent(at).await.contains_key("evalsha") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(reserved).await;
        let waiting: Vec<_> = (0..1_000)
            .map(|_| {
                let call = waiters.operation("payment.charge").key("k").without_fingerprint();
                tokio::spawn(call.run(|_| async { Err::<String, _>("ran twice".to_owned()) }))
            })
            .collect();
        // Everyone waits when the channel is subscribed and nothing more is asked.
        let mut asked = BTreeMap::<String, u64>::new();
        let all_wait = async {
            loop {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let more = sent(at).await;
                if more.is_empty() && asked.contains_key("subscribe") {
                    break;
                }
                for (command, times) in more {
                    *asked.entry(command).or_default() += times;
                }
            }
        };
        soon(all_wait).await;
        assert_eq!(asked["subscribe"], 1, "{client:?}");
        // Look, subscribe, note it in the record (whose script is new to the server), look again.
        assert!(asked["evalsha"] <= 4, "{client:?} {asked:?}");

        finish.send(()).unwrap();
        assert!(!soon(running).await.unwrap().unwrap().replayed);
        for waiter in waiting {
            let outcome = soon(waiter).await.unwrap().unwrap();
            assert!(outcome.replayed && outcome.value == "ch_1");
        }
        assert_eq!(sent(at).await["evalsha"], 2, "complete, and one replay for all, {client:?}");
    }
}
