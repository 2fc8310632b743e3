//! Deleting what is past its retention.

use std::time::Duration;

use idem_core::{
    Attempt, Fingerprint, Key, Lease, Refusal, Scope, Store as _, StoreError, Verdict, limits,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::jitter::jittered;
use crate::store::PostgresStore;

/// How many pages one step looks at: 4 MiB of the table.
const PAGES: i64 = 512;

/// How long an instance has the turn to purge; renewed while it does.
const TURN: Duration = Duration::from_mins(1);

/// How a purge goes about it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Purge {
    batch: u32,
    pause: Duration,
}

impl Default for Purge {
    fn default() -> Self {
        Self { batch: 1_000, pause: Duration::from_millis(10) }
    }
}

impl Purge {
    /// How many rows one statement deletes at most. Default: 1,000.
    ///
    /// Each statement is a transaction of its own, and holds its rows for as long as it takes.
    pub fn batch(mut self, rows: u32) -> Self {
        self.batch = rows.max(1);
        self
    }

    /// How long to pause between two statements. Default: 10 milliseconds.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

/// What a purge came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeReport {
    /// How many rows were deleted.
    pub deleted: u64,
    /// Whether the whole table was walked. `false`: another instance was purging, and this one
    /// left it to that.
    pub complete: bool,
}

/// Purges every so often; dropping it ends that.
#[derive(Debug)]
#[must_use = "dropping it ends the purging"]
pub struct Purging(JoinHandle<()>);

impl Drop for Purging {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PostgresStore {
    /// Deletes the rows that are past their retention, wherever they are in the table.
    ///
    /// Not needed for correctness: such a row counts as absent. The table is walked once, page by
    /// page, and read as a whole: there is no index on when a row may go, because every completion
    /// would have to maintain it. A row that somebody holds is skipped, and so is one that cannot
    /// be read (law L8). Whether a row may go is decided by the server's clock, in the statement
    /// that deletes it.
    ///
    /// Of several instances one purges at a time: it holds a key of the store itself, of the
    /// operation `idem.purge`. If it dies, another may go on a minute later.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable), [`Refused`](StoreError::Refused). What was deleted
    /// until then stays deleted.
    ///
    /// # Cancellation
    /// Safe; so much of the table is purged, and no more. The next purge may have to wait a minute.
    pub async fn purge(&self, how: Purge) -> Result<PurgeReport, StoreError> {
        let turn = Attempt::new(key()?, Fingerprint::from_bytes([0; 32]))
            .lease(TURN)
            .retention(*limits::RETENTION.start());
        let Verdict::Acquired { lease, .. } = self.reserve(&turn).await?.verdict(&turn)? else {
            return Ok(PurgeReport { deleted: 0, complete: false });
        };
        let walked = self.walk(how, &lease).await;
        match self.release(&lease).await {
            Ok(()) | Err(StoreError::LeaseLost) => walked,
            Err(error) => walked.and(Err(error)),
        }
    }

    async fn walk(&self, how: Purge, turn: &Lease) -> Result<PurgeReport, StoreError> {
        let (mut deleted, mut first, mut renewed) = (0, 0, Instant::now());
        loop {
            if renewed.elapsed() > TURN / 3 {
                match self.renew(turn, TURN).await {
                    Ok(_) => renewed = Instant::now(),
                    Err(StoreError::LeaseLost) => {
                        return Ok(PurgeReport { deleted, complete: false });
                    }
                    Err(error) => return Err(error),
                }
            }
            let pages = first..first + PAGES;
            let (step, _) = self.send(|| self.verbs.purge(&pages, how.batch)).await?;
            deleted += step.rows;
            // A full batch may have left some behind on the same pages.
            if step.rows < u64::from(how.batch) {
                first = pages.end;
            }
            if first >= step.pages {
                return Ok(PurgeReport { deleted, complete: true });
            }
            sleep(how.pause).await;
        }
    }

    /// Purges every so often, until what this returns is dropped. Every instance may do so.
    ///
    /// An hour is a good start: what has expired takes room, and harms nothing else.
    pub fn purge_every(&self, every: Duration, how: Purge) -> Purging {
        let store = self.clone();
        Purging(tokio::spawn(async move {
            // Instances that were started together do not purge together.
            sleep(jittered(every / 2)).await;
            let mut ticks = interval(every.max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                match store.purge(how).await {
                    Ok(PurgeReport { deleted, complete }) => {
                        tracing::debug!(deleted, complete, "purged");
                    }
                    Err(error) => tracing::warn!(%error, "the purge failed, and is tried again"),
                }
            }
        }))
    }
}

/// Who purges holds this key.
fn key() -> Result<Key, StoreError> {
    Scope::new("idem.purge")
        .and_then(|scope| Key::new(scope, "turn"))
        .map_err(|error| StoreError::refused(Refusal::Invalid, error))
}
