//! What a record takes of the memory store's memory.

use std::alloc::System;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use idem_bench::{Better, BoxError, Comparison, Found, MapByHand, Options, attempts};
use idem_core::{Attempt, Fence, Lease, Store};
use idem_memory::MemoryStore;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

/// Counts the bytes that are asked for, without what the system's allocator adds to each block.
#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DAY: Duration = Duration::from_hours(24);
/// The size of an answer.
const ANSWER: usize = 1 << 10;

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    // A hash map doubles: a record costs most just after that, and least just before.
    for keys in
        [options.count(220_000, 220), options.count(250_000, 250), options.count(350_000, 350)]
    {
        compare(&options, keys)?;
    }
    Ok(())
}

fn compare(options: &Options, keys: usize) -> Result<(), BoxError> {
    let attempts = &attempts(keys)?;
    let target = Some("<= 260");
    Comparison::new(
        format!("footprint, {keys} records"),
        "bytes",
        Better::Lower,
        ["pending", "completed", "+ 1 KiB"],
    )
    .way("HashMap in a Mutex", || {
        let map = MapByHand::default();
        held(
            attempts,
            |attempt| matches!(map.reserve(attempt), Found::Reserved),
            |lease, answer| map.complete(lease, answer, DAY),
        )
    })
    .way_with_targets("MemoryStore", [target, target, None], || {
        let store = MemoryStore::builder().max_bytes(1 << 30).build();
        held(
            attempts,
            |attempt| matches!(store.reserve(attempt).now_or_never(), Some(Ok(_))),
            |lease, answer| {
                matches!(store.complete(lease, answer, DAY).now_or_never(), Some(Ok(())))
            },
        )
    })
    .run(options)
}

/// What is held for each key when it is reserved, and when it is completed: without and with its
/// answer.
fn held(
    attempts: &[Attempt],
    reserve: impl Fn(&Attempt) -> bool,
    complete: impl Fn(&Lease, &Bytes) -> bool,
) -> Result<[f64; 3], BoxError> {
    let region = Region::new(COUNTED);
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
    let per_key = || {
        let change = region.change();
        (change.bytes_allocated - change.bytes_deallocated) as f64 / attempts.len() as f64
    };
    if !attempts.iter().all(reserve) {
        return Err("a key was not reserved".into());
    }
    let pending = per_key();
    let completed = attempts.iter().all(|attempt| {
        let lease = Lease::new(attempt.key().clone(), attempt.id(), Fence(0));
        complete(&lease, &Bytes::from(vec![7; ANSWER]))
    });
    if !completed {
        return Err("a key was not completed".into());
    }
    #[expect(clippy::cast_precision_loss, reason = "1024 is exact")]
    let answer = ANSWER as f64;
    Ok([pending, per_key() - answer, per_key()])
}
