//! Binds a server to the life of this process, also where no drop runs.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Reads lines of process ids until the pipe ends, which it does when the test process drops its
/// end or dies; then kills the last ones named and removes the folder. A process that is just
/// being killed may still write into the folder, hence the second try.
const SCRIPT: &str = r#"
while read -r line; do processes=$line; done
[ -z "$processes" ] || kill -KILL $processes
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
"#;

/// Kills what it was told to watch and removes a folder, once this value or this process is gone.
///
/// A death signal from the kernel would need unsafe code, and follows the *thread* that started
/// the child: each test has its own.
#[derive(Debug)]
pub(super) struct Reaper {
    shell: Child,
}

impl Reaper {
    pub(super) fn start(folder: &std::path::Path) -> io::Result<Self> {
        Self::run(SCRIPT, folder.as_os_str())
    }

    #[cfg(feature = "containers")]
    pub(super) fn of_container(id: &str) -> io::Result<Self> {
        Self::run(r#"while read -r _; do :; done; docker rm --force --volumes "$1""#, id.as_ref())
    }

    fn run(script: &str, argument: &std::ffi::OsStr) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "reaper"]).arg(argument);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C reaches every process of the group; this one has to outlive the others.
        Ok(Self { shell: command.process_group(0).spawn()? })
    }

    /// Names the processes to kill at the end, instead of those named before.
    pub(super) fn watch(&mut self, processes: &[Pid]) -> io::Result<()> {
        let ids: Vec<_> = processes.iter().map(|pid| pid.as_raw_pid().to_string()).collect();
        let Some(pipe) = &mut self.shell.stdin else { return Ok(()) };
        writeln!(pipe, "{}", ids.join(" "))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
