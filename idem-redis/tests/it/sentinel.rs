//! A master that is found through a sentinel.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idem_conformance::servers::{self, Server};
use idem_core::{Store, Verdict};
use idem_redis::{AtStart, RedisStore};
use tokio::net::TcpStream;

use crate::support::wire::say;
use crate::support::{acquire_in_the_end, attempt, fresh_key, soon};

/// A sentinel's process; it ends with this value.
struct Sentinel {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    async fn of(master: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = folder.path().join("sentinel.conf");
        let (port, at) = (address.port(), master.port());
        let config =
            format!("bind 127.0.0.1\nport {port}\nsentinel monitor main 127.0.0.1 {at} 1\n");
        fs::write(&file, config).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel").current_dir(folder.path());
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let this = Self { process, address, _folder: folder };
        soon(async {
            while TcpStream::connect(address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            // Until it has heard of the master, it names none.
            while !say(address, "INFO sentinel").await.text().contains("status=ok") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        this
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn serves(store: &RedisStore) {
    let first = attempt(&fresh_key(), 1);
    let lease = acquire_in_the_end(store, &first).await;
    let mut watch = store.watch(first.key()).await.unwrap();
    store.complete(&lease, &"done".into(), first.retention_for()).await.unwrap();
    soon(watch.changed()).await;
    let again = attempt(first.key(), 1);
    let verdict = store.reserve(&again).await.unwrap().verdict(&again).unwrap();
    assert_eq!(verdict, Verdict::Replay("done".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_that_a_sentinel_names_serves() {
    let master = servers::redis().process().await.unwrap();
    let sentinel = Sentinel::of(&master).await;
    let builder = || RedisStore::builder().deadline(Duration::from_secs(2)).at_start(AtStart::Skip);
    let url = format!("redis://{}/", sentinel.address);
    serves(&builder().connect_sentinel([url], "main", None).await.unwrap()).await;
    #[cfg(feature = "fred")]
    {
        let url = format!("redis-sentinel://{}/?sentinelServiceName=main", sentinel.address);
        let config = idem_redis::fred::types::config::Config::from_url(&url).unwrap();
        serves(&builder().connect_fred(config).await.unwrap()).await;
    }
}
