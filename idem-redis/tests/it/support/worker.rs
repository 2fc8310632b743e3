//! Workers: processes of their own, that a test starts and kills.
//!
//! A worker is a test of this very binary. Run with all the others, it has been told nothing and
//! does nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, exit};
use std::thread;

use tokio::task::block_in_place;

const TOLD: &str = "IDEM_TEST_WORKER";
const BETWEEN: char = '|';

/// A running worker. Dropped, it is killed.
pub(crate) struct Worker {
    process: Child,
    says: BufReader<ChildStdout>,
    /// The worker ends when this does, so that it outlives no test, however that ends.
    _lives: ChildStdin,
}

impl Worker {
    /// Runs the test `name` in a process of its own; it is told `words`.
    pub(crate) fn start(name: &str, words: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(TOLD, words.join(&BETWEEN.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(process.stdout.take().unwrap());
        let lives = process.stdin.take().unwrap();
        Self { process, says, _lives: lives }
    }

    /// Returns once the worker has said that it [is here](here).
    pub(crate) fn is_here(&mut self) {
        block_in_place(|| {
            let came = self.says.by_ref().lines().map_while(Result::ok).any(|line| line == "here");
            assert!(came, "the worker ended before");
        });
    }

    /// Kills it without warning (SIGKILL), and returns when it is dead.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        let died = block_in_place(|| self.process.wait()).unwrap();
        assert_eq!(died.signal(), Some(9), "it had ended by itself: {died}");
    }

    /// Returns when it has done what it was told.
    pub(crate) fn ends_well(mut self) {
        let mut said = String::new();
        block_in_place(|| {
            self.says.read_to_string(&mut said).unwrap();
            assert!(self.process.wait().unwrap().success(), "{said}");
        });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a worker: what it was told, so many words. `None` where no test has started this process.
pub(crate) fn told<const WORDS: usize>() -> Option<[String; WORDS]> {
    let told = std::env::var(TOLD).ok()?;
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        exit(1);
    });
    let words: Vec<_> = told.split(BETWEEN).map(str::to_owned).collect();
    Some(words.try_into().unwrap())
}

/// In a worker: says that it has come so far.
pub(crate) fn here() {
    // The line before is the test runner's, and not ended.
    println!("\nhere");
    std::io::stdout().flush().unwrap();
}

/// In a worker: says so, and does not go on. To be killed here.
pub(crate) fn stop_here() -> ! {
    here();
    loop {
        thread::park();
    }
}
