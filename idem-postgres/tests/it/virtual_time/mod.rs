//! A real Postgres whose clock stands still until a test moves it.
//!
//! The server runs with a small library before its C library, compiled here. One server serves all
//! tests of a process, one test after the other: there is one clock.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_conformance::servers::{self, Server};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};

/// A server and its clock.
pub(crate) struct Timed {
    pub(crate) server: Server,
    clock: File,
    now: Duration,
    /// Holds the library and the clock.
    _folder: TempDir,
}

/// The server, for one test alone. Its clock has been stopped.
pub(crate) async fn server() -> OwnedMutexGuard<Timed> {
    static TIMED: OnceCell<Arc<Mutex<Timed>>> = OnceCell::const_new();
    let timed = TIMED.get_or_init(|| async { Arc::new(Mutex::new(Timed::start().await)) }).await;
    let mut timed = Arc::clone(timed).lock_owned().await;
    timed.stand_still().unwrap();
    timed
}

impl Timed {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The server may be another user's.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let library = folder.path().join("clock.so");
        compile(&library);
        let path = folder.path().join("clock");
        let clock = File::create(&path).unwrap();
        clock.write_all_at(&[0; 8], 0).unwrap();
        let server = servers::postgres()
            .env("LD_PRELOAD", library.display().to_string())
            .env("IDEM_TEST_CLOCK", path.display().to_string())
            .setting("max_connections", "200")
            .await
            .unwrap();
        Self { server, clock, now: Duration::ZERO, _folder: folder }
    }

    /// Stops the clock, never earlier than it was.
    fn stand_still(&mut self) -> io::Result<()> {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
        self.set(self.now.max(real))
    }

    pub(crate) fn advance(&mut self, by: Duration) -> io::Result<()> {
        self.set(self.now + by)
    }

    fn set(&mut self, now: Duration) -> io::Result<()> {
        self.now = now;
        let micros = i64::try_from(now.as_micros()).map_err(io::Error::other)?;
        self.clock.write_all_at(&micros.to_ne_bytes(), 0)
    }
}

fn compile(library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/virtual_time/clock.c");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    let output = compiler
        .args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(library)
        .arg(&source)
        .output()
        .expect("virtual time needs a C compiler: `cc`, or the one that CC names");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
