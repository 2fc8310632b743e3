//! A master with replicas, watched by a sentinel.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idem_conformance::servers::{self, Server};
use idem_core::StoreError;
use idem_redis::{AtStart, Builder, RedisStore};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::soon;
use super::wire::say;

const AGAIN: Duration = Duration::from_millis(20);

/// A sentinel's process; it ends with this value.
pub(crate) struct Sentinel {
    process: Child,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    /// Watches `master` alone, and takes it for down after two seconds of silence.
    pub(crate) async fn of(master: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = folder.path().join("sentinel.conf");
        let (port, at) = (address.port(), master.port());
        let config = format!(
            "bind 127.0.0.1\n\
             port {port}\n\
             sentinel monitor main 127.0.0.1 {at} 1\n\
             sentinel down-after-milliseconds main 2000\n\
             sentinel failover-timeout main 5000\n"
        );
        fs::write(&file, config).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel").current_dir(folder.path());
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let this = Self { process, address, _folder: folder };
        soon(async {
            while TcpStream::connect(address).await.is_err() {
                sleep(AGAIN).await;
            }
        })
        .await;
        // Until it has heard of the master, it names none.
        this.hears_of("status=ok").await;
        this
    }

    /// The port of the master, as far as it knows.
    pub(crate) async fn names(&self) -> u16 {
        let named = say(self.address, "SENTINEL GET-MASTER-ADDR-BY-NAME main").await;
        named.list().swap_remove(1).text().parse().unwrap()
    }

    /// Waits until it names another master.
    pub(crate) async fn has_left(&self, port: u16) {
        soon(async {
            while self.names().await == port {
                sleep(AGAIN).await;
            }
        })
        .await;
    }

    async fn hears_of(&self, what: &str) {
        soon(async {
            while !say(self.address, "INFO sentinel").await.text().contains(what) {
                sleep(AGAIN).await;
            }
        })
        .await;
    }

    pub(crate) async fn connect(&self, client: Watched, builder: Builder) -> Connected {
        let builder = builder.at_start(AtStart::Skip);
        match client {
            Watched::RedisRs => {
                let sentinels = [format!("redis://{}/", self.address)];
                builder.connect_sentinel(sentinels, "main", "redis://any/").await
            }
            #[cfg(feature = "fred")]
            Watched::Fred => {
                let url = format!("redis-sentinel://{}/?sentinelServiceName=main", self.address);
                let config = idem_redis::fred::types::config::Config::from_url(&url).unwrap();
                builder.connect_fred(config).await
            }
        }
    }
}

type Connected = Result<RedisStore, StoreError>;

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client that asks a sentinel where the master is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    RedisRs,
    #[cfg(feature = "fred")]
    Fred,
}

impl Watched {
    pub(crate) const ALL: &[Self] = &[
        Self::RedisRs,
        #[cfg(feature = "fred")]
        Self::Fred,
    ];
}

/// A master, its two replicas and their sentinel.
pub(crate) struct Replicated {
    nodes: [Server; 3],
    pub(crate) sentinel: Sentinel,
}

impl Replicated {
    pub(crate) async fn start() -> Self {
        let node = || servers::redis().process();
        let master = node().await.unwrap();
        let of = format!("127.0.0.1 {}", master.port());
        let replica = || node().setting("replicaof", of.clone());
        let (one, another) = (replica().await.unwrap(), replica().await.unwrap());
        soon(async {
            while say(master.addr(), "WAIT 2 1000").await.number() < 2 {
                sleep(AGAIN).await;
            }
        })
        .await;
        let sentinel = Sentinel::of(&master).await;
        sentinel.hears_of("slaves=2").await;
        Self { nodes: [master, one, another], sentinel }
    }

    /// Lets a node that was paused go on.
    pub(crate) async fn resume(&mut self, port: u16) {
        self.nodes.iter_mut().find(|node| node.port() == port).unwrap().resume().await.unwrap();
    }

    /// The node that the sentinel names.
    pub(crate) async fn master(&mut self) -> &mut Server {
        let port = self.sentinel.names().await;
        self.nodes.iter_mut().find(|node| node.port() == port).unwrap()
    }
}
