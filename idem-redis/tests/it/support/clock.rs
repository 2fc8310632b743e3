//! The clock of a server, moved by hand.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_conformance::servers::Setup;

/// Compiles the shim, once for this process.
///
/// # Panics
/// Without a C compiler: what needs virtual time does not pass without it.
fn shim() -> &'static PathBuf {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shim/clock.c");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let (made, shim) =
            (folder.join(format!("clock.{}", std::process::id())), folder.join("clock.so"));
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&made).arg(source);
        let output = cc.output().expect("these tests need a C compiler: install gcc or clang");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // In one step, for another test process that does the same.
        fs::rename(&made, &shim).unwrap();
        shim
    })
}

/// A server's wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    file: File,
    /// Held while it is moved: two moves add up.
    moving: Mutex<()>,
    // Removed with the clock.
    path: tempfile::TempPath,
}

impl Clock {
    /// A clock that goes right.
    pub(crate) fn new() -> Self {
        let (file, path) = tempfile::NamedTempFile::new().unwrap().into_parts();
        file.set_len(16).unwrap();
        Self { file, moving: Mutex::new(()), path }
    }

    /// Gives this clock to a server.
    pub(crate) fn of(&self, setup: Setup) -> Setup {
        setup
            .env("LD_PRELOAD", shim().to_str().unwrap())
            .env("IDEM_CLOCK", self.path.to_str().unwrap())
    }

    /// Lets it stand still from now on.
    pub(crate) fn stop(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.write(0, i64::try_from(now.as_micros()).unwrap() + self.read(8));
    }

    /// Lets it go on from where it stands.
    pub(crate) fn start(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.write(8, self.read(0) - i64::try_from(now.as_micros()).unwrap());
        self.write(0, 0);
    }

    /// Moves it, standing, ahead.
    pub(crate) fn advance(&self, by: Duration) {
        let _moving = self.moving.lock().unwrap();
        self.write(0, self.read(0) + i64::try_from(by.as_micros()).unwrap());
    }

    /// Turns it, going, by so many seconds.
    pub(crate) fn jump(&self, seconds: i64) {
        self.write(8, self.read(8) + seconds * 1_000_000);
    }

    fn read(&self, at: u64) -> i64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        i64::from_ne_bytes(bytes)
    }

    fn write(&self, at: u64, value: i64) {
        self.file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }
}
