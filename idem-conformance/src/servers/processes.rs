//! A server's processes, as the kernel lists them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// One line of the kernel's list.
struct Process {
    pid: Pid,
    parent: Option<Pid>,
    /// `R`unning, `S`leeping, s`T`opped, `Z`ombie, …
    state: char,
}

/// A process and its children: a Postgres serves each connection with a child of its own, and
/// puts each into a process group of its own.
pub(super) fn family(root: Pid) -> Vec<Pid> {
    let children = all().filter(|process| process.parent == Some(root) && process.state != 'Z');
    std::iter::once(root).chain(children.map(|child| child.pid)).collect()
}

/// Signals them all. One that has ended already is not an error.
pub(super) fn signal(processes: &[Pid], signal: Signal) {
    for &process in processes {
        let _ = kill_process(process, signal);
    }
}

/// Whether one of them still runs or could run again.
pub(super) fn any_alive(processes: &[Pid]) -> bool {
    all().any(|process| processes.contains(&process.pid) && process.state != 'Z')
}

/// Whether one of them is not stopped yet.
pub(super) fn any_moving(processes: &[Pid]) -> bool {
    all().any(|process| processes.contains(&process.pid) && !matches!(process.state, 'T' | 'Z'))
}

/// Every process of this machine; none where there is no `/proc`.
fn all() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &stat)
    })
}

/// `pid (name) state parent …`, where the name may hold blanks and parentheses.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok().and_then(Pid::from_raw);
    Some(Process { pid: Pid::from_raw(pid)?, parent, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let process = parse(7, "7 (a) b) T 42 7 7 0").unwrap();
        assert_eq!((process.state, process.parent), ('T', Pid::from_raw(42)));
    }
}
