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
    async fn start(store: &str) -> Self {
        let mut command = Command::new(program());
        command.env("STORE", store).env("PORT", "0").env("PROVIDER_MS", "1500");
        command.env("IN_FLIGHT", "reject");
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

async fn charge(at: SocketAddr, key: String) -> Answer {
    let body = Full::from(r#"{"order_id":"o-1","amount":100}"#);
    let request = unkeyed(Method::POST, "/charges").header("idempotency-key", key);
    let request = request.header("host", "api").body(body).unwrap();
    whole(connect1(at).await.send_request(request).await.unwrap()).await
}

/// A charge that is under way, and its key: of two requests at once, the other was told so.
async fn under_way(at: SocketAddr) -> (JoinHandle<Answer>, String) {
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
            return (charging, key);
        }
    }
    unreachable!("there are as many keys as it takes")
}

/// One process charges and is told to end meanwhile; another replays.
async fn ends_in_good_order(store: &str, outlives: bool) {
    let mut first = Process::start(store).await;
    let at = first.at;
    let (charging, key) = under_way(at).await;
    first.is_told_to_end().await;
    let charged = charging.await.unwrap();
    assert_eq!((charged.status().as_u16(), is_replay(&charged)), (201, false), "{charged:?}");
    let last = first.says.next_line().await.unwrap();
    assert_eq!(last.as_deref(), Some("every charge is recorded"));
    assert!(first.child.wait().await.unwrap().success());
    if outlives {
        let second = Process::start(store).await;
        let again = charge(second.at, key).await;
        assert!(is_replay(&again) && text(&again) == text(&charged), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_every_store_a_charge_under_way_is_recorded_before_the_end() {
    let redis = servers::redis().own().await.unwrap();
    let postgres = servers::postgres().own().await.unwrap();
    ends_in_good_order("memory", false).await;
    ends_in_good_order(redis.url(), true).await;
    ends_in_good_order(postgres.url(), true).await;
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
