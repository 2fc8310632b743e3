//! The verbs of the memory store beside what one would write by hand.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use idem_bench::{Better, BoxError, CacheByHand, Comparison, Found, MapByHand, Options, attempts};
use idem_core::{Attempt, Fence, Lease, Record, State, Store};
use idem_memory::MemoryStore;

const DAY: Duration = Duration::from_hours(24);
/// The size of an answer.
const ANSWER: usize = 1 << 10;
/// How many answers are made at a time, outside of what is timed.
const CHUNK: usize = 256;

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    let counts = [options.count(10_000, 1_000), options.count(200_000, 2_000)];
    let _end = warm_heap(2 * counts.iter().sum::<usize>());
    for keys in counts {
        for threads in [1, 2] {
            compare(&options, keys, threads)?;
        }
    }
    Ok(())
}

fn compare(options: &Options, keys: usize, threads: usize) -> Result<(), BoxError> {
    let load = Load::new(keys, threads)?;
    let targets = [Some("<= 1.2"), Some("<= 2.0"), None, Some("<= 2.5")];
    Comparison::new(
        format!("memory, {keys} keys, {threads} thread(s)"),
        "ns/op",
        Better::Lower,
        ["reserve", "complete", "fresh", "replay"],
    )
    .way("HashMap in a Mutex", || load.measure(&MapByHand::default()))
    .way("HashMap, own copy of answer", || load.measure(&Copying::default()))
    .way_with_targets("MemoryStore", targets, || load.measure(&roomy()))
    .way("result cache", || load.measure(&CacheByHand::default()))
    .run(options)
}

/// Takes memory for so many answers and gives it back to the allocator, so that no way pays for
/// pages that the process has not touched yet. Behind the block that is returned the heap does
/// not shrink.
fn warm_heap(answers: usize) -> Vec<u8> {
    let touched: Vec<_> = (0..answers).map(|_| vec![7_u8; ANSWER]).collect();
    let end = vec![7; ANSWER];
    drop(black_box(touched));
    end
}

/// A store with room for every answer here.
fn roomy() -> MemoryStore {
    MemoryStore::builder().max_bytes(1 << 30).build()
}

/// What is measured: each verb says whether it did what it was asked.
trait Verbs: Sync {
    fn reserve(&self, attempt: &Attempt) -> bool;
    fn complete(&self, lease: &Lease, answer: &Bytes) -> bool;
    fn replay(&self, retry: &Attempt) -> Option<Bytes>;
}

impl Verbs for MapByHand {
    fn reserve(&self, attempt: &Attempt) -> bool {
        matches!(self.reserve(attempt), Found::Reserved)
    }

    fn complete(&self, lease: &Lease, answer: &Bytes) -> bool {
        self.complete(lease, answer, DAY)
    }

    fn replay(&self, retry: &Attempt) -> Option<Bytes> {
        match self.reserve(retry) {
            Found::Answer(answer) => Some(answer),
            _ => None,
        }
    }
}

/// Its verbs never wait.
impl Verbs for MemoryStore {
    fn reserve(&self, attempt: &Attempt) -> bool {
        matches!(reserve(self, attempt), Some(Record { state: State::Pending { .. }, .. }))
    }

    fn complete(&self, lease: &Lease, answer: &Bytes) -> bool {
        matches!(Store::complete(self, lease, answer, DAY).now_or_never(), Some(Ok(())))
    }

    fn replay(&self, retry: &Attempt) -> Option<Bytes> {
        match reserve(self, retry)?.state {
            State::Completed { payload } => payload,
            State::Pending { .. } => None,
        }
    }
}

fn reserve(store: &MemoryStore, attempt: &Attempt) -> Option<Record> {
    Store::reserve(store, attempt).now_or_never()?.ok()
}

/// The map by hand, with an answer that is its own: a slice of a large request would keep all of
/// the request in memory, and the memory store, which is bounded, copies for that reason.
#[derive(Default)]
struct Copying(MapByHand);

impl Verbs for Copying {
    fn reserve(&self, attempt: &Attempt) -> bool {
        Verbs::reserve(&self.0, attempt)
    }

