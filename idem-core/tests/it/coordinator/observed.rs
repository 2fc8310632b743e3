//! Keys appear hashed in whatever is reported.

use std::sync::{Arc, Mutex};

use idem_core::observe::Event;
use idem_memory::MemoryStore;

use super::support::{Fault, Faulty, MS, Provider, call, coordinator, fingerprint, hasty};

#[tokio::test(start_paused = true)]
async fn no_event_and_no_error_shows_a_keys_text() {
    let seen = Arc::new(Mutex::new(String::new()));
    let observer = {
        let seen = Arc::clone(&seen);
        move |event: &Event| {
            use std::fmt::Write;
            writeln!(seen.lock().unwrap(), "{event:?}").unwrap();
        }
    };
    let store = Faulty::new();
    let idem = coordinator(store.clone()).store_budget(hasty()).observe(observer).build().unwrap();
    let secret = "4929-1234-5678-9012";
    let call = |of| idem.operation("charge").tenant("t").key(secret).fingerprint(fingerprint(of));
    call(1).run(Provider::default().action(MS)).await.unwrap();
    let mismatch = call(2).run(Provider::default().action(MS)).await.unwrap_err();
    store.down(Fault::Corrupt);
    let corrupt = call(1).run(Provider::default().action(MS)).await.unwrap_err();
    let all = format!("{} {mismatch} {mismatch:?} {corrupt} {corrupt:?}", seen.lock().unwrap());
    assert!(all.contains("charge#"), "{all}");
    assert!(!all.contains(secret), "{all}");
}

// C111: a store that is down fails every call, and is logged once per window.
#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn a_warning_is_logged_once_per_window() {
    use idem_core::observe::{Observer, Tracing};
    use tracing::subscriber::with_default;

    let lines = Lines::default();
    let (logs, event) = (Tracing::new(), warning().await);
    let write = |times: usize| {
        with_default(lines.clone(), || (0..times).for_each(|_| logs.observe(&event)));
        *lines.0.lock().unwrap()
    };
    assert_eq!(write(100), 1);
    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    assert_eq!(write(100), 2);
}

#[cfg(feature = "tracing")]
async fn warning() -> Event {
    let last = Arc::new(Mutex::new(None));
    let observer = {
        let last = Arc::clone(&last);
        move |event: &Event| *last.lock().unwrap() = Some(event.clone())
    };
    let idem = coordinator(MemoryStore::new()).observe(observer).without_logs().build().unwrap();
    let unknown = call(&idem)
        .errors(idem_core::effect(|_: &String| false))
        .run(|_| async { Err::<(), _>("timeout".to_owned()) });
    assert!(unknown.await.is_err());
    last.lock().unwrap().clone().expect("the key was abandoned, which is a warning")
}

/// Counts log lines.
#[cfg(feature = "tracing")]
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<usize>>);

#[cfg(feature = "tracing")]
impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        *self.0.lock().unwrap() += 1;
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
