//! A reply is lost on its way, for every verb, client and kind of loss.
//!
//! The server's clock stands still: an owner that had to wait for a lease to end would wait for
//! ever.

use std::time::Duration;

use idem_conformance::proxy::Fault;
use idem_core::{Applied, Attempt, Lease, State, Store, StoreError, Verdict};
use idem_redis::RedisStore;

use crate::support::client::Client;
use crate::support::rig::{Lent, rig};
use crate::support::{acquire_in_the_end, answered, applied, attempt, fresh_key, soon};

/// Faults after which a call was carried out, and its caller cannot know.
const LOST: &[Fault] = &[Fault::ResetAfter, Fault::HangAfter, Fault::Truncate(3)];

struct Bench {
    rig: Lent,
    store: RedisStore,
    fault: Fault,
    attempt: Attempt,
}

impl Bench {
    /// A store whose connection to the attempt's node stands, and which the server knows all
    /// scripts of: a fault meets the verb alone.
    async fn new(client: Client, fault: Fault) -> Self {
        let rig = rig(client.is_cluster()).await;
        let builder = RedisStore::builder().deadline(Duration::from_millis(700));
        let store = client.connect(builder, &rig.doors()).await.unwrap();
        let attempt = attempt(&fresh_key(), 1);
        let bench = Self { rig, store, fault, attempt };
        let warm = bench.rival();
        let lease = acquire_in_the_end(&bench.store, &warm).await;
        bench.store.renew(&lease, warm.lease_for()).await.unwrap();
        let done = bench.store.complete(&lease, &"".into(), warm.retention_for()).await;
        done.unwrap();
        bench.store.release(&lease).await.unwrap_err();
        let name = bench.store.record_name(warm.key());
        let node = bench.rig.addresses[bench.rig.node_of(&name).await];
        crate::support::wire::say(node, &format!("DEL {name}")).await;
        bench
    }

    /// Another attempt at the same request.
    fn rival(&self) -> Attempt {
        attempt(self.attempt.key(), 1)
    }

    /// The first call loses its reply, and says that it may have been carried out.
    async fn loses<T: std::fmt::Debug>(&self, call: impl Future<Output = Result<T, StoreError>>) {
        let node = self.rig.node_of(&self.store.record_name(self.attempt.key())).await;
        self.rig.proxies[node].next(self.fault);
        assert_eq!(
            applied(soon(call).await),
            Applied::Unknown,
            "{:?} {:?}",
            self.store,
            self.fault
        );
    }

    async fn acquires(&self) -> Lease {
        acquire_in_the_end(&self.store, &self.attempt).await
    }
}

async fn each(test: impl AsyncFn(Bench)) {
    for &client in Client::SINGLE.iter().chain(Client::CLUSTER) {
        for &fault in LOST {
            test(Bench::new(client, fault).await).await;
        }
    }
}

// L1, L9, C103
#[tokio::test(flavor = "multi_thread")]
async fn of_a_reserve_the_owner_recognises_itself() {
    each(async |bench| {
        let Bench { store, attempt, .. } = &bench;
        bench.loses(store.reserve(attempt)).await;
        let record = answered(async || store.reserve(attempt).await).await.unwrap();
        assert_eq!((record.holder, record.attempts), (attempt.id(), 1));
        assert_eq!(record.state, State::Pending { left: attempt.lease_for() });
        let rival = bench.rival();
        let verdict = store.reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        assert_eq!(verdict, Verdict::InProgress { left: attempt.lease_for() });
    })
    .await;
}

// L1, L9
#[tokio::test(flavor = "multi_thread")]
async fn of_a_renew_a_repeat_gives_the_same_lease() {
    each(async |bench| {
        let (store, lease) = (&bench.store, bench.acquires().await);
        let longer = 2 * bench.attempt.lease_for();
        bench.loses(store.renew(&lease, longer)).await;
        let left = answered(async || store.renew(&lease, longer).await).await.unwrap();
        assert_eq!(left, longer);
    })
    .await;
}

// L1, L6, L9, C134
#[tokio::test(flavor = "multi_thread")]
async fn of_a_complete_a_repeat_is_ok_and_changes_nothing() {
    each(async |bench| {
        let (store, lease) = (&bench.store, bench.acquires().await);
        let retention = bench.attempt.retention_for();
        bench.loses(store.complete(&lease, &"first".into(), retention)).await;
        let again = async || store.complete(&lease, &"second".into(), retention).await;
        answered(again).await.unwrap();
        let rival = bench.rival();
        let verdict = store.reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        assert_eq!(verdict, Verdict::Replay("first".into()));
    })
    .await;
}

// L1, L9
#[tokio::test(flavor = "multi_thread")]
async fn of_a_release_a_repeat_is_ok_and_the_key_is_free() {
    each(async |bench| {
        let (store, lease) = (&bench.store, bench.acquires().await);
        bench.loses(store.release(&lease)).await;
        answered(async || store.release(&lease).await).await.unwrap();
        let rival = bench.rival();
        let verdict = store.reserve(&rival).await.unwrap().verdict(&rival).unwrap();
        assert!(matches!(verdict, Verdict::Acquired { attempts: 1, .. }), "{verdict:?}");
    })
    .await;
}
