//! Everything that can be wrong with a server: its class (law L9), what a coordinator makes of it,
//! and that it passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use idem_conformance::proxy::{Fault, Proxy};
use idem_conformance::servers::{self, Server, Setup};
use idem_core::envelope::NotKept;
use idem_core::{
    Applied, CallError, Coordinator, Key, OnStoreFailure, Refusal, RunError, Store, StoreBudget,
    StoreError, Verdict,
};
use idem_redis::RedisStore;

use crate::support::client::Client;
use crate::support::wire::{Reply, ask, say};
use crate::support::{acquire, acquire_in_the_end, applied, attempt, fresh_key, serves, soon};

const DEADLINE: Duration = Duration::from_millis(300);

async fn store(client: Client, server: &Server) -> RedisStore {
    let builder = RedisStore::builder().deadline(DEADLINE);
    let store = client.connect(builder, &[server.addr()]).await.unwrap();
    serves(&store).await;
    store
}

async fn each(setup: impl Fn() -> Setup, test: impl AsyncFn(Client, Server)) {
    for &client in Client::SINGLE {
        test(client, setup().own().await.unwrap()).await;
    }
}

/// While the store fails, a coordinator refuses without running, or runs unprotected, once.
async fn coordinator_copes(store: &RedisStore) {
    coordinator_copes_with(store, async || fresh_key()).await;
}

/// The same under certain keys.
pub(crate) async fn coordinator_copes_with(store: &RedisStore, keys: impl AsyncFn() -> Key) {
    let budget = StoreBudget::default().per_try(DEADLINE).tries(2).total(2 * DEADLINE);
    for policy in [OnStoreFailure::Refuse, OnStoreFailure::RunUnprotected] {
        let idem = Coordinator::builder(store.clone())
            .store_budget(budget)
            .on_store_failure(policy)
            .build()
            .unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let key = keys().await;
        let call = idem.operation("payment.charge").key(key.text()).without_fingerprint();
        let outcome = soon(call.run(move |_| async move {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>("ch_1".to_owned())
        }))
        .await;
        if policy == OnStoreFailure::Refuse {
            let refused = outcome.unwrap_err();
            assert!(matches!(refused, RunError::Call(CallError::Store { .. })), "{refused:?}");
            assert_eq!(runs.load(Ordering::SeqCst), 0);
        } else {
            assert!(!outcome.unwrap().recorded);
            assert_eq!(runs.load(Ordering::SeqCst), 1);
        }
    }
}

async fn set(server: &Server, setting: &str) {
    assert_eq!(say(server.addr(), &format!("CONFIG SET {setting}")).await.text(), "OK");
}

// C99
#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_were_forgotten_are_sent_again() {
    each(servers::redis, async |client, server| {
        let store = store(client, &server).await;
        let first = attempt(&fresh_key(), 1);
        let flush = async || say(server.addr(), "SCRIPT FLUSH").await;
        flush().await;
        let lease = acquire(&store, &first).await;
        flush().await;
        store.renew(&lease, first.lease_for()).await.unwrap();
        flush().await;
        store.watch(first.key()).await.unwrap();
        flush().await;
        store.release(&lease).await.unwrap();
        flush().await;
        let lost = store.complete(&lease, &"".into(), first.retention_for()).await;
        assert!(lost.unwrap_err().is_lease_lost());
    })
    .await;
}

// C14: what an attempt held before is never matched by what came after.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_came_back_empty_has_fenced_its_holders_off() {
    each(servers::redis, async |client, mut server| {
        let store = store(client, &server).await;
        let first = attempt(&fresh_key(), 1);
        let lease = acquire(&store, &first).await;
        server.kill().await.unwrap();
        server.restart().await.unwrap();
        let second = attempt(first.key(), 1);
        let _ = acquire_in_the_end(&store, &second).await;
        let lost = store.complete(&lease, &"".into(), first.retention_for()).await;
        assert!(lost.unwrap_err().is_lease_lost());
    })
    .await;
}