    fn complete(&self, lease: &Lease, answer: &Bytes) -> bool {
        Verbs::complete(&self.0, lease, &Bytes::copy_from_slice(answer))
    }

    fn replay(&self, retry: &Attempt) -> Option<Bytes> {
        self.0.replay(retry)
    }
}

/// It reserves nothing: it looks the key up, and saves what it did not find.
impl Verbs for CacheByHand {
    fn reserve(&self, _: &Attempt) -> bool {
        true
    }

    fn complete(&self, lease: &Lease, answer: &Bytes) -> bool {
        let is_new = self.get(lease.key()).is_none();
        self.put(lease.key(), answer, DAY);
        is_new
    }

    fn replay(&self, retry: &Attempt) -> Option<Bytes> {
        self.get(retry.key())
    }
}

/// One key: its first request, and a retry.
struct Case {
    first: Attempt,
    lease: Lease,
    retry: Attempt,
}

/// What is done, by how many threads.
struct Load {
    cases: Vec<Case>,
    threads: usize,
}

impl Load {
    fn new(keys: usize, threads: usize) -> Result<Self, BoxError> {
        let pairs = attempts(keys)?.into_iter().zip(attempts(keys)?);
        let case = |(first, retry): (Attempt, Attempt)| {
            let lease = Lease::new(first.key().clone(), first.id(), Fence(0));
            Case { first, lease, retry }
        };
        Ok(Self { cases: pairs.map(case).collect(), threads })
    }

    fn measure(&self, verbs: &impl Verbs) -> Result<[f64; 4], BoxError> {
        let reserve = self.per_key(|cases| reserve_all(verbs, cases))?;
        let complete = self.per_key(|cases| complete_all(verbs, cases))?;
        let replay = self.per_key(|cases| replay_all(verbs, cases))?;
        Ok([reserve, complete, reserve + complete, replay])
    }

    /// Gives each thread its share, and says what a key took of the slowest one's time.
    fn per_key(&self, all: impl Fn(&[Case]) -> Option<Duration> + Sync) -> Result<f64, BoxError> {
        let took = thread::scope(|scope| {
            let shares = self.cases.chunks(self.cases.len().div_ceil(self.threads));
            let threads: Vec<_> = shares.map(|share| scope.spawn(|| all(share))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().ok().flatten())
                .try_fold(Duration::ZERO, |longest, took| Some(longest.max(took?)))
        });
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 keys")]
        let keys = self.cases.len() as f64;
        Ok(took.ok_or("a verb did not do what it was asked")?.as_secs_f64() * 1e9 / keys)
    }
}

/// In another order than the keys are used in later, so that neighbours in memory are not
/// neighbours in time.
fn reserve_all(verbs: &impl Verbs, cases: &[Case]) -> Option<Duration> {
    const STRIDE: usize = 97;
    let started = Instant::now();
    let mut strided = (0..STRIDE).flat_map(|first| cases.iter().skip(first).step_by(STRIDE));
    let all = strided.all(|case| verbs.reserve(&case.first));
    all.then(|| started.elapsed())
}

/// Each answer is a buffer of its own that was just filled, as an action's would be. Filling and
/// dropping it is not timed.
fn complete_all(verbs: &impl Verbs, cases: &[Case]) -> Option<Duration> {
    let mut took = Duration::ZERO;
    for chunk in cases.chunks(CHUNK) {
        let answers: Vec<_> = chunk.iter().map(|_| Bytes::from(vec![7; ANSWER])).collect();
        let started = Instant::now();
        let all = chunk.iter().zip(&answers).all(|(case, it)| verbs.complete(&case.lease, it));
        took += started.elapsed();
        if !all {
            return None;
        }
    }
    Some(took)
}

fn replay_all(verbs: &impl Verbs, cases: &[Case]) -> Option<Duration> {
    let started = Instant::now();
    let all = cases.iter().all(|case| black_box(verbs.replay(&case.retry)).is_some());
    all.then(|| started.elapsed())
}
