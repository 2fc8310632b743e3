//! Servers at virtual time behind proxies, kept for the next test.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};

use idem_conformance::proxy::Proxy;
use idem_conformance::servers::{self, RedisCluster, Server, ServerError, Setup, WallClock};
use tokio::runtime::Runtime;

use super::wire::{Reply, say};

/// One server or a cluster of three, each behind a proxy, with one clock that stands still.
pub(crate) struct Rig {
    servers: tokio::sync::Mutex<Servers>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) clock: WallClock,
}

enum Servers {
    One(Server),
    Cluster(RedisCluster),
}

/// Outlives the runtimes of the tests: a rig is used by one after the other.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static IDLE: LazyLock<Mutex<HashMap<bool, Vec<Rig>>>> = LazyLock::new(Mutex::default);

/// A rig for one test, which gives it back by being dropped.
pub(crate) struct Lent(Option<Rig>);

impl std::ops::Deref for Lent {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let rig = self.0.take().unwrap();
        IDLE.lock().unwrap().entry(rig.addresses.len() > 1).or_default().push(rig);
    }
}

/// An idle rig, or a new one.
pub(crate) async fn rig(cluster: bool) -> Lent {
    let idle = IDLE.lock().unwrap().get_mut(&cluster).and_then(Vec::pop);
    let rig = match idle {
        Some(rig) => {
            rig.out_of_memory(false).await;
            rig
        }
        None => RUNTIME.spawn(Rig::start(cluster)).await.unwrap().unwrap(),
    };
    Lent(Some(rig))
}

impl Rig {
    async fn start(cluster: bool) -> Result<Self, ServerError> {
        let clock = WallClock::new()?;
        let setup = |setup: Setup| {
            let durable = setup.setting("appendonly", "yes").setting("appendfsync", "always");
            // Whoever is silent for a day of virtual time is not taken for dead.
            let node = if cluster {
                durable.setting("cluster-node-timeout", "1000000000000")
            } else {
                durable
            };
            node.setting("enable-debug-command", "yes").clock(&clock)
        };
        let servers = if cluster {
            Servers::Cluster(servers::redis_cluster_with(setup).await?)
        } else {
            Servers::One(setup(servers::redis()).await?)
        };
        let addresses: Vec<_> = match &servers {
            Servers::One(server) => vec![server.addr()],
            Servers::Cluster(cluster) => cluster.nodes().iter().map(Server::addr).collect(),
        };
        let mut proxies = Vec::new();
        for &address in &addresses {
            proxies.push(Proxy::start(address).await.unwrap());
        }
        let rig = Self { servers: servers.into(), addresses, proxies, clock };
        rig.announce().await;
        for proxy in &rig.proxies {
            proxy.only_with("EVALSHA");
        }
        rig.clock.stop().unwrap();
        Ok(rig)
    }

    /// Lets the nodes of a cluster send clients to each other's proxies.
    async fn announce(&self) {
        if self.addresses.len() == 1 {
            return;
        }
        for (&node, proxy) in self.addresses.iter().zip(&self.proxies) {
            let port = proxy.addr().port();
            let set = say(node, &format!("CONFIG SET cluster-announce-port {port}")).await;
            assert_eq!(set, Reply::Text("OK".into()));
        }
        for &node in &self.addresses {
            while !self.is_told_by(node).await {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }

    async fn is_told_by(&self, node: SocketAddr) -> bool {
        let slots = format!("{:?}", say(node, "CLUSTER SLOTS").await);
        let state = say(node, "CLUSTER INFO").await.text();
        // A node that is told of a new port begins a new link to it, and publishes nothing there
        // before it has one.
        let linked = !say(node, "CLUSTER NODES").await.text().contains("disconnected");
        let ports = self.proxies.iter().map(|proxy| proxy.addr().port());
        let mut ports = ports.map(|port| format!("Number({port})"));
        ports.all(|port| slots.contains(&port)) && state.contains("cluster_state:ok") && linked
    }

    /// Where clients connect.
    pub(crate) fn doors(&self) -> Vec<SocketAddr> {
        self.proxies.iter().map(Proxy::addr).collect()
    }

    /// Which node has this record.
    pub(crate) async fn node_of(&self, name: &str) -> usize {
        if self.addresses.len() == 1 {
            return 0;
        }
        let slot = say(self.addresses[0], &format!("CLUSTER KEYSLOT {name}")).await.number();
        match slot {
            ..=5460 => 0,
            5461..=10922 => 1,
            _ => 2,
        }
    }

    /// Leaves the servers no byte of memory, or as much as they want.
    pub(crate) async fn out_of_memory(&self, out: bool) {
        let bytes = u8::from(out);
        for &node in &self.addresses {
            let set = say(node, &format!("CONFIG SET maxmemory {bytes}")).await;
            assert_eq!(set, Reply::Text("OK".into()));
        }
    }

    /// Stops every server in good order, and starts it again with its data.
    pub(crate) async fn restart(&self) -> Result<(), ServerError> {
        // A node takes part again only after a while.
        self.clock.start().unwrap();
        match &mut *self.servers.lock().await {
            Servers::One(server) => server.restart().await?,
            Servers::Cluster(cluster) => {
                for node in cluster.nodes_mut() {
                    node.restart().await?;
                }
            }
        }
        self.announce().await;
        self.clock.stop().unwrap();
        Ok(())
    }
}
