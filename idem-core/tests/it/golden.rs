//! Bytes that were written once are read for ever: one file for each, in `tests/golden`.
//!
//! A file is never changed. A new format version gets files of its own, next to the old ones.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;

use bytes::Bytes;
use idem_core::envelope::{Body, CodecId, Envelope, NotKept};
use idem_core::model::{Phase, Row, Timestamp};
use idem_core::{AttemptId, Fence, Fingerprint};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden"].iter().collect()
}

fn golden(name: &str) -> Bytes {
    let text = std::fs::read_to_string(folder().join(format!("{name}.hex"))).unwrap();
    let digits: Vec<u32> =
        text.lines().flat_map(str::chars).map(|digit| digit.to_digit(16).unwrap()).collect();
    let (pairs, rest) = digits.as_chunks();
    assert!(rest.is_empty(), "{name} ends within a byte");
    pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low).unwrap()).collect()
}

fn envelopes() -> Vec<(&'static str, Envelope)> {
    let json = |body| Envelope { codec: CodecId::JSON, body };
    let plain = |body| Envelope { codec: CodecId::NONE, body };
    let not_kept = |why, error| Body::NotKept { why, error };
    let too_large = NotKept::TooLarge { bytes: 70_000 };
    let reference = Body::Reference("s3://bucket/7".into());
    vec![
        ("envelope-value-json", json(Body::Value(r#"{"id":"ch_1"}"#.into()))),
        ("envelope-value-empty", plain(Body::Value(Bytes::new()))),
        ("envelope-error-json", json(Body::Error(r#""card declined""#.into()))),
        ("envelope-not-kept-too-large", json(not_kept(too_large, false))),
        ("envelope-not-kept-not-replayable", json(not_kept(NotKept::NotReplayable, false))),
        ("envelope-not-kept-no-room", json(not_kept(NotKept::NoRoom, true))),
        ("envelope-not-kept-chosen", plain(not_kept(NotKept::Chosen, false))),
        ("envelope-reference-own-codec", Envelope { codec: CodecId(128), body: reference }),
    ]
}

fn counting_from<const N: usize>(first: u8) -> [u8; N] {
    let mut next = first..;
    std::array::from_fn(|_| next.next().unwrap())
}

fn rows() -> Vec<(&'static str, Row)> {
    let fingerprint = Fingerprint::from_bytes(counting_from(0x20));
    let row = |attempts, phase| Row {
        holder: AttemptId::from_bytes(counting_from(0)),
        fence: Fence(1_767_225_600_000_000),
        attempts,
        retain_until: Timestamp(1_767_312_000_000_000),
        phase,
    };
    let lease_until = Timestamp(1_767_225_630_000_000);
    let payload = Bytes::from_static(b"\x1d\x01\x01\x0142");
    vec![
        ("row-pending", row(2, Phase::Pending { fingerprint, lease_until })),
        ("row-completed", row(1, Phase::Completed { fingerprint, payload })),
        ("row-released", row(1, Phase::Released)),
    ]
}

fn check<T: PartialEq + Debug, E: Debug>(
    all: &[(&str, T)],
    decode: impl Fn(&Bytes) -> Result<T, E>,
    encode: impl Fn(&T) -> Bytes,
) {
    for (name, value) in all {
        let bytes = golden(name);
        assert_eq!(&decode(&bytes).unwrap(), value, "{name} is read as something else");
        assert_eq!(encode(value), bytes, "{name} is written in another way");
    }
}

#[test]
fn envelopes_of_today_are_read_and_written_alike() {
    check(&envelopes(), Envelope::decode, Envelope::encode);
}

#[test]
fn rows_of_today_are_read_and_written_alike() {
    check(&rows(), Row::decode, Row::encode);
}

#[test]
fn every_file_is_read_by_a_test() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let names = envelopes().into_iter().map(|(name, _)| name);
    let names = names.chain(rows().into_iter().map(|(name, _)| name));
    assert_eq!(files, names.map(|name| format!("{name}.hex")).collect());
}
