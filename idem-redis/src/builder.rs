//! What a store needs to know, and how it connects.

use std::sync::Arc;
use std::time::Duration;

use idem_core::{Refusal, StoreError};

use crate::check::{Finding, Severity};
use crate::client::Client;
use crate::name::Prefix;
use crate::store::RedisStore;

/// What is done about a server that can break the laws, when a store connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtStart {
    /// Findings are logged, each as one warning. A server that cannot be reached is logged, too,
    /// and connected to when it is needed.
    #[default]
    Warn,
    /// A server that [breaks the laws](Severity::Breaks), or that cannot be reached to find out,
    /// is an error; other findings are logged.
    Refuse,
    /// Nothing is asked.
    Skip,
}

/// Configures a [`RedisStore`]; the methods that connect end it.
#[derive(Clone, Debug)]
#[must_use = "a store is made by one of the methods that connect"]
pub struct Builder {
    prefix: String,
    deadline: Duration,
    at_start: AtStart,
    confirm_replicas: u32,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let (prefix, deadline) = ("idem".to_owned(), Duration::from_millis(400));
        Self { prefix, deadline, at_start: AtStart::default(), confirm_replicas: 0 }
    }

    /// What every record's name begins with: 1 to 64 of the characters `A-Z a-z 0-9 . _ - :`.
    /// Default: `idem`.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// How long a call may take, connecting included. Default: 400 ms, a little less than a
    /// [coordinator](idem_core::Coordinator) gives each try. At least 10 ms.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// What is done about a server that can break the laws. Default: [`AtStart::Warn`].
    pub fn at_start(self, at_start: AtStart) -> Self {
        Self { at_start, ..self }
    }

    /// Takes a call for done only when so many replicas have what it wrote (`WAIT`, on the same
    /// connection). Default: 0, none is waited for.
    ///
    /// **This narrows the window in which a failover loses what was acknowledged, and does not
    /// close it**: a replica that has not confirmed can be promoted all the same. Measured, a
    /// planned failover lost 7,224 of 13,089 reservations without it, 582 of 5,757 with 1 of two
    /// replicas, and none with both; and with both, no call is done while one of them is down.
    ///
    /// Where fewer confirm within half the deadline, the call is
    /// [unavailable](StoreError::Unavailable), and may have been applied: repeated, it waits
    /// again. What is replayed was written by another call, and is not waited for. A call then
    /// costs two commands and the way to the replicas, and calls that share a connection wait for
    /// each other's.
    pub fn confirm_replicas(self, confirm_replicas: u32) -> Self {
        Self { confirm_replicas, ..self }
    }

    /// Connects to one server by the client `redis`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a setting or an address that makes no sense, and as
    /// [`AtStart`] says.
    #[cfg(feature = "redis-rs")]
    pub async fn connect(
        self,
        server: impl redis::IntoConnectionInfo,
    ) -> Result<RedisStore, StoreError> {
        use crate::client::redis_rs::RedisRs;
        let client = RedisRs::single(server, self.deadline).map_err(misfit)?;
        self.over(client).await
    }

    /// Connects to a cluster by the client `redis`; `nodes` are some of its nodes.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    #[cfg(feature = "redis-rs")]
    pub async fn connect_cluster<T: redis::IntoConnectionInfo>(
        self,
        nodes: impl IntoIterator<Item = T>,
    ) -> Result<RedisStore, StoreError> {
        use crate::client::redis_rs::RedisRs;
        let nodes = nodes.into_iter().collect();
        let client = RedisRs::cluster(nodes, self.deadline).map_err(misfit)?;
        self.over(client).await
    }

    /// Connects to the master that these sentinels name, by the client `redis`. `node` says how
    /// the master is spoken to (its user, its password, its database, TLS); its address does not
    /// count: `redis://user:password@any/`.
    ///
    /// They are asked again four times a second, in a task that ends with the store, so that a
    /// store does not stay with a master that another has replaced.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    #[cfg(feature = "redis-rs")]
    pub async fn connect_sentinel<T: redis::IntoConnectionInfo>(
        self,
        sentinels: impl IntoIterator<Item = T>,
        master: impl Into<String>,
        node: impl redis::IntoConnectionInfo,
    ) -> Result<RedisStore, StoreError> {
        use crate::client::redis_rs::RedisRs;
        let sentinels = sentinels.into_iter().collect();
        let client = RedisRs::sentinel(sentinels, master.into(), node, self.deadline);
        self.over(client.map_err(misfit)?).await
    }

    /// Connects by the client `fred`: to one server, to a cluster, or through sentinels, as the
    /// configuration says. Timeouts and retries are the store's own.
    ///
    /// # Errors
    /// As the other methods that connect.
    #[cfg(feature = "fred")]
    pub async fn connect_fred(
        self,
        config: fred::types::config::Config,
    ) -> Result<RedisStore, StoreError> {
        use crate::client::fred::FredClient;
        let client = FredClient::new(config, self.deadline).map_err(misfit)?;
        self.over(client).await
    }

    async fn over(self, client: impl Client + 'static) -> Result<RedisStore, StoreError> {
        let prefix = Prefix::new(&self.prefix)?;
        if self.deadline < Duration::from_millis(10) {
            return Err(StoreError::refused(Refusal::Invalid, "a deadline is 10 ms or more"));
        }
        let store = RedisStore::new(Arc::new(client), prefix, self.deadline, self.confirm_replicas);
        match self.at_start {
            AtStart::Skip => {}
            AtStart::Refuse => refuse(&store.check().await?)?,
            AtStart::Warn => match store.check().await {
                Ok(findings) => findings.iter().for_each(warn),
                Err(error) => {
                    tracing::warn!(%error, "the Redis of an idempotency store is not there yet");
                }
            },
        }
        Ok(store)
    }
}

fn misfit(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::refused(Refusal::Invalid, error)
}

fn refuse(findings: &[Finding]) -> Result<(), StoreError> {
    for finding in findings {
        if finding.severity() == Severity::Breaks {
            return Err(StoreError::refused(Refusal::Configuration, finding.to_string()));
        }
        warn(finding);
    }
    Ok(())
}

fn warn(finding: &Finding) {
    tracing::warn!(%finding, "the Redis of an idempotency store");
}
