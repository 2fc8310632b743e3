//! What a record takes of the server's memory, counted by the server.

use std::time::Duration;

use bytes::Bytes;
use idem_bench::{Better, BoxError, Comparison, Options, attempts};
use idem_core::{Attempt, Fence, Lease, Store};
use idem_redis::RedisStore;
use tokio::runtime::Runtime;

use crate::bare::Bare;

const DAY: Duration = Duration::from_hours(24);
const ANSWER: Bytes = Bytes::from_static(&[7; 1 << 10]);

pub(crate) fn compare(
    options: &Options,
    runtime: &Runtime,
    bare: &Bare,
    store: &RedisStore,
) -> Result<(), BoxError> {
    // The server's table of keys doubles: a record costs most just after that.
    for keys in [options.count(20_000, 200), options.count(32_000, 320)] {
        let attempts = &attempts(keys)?;
        let title = format!("redis footprint, {keys} records");
        Comparison::new(title, "bytes", Better::Lower, ["pending", "+ 1 KiB"])
            .way("HSET of the same, PEXPIRE", || {
                runtime.block_on(held(bare, attempts, async |attempt, answer| {
                    hash(bare, store.record_name(attempt.key()).into(), answer).await
                }))
            })
            .way("RedisStore", || {
                runtime.block_on(held(bare, attempts, async |attempt, answer| {
                    let Some(answer) = answer else {
                        store.reserve(attempt).await?;
                        return Ok(());
                    };
                    let lease = Lease::new(attempt.key().clone(), attempt.id(), Fence(1));
                    Ok(store.complete(&lease, &answer, DAY).await?)
                }))
            })
            .run(options)?;
    }
    Ok(())
}

/// The fields of a record as fields of a hash.
async fn hash(bare: &Bare, name: Bytes, answer: Option<Bytes>) -> Result<(), BoxError> {
    let is = |phase| Bytes::from_static(phase);
    let Some(answer) = answer else {
        let mut words = vec![name.clone()];
        let numbers = ["fence", "retain", "lease"].map(|field| (field, b"1796065304123456"));
        words.extend([is(b"phase"), is(b"pending"), is(b"attempts"), is(b"1")]);
        words.extend([is(b"holder"), is(&[7; 16]), is(b"fingerprint"), is(&[7; 32])]);
        words.extend(numbers.iter().flat_map(|(field, number)| [(*field).into(), is(*number)]));
        bare.send("HSET", words).await?;
        bare.send("PEXPIRE", [name, is(b"86400000")]).await?;
        return Ok(());
    };
    bare.send("HSET", [name, is(b"phase"), is(b"completed"), is(b"answer"), answer]).await?;
    Ok(())
}

/// What is held for each key when it is reserved, and when it is completed.
async fn held(
    bare: &Bare,
    attempts: &[Attempt],
    put: impl AsyncFn(&Attempt, Option<Bytes>) -> Result<(), BoxError>,
) -> Result<[f64; 2], BoxError> {
    bare.send("FLUSHALL", []).await?;
    let empty = used(bare).await?;
    let count = f64::from(u32::try_from(attempts.len())?);
    let mut held = [0.0; 2];
    for (held, answer) in held.iter_mut().zip([None, Some(ANSWER)]) {
        for attempt in attempts {
            put(attempt, answer.clone()).await?;
        }
        *held = (used(bare).await? - empty) / count;
    }
    Ok(held)
}

async fn used(bare: &Bare) -> Result<f64, BoxError> {
    let info = bare.send("INFO", [Bytes::from_static(b"memory")]).await?.text();
    let info = info.ok_or("no text")?;
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(used.ok_or("no memory is used")?.trim().parse()?)
}
