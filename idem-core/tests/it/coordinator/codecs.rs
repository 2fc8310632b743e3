//! What is stored replays as it was, or is not kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use idem_core::envelope::{Body, CodecId, Envelope};
use idem_core::{BoxError, CallError, Codec, Json, NotKept, RunError, Store, Verdict};
use idem_memory::MemoryStore;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::support::{Events, MS, Provider, call, coordinator, rival};

/// The payload of a value that is stored as this JSON.
pub(crate) fn stored(json: &[u8]) -> Bytes {
    let body = Body::Value(Bytes::copy_from_slice(json));
    Envelope { codec: CodecId::JSON, body }.encode()
}

/// Runs once and once more, and says what came of both, and whether it was kept.
async fn twice<T>(value: impl Fn() -> T + Send + 'static) -> (T, Result<T, RunError<String>>, bool)
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    let events = Events::default();
    let idem = coordinator(MemoryStore::new()).observe(events.observer()).build().unwrap();
    let first = call(&idem).run(move |_| async move { Ok::<_, String>(value()) }).await.unwrap();
    assert!(!first.replayed && first.recorded);
    let kept = first.not_kept.is_none();
    assert_eq!(events.count("response_not_kept"), usize::from(!kept), "reported on the first run");
    let never = |_| async { unreachable!("it runs once") };
    let replay = call(&idem).run(never).await.map(|outcome| {
        assert!(outcome.replayed);
        outcome.value
    });
    (first.value, replay, kept)
}

fn not_replayable<T: std::fmt::Debug>(replay: &Result<T, RunError<String>>) {
    let Err(RunError::Call(CallError::ResponseNotKept { why, .. })) = replay else {
        panic!("{replay:?}");
    };
    assert_eq!(*why, NotKept::NotReplayable);
}

