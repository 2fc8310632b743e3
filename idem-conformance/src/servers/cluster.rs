//! A Redis Cluster of three masters.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::error::{ServerError, io};
use super::redis;
use super::server::Server;
use super::setup::Setup;
use super::wire::ask;

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// The first and the last slot of each master.
const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// A Redis Cluster of three masters without replicas, private to the test.
///
/// It needs the Redis binary: nodes in containers would tell clients addresses of their own.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Server>,
}

/// Starts three masters and waits until each of them says that the cluster serves.
///
/// # Errors
/// As of awaiting [`redis()`], and [`ServerError::Failed`] if the nodes do not find each other.
///
/// # Cancellation
/// Nothing is left behind.
pub async fn redis_cluster() -> Result<RedisCluster, ServerError> {
    redis_cluster_with(|node| node).await
}

/// The same, of nodes that `setup` adds something to.
///
/// # Errors
/// As [`redis_cluster`].
///
/// # Cancellation
/// Nothing is left behind.
pub async fn redis_cluster_with(
    setup: impl Fn(Setup) -> Setup,
) -> Result<RedisCluster, ServerError> {
    let mut nodes = Vec::new();
    for _ in SLOTS {
        let node = redis()
            .setting("cluster-enabled", "yes")
            .setting("cluster-node-timeout", "2000")
            .process();
        nodes.push(setup(node).await?);
    }
    let cluster = RedisCluster { nodes };
    cluster.assign().await?;
    cluster.introduce().await?;
    cluster.serves().await?;
    Ok(cluster)
}

impl RedisCluster {
    /// The URLs of its nodes, in the order of their slots.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url().to_owned()).collect()
    }

    /// Its nodes, in the order of their slots.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Its nodes, to kill or to pause one.
    pub fn nodes_mut(&mut self) -> &mut [Server] {
        &mut self.nodes
    }

    async fn assign(&self) -> Result<(), ServerError> {
        for ((node, (first, last)), epoch) in self.nodes.iter().zip(SLOTS).zip(1..) {
            expect_ok(node, &format!("CLUSTER ADDSLOTSRANGE {first} {last}")).await?;
            // Different from the start, the epochs need no settling.
            expect_ok(node, &format!("CLUSTER SET-CONFIG-EPOCH {epoch}")).await?;
        }
        Ok(())
    }

    async fn introduce(&self) -> Result<(), ServerError> {
        let Some((first, others)) = self.nodes.split_first() else { return Ok(()) };
        for node in others {
            let (ip, port) = (node.addr().ip(), node.port());
            expect_ok(first, &format!("CLUSTER MEET {ip} {port}")).await?;
        }
        Ok(())
    }

    async fn serves(&self) -> Result<(), ServerError> {
        let all = async {
            for node in &self.nodes {
                while !knows_all(&info(node, "CLUSTER INFO").await?)
                    || !reaches_all(&info(node, "CLUSTER NODES").await?)
                {
                    sleep(POLL).await;
                }
            }
            Ok(())
        };
        timeout(PATIENCE, all).await.unwrap_or_else(|_| Err(failed("it takes too long".into())))
    }
}

fn knows_all(info: &str) -> bool {
    ["cluster_state:ok", "cluster_known_nodes:3"].iter().all(|line| info.contains(line))
}

/// Without a link to a node, what is published never arrives there.
fn reaches_all(nodes: &str) -> bool {
    !nodes.contains("disconnected")
}

async fn info(node: &Server, command: &str) -> Result<String, ServerError> {
    ask(node.addr(), command).await.map_err(io("ask a node of the cluster"))
}

async fn expect_ok(node: &Server, command: &str) -> Result<(), ServerError> {
    let answer = info(node, command).await?;
    if answer.starts_with("+OK") { Ok(()) } else { Err(failed(format!("{command}: {answer}"))) }
}

fn failed(reason: String) -> ServerError {
    ServerError::Failed { server: "Redis", verb: "form a cluster", reason }
}
