//! Every way to connect that the crate offers.

use std::net::SocketAddr;

use idem_core::StoreError;
use idem_redis::{AtStart, Builder, RedisStore};

/// A client and a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    RedisRs(Protocol),
    RedisRsCluster(Protocol),
    #[cfg(feature = "fred")]
    Fred(Protocol),
    #[cfg(feature = "fred")]
    FredCluster(Protocol),
}

/// The version of the wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

pub(crate) use Protocol::{Resp2, Resp3};

impl Client {
    /// Every client on one server.
    pub(crate) const SINGLE: &[Self] = &[
        Self::RedisRs(Resp2),
        Self::RedisRs(Resp3),
        #[cfg(feature = "fred")]
        Self::Fred(Resp2),
        #[cfg(feature = "fred")]
        Self::Fred(Resp3),
    ];

    /// Every client on a cluster.
    pub(crate) const CLUSTER: &[Self] = &[
        Self::RedisRsCluster(Resp2),
        Self::RedisRsCluster(Resp3),
        #[cfg(feature = "fred")]
        Self::FredCluster(Resp3),
    ];

    pub(crate) fn is_cluster(self) -> bool {
        match self {
            Self::RedisRs(_) => false,
            Self::RedisRsCluster(_) => true,
            #[cfg(feature = "fred")]
            Self::Fred(_) => false,
            #[cfg(feature = "fred")]
            Self::FredCluster(_) => true,
        }
    }

    /// fred follows no redirection of a slot that is on its way, and has no connection to a cluster
    /// as long as one to a node is missing. Both pass when the cluster is whole again.
    pub(crate) fn needs_a_whole_cluster(self) -> bool {
        match self {
            #[cfg(feature = "fred")]
            Self::FredCluster(_) => true,
            _ => false,
        }
    }

    /// Connects a store of its own.
    pub(crate) async fn connect(
        self,
        builder: Builder,
        servers: &[SocketAddr],
    ) -> Result<RedisStore, StoreError> {
        let builder = builder.at_start(AtStart::Skip);
        match self {
            Self::RedisRs(protocol) => builder.connect(url(servers[0], protocol)).await,
            Self::RedisRsCluster(protocol) => {
                builder.connect_cluster(servers.iter().map(|&at| url(at, protocol))).await
            }
            #[cfg(feature = "fred")]
            Self::Fred(protocol) => builder.connect_fred(fred("redis", servers, protocol)).await,
            #[cfg(feature = "fred")]
            Self::FredCluster(protocol) => {
                builder.connect_fred(fred("redis-cluster", servers, protocol)).await
            }
        }
    }
}

fn url(server: SocketAddr, protocol: Protocol) -> String {
    let version = if protocol == Resp3 { "?protocol=resp3" } else { "" };
    format!("redis://{server}/{version}")
}

#[cfg(feature = "fred")]
fn fred(
    scheme: &str,
    servers: &[SocketAddr],
    protocol: Protocol,
) -> idem_redis::fred::types::config::Config {
    use idem_redis::fred::types::RespVersion;
    use idem_redis::fred::types::config::Config;
    let url = format!("{scheme}://{}", servers[0]);
    let mut config = Config::from_url(&url).unwrap();
    config.version = if protocol == Resp3 { RespVersion::RESP3 } else { RespVersion::RESP2 };
    config
}