// C95: no value is a value.
#[tokio::test(start_paused = true)]
async fn empty_values_are_replayed_as_hits() {
    assert!(matches!(twice(|| ()).await, ((), Ok(()), true)));
    assert!(matches!(twice(|| None::<u8>).await, (None, Ok(None), true)));
    assert!(matches!(twice(|| false).await, (false, Ok(false), true)));
    assert!(matches!(twice(|| 0_u8).await, (0, Ok(0), true)));
    assert!(matches!(twice(String::new).await, (_, Ok(empty), true) if empty.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn maps_and_sets_come_back_whatever_their_order() {
    let map = || (0..100).map(|n| (n.to_string(), n)).collect::<HashMap<_, _>>();
    let (first, replay, kept) = twice(map).await;
    assert!(kept);
    assert_eq!(first, replay.unwrap());
    let set = || (0..100).collect::<HashSet<u32>>();
    let (first, replay, kept) = twice(set).await;
    assert!(kept);
    assert_eq!(first, replay.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_none_is_given_and_not_kept() {
    let (first, replay, kept) = twice(|| f64::NAN).await;
    assert!(first.is_nan() && !kept);
    not_replayable(&replay);
    // Here the bytes would read back, as another value.
    let (first, replay, kept) = twice(|| Some(f64::INFINITY)).await;
    assert_eq!((first, kept), (Some(f64::INFINITY), false));
    not_replayable(&replay);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Renamed {
    #[serde(rename(serialize = "amount_out", deserialize = "amount"), default)]
    amount: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Forgetful {
    id: String,
    #[serde(skip)]
    internal: u64,
}

#[tokio::test(start_paused = true)]
async fn a_value_that_would_replay_as_another_is_given_and_not_kept() {
    let (first, replay, kept) = twice(|| Renamed { amount: 100 }).await;
    assert_eq!((first.amount, kept), (100, false));
    not_replayable(&replay);
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_is_the_replayed_answer() {
    // A skipped field is in no replay, so it is not in the first answer either.
    let (first, replay, kept) = twice(|| Forgetful { id: "ch_1".into(), internal: 7 }).await;
    assert!(kept);
    assert_eq!(first, Forgetful { id: "ch_1".into(), internal: 0 });
    assert_eq!(first, replay.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_map_that_json_cannot_hold_is_given_and_not_kept() {
    let map = || BTreeMap::from([((1, 2), "x".to_owned())]);
    let (first, replay, kept) = twice(map).await;
    assert_eq!((first.len(), kept), (1, false));
    not_replayable(&replay);
}

// L8, C81, C109: what cannot be read is there all the same, and nothing runs.
#[tokio::test(start_paused = true)]
async fn a_stored_answer_that_cannot_be_read_is_an_error_and_nothing_runs() {
    let whole = stored(br#""ch_1""#);
    let newer = {
        let mut bytes = whole.to_vec();
        bytes[1] = 99;
        Bytes::from(bytes)
    };
    let other_codec =
        Envelope { codec: CodecId(200), body: Body::Value(Bytes::from_static(b"ch_1")) }.encode();
    let mut payloads = vec![newer, other_codec, Bytes::from_static(b"garbage"), stored(b"{")];
    payloads.extend((0..whole.len()).map(|at| whole.slice(..at)));
    for payload in payloads {
        let store = Arc::new(MemoryStore::new());
        let writer = rival(30 * super::support::SEC);
        let verdict = store.reserve(&writer).await.unwrap().verdict(&writer).unwrap();
        let Verdict::Acquired { lease, .. } = verdict else { panic!("{verdict:?}") };
        store.complete(&lease, &payload, writer.retention_for()).await.unwrap();
        let idem = coordinator(store).build().unwrap();
        let provider = Provider::default();
        let error = call(&idem).run(provider.action(MS)).await.unwrap_err();
        assert_eq!((error.code(), provider.charges()), ("unreadable", 0), "{payload:?}");
    }
}

/// Lengths as text.
struct Lengths(u8);

impl Codec<usize> for Lengths {
    fn id(&self) -> CodecId {
        CodecId(self.0)
    }

    fn encode(&self, value: &usize) -> Result<Bytes, BoxError> {
        Ok(Bytes::from("x".repeat(*value)))
    }

    fn decode(&self, bytes: &Bytes) -> Result<usize, BoxError> {
        Ok(bytes.len())
    }
}

#[tokio::test(start_paused = true)]
async fn a_codec_of_ones_own_is_used_and_remembered() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    for replayed in [false, true] {
        let outcome =
            call(&idem).codec(Lengths(128)).run(|_| async { Ok::<_, String>(7) }).await.unwrap();
        assert_eq!((outcome.value, outcome.replayed), (7, replayed));
    }
    let misread = call(&idem).run(|_| async { Ok::<_, String>(7_usize) }).await.unwrap_err();
    assert_eq!(misread.code(), "unreadable");
}

#[tokio::test(start_paused = true)]
async fn a_reserved_codec_is_refused_before_the_action() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let refused = call(&idem)
        .codec(Lengths(3))
        .run(|_| async { unreachable!("refused before") })
        .await
        .map_err(|error: RunError<String>| error.code());
    assert_eq!(refused.unwrap_err(), "invalid");
}

/// Does not encode, and says why.
struct Chosen;

impl Codec<usize> for Chosen {
    fn id(&self) -> CodecId {
        CodecId(128)
    }

    fn encode(&self, _: &usize) -> Result<Bytes, BoxError> {
        Err(NotKept::Chosen.into())
    }

    fn decode(&self, _: &Bytes) -> Result<usize, BoxError> {
        unreachable!("nothing was encoded")
    }
}

#[tokio::test(start_paused = true)]
async fn a_codec_can_say_why_a_value_is_not_kept() {
    let idem = coordinator(MemoryStore::new()).build().unwrap();
    let run = || call(&idem).codec(Chosen).run(|_| async { Ok::<_, String>(7) });
    let first = run().await.unwrap();
    assert_eq!((first.value, first.not_kept), (7, Some(NotKept::Chosen)));
    let retry = run().await.unwrap_err();
    let RunError::Call(CallError::ResponseNotKept { why, .. }) = retry else {
        panic!("{retry:?}");
    };
    assert_eq!(why, NotKept::Chosen);
}

/// Keeps each value for as many seconds as it says.
struct Lasting;

impl Codec<u64> for Lasting {
    fn id(&self) -> CodecId {
        CodecId(128)
    }

    fn encode(&self, value: &u64) -> Result<Bytes, BoxError> {
        Json::default().encode(value)
    }

    fn decode(&self, bytes: &Bytes) -> Result<u64, BoxError> {
        Json::default().decode(bytes)
    }

    fn retention(&self, value: &u64) -> Option<Duration> {
        Some(Duration::from_secs(*value))
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_can_say_how_long_it_is_kept() {
    // Below the range it is its least: a minute.
    for (asked, kept) in [(0, 60), (90, 90), (3_600, 3_600)] {
        let idem = coordinator(MemoryStore::new()).build().unwrap();
        let replayed = async || {
            let run =
                call(&idem).codec(Lasting).run(move |_| async move { Ok::<_, String>(asked) });
            run.await.unwrap().replayed
        };
        assert!(!replayed().await);
        tokio::time::advance(Duration::from_secs(kept - 1)).await;
        assert!(replayed().await, "{asked} s");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!replayed().await, "{asked} s");
    }
}
