//! Test servers start, obey and leave nothing behind. All of these need the servers' binaries.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_conformance::servers::{self, Server, ServerError, WallClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for an answer that comes, short enough to wait for one that must not.
const A_MOMENT: Duration = Duration::from_millis(300);

async fn redis(address: SocketAddr, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{command}\r\n").as_bytes()).await?;
    let mut answer = vec![0; 256];
    let length = stream.read(&mut answer).await?;
    answer.truncate(length);
    Ok(String::from_utf8(answer).unwrap())
}

/// A connection to Postgres by the bare protocol.
struct Postgres(TcpStream);

impl Postgres {
    async fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let mut this = Self(TcpStream::connect(address).await?);
        this.0.write_all(b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0").await?;
        this.answer().await?;
        Ok(this)
    }

    async fn query(&mut self, sql: &str) -> std::io::Result<String> {
        let length = u32::try_from(sql.len() + 5).unwrap().to_be_bytes();
        let message = [b"Q", &length[..], sql.as_bytes(), b"\0"].concat();
        self.0.write_all(&message).await?;
        self.answer().await
    }

    /// The bodies of all messages up to "ready for query".
    async fn answer(&mut self) -> std::io::Result<String> {
        let mut text = String::new();
        loop {
            let kind = self.0.read_u8().await?;
            let mut body = vec![0; self.0.read_u32().await? as usize - 4];
            self.0.read_exact(&mut body).await?;
            match kind {
                b'Z' => return Ok(text),
                b'E' => return Err(std::io::Error::other(String::from_utf8_lossy(&body))),
                _ => text += &String::from_utf8_lossy(&body),
            }
        }
    }
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

fn folder_of(server: &Server) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{}/cwd", server.pid().unwrap())).unwrap()
}

