//! The wall clock of a server, in the hands of a test.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use super::error::{ServerError, io as cannot};
use super::setup::Setup;

/// Stands in front of every call by which a process reads the wall clock.
const SHIM: &str = include_str!("shim.c");

/// Where the shim finds two numbers of microseconds: at which time the clock stands (0: it goes),
/// and how far it is ahead while it goes.
const STANDS_AT: u64 = 0;
const AHEAD: u64 = 8;

/// The wall clock of a server, in the hands of a test: it can be stopped, moved and turned back
/// while the server runs.
///
/// [Given](Setup::clock) to one server or to several before they start. The server's monotonic
/// clock, by which it measures how long something takes, is left alone. Works for programs that
/// read the time through the C library, on systems with `LD_PRELOAD`; a C compiler has to be there.
///
/// Keep it as long as the server: its files are removed with it.
#[derive(Debug)]
pub struct WallClock {
    told: File,
    /// Held while it is moved, so that two moves add up.
    moving: Mutex<()>,
    folder: TempDir,
}

impl WallClock {
    /// A clock that goes right.
    ///
    /// # Errors
    /// [`ServerError::Missing`] without a C compiler: `cc`, or the one that `CC` names.
    pub fn new() -> Result<Self, ServerError> {
        let folder = tempfile::tempdir().map_err(cannot("make a folder for a clock"))?;
        // The server may run as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .map_err(cannot("open the folder of a clock to others"))?;
        compile(folder.path())?;
        let told = File::create_new(folder.path().join("clock"));
        let told = told.and_then(|told| told.set_len(16).map(|()| told));
        let told = told.map_err(cannot("make the file of a clock"))?;
        Ok(Self { told, moving: Mutex::default(), folder })
    }

    /// Stops it where it is.
    ///
    /// # Errors
    /// If its file cannot be written, as for each of the following.
    pub fn stop(&self) -> io::Result<()> {
        self.moved(|this| {
            let now = micros_now()?.saturating_add(this.read(AHEAD)?);
            this.write(STANDS_AT, now.max(this.read(STANDS_AT)?))
        })
    }

    /// Lets it go on from where it stands.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub fn start(&self) -> io::Result<()> {
        self.moved(|this| {
            let stands_at = this.read(STANDS_AT)?;
            if stands_at != 0 {
                this.write(AHEAD, stands_at.saturating_sub(micros_now()?))?;
            }
            this.write(STANDS_AT, 0)
        })
    }

    /// Moves it ahead, while it stands.
    ///
    /// # Errors
    /// If it does not stand; as [`stop`](Self::stop).
    pub fn advance(&self, by: Duration) -> io::Result<()> {
        let by = i64::try_from(by.as_micros()).map_err(io::Error::other)?;
        self.moved(|this| match this.read(STANDS_AT)? {
            0 => Err(io::Error::other("only a clock that stands can be advanced")),
            stands_at => this.write(STANDS_AT, stands_at.saturating_add(by)),
        })
    }

    /// Turns it by so many seconds, ahead or back, while it goes on.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub fn jump(&self, seconds: i64) -> io::Result<()> {
        self.moved(|this| {
            let ahead = this.read(AHEAD)?;
            this.write(AHEAD, ahead.saturating_add(seconds.saturating_mul(1_000_000)))
        })
    }

    fn moved(&self, change: impl FnOnce(&Self) -> io::Result<()>) -> io::Result<()> {
        let _moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        change(self)
    }

    fn read(&self, at: u64) -> io::Result<i64> {
        let mut bytes = [0; 8];
        self.told.read_exact_at(&mut bytes, at)?;
        Ok(i64::from_ne_bytes(bytes))
    }

    fn write(&self, at: u64, value: i64) -> io::Result<()> {
        self.told.write_all_at(&value.to_ne_bytes(), at)
    }
}

impl Setup {
    /// Runs the server by this clock, as a process of this machine.
    pub fn clock(self, clock: &WallClock) -> Self {
        let file = |name| clock.folder.path().join(name).display().to_string();
        self.env("LD_PRELOAD", file("shim.so")).env("IDEM_TEST_CLOCK", file("clock"))
    }
}

fn micros_now() -> io::Result<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    i64::try_from(now.as_micros()).map_err(io::Error::other)
}

fn compile(folder: &Path) -> Result<(), ServerError> {
    let (source, shim) = (folder.join("shim.c"), folder.join("shim.so"));
    fs::write(&source, SHIM).map_err(cannot("write the source of a clock"))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut compile = Command::new(compiler);
    compile.args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]);
    let output = compile.arg(&shim).arg(&source).output().map_err(|error| {
        let remedy = format!("a clock needs a C compiler, `cc` or the one that CC names: {error}");
        ServerError::Missing { server: "C compiler", remedy }
    })?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ServerError::Failed { server: "the C compiler", verb: "compile a clock", reason })
}
