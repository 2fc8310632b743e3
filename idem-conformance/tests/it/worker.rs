//! A test starts a process of its own, hears of it and kills it.

use idem_conformance::worker::{self, Worker};

#[tokio::test]
async fn a_worker_is_told_comes_and_is_killed() {
    let mut waiting = Worker::start("worker::waits", &["a word", ""]).unwrap();
    waiting.is_here().await.unwrap();
    waiting.is_here().await.unwrap();
    waiting.pause().unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", waiting.pid().unwrap()));
    while !stat().unwrap().contains(") T ") {
        tokio::task::yield_now().await;
    }
    waiting.resume().unwrap();
    waiting.kill().await.unwrap();
}

/// Comes twice, and waits to be killed.
#[tokio::test]
async fn waits() {
    let Some([word, empty]) = worker::told() else { return };
    assert_eq!((word.as_str(), empty.as_str()), ("a word", ""));
    worker::here();
    worker::stop_here();
}

#[tokio::test]
async fn a_worker_ends_well_or_says_why_not() {
    let start = |how| Worker::start("worker::ends", &[how]).unwrap();
    start("well").ends_well().await.unwrap();
    let said = start("badly").ends_well().await.unwrap_err().to_string();
    assert!(said.contains("badly is how it ended"), "{said}");

    let mut gone = start("well");
    assert!(gone.is_here().await.is_err(), "it never said so");
    assert!(gone.kill().await.is_err(), "it had ended by itself");
}

#[tokio::test]
async fn ends() {
    let Some([how]) = worker::told() else { return };
    println!("{how} is how it ended");
    if how != "well" {
        std::process::exit(1);
    }
}
