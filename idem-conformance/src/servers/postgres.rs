//! Postgres as a test server.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use rustix::process::Signal;

use super::engine::{Engine, Home, Settings};
use super::programs::versions;

/// A start-up packet of protocol 3.0: its length, the version, `user` = `postgres`, the end.
const HELLO: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";

pub(super) static POSTGRES: Engine = Engine {
    name: "Postgres",
    variable: "IDEM_POSTGRES_URL",
    default_port: 5432,
    install: "the Postgres server 14 or later (Debian: apt-get install postgresql)",
    programs: &["postgres"],
    folders: || versions("/usr/lib/postgresql"),
    refuses_root: true,
    prepare: |home, primary| Some(primary.map_or_else(|| initdb(home), |at| base_backup(home, at))),
    serve,
    // Connections, or read-only connections.
    ready: "database system is ready to accept ",
    // `R` asks for a password or says that none is needed; either way it serves.
    hello: (HELLO, b'R'),
    stop: Signal::INT,
    url: ("postgres://postgres@", "/postgres"),
    #[cfg(feature = "containers")]
    image: super::container::Image {
        name: "postgres",
        tag: "17-alpine",
        env: &[("POSTGRES_HOST_AUTH_METHOD", "trust")],
        command,
    },
};

/// Another program of the same version.
fn beside(home: &Home, program: &str) -> Command {
    // A link, as in /usr/local/bin, may stand alone; the binary has the others beside it.
    let server = home.program.canonicalize().unwrap_or_else(|_| home.program.clone());
    home.command(&server.with_file_name(program))
}

/// The data of a standby: those of its primary, and where to go on from.
fn base_backup(home: &Home, primary: SocketAddr) -> Command {
    let mut command = beside(home, "pg_basebackup");
    command.arg("--pgdata").arg(home.data()).args([
        &format!("--host={}", primary.ip()),
        &format!("--port={}", primary.port()),
        "--username=postgres",
        "--no-password",
        "--checkpoint=fast",
        "--write-recovery-conf",
        "--no-sync",
    ]);
    command
}

fn initdb(home: &Home) -> Command {
    let mut command = beside(home, "initdb");
    command.arg("--pgdata").arg(home.data()).args([
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        // Messages are in English then; the one that says "ready" is waited for.
        "--no-locale",
        "--no-sync",
    ]);
    command
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of `Engine::serve`")]
fn serve(home: &Home, port: u16, settings: &Settings) -> io::Result<Command> {
    let mut command = home.command(&home.program);
    command
        .arg("-D")
        .arg(home.data())
        .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
        .args(["-c", "unix_socket_directories="])
        .args(options(settings));
    Ok(command)
}

/// The settings as options of the command line.
fn options(settings: &Settings) -> Vec<String> {
    let ours = ["-c".to_owned(), "fsync=off".to_owned()];
    let theirs = settings.iter().flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
    ours.into_iter().chain(theirs).collect()
}

#[cfg(feature = "containers")]
fn command(settings: &Settings) -> super::container::Invocation {
    let mut arguments = vec!["postgres".to_owned()];
    arguments.extend(options(settings));
    super::container::Invocation { arguments, file: None }
}
