//! Workers: processes of their own, that a test starts and kills.
//!
//! What a crash leaves behind shows only if a process really dies. A worker is a test of the very
//! binary that starts it. Run with all the others, it has been told nothing and does nothing:
//!
//! ```no_run
//! use idem_conformance::worker::{self, Worker};
//!
//! #[tokio::test]
//! async fn a_worker_that_dies_leaves_its_key_abandoned() {
//!     let mut worker = Worker::start("reserves_and_stops", &["key-1"]).unwrap();
//!     worker.is_here().await.unwrap();
//!     worker.kill().await.unwrap();
//!     // Now look at the key.
//! }
//!
//! #[tokio::test]
//! async fn reserves_and_stops() {
//!     let Some([key]) = worker::told() else { return };
//!     // Reserve it here.
//!     worker::stop_here();
//! }
//! ```

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio, exit};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const TOLD: &str = "IDEM_TEST_WORKER";
/// Between two words, of which none contains it.
const BETWEEN: char = '\u{1f}';
const HERE: &str = "worker is here";
const SIGKILL: i32 = 9;

/// A running worker. Dropped, it is killed; it also ends with the process that started it.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    says: BufReader<ChildStdout>,
    /// The worker ends when this does, so that it outlives no test, however that ends.
    _lives: ChildStdin,
}

impl Worker {
    /// Runs the test of this name, with its path, in a process of its own, which is
    /// [told](told()) these words.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(test: &str, words: &[&str]) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--exact", test, "--nocapture"])
            .env(TOLD, words.join(&BETWEEN.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (says, lives) = (process.stdout.take(), process.stdin.take());
        let (Some(says), Some(lives)) = (says, lives) else {
            return Err(io::Error::other("the worker has no pipes"));
        };
        Ok(Self { process, says: BufReader::new(says), _lives: lives })
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Returns once the worker has said that it [is here](here); as often as it says so.
    ///
    /// # Errors
    /// If it ends before.
    pub async fn is_here(&mut self) -> io::Result<()> {
        let mut line = String::new();
        while self.says.read_line(&mut line).await? > 0 {
            if line.trim_end() == HERE {
                return Ok(());
            }
            line.clear();
        }
        Err(io::Error::other("the worker ended before it came here"))
    }

    /// Stops it where it is (SIGSTOP), as a machine that swaps or a debugger would. It does not
    /// notice.
    ///
    /// # Errors
    /// If it has ended.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// If it has ended.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = self.process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("the worker has ended"))?;
        Ok(kill_process(pid, signal)?)
    }

    /// Kills it without warning (SIGKILL), and returns when it is dead.
    ///
    /// # Errors
    /// If it had ended by itself.
    pub async fn kill(mut self) -> io::Result<()> {
        self.process.start_kill()?;
        let died: ExitStatus = self.process.wait().await?;
        if died.signal() == Some(SIGKILL) {
            return Ok(());
        }
        Err(io::Error::other(format!("the worker had ended by itself: {died}")))
    }

    /// Returns when it has done what it was told.
    ///
    /// # Errors
    /// If it failed, with what it said.
    pub async fn ends_well(mut self) -> io::Result<()> {
        let mut said = String::new();
        self.says.read_to_string(&mut said).await?;
        let ended = self.process.wait().await?;
        if ended.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("the worker failed, {ended}: {said}")))
    }
}

/// In a worker: what it was told, so many words. `None` where no test has started this process.
///
/// # Panics
/// If it was told another number of words.
pub fn told<const WORDS: usize>() -> Option<[String; WORDS]> {
    let told = std::env::var(TOLD).ok()?;
    thread::spawn(|| {
        // Ends with the one who started it.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        exit(1);
    });
    let words: Vec<_> = told.split(BETWEEN).map(str::to_owned).collect();
    let count = words.len();
    let Ok(words) = words.try_into() else {
        panic!("the worker was told {count} words, and expects {WORDS}");
    };
    Some(words)
}

/// In a worker: says that it has come so far.
pub fn here() {
    // The line before is the test runner's, and not ended. Nobody may be left to hear it.
    let mut out = io::stdout();
    let _ = writeln!(out, "\n{HERE}").and_then(|()| out.flush());
}

/// In a worker: says so, and does not go on. To be killed here.
pub fn stop_here() -> ! {
    here();
    loop {
        thread::park();
    }
}
