//! The example as a process: on every store, and told to end in the middle of a charge.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use http::{Method, StatusCode};
use http_body_util::Full;
use idem_conformance::servers;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::support::{Answer, is_replay, text, unkeyed};
use crate::wire::server::{connect1, whole};

/// `cargo test` builds it, beside this binary.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap().join("examples/payments_api");
    assert!(built.exists(), "first: cargo build -p idem-http --example payments_api");
    built
}

struct Process {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
    at: SocketAddr,
}

impl Process {
    async fn start(store: &str, in_flight: &str, provider_ms: u16) -> Self {
        let mut command = Command::new(program());
        command.env("STORE", store).env("PORT", "0").env("PROVIDER_MS", provider_ms.to_string());
        command.env("IN_FLIGHT", in_flight);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut says = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = says.next_line().await.unwrap().expect("it ended before it listened");
        let at = line.strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { child, says, at }
    }

    /// As a supervisor does it.
    async fn is_told_to_end(&self) {
        let pid = self.child.id().unwrap().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
        assert!(told.success());
    }
}

/// One that rejects whoever comes meanwhile, of charges that take their time.
async fn rejecting(store: &str) -> Process {
    Process::start(store, "reject", 1500).await
}

async fn charge(at: SocketAddr, key: String) -> Answer {
    send(at, &key, "o-1", 100).await
}

async fn send(at: SocketAddr, key: &str, order: &str, amount: u32) -> Answer {
    let body = Full::from(format!(r#"{{"order_id":"{order}","amount":{amount}}}"#));
    let request = unkeyed(Method::POST, "/charges").header("idempotency-key", key);
    let request = request.header("host", "api").body(body).unwrap();
    whole(connect1(at).await.send_request(request).await.unwrap()).await
}

/// A charge that is under way, its key, and what the other of two requests at once was told.
async fn under_way(at: SocketAddr) -> (JoinHandle<Answer>, String, Answer) {
    for number in 0.. {
        let key = format!("k-{number}");
        let send = || tokio::spawn(charge(at, key.clone()));
        let (mut one, mut other) = (send(), send());
        let (first, charging) = tokio::select! {
            first = &mut one => (first.unwrap(), other),
            first = &mut other => (first.unwrap(), one),
        };
        // Otherwise the second came when the first was done.
        if first.status() == StatusCode::CONFLICT {
            return (charging, key, first);
        }
    }
    unreachable!("there are as many keys as it takes")
}

/// One process charges and is told to end meanwhile; another replays.
async fn ends_in_good_order(store: &str, outlives: bool, client: Client) {
    let mut first = rejecting(store).await;
    let at = first.at;
    let (charging, key, _) = under_way(at).await;
    let charged = match client {
        Client::Stays => {
            first.is_told_to_end().await;
            let charged = charging.await.unwrap();
            assert_eq!((charged.status().as_u16(), is_replay(&charged)), (201, false));
            Some(charged)
        }
        Client::Leaves => {
            charging.abort();
            assert!(charging.await.unwrap_err().is_cancelled(), "it was charged too soon");
            first.is_told_to_end().await;
            None
        }
    };
    let last = first.says.next_line().await.unwrap();
    assert_eq!(last.as_deref(), Some("every charge is recorded"));
    assert!(first.child.wait().await.unwrap().success());
    if outlives {
        let second = rejecting(store).await;
        let again = charge(second.at, key).await;
        assert!(is_replay(&again), "{again:?}");
        assert!(charged.is_none_or(|charged| text(&charged) == text(&again)), "{again:?}");
    }
}

/// Whether the one who asked waits for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Stays,
    Leaves,
}

#[tokio::test(flavor = "multi_thread")]
async fn on_every_store_a_charge_under_way_is_recorded_before_the_end() {
    let redis = servers::redis().own().await.unwrap();
    let postgres = servers::postgres().own().await.unwrap();
    for client in [Client::Stays, Client::Leaves] {
        ends_in_good_order("memory", false, client).await;
        ends_in_good_order(redis.url(), true, client).await;
        ends_in_good_order(postgres.url(), true, client).await;
    }
}

/// What the README shows of a response: its status, some of its headers, its body.
#[track_caller]
fn is_shown(shown: &str, answer: &Answer) {
    let (head, body) = shown.split_once("\n\n").unwrap();
    let mut head = head.lines().skip_while(|line| !line.starts_with("HTTP/1.1 "));
    assert_eq!(head.next().unwrap(), format!("HTTP/1.1 {}", answer.status()));
    for line in head {
        let (name, value) = line.split_once(": ").unwrap();
        assert_eq!(answer.headers().get(name).unwrap(), value, "{name}");
    }
    assert_eq!(body.trim_end(), text(answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_shows_what_it_answers() {
    let readme = include_str!("../../README.md");
    let blocks = readme.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<_> = blocks.collect();
    let [first, replay, mismatch, concurrent, rejected] = blocks[..] else {
        panic!("{} responses are shown", blocks.len())
    };
    let waits = Process::start("memory", "wait", 300).await;
    is_shown(first, &send(waits.at, "\"k-1\"", "o-1", 100).await);
    is_shown(replay, &send(waits.at, "\"k-1\"", "o-1", 100).await);
    is_shown(mismatch, &send(waits.at, "\"k-1\"", "o-1", 999).await);
    let twice = || send(waits.at, "\"k-2\"", "o-2", 100);
    for answer in <[Answer; 2]>::from(tokio::join!(twice(), twice())) {
        is_shown(concurrent, &answer);
    }
    let rejects = rejecting("memory").await;
    is_shown(rejected, &under_way(rejects.at).await.2);
}

#[tokio::test]
async fn a_store_that_is_not_there_is_an_error() {
    for store in ["redis://127.0.0.1:1/", "postgres://127.0.0.1:1/", "mysql://127.0.0.1/", "memry"]
    {
        let mut command = Command::new(program());
        command.env("STORE", store).env("PORT", "0").stderr(Stdio::null());
        let ended = command.kill_on_drop(true).status().await.unwrap();
        assert!(!ended.success(), "{store}");
    }
}