#[tokio::test]
async fn a_redis_answers_and_ends_with_its_guard() {
    let server = servers::redis().process().await.unwrap();
    assert_eq!(redis(server.addr(), "PING").await.unwrap(), "+PONG\r\n");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}/", server.port()));
    let (pid, address, folder) = (server.pid().unwrap(), server.addr(), folder_of(&server));
    let home = if folder.ends_with("data") { folder.parent().unwrap() } else { &folder };
    assert!(runs(pid) && home.exists());

    drop(server);
    assert!(!runs(pid) && !home.exists());
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_server_ends_when_its_test_panics() {
    let server = servers::redis().process().await.unwrap();
    let pid = server.pid().unwrap();
    let panicked = tokio::spawn(async move {
        let _server = server;
        panic!("as a failing assertion would");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert!(!runs(pid));
}

#[tokio::test]
async fn two_servers_do_not_meet() {
    let (one, two) = tokio::join!(servers::redis().process(), servers::redis().process());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.port(), two.port());
    redis(one.addr(), "SET k 1").await.unwrap();
    assert_eq!(redis(two.addr(), "GET k").await.unwrap(), "$-1\r\n");
}

#[tokio::test]
async fn a_redis_keeps_port_and_data_over_kill_and_restart() {
    let mut server = servers::redis()
        .process()
        .setting("appendonly", "yes")
        .setting("appendfsync", "always")
        .await
        .unwrap();
    let (pid, address) = (server.pid().unwrap(), server.addr());
    redis(address, "SET k before").await.unwrap();

    server.kill().await.unwrap();
    assert!(!runs(pid) && server.pid().is_none());
    assert!(redis(address, "PING").await.is_err());

    server.restart().await.unwrap();
    assert_eq!(server.addr(), address);
    assert_ne!(server.pid(), Some(pid));
    assert_eq!(redis(address, "GET k").await.unwrap(), "$6\r\nbefore\r\n");

    // Restarting one that runs stops it first.
    server.restart().await.unwrap();
    assert_eq!(redis(address, "GET k").await.unwrap(), "$6\r\nbefore\r\n");

    server.stop().await.unwrap();
    server.stop().await.unwrap();
    assert!(redis(address, "PING").await.is_err());
}

#[tokio::test]
async fn a_port_that_is_taken_for_a_moment_is_waited_for() {
    for setup in [servers::redis(), servers::postgres()] {
        let mut server = setup.process().await.unwrap();
        let address = server.addr();
        server.kill().await.unwrap();
        let other = tokio::net::TcpListener::bind(address).await.unwrap();
        let freed = async {
            tokio::time::sleep(A_MOMENT).await;
            drop(other);
        };
        let (restarted, ()) = tokio::join!(server.restart(), freed);
        restarted.unwrap();
        assert_eq!(server.addr(), address);
        server.kill().await.unwrap();

        let _other = tokio::net::TcpListener::bind(address).await.unwrap();
        let error = server.restart().await.unwrap_err();
        assert!(error.to_string().contains("its port is taken"), "{error}");
    }
}

#[tokio::test]
async fn settings_of_several_words_reach_a_redis() {
    let server = servers::redis()
        .process()
        .setting("maxmemory", "5mb")
        .setting("client-output-buffer-limit", "pubsub 1mb 2mb 3")
        .await
        .unwrap();
    let maxmemory = redis(server.addr(), "CONFIG GET maxmemory").await.unwrap();
    assert!(maxmemory.contains("5242880"), "{maxmemory}");
    let limit = redis(server.addr(), "CONFIG GET client-output-buffer-limit").await.unwrap();
    assert!(limit.contains("pubsub 1048576 2097152 3"), "{limit}");
}

#[tokio::test]
async fn a_server_that_does_not_start_says_what_it_logged() {
    let error = servers::redis().process().setting("no-such-setting", "1").await.unwrap_err();
    assert!(matches!(error, ServerError::Failed { .. }));
    assert!(error.to_string().contains("no-such-setting"), "{error}");
}

#[tokio::test]
async fn a_paused_redis_is_silent_until_resumed() {
    let mut server = servers::redis().process().await.unwrap();
    server.pause().await.unwrap();
    assert!(timeout(A_MOMENT, redis(server.addr(), "PING")).await.is_err());
    server.resume().await.unwrap();
    assert_eq!(redis(server.addr(), "PING").await.unwrap(), "+PONG\r\n");

    server.pause().await.unwrap();
    let pid = server.pid().unwrap();
    drop(server);
    assert!(!runs(pid));
}

#[tokio::test]
async fn a_postgres_obeys_with_all_its_processes() {
    let setup = servers::postgres().setting("max_connections", "17").env("IDEM_TEST_MARK", "kept");
    let mut server = setup.await.unwrap();
    let address = server.addr();
    let mut client = Postgres::connect(address).await.unwrap();
    assert!(client.query("SHOW max_connections").await.unwrap().contains("17"));
    client.query("CREATE TABLE t (c text)").await.unwrap();
    client.query("COPY t FROM PROGRAM 'printenv IDEM_TEST_MARK'").await.unwrap();

    // The backend of an open connection is frozen too, not only the door.
    server.pause().await.unwrap();
    assert!(timeout(A_MOMENT, client.query("SELECT 1")).await.is_err());
    server.resume().await.unwrap();
    client.answer().await.unwrap();

    // And killed too, in the middle of a statement.
    let (killed, asleep) = tokio::join!(server.kill(), client.query("SELECT pg_sleep(3600)"));
    killed.unwrap();
    asleep.unwrap_err();
    assert!(TcpStream::connect(address).await.is_err());

    server.restart().await.unwrap();
    let mut client = Postgres::connect(address).await.unwrap();
    assert!(client.query("SELECT c FROM t").await.unwrap().contains("kept"));

    // A clean stop does not wait for idle clients.
    server.stop().await.unwrap();
    client.query("SELECT 1").await.unwrap_err();
    server.restart().await.unwrap();
    Postgres::connect(address).await.unwrap();
}

/// Inserts numbers until the server is gone; returns how many were confirmed.
async fn insert(address: SocketAddr, client: u32) -> u32 {
    let mut confirmed = 0;
    let Ok(mut connection) = Postgres::connect(address).await else { return 0 };
    while connection.query(&format!("INSERT INTO t VALUES ({client})")).await.is_ok() {
        confirmed += 1;
    }
    confirmed
}

#[tokio::test]
#[ignore = "slow: kills and restarts a Postgres twenty times"]
async fn a_killed_postgres_has_all_that_it_confirmed() {
    let mut server = servers::postgres().process().await.unwrap();
    let address = server.addr();
    let mut connection = Postgres::connect(address).await.unwrap();
    connection.query("CREATE TABLE t (client int)").await.unwrap();
    for _ in 0..20 {
        connection.query("TRUNCATE t").await.unwrap();
        let clients: Vec<_> = (0..4).map(|client| tokio::spawn(insert(address, client))).collect();
        tokio::time::sleep(A_MOMENT).await;
        server.kill().await.unwrap();
        let mut confirmed = 0;
        for client in clients {
            confirmed += client.await.unwrap();
        }
        assert!(confirmed > 0);

        server.restart().await.unwrap();
        connection = Postgres::connect(address).await.unwrap();
        // One more per client may have been committed without a word.
        let kept = format!("SELECT 'all' FROM t HAVING count(*) >= {confirmed}");
        assert!(connection.query(&kept).await.unwrap().contains("SELECT 1"), "{confirmed}");
    }
}

#[tokio::test]
async fn without_a_server_the_error_says_what_to_do() {
    let nowhere = Path::new("/nonexistent");
    for (setup, name) in [(servers::redis(), "Redis"), (servers::postgres(), "Postgres")] {
        let error = setup.binaries(nowhere).await.unwrap_err();
        assert!(matches!(error, ServerError::Missing { .. }));
        assert_eq!(
            error.to_string(),
            format!("no {name} to test with: no binary of it in /nonexistent")
        );
    }
}

#[tokio::test]
async fn a_cluster_of_three_serves_every_slot() {
    let mut cluster = servers::redis_cluster().await.unwrap();
    assert_eq!(cluster.urls().len(), 3);
    // Keys of the three ranges of slots: each is taken by one node and redirected by the others.
    for key in ["b", "c", "a"] {
        let mut taken = 0;
        for node in cluster.nodes_mut() {
            let answer = redis(node.addr(), &format!("SET {key} 1")).await.unwrap();
            assert!(answer.starts_with("+OK") || answer.starts_with("-MOVED"), "{answer}");
            taken += u32::from(answer.starts_with("+OK"));
        }
        assert_eq!(taken, 1, "{key}");
    }
}

/// What a test needs that lives in a process of its own: this binary again, this one test.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(AGAIN, "1");
    command
}

