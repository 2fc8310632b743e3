//! Redis and Valkey as test servers.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::process::Command;

use rustix::process::Signal;

use super::engine::{Engine, Home, Settings};

pub(super) static REDIS: Engine = Engine {
    name: "Redis",
    variable: "IDEM_REDIS_URL",
    default_port: 6379,
    install: "redis-server 7.0 or later (Debian: apt-get install redis-server)",
    programs: &["redis-server", "valkey-server"],
    folders: Vec::new,
    refuses_root: false,
    prepare: |_, _| None,
    serve,
    ready: "Ready to accept connections",
    hello: (b"PING\r\n", b'+'),
    stop: Signal::TERM,
    url: ("redis://", "/"),
    #[cfg(feature = "containers")]
    image: super::container::Image { name: "redis", tag: "7", env: &[], command },
};

/// Settings go through a file, since the command line takes no value of several words.
fn serve(home: &Home, port: u16, settings: &Settings) -> io::Result<Command> {
    let file = home.folder.join("redis.conf");
    // No snapshots: what a test wants to survive a crash, it says.
    let ours = format!("bind 127.0.0.1\nport {port}\ndir {}\nsave \"\"\n", home.data().display());
    fs::write(&file, ours + &lines(settings))?;
    let mut command = home.command(&home.program);
    command.arg(file);
    Ok(command)
}

/// The settings as lines of a configuration file.
fn lines(settings: &Settings) -> String {
    settings.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing into a `String` cannot fail.
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

#[cfg(feature = "containers")]
fn command(settings: &Settings) -> super::container::Invocation {
    const FILE: &str = "/etc/idem-redis.conf";
    super::container::Invocation {
        arguments: vec!["redis-server".into(), FILE.into()],
        file: Some((FILE, lines(settings))),
    }
}
