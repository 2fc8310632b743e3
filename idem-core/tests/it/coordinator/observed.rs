//! Keys appear hashed in whatever is reported.

use std::sync::{Arc, Mutex};

use idem_core::observe::Event;
use idem_memory::MemoryStore;
#[cfg(feature = "tracing")]
use tracing_core::span::Current;

use super::support::{MS, Provider, Trouble, call, coordinator, faulty, fingerprint, hasty};

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
    let store = faulty();
    let idem = coordinator(store.clone()).store_budget(hasty()).observe(observer).build().unwrap();
    let secret = "4929-1234-5678-9012";
    let call = |of| idem.operation("charge").tenant("t").key(secret).fingerprint(fingerprint(of));
    call(1).run(Provider::default().action(MS)).await.unwrap();
    let mismatch = call(2).run(Provider::default().action(MS)).await.unwrap_err();
    store.down(Trouble::Corrupt);
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

    let lines = Lines::default();
    let _default = lines.listen().await;
    let (logs, event) = (Tracing::new(), warning().await);
    let write = |times: usize| {
        (0..times).for_each(|_| logs.observe(&event));
        lines.count()
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

// Whoever reads a log finds the charge, and what became of it, under the request that asked for it.
#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn the_action_and_the_recording_are_in_the_callers_span() {
    use super::support::{Events, SEC, Verb};
    use tracing::Instrument;

    let (lines, events, store) = (Lines::default(), Events::default(), faulty());
    let _default = lines.listen().await;
    let idem = coordinator(store.clone()).store_budget(hasty()).lease(3 * SEC);
    let idem = idem.observe(events.observer()).build().unwrap();
    store.always(Verb::Complete, Trouble::NotApplied);
    let charged = call(&idem).run(|_| async {
        tokio::time::sleep(SEC / 2).await;
        tracing::info!("charging");
        Ok::<_, String>(1)
    });
    charged.instrument(tracing::info_span!("request")).await.unwrap();
    // The renewals and the retries go on when the caller has its answer.
    store.always(super::support::Verb::Renew, Trouble::Hangs);
    tokio::time::sleep(5 * SEC).await;
    store.heal();
    tokio::time::sleep(10 * SEC).await;
    let expected = ["reserved", "completion_retried", "lease_lost", "completed"];
    assert_eq!(events.names(), expected);
    assert_eq!(*lines.spans.lock().unwrap(), vec![Some("request"); expected.len() + 1]);
}

#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn a_coordinator_logs_unless_it_is_told_not_to() {
    let lines = Lines::default();
    let _default = lines.listen().await;
    let silent = coordinator(MemoryStore::new()).without_logs().build().unwrap();
    call(&silent).run(Provider::default().action(MS)).await.unwrap();
    assert_eq!(lines.count(), 0);
    let logging = coordinator(MemoryStore::new()).build().unwrap();
    call(&logging).run(Provider::default().action(MS)).await.unwrap();
    assert_eq!(lines.count(), 2);
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn transitions_are_counted_by_operation() {
    use idem_core::observe::Metrics;

    let counters = counters::Counters::default();
    let _local = metrics::set_default_local_recorder(&counters);
    let idem = coordinator(MemoryStore::new()).observe(Metrics::new()).build().unwrap();
    for _ in 0..3 {
        call(&idem).run(Provider::default().action(MS)).await.unwrap();
    }
    let other = idem.operation("charge").tenant("t").key("k").fingerprint(fingerprint(1));
    other.run(Provider::default().action(MS)).await.unwrap();
    let total = |transition| counters.total("idem_transitions_total", "charge", transition);
    assert_eq!((total("reserved"), total("completed"), total("replayed")), (2, 2, 2));
    assert_eq!(counters.len(), 3, "keys and tenants are no labels");
}

#[cfg(feature = "metrics")]
mod counters {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit,
    };

    /// Remembers counters.
    #[derive(Default)]
    pub(super) struct Counters(Mutex<HashMap<Key, Arc<AtomicU64>>>);

    impl Counters {
        pub(super) fn len(&self) -> usize {
            self.0.lock().unwrap().len()
        }

        pub(super) fn total(&self, name: &'static str, operation: &str, transition: &str) -> u64 {
            let labels = vec![
                Label::new("operation", operation.to_owned()),
                Label::new("transition", transition.to_owned()),
            ];
            let counters = self.0.lock().unwrap();
            counters[&Key::from_parts(name, labels)].load(Ordering::SeqCst)
        }
    }

    impl Recorder for Counters {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let mut counters = self.0.lock().unwrap();
            Counter::from_arc(Arc::clone(counters.entry(key.clone()).or_default()))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }
}

/// Remembers of every log line which span it was written in. For one thread.
#[cfg(feature = "tracing")]
#[derive(Clone, Default)]
struct Lines {
    spans: Arc<Mutex<Vec<Option<&'static str>>>>,
    known: Arc<Mutex<Vec<&'static tracing::Metadata<'static>>>>,
    entered: Arc<Mutex<Vec<tracing::span::Id>>>,
}

#[cfg(feature = "tracing")]
impl Lines {
    fn count(&self) -> usize {
        self.spans.lock().unwrap().len()
    }

    /// Hears this thread. Each line is written once before, and its cached interest made anew: tests
    /// on other threads may have had it written while nobody listened.
    async fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let guard = tracing::subscriber::set_default(self.clone());
        let idem = coordinator(MemoryStore::new()).build().unwrap();
        let unknown = call(&idem)
            .errors(idem_core::effect(|_: &String| false))
            .run(|_| async { Err::<(), _>("timeout".to_owned()) });
        assert!(unknown.await.is_err());
        tracing_core::callsite::rebuild_interest_cache();
        self.spans.lock().unwrap().clear();
        guard
    }
}

#[cfg(feature = "tracing")]
impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        let ours = ["idem", module_path!()];
        ours.contains(&metadata.target())
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut known = self.known.lock().unwrap();
        known.push(span.metadata());
        tracing::span::Id::from_u64(known.len() as u64)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        let span = self.current_span();
        self.spans.lock().unwrap().push(span.metadata().map(tracing::Metadata::name));
    }

    fn current_span(&self) -> Current {
        let Some(id) = self.entered.lock().unwrap().last().cloned() else { return Current::none() };
        let metadata = self.known.lock().unwrap()[usize::try_from(id.into_u64()).unwrap() - 1];
        Current::new(id, metadata)
    }

    fn enter(&self, span: &tracing::span::Id) {
        self.entered.lock().unwrap().push(span.clone());
    }

    fn exit(&self, _: &tracing::span::Id) {
        self.entered.lock().unwrap().pop();
    }
}