// C111
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_was_not_asked() {
    each(servers::redis, async |client, mut server| {
        let store = store(client, &server).await;
        server.kill().await.unwrap();
        // The first call finds the connection broken.
        let _ = soon(store.reserve(&attempt(&fresh_key(), 1))).await.unwrap_err();
        let applied = applied(soon(store.reserve(&attempt(&fresh_key(), 1))).await);
        if matches!(client, Client::RedisRs(_)) {
            assert_eq!(applied, Applied::No);
        }
        coordinator_copes(&store).await;
        server.restart().await.unwrap();
        serves(&store).await;
    })
    .await;
}

// C102, C111
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_given_up_at_the_deadline() {
    each(servers::redis, async |client, mut server| {
        let store = store(client, &server).await;
        server.pause().await.unwrap();
        assert_eq!(applied(soon(store.reserve(&attempt(&fresh_key(), 1))).await), Applied::Unknown);
        coordinator_copes(&store).await;
        server.resume().await.unwrap();
        serves(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sleeps_is_given_up_at_the_deadline() {
    let debug = || servers::redis().setting("enable-debug-command", "yes");
    each(debug, async |client, server| {
        let store = store(client, &server).await;
        let address = server.addr();
        let sleeping = tokio::spawn(async move { say(address, "DEBUG SLEEP 4").await });
        // Until it sleeps, calls are answered.
        let error = soon(async {
            loop {
                if let Err(error) = store.reserve(&attempt(&fresh_key(), 1)).await {
                    break error;
                }
            }
        });
        assert_eq!(applied(Err::<(), _>(error.await)), Applied::Unknown);
        coordinator_copes(&store).await;
        assert_eq!(sleeping.await.unwrap().text(), "OK");
        serves(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_black_hole_swallows_one_call_and_not_the_next() {
    for &client in Client::SINGLE {
        for fault in [Fault::HangBefore, Fault::HangAfter] {
            let server = servers::redis().await.unwrap();
            let proxy = Proxy::start(server.addr()).await.unwrap();
            let builder = RedisStore::builder().deadline(DEADLINE);
            let store = client.connect(builder, &[proxy.addr()]).await.unwrap();
            serves(&store).await;
            proxy.only_with("EVALSHA");
            proxy.next(fault);
            let first = attempt(&fresh_key(), 1);
            assert_eq!(applied(soon(store.reserve(&first)).await), Applied::Unknown);
            // On that connection no answer would ever come.
            let _ = acquire_in_the_end(&store, &first).await;
        }
    }
}

/// Whatever becomes of the answers to a call's commands, by the way there or back: the call is
/// repeated within its budget, charges once, and is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_survives_each_of_its_answers() {
    for &client in Client::SINGLE {
        let server = servers::redis().await.unwrap();
        let proxy = Proxy::start(server.addr()).await.unwrap();
        let builder = RedisStore::builder().deadline(DEADLINE);
        let store = client.connect(builder, &[proxy.addr()]).await.unwrap();
        serves(&store).await;
        let idem = Coordinator::builder(store)
            .store_budget(StoreBudget::default().breaker(100, DEADLINE))
            .on_store_failure(OnStoreFailure::Refuse)
            .build()
            .unwrap();
        let charge = async |key: &Key| {
            let charges = Arc::new(AtomicU32::new(0));
            let counted = charges.clone();
            let call = idem.operation("payment.charge").key(key.text()).without_fingerprint();
            let told = soon(call.run(move |_| async move {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                Ok::<_, String>(format!("ch_{number}"))
            }));
            (told.await, charges.load(Ordering::SeqCst))
        };
        // The scripts are known.
        charge(&fresh_key()).await.0.unwrap();
        proxy.only_with("EVALSHA");
        for fault in [
            Fault::ResetBefore,
            Fault::ResetAfter,
            Fault::HangBefore,
            Fault::HangAfter,
            Fault::Truncate(3),
        ] {
            for passing in 0..2 {
                (0..passing).for_each(|_| proxy.next(Fault::Pass));
                proxy.next(fault);
                let key = fresh_key();
                let (told, charges) = charge(&key).await;
                let told = told.unwrap();
                let context = format!("{client:?} {fault:?} after {passing}");
                assert_eq!((told.value.as_str(), told.replayed), ("ch_0", false), "{context}");
                assert_eq!((told.recorded, charges), (true, 1), "{context}");
                let (again, charges) = charge(&key).await;
                assert!(again.unwrap().replayed && charges == 0, "{context}");
            }
        }
    }
}

/// Refuses calls while `refusing` holds, with errors of this code.
async fn refuses(
    setup: impl Fn() -> Setup,
    code: &str,
    refuse: impl AsyncFn(&Server),
    serve: impl AsyncFn(&Server),
) {
    each(setup, async |client, server| {
        let store = store(client, &server).await;
        let first = attempt(&fresh_key(), 1);
        let lease = acquire(&store, &first).await;
        refuse(&server).await;
        for refused in [
            soon(store.reserve(&attempt(&fresh_key(), 1))).await.map(drop),
            soon(store.complete(&lease, &"".into(), first.retention_for())).await,
        ] {
            let error = refused.unwrap_err();
            let StoreError::Unavailable { applied: Applied::No, source } = &error else {
                panic!("{client:?}: {error:?}")
            };
            assert!(source.to_string().starts_with(code), "{client:?}: {source}");
        }
        coordinator_copes(&store).await;
        serve(&server).await;
        soon(async {
            let done = async || store.complete(&lease, &"".into(), first.retention_for()).await;
            while done().await.is_err() {}
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_with_too_few_replicas_has_not_applied_anything() {
    let refuse = async |server: &Server| set(server, "min-replicas-to-write 1").await;
    let serve = async |server: &Server| set(server, "min-replicas-to-write 0").await;
    refuses(servers::redis, "NOREPLICAS", refuse, serve).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_write_its_snapshot_has_not_applied_anything() {
    let setup = || {
        let setup = servers::redis().process().setting("enable-protected-configs", "yes");
        setup.setting("save", "3600 1000000")
    };
    let refuse = async |server: &Server| {
        // A file cannot take the place of a folder.
        let folder = format!("/proc/{}/cwd/folder/not-empty", server.pid().unwrap());
        std::fs::create_dir_all(folder).unwrap();
        set(server, "dbfilename folder").await;
        say(server.addr(), "BGSAVE").await;
        let told = async || say(server.addr(), "INFO persistence").await.text();
        soon(async { while !told().await.contains("rdb_last_bgsave_status:err") {} }).await;
    };
    let serve = async |server: &Server| set(server, "stop-writes-on-bgsave-error no").await;
    refuses(setup, "MISCONF", refuse, serve).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_with_a_script_has_not_applied_anything() {
    let setup = || servers::redis().setting("busy-reply-threshold", "20");
    let refuse = async |server: &Server| {
        let address = server.addr();
        let forever: &[&[u8]] = &[b"EVAL", b"while true do end", b"0"];
        tokio::spawn(async move { ask(address, forever).await });
        let busy = async || matches!(say(address, "PING").await, Reply::Error(_));
        soon(async { while !busy().await {} }).await;
    };
    let serve = async |server: &Server| {
        assert_eq!(say(server.addr(), "SCRIPT KILL").await.text(), "OK");
    };
    refuses(setup, "BUSY", refuse, serve).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_refuses_what_needs_room_and_serves_the_rest() {
    each(servers::redis, async |client, server| {
        let store = store(client, &server).await;
        let [held, small, renewed, done] = [(); 4].map(|()| attempt(&fresh_key(), 1));
        let lease = acquire(&store, &held).await;
        let smaller = acquire(&store, &small).await;
        let other = acquire(&store, &renewed).await;
        let finished = acquire(&store, &done).await;
        store.complete(&finished, &"done".into(), done.retention_for()).await.unwrap();
        // The scripts are known: a full server takes no new one.
        store.renew(&other, renewed.lease_for()).await.unwrap();
        store.release(&acquire(&store, &attempt(&fresh_key(), 1)).await).await.unwrap();

        set(&server, "maxmemory 1").await;
        let full = Some(Refusal::Full);
        let refused = store.reserve(&attempt(&fresh_key(), 1)).await;
        assert_eq!(refused.unwrap_err().refusal(), full, "{client:?}");
        let result = Bytes::from(vec![b'x'; 1024]);
        let refused = store.complete(&lease, &result, held.retention_for()).await;
        assert_eq!(refused.unwrap_err().refusal(), full);
        // Room for the word that the response was not kept there always is.
        store.complete(&smaller, &"done".into(), small.retention_for()).await.unwrap();
        let again = attempt(done.key(), 1);
        let replayed = store.reserve(&again).await.unwrap().verdict(&again).unwrap();
        assert_eq!(replayed, Verdict::Replay("done".into()));
        store.renew(&lease, held.lease_for()).await.unwrap();
        store.release(&other).await.unwrap();
        coordinator_copes(&store).await;

        set(&server, "maxmemory 0").await;
        store.complete(&lease, &result, held.retention_for()).await.unwrap();
    })
    .await;
}

// A reserved key is never stuck because there is no room for its answer.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_server_a_call_is_recorded_as_done_without_its_response() {
    each(servers::redis, async |client, server| {
        let idem = Coordinator::builder(store(client, &server).await).build().unwrap();
        let call =
            |key: &Key| idem.operation("payment.charge").key(key.text()).without_fingerprint();
        let key = fresh_key();
        let address = server.addr();
        let charged = call(&key).run(move |_| async move {
            assert_eq!(say(address, "CONFIG SET maxmemory 1").await.text(), "OK");
            Ok::<_, String>("a receipt ".repeat(200))
        });
        let outcome = charged.await.unwrap();
        assert_eq!((outcome.recorded, outcome.not_kept), (true, Some(NotKept::NoRoom)));

        let retry = call(&key).run(async |_| Ok::<_, String>("again".to_owned())).await;
        let told = retry.unwrap_err();
        let not_kept = matches!(told, RunError::Call(CallError::ResponseNotKept { .. }));
        assert!(not_kept, "{client:?}: {told:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_became_a_replica_has_not_applied_anything() {
    each(servers::redis, async |client, server| {
        let store = store(client, &server).await;
        say(server.addr(), "REPLICAOF 127.0.0.1 1").await;
        assert_eq!(applied(soon(store.reserve(&attempt(&fresh_key(), 1))).await), Applied::No);
        coordinator_copes(&store).await;
        say(server.addr(), "REPLICAOF NO ONE").await;
        serves(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loads_has_not_applied_anything() {
    let slow = || {
        servers::redis()
            .setting("enable-debug-command", "yes")
            .setting("loading-process-events-interval-bytes", "1024")
    };
    each(slow, async |client, server| {
        let store = store(client, &server).await;
        say(server.addr(), "DEBUG POPULATE 6000").await;
        set(&server, "key-load-delay 500").await;
        let address = server.addr();
        let loading = tokio::spawn(async move { say(address, "DEBUG RELOAD").await });
        let error = soon(async {
            loop {
                match store.reserve(&attempt(&fresh_key(), 1)).await {
                    // The server is busy saving before it loads.
                    Ok(_) | Err(StoreError::Unavailable { applied: Applied::Unknown, .. }) => {}
                    Err(error) => break error,
                }
            }
        });
        let error = error.await;
        let StoreError::Unavailable { applied: Applied::No, source } = &error else {
            panic!("{error:?}")
        };
        assert!(source.to_string().starts_with("LOADING"), "{source}");
        coordinator_copes(&store).await;
        soon(loading).await.unwrap();
        serves(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_right_is_refused() {
    each(servers::redis, async |client, server| {
        let store = store(client, &server).await;
        for missing in ["-evalsha", "-set", "resetkeys"] {
            let acl = format!("ACL SETUSER default on nopass ~* &* +@all {missing}");
            assert_eq!(say(server.addr(), &acl).await.text(), "OK");
            let refused = soon(store.reserve(&attempt(&fresh_key(), 1))).await.unwrap_err();
            assert_eq!(
                refused.refusal(),
                Some(Refusal::Permission),
                "{missing} {client:?} {refused:?}"
            );
            coordinator_copes(&store).await;
        }
        say(server.addr(), "ACL SETUSER default on nopass ~* &* +@all").await;
        serves(&store).await;
    })
    .await;
}

/// As in the documentation.
const RIGHTS: &str = "~idem:* &idem:* +evalsha +eval +get +set +setrange +time +publish \
    +subscribe +unsubscribe +ping +info";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_documented_rights_can_do_everything() {
    let page = include_str!("../../docs/operating.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&RIGHTS.split_whitespace().collect::<Vec<_>>().join(" ")));
    each(servers::redis, async |client, server| {
        let acl = "ACL SETUSER default resetkeys resetchannels nocommands on nopass ";
        let rights = RIGHTS.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(say(server.addr(), &format!("{acl}{rights}")).await.text(), "OK");
        let store = store(client, &server).await;
        let first = attempt(&fresh_key(), 1);
        let lease = acquire(&store, &first).await;
        let mut watch = store.watch(first.key()).await.unwrap();
        store.renew(&lease, first.lease_for()).await.unwrap();
        store.complete(&lease, &"done".into(), first.retention_for()).await.unwrap();
        soon(watch.changed()).await;
        let second = attempt(&fresh_key(), 1);
        store.release(&acquire(&store, &second).await).await.unwrap();
        store.check().await.unwrap();
    })
    .await;
}

// A hint that may not be sent undoes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_may_not_publish_completes_all_the_same() {
    each(servers::redis, async |client, server| {
        let store = store(client, &server).await;
        let first = attempt(&fresh_key(), 1);
        let lease = acquire(&store, &first).await;
        let _watch = store.watch(first.key()).await.unwrap();
        let acl = "ACL SETUSER default on nopass resetchannels ~* +@all";
        assert_eq!(say(server.addr(), acl).await.text(), "OK");
        soon(async {
            // The server may close the connections of a user whose channels were taken away.
            while store.complete(&lease, &"done".into(), first.retention_for()).await.is_err() {}
        })
        .await;
        let again = attempt(first.key(), 1);
        let replayed = store.reserve(&again).await.unwrap().verdict(&again).unwrap();
        assert_eq!(replayed, Verdict::Replay("done".into()));
    })
    .await;
}

// L8, C109
#[tokio::test(flavor = "multi_thread")]
async fn what_another_program_put_there_is_corrupt_to_a_coordinator_too() {
    each(servers::redis, async |client, server| {
        let store = store(client, &server).await;
        let key: Key = fresh_key();
        let name = store.record_name(&key);
        for foreign in [
            &[&b"RPUSH"[..], b"1"][..],
            &[b"HSET", b"a", b"b"],
            &[b"SET", b"null"],
            &[b"SET", b"{\"a\":1}"],
            &[b"SET", b""],
        ] {
            say(server.addr(), &format!("DEL {name}")).await;
            let words = [&[foreign[0], name.as_bytes()], &foreign[1..]].concat();
            assert!(!matches!(ask(server.addr(), &words).await, Reply::Error(_)));
            for policy in [OnStoreFailure::Refuse, OnStoreFailure::RunUnprotected] {
                let idem =
                    Coordinator::builder(store.clone()).on_store_failure(policy).build().unwrap();
                let call = idem.operation("payment.charge").key(key.text()).without_fingerprint();
                let ran = soon(call.run(|_| async { Ok::<_, String>("ran".to_owned()) })).await;
                assert_eq!(ran.unwrap_err().code(), "record_corrupt", "{foreign:?}");
            }
        }
    })
    .await;
}

// After a fault ends, everyone who waited ends.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_outlive_an_outage() {
    let durable = || servers::redis().setting("appendonly", "yes");
    each(durable, async |client, mut server| {
        let idem = Coordinator::builder(store(client, &server).await).build().unwrap();
        let key = fresh_key();
        let call = || idem.operation("payment.charge").key(key.text()).without_fingerprint();
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(call().run(|_| async move {
            finished.await.unwrap();
            Ok::<_, String>("ch_1".to_owned())
        }));
        let other = Coordinator::builder(store(client, &server).await).build().unwrap();
        let waiting: Vec<_> = (0..50)
            .map(|_| {
                let call = other.operation("payment.charge").key(key.text()).without_fingerprint();
                tokio::spawn(call.run(|_| async { Ok::<_, String>("unprotected".to_owned()) }))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.pause().await.unwrap();
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.resume().await.unwrap();
        finish.send(()).unwrap();
        assert_eq!(soon(running).await.unwrap().unwrap().value, "ch_1");
        for waiter in waiting {
            let _ = soon(waiter).await.unwrap().unwrap();
        }
    })
    .await;
}
