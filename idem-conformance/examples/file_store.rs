//! A store in a directory, one file per key, and the suite run on it.
//!
//! `cargo run -p idem-conformance --example file_store` prints what was shown.
//!
//! A row is replaced by writing another file and renaming it: a crash leaves the old row or the
//! new one. Who replaces a row holds a guard file exclusively meanwhile, which the
//! operating system gives back when a process dies, and looks again first. That is
//! compare-and-swap, and [`CasStore`] makes a store of it. Its clock is that of the machine, so
//! the directory must not be shared between machines.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use idem_conformance::{Clock, Damage, Harness, HookError, Options, run_all};
use idem_core::model::{Row, Timestamp};
use idem_core::{Applied, Cas, CasStore, Key, Snapshot, Store, StoreError};

/// Rows in a directory.
#[derive(Clone, Debug)]
pub(crate) struct FileTable {
    directory: PathBuf,
}

impl FileTable {
    /// The rows in this directory, which is made if it is not there.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let table = Self { directory: directory.to_owned() };
        table.guard()?;
        Ok(table)
    }

    /// A digest names the file, so that no key can name another place.
    fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(format!("{:x}.row", Bytes::copy_from_slice(key.digest())))
    }

    /// Held by one handle of one process at a time, until it is dropped.
    fn guard(&self) -> io::Result<File> {
        let guard = File::options().create(true).append(true).open(self.directory.join("guard"))?;
        guard.lock()?;
        Ok(guard)
    }

    /// Writes the row if the file is as `expected`. Durable once it returns.
    fn replace(&self, path: &Path, expected: Option<&Bytes>, row: &Bytes) -> io::Result<bool> {
        let _guard = self.guard()?;
        if read(path)?.as_ref() != expected {
            return Ok(false);
        }
        // Only who holds the guard writes this file; one that a crash left behind is overwritten.
        let next = self.directory.join("next");
        let mut file = File::create(&next)?;
        file.write_all(row)?;
        file.sync_all()?;
        fs::rename(&next, path)?;
        File::open(&self.directory)?.sync_all()?;
        Ok(true)
    }

    /// Removes the rows whose retention has passed; what cannot be read stays.
    fn purge(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let _guard = self.guard()?;
            let row = read(&path)?.map(|bytes| Row::decode(&bytes));
            if matches!(row, Some(Ok(row)) if row.retain_until <= now()) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Option<Bytes>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn now() -> Timestamp {
    Timestamp(0).after(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

/// Files block, so they are read and written off the async threads.
async fn off_thread<T: Send + 'static>(
    applied: Applied,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
    done.map_err(|why| StoreError::unavailable(applied, why))
}

#[async_trait]
impl Cas for FileTable {
    type Version = Option<Bytes>;

    async fn read(&self, key: &Key) -> Result<Snapshot<Self::Version>, StoreError> {
        let path = self.path(key);
        let version = off_thread(Applied::No, move || read(&path)).await?;
        let row = version.as_ref().map(Row::decode).transpose()?;
        Ok(Snapshot { row, version, now: now() })
    }

    async fn swap(&self, key: &Key, old: Self::Version, row: &Row) -> Result<bool, StoreError> {
        let (table, path, row) = (self.clone(), self.path(key), row.encode());
        off_thread(Applied::Unknown, move || table.replace(&path, old.as_ref(), &row)).await
    }
}

/// The table, and what can be done to it from outside.
#[derive(Debug)]
pub(crate) struct FileHarness {
    table: FileTable,
    /// Removed when it is dropped.
    _directory: tempfile::TempDir,
}

impl FileHarness {
    /// A directory of its own, removed when the harness is dropped.
    pub(crate) fn new() -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        Ok(Self { table: FileTable::open(directory.path())?, _directory: directory })
    }
}

#[async_trait]
impl Harness for FileHarness {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(CasStore::new(self.table.clone()))
    }
    fn clock(&self) -> Clock {
        Clock::Real { tick: Duration::from_millis(50) }
    }
    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Ok(self.store())
    }
    async fn restart(&self) -> Result<(), HookError> {
        Ok(())
    }
    async fn purge(&self) -> Result<(), HookError> {
        self.table.purge().map_err(|why| HookError::Failed(why.into()))
    }
    async fn corrupt(&self, key: &Key, damage: Damage) -> Result<(), HookError> {
        let damaged = fs::read(self.table.path(key)).map(|stored| damage.of(&stored));
        let written = damaged.and_then(|damaged| fs::write(self.table.path(key), damaged));
        written.map_err(|why| HookError::Failed(why.into()))
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    FileHarness::new()?;
    #[expect(clippy::expect_used, reason = "it could be made a line ago")]
    let harness = async || FileHarness::new().expect("a temporary directory");
    let report = run_all(harness, &Options::from_env()?)?;
    println!("{report}");
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
