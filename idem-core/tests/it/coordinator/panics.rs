//! Foreign code panics: the process lives, the caller has an answer, and no key is stuck.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use idem_core::envelope::CodecId;
use idem_core::observe::Event;
use idem_core::{
    Abandoned, BoxError, CallError, Codec, Effect, OnStoreFailure, Probed, RunError, Store, keeping,
};
use idem_memory::MemoryStore;
use tokio::time::sleep;

use super::support::{MS, Provider, SEC, Trouble, Verb, call, coordinator, faulty, hasty, rival};

/// Panics where it is told to.
struct Fragile {
    encodes: bool,
    decodes: bool,
}

impl Codec<u8> for Fragile {
    fn id(&self) -> CodecId {
        CodecId(128)
    }

    fn encode(&self, value: &u8) -> Result<Bytes, BoxError> {
        assert!(self.encodes, "cannot encode");
        Ok(Bytes::copy_from_slice(&[*value]))
    }

    fn decode(&self, bytes: &Bytes) -> Result<u8, BoxError> {
        assert!(self.decodes, "cannot decode");
        bytes.first().copied().ok_or_else(|| "empty".into())
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, RunError<String>>) -> &'static str {
    result.unwrap_err().code()
}

// C25: the effect happened and what it came to is unknown; the key says so, at once.
#[tokio::test(start_paused = true)]
async fn a_codec_or_a_rule_that_panics_leaves_the_key_abandoned() {
    let idem = coordinator(MemoryStore::new()).abandoned(Abandoned::Refuse).build().unwrap();
    for (encodes, decodes) in [(false, true), (true, false)] {
        let call = || idem.operation("codec").key(&encodes.to_string()).without_fingerprint();
        let fragile = call().codec(Fragile { encodes, decodes });
        assert_eq!(code(fragile.run(|_| async { Ok::<_, String>(7) }).await), "panicked");
        let retry = call().run(|_| async { Ok::<_, String>(7) }).await;
        assert_eq!(code(retry), "outcome_unknown");
    }
    let call = || idem.operation("rule").key("k").without_fingerprint();
    let rule = keeping(|_: &String| -> Effect { panic!("no rule for it") });
    let fragile = call().errors(rule).run(|_| async { Err::<(), _>("502".to_owned()) });
    assert_eq!(code(fragile.await), "panicked");
    assert_eq!(code(call().run(|_| async { Ok::<_, String>(7) }).await), "outcome_unknown");
}

#[tokio::test(start_paused = true)]
async fn a_codec_that_panics_on_replay_is_an_error_and_nothing_runs() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let sound = || call(&idem).codec(Fragile { encodes: true, decodes: true });
    sound().run(|_| async { Ok::<_, String>(7) }).await.unwrap();
    let never = |_| async { unreachable!("it runs once") };
    let fragile = call(&idem).codec(Fragile { encodes: true, decodes: false });
    assert_eq!(code(fragile.run(never).await), "unreadable");
    let fragile = call(&idem).codec(Fragile { encodes: true, decodes: false });
    assert_eq!(code(fragile.run_borrowed(never).await), "unreadable");
    assert_eq!(sound().run(never).await.unwrap().value, 7);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_leaves_the_key_abandoned() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let _ = store.reserve(&rival(SEC)).await.unwrap();
    sleep(2 * SEC).await;
    let idem = coordinator(store).build().unwrap();
    let provider = Provider::default();
    let probed =
        call(&idem).probe(|_| async { panic!("no such provider") }).run(provider.action(MS)).await;
    assert_eq!((code(probed), provider.charges()), ("panicked", 0));
    let asked = AtomicBool::new(false);
    let again = call(&idem)
        .probe(|attempt| {
            asked.store(attempt.is_takeover(), Ordering::SeqCst);
            async { Probed::Happened("ch_0".to_owned()) }
        })
        .run_borrowed(|_| async { Err::<String, _>("not asked".to_owned()) });
    assert_eq!(again.await.unwrap().value, "ch_0");
    assert!(asked.into_inner());
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    let idem = coordinator(MemoryStore::new())
        .observe(|event: &Event| panic!("no disk for {}", event.what.name()))
        .build()
        .unwrap();
    let provider = Provider::default();
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().recorded);
    assert!(call(&idem).run(provider.action(MS)).await.unwrap().replayed);
    assert_eq!(provider.charges(), 1);
}

// L9: a store that panics has not answered, whatever it was asked.
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_a_store_that_fails() {
    for verb in [Verb::Reserve, Verb::Complete, Verb::Watch] {
        let store = faulty();
        let idem = coordinator(store.clone()).store_budget(hasty()).build().unwrap();
        store.always(verb, Trouble::Panics);
        let provider = Provider::default();
        let outcome = call(&idem).run(provider.action(MS)).await.unwrap();
        assert_eq!(outcome.recorded, verb == Verb::Watch, "{verb:?}");
        store.heal();
        sleep(10 * SEC).await;
        let elsewhere = coordinator(store).build().unwrap();
        assert!(call(&elsewhere).run(provider.action(MS)).await.unwrap().replayed, "{verb:?}");
    }
    let store = faulty();
    let closed = coordinator(store.clone()).on_store_failure(OnStoreFailure::Refuse);
    let closed = closed.build().unwrap();
    store.always(Verb::Reserve, Trouble::Panics);
    let refused = call(&closed).run(Provider::default().action(MS)).await.unwrap_err();
    assert!(matches!(refused.call(), Some(CallError::Store { .. })), "{refused:?}");
}

// C20: the loss of a lease is told although the renewal panicked.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_panics_does_not_hide_that_the_lease_is_lost() {
    let store = faulty();
    let idem = coordinator(store.clone()).lease(3 * SEC).build().unwrap();
    store.always(Verb::Renew, Trouble::Panics);
    let told = call(&idem).run(|attempt| async move {
        attempt.lost().await;
        Ok::<_, String>(attempt.is_lost())
    });
    let told = tokio::time::timeout(10 * SEC, told).await.expect("it is told");
    assert!(told.unwrap().value);
}