const AGAIN: &str = "IDEM_TEST_AGAIN";

fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

#[tokio::test]
async fn a_shared_server_ends_with_its_process() {
    if is_again() {
        let redis = servers::shared_redis().await.unwrap();
        assert_eq!(redis.port(), servers::shared_redis().await.unwrap().port());
        for shared in [redis, servers::shared_postgres().await.unwrap()] {
            println!("server={} {}", shared.pid().unwrap(), folder_of(shared).display());
        }
        // No drop runs.
        std::process::abort();
    }
    let output = again("servers::a_shared_server_ends_with_its_process")
        .env_remove("IDEM_REDIS_URL")
        .env_remove("IDEM_POSTGRES_URL")
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let servers: Vec<(u32, &Path)> = output
        .lines()
        .filter_map(|line| line.rsplit_once("server=")?.1.split_once(' '))
        .map(|(pid, folder)| (pid.parse().unwrap(), Path::new(folder)))
        .collect();
    assert_eq!(servers.len(), 2, "{output}");
    let gone = async {
        while servers.iter().any(|(pid, folder)| runs(*pid) || folder.exists()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), gone).await.unwrap();
}

#[tokio::test]
async fn a_given_server_is_used_and_never_disturbed() {
    if is_again() {
        let mut given = servers::redis().await.unwrap();
        assert_eq!(Some(given.url()), std::env::var("IDEM_REDIS_URL").ok().as_deref());
        assert_eq!(given.pid(), None);
        for refused in [
            given.kill().await,
            given.stop().await,
            given.restart().await,
            given.pause().await,
            given.resume().await,
        ] {
            assert!(matches!(refused, Err(ServerError::Given { .. })));
        }
        // Who needs a server of its own gets one all the same.
        assert_ne!(servers::redis().process().await.unwrap().port(), given.port());
        return;
    }
    let server = servers::redis().process().await.unwrap();
    let run = |url: String| {
        let name = "servers::a_given_server_is_used_and_never_disturbed";
        again(name).env("IDEM_REDIS_URL", url).output().unwrap()
    };
    let output = run(format!("redis://localhost:{}/3", server.port()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(redis(server.addr(), "PING").await.unwrap(), "+PONG\r\n");

    let nobody = server.url().to_owned();
    drop(server);
    let output = run(nobody);
    assert!(!output.status.success());
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(said.contains("Unreachable"), "{said}");
}

/// What both servers take for the time, in seconds since 1970.
async fn times(redis_at: SocketAddr, postgres: &mut Postgres) -> (i64, i64) {
    let told = redis(redis_at, "TIME").await.unwrap();
    let by_redis = told.lines().nth(2).unwrap().parse().unwrap();
    let told = postgres.query("SELECT extract(epoch FROM clock_timestamp())::bigint").await;
    let told = told.unwrap();
    let digits = told.split(|c: char| !c.is_ascii_digit()).find(|digits| digits.len() >= 9);
    (by_redis, digits.unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_clock_goes_stands_and_jumps_for_both_servers() {
    const YEARS: Duration = Duration::from_hours(100_000);
    let clock = WallClock::new().unwrap();
    let (first, second) =
        (servers::redis().clock(&clock).await.unwrap(), servers::postgres().clock(&clock).await);
    let (first, second) = (first.addr(), second.unwrap());
    let mut second = Postgres::connect(second.addr()).await.unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();

    let before = now();
    let (by_redis, by_postgres) = times(first, &mut second).await;
    assert!(
        (before..=now() + 1).contains(&by_redis) && (before..=now() + 1).contains(&by_postgres)
    );
    assert!(clock.advance(YEARS).is_err(), "it was advanced while it went");

    clock.jump(-1_000_000).unwrap();
    let (by_redis, by_postgres) = times(first, &mut second).await;
    assert!(by_redis < before - 900_000 && by_postgres < before - 900_000);

    clock.jump(1_000_000).unwrap();
    clock.stop().unwrap();
    let (stood, _) = times(first, &mut second).await;
    clock.advance(YEARS).unwrap();
    let (by_redis, by_postgres) = times(first, &mut second).await;
    assert_eq!(by_redis, stood + YEARS.as_secs().cast_signed());
    // Rounded, where Redis cuts.
    assert!((by_redis..=by_redis + 1).contains(&by_postgres));

    clock.start().unwrap();
    let (by_redis, _) = times(first, &mut second).await;
    assert!(by_redis >= stood + YEARS.as_secs().cast_signed());
}
