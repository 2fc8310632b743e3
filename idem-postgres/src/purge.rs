//! Deleting what is past its retention.

use std::time::Duration;

use idem_core::StoreError;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::jitter::jittered;
use crate::store::PostgresStore;

/// How many pages one step looks at: 4 MiB of the table.
const PAGES: i64 = 512;

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
    /// that deletes it. Of several instances, one purges at a time.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable), [`Refused`](StoreError::Refused). What was deleted
    /// until then stays deleted.
    ///
    /// # Cancellation
    /// Safe; so much of the table is purged, and no more.
    pub async fn purge(&self, how: Purge) -> Result<PurgeReport, StoreError> {
        let (mut deleted, mut first) = (0, 0);
        loop {
            let pages = first..=first + PAGES - 1;
            let most = i64::from(how.batch);
            let (step, on) = self.send(|| self.verbs.purge(&pages, most)).await?;
            drop(on);
            deleted += step.rows;
            if !step.alone {
                return Ok(PurgeReport { deleted, complete: false });
            }
            // A full batch may have left some behind on the same pages.
            if step.rows < u64::from(how.batch) {
                first += PAGES;
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
