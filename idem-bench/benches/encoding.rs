//! What fingerprints and codecs cost, for orientation.

use std::hint::black_box;
use std::time::Instant;

use idem_bench::{Better, BoxError, Charge, Comparison, Options};
use idem_core::envelope::{Body, CodecId, Envelope};
use idem_core::{Codec, Fingerprint, FingerprintKey, Json, Key, Scope};
use sha2::{Digest, Sha256};

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    fingerprints(&options)?;
    values(&options)
}

fn fingerprints(options: &Options) -> Result<(), BoxError> {
    let small = ("ord_1", 1_999, "EUR");
    let large = vec![Charge::sample(); 4];
    let key = FingerprintKey::new(&[9; 32])?;
    let bytes = vec![7; 4 << 10];
    let hashed = |size: usize| Sha256::digest(black_box(bytes.get(..size).unwrap_or_default()));
    let scope = Scope::new("payment.charge")?;
    Comparison::new("fingerprints", "us", Better::Lower, ["3 fields", "4 KiB"])
        .way("bare SHA-256", || {
            Ok([time(options, || Ok(hashed(64)))?, time(options, || Ok(hashed(4 << 10)))?])
        })
        .way("Fingerprint::of", || {
            let small = time(options, || Ok(Fingerprint::of(black_box(&small))?))?;
            Ok([small, time(options, || Ok(Fingerprint::of(black_box(&large))?))?])
        })
        .way("keyed (HMAC)", || {
            let small = time(options, || Ok(key.of(black_box(&small))?))?;
            Ok([small, time(options, || Ok(key.of(black_box(&large))?))?])
        })
        .run(options)?;
    Comparison::new("keys", "us", Better::Lower, ["32 chars"])
        .way("bare SHA-256", || Ok([time(options, || Ok(hashed(80)))?]))
        .way("Key::new", || {
            let text = "5f6c2a5f6c2a5f6c2a5f6c2a5f6c2a5f";
            Ok([time(options, || Ok(Key::new(scope.clone(), black_box(text))?))?])
        })
        .run(options)
}

fn values(options: &Options) -> Result<(), BoxError> {
    let charge = Charge::sample();
    let json = Json::default();
    let bytes = json.encode(&charge)?;
    let decoded = |bytes| -> Result<Charge, BoxError> { json.decode(bytes) };
    let envelope = Envelope { codec: CodecId::JSON, body: Body::Value(bytes.clone()) };
    let payload = envelope.encode();
    Comparison::new("an answer of 1 KiB", "us", Better::Lower, ["encode", "decode"])
        .way("serde_json", || {
            let encode = time(options, || Ok(serde_json::to_vec(black_box(&charge))?))?;
            let decode = |bytes| Ok(serde_json::from_slice::<Charge>(bytes)?);
            Ok([encode, time(options, || decode(black_box(&bytes)))?])
        })
        .way("Json codec", || {
            let encode = time(options, || json.encode(black_box(&charge)))?;
            Ok([encode, time(options, || decoded(black_box(&bytes)))?])
        })
        .way("envelope around it", || {
            let encode = time(options, || Ok(black_box(&envelope).encode()))?;
            Ok([encode, time(options, || Ok(Envelope::decode(black_box(&payload))?))?])
        })
        .run(options)?;
    Comparison::new("would it replay alike, 1 KiB", "us", Better::Lower, ["check"])
        .way("decode and encode", || {
            let again = || json.encode(&decoded(black_box(&bytes))?);
            Ok([time(options, again)?])
        })
        .way("Json codec", || {
            Ok([time(options, || json.replayed(black_box(&charge), black_box(&bytes)))?])
        })
        .run(options)
}

/// What one of many takes, in microseconds.
fn time<T>(options: &Options, each: impl Fn() -> Result<T, BoxError>) -> Result<f64, BoxError> {
    let times = u32::try_from(options.count(20_000, 200))?;
    let started = Instant::now();
    for _ in 0..times {
        black_box(each()?);
    }
    Ok(started.elapsed().as_secs_f64() * 1e6 / f64::from(times))
}
