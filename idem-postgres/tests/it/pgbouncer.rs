//! A pgbouncer in front of a server, in transaction mode.

use std::env;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// `PGBOUNCER`, or what Debian installs.
fn program() -> String {
    env::var("PGBOUNCER").unwrap_or_else(|_| "/usr/sbin/pgbouncer".to_owned())
}

/// Fails unless it is a version that knows prepared statements.
fn can_prepare(program: &str) {
    let output = Command::new(program).arg("--version").output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout);
    let version = printed.split_whitespace().nth(1).unwrap_or_default();
    let parts: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
    assert!(
        parts >= vec![1, 21],
        "{program} is of version {version}; prepared statements need pgbouncer 1.21: Debian 13 has \
         1.24, and the variable PGBOUNCER names another program"
    );
}

/// It ends with this value, and with this process.
pub(crate) struct Pgbouncer {
    port: u16,
    /// A shell that ends pgbouncer as soon as its input does.
    shell: Child,
    folder: TempDir,
}

impl Pgbouncer {
    /// In front of every database of the server at this port. If `prepared`, it has to be one that
    /// knows prepared statements.
    pub(crate) fn start(server: u16, prepared: bool) -> Self {
        let program = program();
        let keeping = if prepared {
            can_prepare(&program);
            "max_prepared_statements = 100\n"
        } else {
            // An older one would not start with a setting that it does not know.
            ""
        };
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
                 ignore_startup_parameters = extra_float_digits\nuser = postgres\n\
                 server_login_retry = 0.1\n{keeping}"
            ),
        )
        .unwrap();
        let script = "\"$1\" -q \"$2\" & read -r _; kill -KILL $!; wait";
        let shell = Command::new("sh")
            .args(["-c", script, "sh", &program])
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
