//! Another user for a server that refuses to run as root.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// An unprivileged user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// The first of `names` that this machine knows, if this process is root; otherwise none is
    /// needed.
    pub(super) fn instead_of_root(names: &[&str]) -> io::Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        names.iter().find_map(|name| Self::find(&users, name)).map(Some).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("no user of {names:?} to run as"))
        })
    }

    /// Finds `name` in the text of a passwd file: `name:password:uid:gid:…`.
    fn find(users: &str, name: &str) -> Option<Self> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            if fields.next()? != name {
                return None;
            }
            let (uid, gid) = (fields.nth(1)?, fields.next()?);
            Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
        })
    }

    pub(super) fn takes(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    pub(super) fn applies_to(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

#[cfg(test)]
mod tests {
    use super::Owner;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users = "postgresql:x:1:2::/:/bin/sh\npostgres:x:101:104:A B,,,:/var:/bin/bash\n";
        let owner = Owner::find(users, "postgres").unwrap();
        assert_eq!((owner.uid, owner.gid), (101, 104));
        assert!(Owner::find(users, "nobody").is_none());
    }
}
