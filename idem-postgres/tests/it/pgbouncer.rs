//! A pgbouncer in front of a server, in transaction mode.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// It ends with this value, and with this process.
pub(crate) struct Pgbouncer {
    port: u16,
    /// A shell that ends pgbouncer as soon as its input does.
    shell: Child,
    folder: TempDir,
}

impl Pgbouncer {
    /// In front of every database of the server at this port.
    pub(crate) fn start(server: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let lend = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = lend.local_addr().unwrap().port();
        drop(lend);
        let home = folder.path().display();
        fs::write(folder.path().join("users"), "\"postgres\" \"\"\n").unwrap();
        fs::write(
            folder.path().join("ini"),
            format!(
                "[databases]\n* = host=127.0.0.1 port={server}\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
                 pool_mode = transaction\ndefault_pool_size = 5\nmax_client_conn = 500\n\
                 auth_type = trust\nauth_file = {home}/users\nlogfile = {home}/log\n\
                 ignore_startup_parameters = extra_float_digits\nuser = postgres\n"
            ),
        )
        .unwrap();
        let script = "PATH=$PATH:/usr/sbin; pgbouncer -q \"$0\" & read -r _; kill $!; wait";
        let shell = Command::new("sh")
            .args(["-c", script])
            .arg(folder.path().join("ini"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { port, shell, folder };
        this.serves();
        this
    }

    fn serves(&self) {
        let since = Instant::now();
        while TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))).is_err() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(
                since.elapsed() < Duration::from_secs(20),
                "pgbouncer does not serve (Debian: apt-get install pgbouncer)\n{log}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The same database, by way of it.
    pub(crate) fn url_of(&self, database: &str) -> String {
        let (_, name) = database.rsplit_once('/').unwrap();
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
