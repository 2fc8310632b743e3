//! A Redis or a Postgres for a test.
//!
//! [`redis()`] and [`postgres()`] are awaited as they are, or narrowed first:
//!
//! ```no_run
//! # async fn example() -> Result<(), idem_conformance::servers::ServerError> {
//! use idem_conformance::servers;
//!
//! let redis = servers::redis().await?;
//! let mut durable = servers::redis().setting("appendonly", "yes").await?;
//! durable.kill().await?;
//! durable.restart().await?;
//! # drop(redis);
//! # Ok(())
//! # }
//! ```
//!
//! # Where a server comes from
//! 1. The one given by `IDEM_REDIS_URL` or `IDEM_POSTGRES_URL`, unless the test asks for settings,
//!    an environment or a server [of its own](Setup::own). It is never stopped, and may have been
//!    used before.
//! 2. The binaries of this machine: `PATH`, and for Postgres `/usr/lib/postgresql/*/bin`, newest
//!    first. A private instance runs on a free port of the loopback interface, with its data in a
//!    temporary folder.
//! 3. Docker, with the feature `containers`.
//! 4. Otherwise [`ServerError::Missing`], which says what to install or to set. A test fails with
//!    it; it does not pass untested.
//!
//! # How long it lives
//! As long as its guard, [`Server`]: dropping it kills the process and removes the folder, also
//! while a panic unwinds. Where no drop runs (a `static`, an abort, SIGKILL), a small watcher
//! process does it, as soon as the test process is gone.
//!
//! Runs on Unix. Where there is no `/proc`, killing or pausing a Postgres reaches its main process
//! only, not the ones that serve the open connections.

mod cluster;
#[cfg(feature = "containers")]
mod container;
mod endpoint;
mod engine;
mod error;
mod instance;
mod owner;
mod postgres;
mod processes;
mod programs;
mod reaper;
mod redis;
mod server;
mod setup;
mod wall_clock;
mod wire;

use std::future::IntoFuture as _;

use tokio::sync::OnceCell;

pub use self::cluster::{RedisCluster, redis_cluster, redis_cluster_with};
pub use self::error::ServerError;
pub use self::server::Server;
pub use self::setup::{Setup, Starting};
pub use self::wall_clock::WallClock;

/// A Redis (or Valkey).
pub fn redis() -> Setup {
    Setup::new(&redis::REDIS)
}

/// A Postgres, with the superuser `postgres` and no password.
///
/// It runs without `fsync`: killing a process loses nothing that was written, only a crash of the
/// machine would. `.setting("fsync", "on")` turns it on.
pub fn postgres() -> Setup {
    Setup::new(&postgres::POSTGRES)
}

/// One Redis for all tests of this process; it ends with the process.
///
/// The reference is shared, so no test can stop it under another. Where each test is a process of
/// its own, each has its own server.
///
/// # Errors
/// As of awaiting [`redis()`]. Nothing is remembered: the next caller tries again.
pub async fn shared_redis() -> Result<&'static Server, ServerError> {
    static SHARED: OnceCell<Server> = OnceCell::const_new();
    SHARED.get_or_try_init(|| redis().into_future()).await
}

/// One Postgres for all tests of this process; see [`shared_redis`].
///
/// # Errors
/// As of awaiting [`postgres()`]. Nothing is remembered: the next caller tries again.
pub async fn shared_postgres() -> Result<&'static Server, ServerError> {
    static SHARED: OnceCell<Server> = OnceCell::const_new();
    SHARED.get_or_try_init(|| postgres().into_future()).await
}
