//! Results that are too large to store with their record.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{BoxError, CallError, Key, NotKept, Oversize, References, RunError, keeping};
use idem_memory::MemoryStore;

use super::support::{call, coordinator};

/// An object store in memory.
#[derive(Clone, Default)]
struct Objects(Arc<Mutex<HashMap<Bytes, Bytes>>>);

#[async_trait]
impl References for Objects {
    async fn save(&self, key: &Key, result: Bytes) -> Result<Bytes, BoxError> {
        let reference = Bytes::from(format!("s3://results/{key}"));
        self.0.lock().unwrap().insert(reference.clone(), result);
        Ok(reference)
    }

    async fn load(&self, _: &Key, reference: Bytes) -> Result<Bytes, BoxError> {
        let found = self.0.lock().unwrap().get(&reference).cloned();
        found.ok_or_else(|| "no such object".into())
    }
}

fn large() -> String {
    "x".repeat(2_000)
}

// C84: above the limit the effect still happens once.
#[tokio::test(start_paused = true)]
async fn a_large_result_is_given_once_and_then_known_to_be_done() {
    let idem = coordinator(MemoryStore::new()).max_result(1_000).build().unwrap();
    let first = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
    let why = NotKept::TooLarge { bytes: 2_002 };
    assert_eq!((first.value.len(), first.recorded, first.not_kept), (2_000, true, Some(why)));
    let retry = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap_err();
    let RunError::Call(CallError::ResponseNotKept { why: told, .. }) = retry else {
        panic!("{retry:?}");
    };
    assert_eq!(told, why);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_the_limit_itself_is_kept() {
    let idem = coordinator(MemoryStore::new()).max_result(2_002).build().unwrap();
    for replayed in [false, true] {
        let outcome = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
        assert_eq!((outcome.replayed, outcome.not_kept), (replayed, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_result_can_be_kept_elsewhere() {
    let objects = Objects::default();
    let idem = coordinator(MemoryStore::new())
        .max_result(1_000)
        .oversize(Oversize::Reference(Arc::new(objects.clone())))
        .build()
        .unwrap();
    for replayed in [false, true] {
        let outcome = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
        assert_eq!((outcome.value, outcome.replayed, outcome.not_kept), (large(), replayed, None));
    }
    assert_eq!(objects.0.lock().unwrap().len(), 1);
    // Lost elsewhere: the effect is known to have happened, and nothing runs.
    objects.0.lock().unwrap().clear();
    let lost = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap_err();
    assert_eq!(lost.code(), "reference_unavailable");
}

#[tokio::test(start_paused = true)]
async fn a_large_error_that_is_kept_goes_the_same_way() {
    let idem = coordinator(MemoryStore::new())
        .max_result(1_000)
        .oversize(Oversize::Reference(Arc::new(Objects::default())))
        .build()
        .unwrap();
    for was_replayed in [false, true] {
        let failed = call(&idem)
            .errors(keeping(|_: &String| idem_core::Effect::Keep))
            .run(|_| async { Err::<(), _>(large()) })
            .await
            .unwrap_err();
        let RunError::Action { error, replayed, .. } = failed else { panic!("{failed:?}") };
        assert_eq!((error, replayed), (large(), was_replayed));
    }
}

/// Never answers, or panics.
struct Faulty {
    hangs: bool,
}

impl Faulty {
    async fn fail(&self) -> Result<Bytes, BoxError> {
        if self.hangs { std::future::pending().await } else { panic!("no bucket") }
    }
}

#[async_trait]
impl References for Faulty {
    async fn save(&self, _: &Key, _: Bytes) -> Result<Bytes, BoxError> {
        self.fail().await
    }

    async fn load(&self, _: &Key, _: Bytes) -> Result<Bytes, BoxError> {
        self.fail().await
    }
}

// C84: a hook that hangs or panics neither holds the key nor loses that the effect happened.
#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_or_panics_costs_a_lease_at_most() {
    for hangs in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let sound = coordinator(store.clone())
            .max_result(1_000)
            .oversize(Oversize::Reference(Arc::new(Objects::default())))
            .build()
            .unwrap();
        let faulty = Oversize::Reference(Arc::new(Faulty { hangs }));
        let idem = coordinator(store).max_result(1_000).oversize(faulty).build().unwrap();
        let asked = tokio::time::Instant::now();
        let first = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
        assert!(first.recorded && first.not_kept.is_some());
        // And what was saved before, and cannot be loaded now, is an error that may be retried.
        let kept = || sound.operation("other").key("k").without_fingerprint();
        kept().run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
        let other = idem.operation("other").key("k").without_fingerprint();
        let lost = other.run(|_| async { Ok::<_, String>(large()) }).await.unwrap_err();
        assert_eq!(lost.code(), "reference_unavailable");
        assert!(asked.elapsed() <= 61 * super::support::SEC, "{:?}", asked.elapsed());
        let back = kept().run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
        assert_eq!(back.value, large());
    }
}

/// Takes its time.
struct Slow;

#[async_trait]
impl References for Slow {
    async fn save(&self, _: &Key, _: Bytes) -> Result<Bytes, BoxError> {
        tokio::time::sleep(29 * super::support::SEC / 10).await;
        Ok(Bytes::from_static(b"slow"))
    }

    async fn load(&self, _: &Key, _: Bytes) -> Result<Bytes, BoxError> {
        Err("not loaded".into())
    }
}

// An action that never waited has no heartbeat yet: a hook that takes long gets one.
#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_alive_while_a_result_is_kept_elsewhere() {
    use super::support::{SEC, rival};
    use idem_core::{Store, Verdict};
    let store = Arc::new(MemoryStore::new());
    let idem = coordinator(store.clone())
        .lease(3 * SEC)
        .max_result(1_000)
        .oversize(Oversize::Reference(Arc::new(Slow)))
        .build()
        .unwrap();
    let large = tokio::spawn(call(&idem).run(|_| async { Ok::<_, String>(large()) }));
    tokio::time::sleep(28 * SEC / 10).await;
    let rival = rival(SEC);
    let seen = store.reserve(&rival).await.unwrap().verdict(&rival).unwrap();
    assert!(matches!(seen, Verdict::InProgress { left } if left > SEC), "{seen:?}");
    assert_eq!(large.await.unwrap().unwrap().not_kept, None);
}

struct Broken;

#[async_trait]
impl References for Broken {
    async fn save(&self, _: &Key, _: Bytes) -> Result<Bytes, BoxError> {
        Err("no bucket".into())
    }

    async fn load(&self, _: &Key, _: Bytes) -> Result<Bytes, BoxError> {
        unreachable!("nothing was saved")
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_kept_elsewhere_is_known_to_be_done() {
    let idem = coordinator(MemoryStore::new())
        .max_result(1_000)
        .oversize(Oversize::Reference(Arc::new(Broken)))
        .build()
        .unwrap();
    let first = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap();
    assert!(first.recorded && first.not_kept.is_some());
    let retry = call(&idem).run(|_| async { Ok::<_, String>(large()) }).await.unwrap_err();
    assert_eq!(retry.code(), "response_not_kept");
}
