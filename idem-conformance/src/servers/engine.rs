//! What differs between one kind of server and another.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::owner::Owner;

/// One name and its value; the last of a name counts.
pub(super) type Settings = [(String, String)];

/// A kind of server, as data.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) name: &'static str,
    /// The environment variable with the URL of a given server.
    pub(super) variable: &'static str,
    pub(super) default_port: u16,
    /// What to install, for the message when there is none.
    pub(super) install: &'static str,
    /// The names its binary goes by, the preferred first.
    pub(super) programs: &'static [&'static str],
    /// Where else than in `PATH` its binaries are.
    pub(super) folders: fn() -> Vec<PathBuf>,
    /// Whether it refuses to run as root.
    pub(super) refuses_root: bool,
    /// The command to run once, before the first start; of a standby, with its primary's address.
    pub(super) prepare: fn(&Home, Option<SocketAddr>) -> Option<Command>,
    /// The command that runs it in the foreground; its files go into the home.
    pub(super) serve: fn(&Home, u16, &Settings) -> std::io::Result<Command>,
    /// What it logs once it serves.
    pub(super) ready: &'static str,
    /// What to send it, and how an answer of a server that serves begins.
    pub(super) hello: (&'static [u8], u8),
    /// Asks it to end in good order, without waiting for its clients.
    pub(super) stop: Signal,
    /// The URL up to and including the `@` or `//`, and what follows the address.
    pub(super) url: (&'static str, &'static str),
    #[cfg(feature = "containers")]
    pub(super) image: super::container::Image,
}

impl Engine {
    /// The URL of a server of this kind that this crate started.
    pub(super) fn url_at(&self, address: impl std::fmt::Display) -> String {
        let (before, after) = self.url;
        format!("{before}{address}{after}")
    }
}

/// Where an instance lives.
#[derive(Debug)]
pub(super) struct Home {
    /// The server's binary.
    pub(super) program: PathBuf,
    /// Its temporary folder.
    pub(super) folder: PathBuf,
    /// The user it runs as, if not the one of this process.
    pub(super) owner: Option<Owner>,
}

impl Home {
    /// The folder of the server's data; empty before the first start.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The file with the output of the server's last start.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// A command that runs in the home, as its owner, and hears nothing from this process.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(std::process::Stdio::null());
        if let Some(owner) = self.owner {
            owner.applies_to(&mut command);
        }
        command
    }
}
