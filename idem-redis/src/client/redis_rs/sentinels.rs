//! Where the master is, by the word of its sentinels.
//!
//! Why not the client's own: it asks for `SENTINEL MASTERS`, which names the old master until a
//! failover is over, although another has been promoted. A process that connects in between writes
//! to a master whose writes will be thrown away.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::select_ok;
use redis::aio::MultiplexedConnection;
use redis::{
    Client as Redis, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError,
    RedisResult,
};
use tokio::time::sleep;

use super::config;
use super::link::Link;

/// How long a connection stays with a master that the sentinels have left, about. Such a master
/// goes on to acknowledge what it will forget, for many seconds.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// The sentinels of a master.
#[derive(Clone, Debug)]
pub(super) struct Sentinels {
    asked: Vec<Redis>,
    master: String,
    /// How the master is spoken to; its address is what the sentinels say.
    node: ConnectionInfo,
    patience: Duration,
    /// Where the connection was made to.
    joined: Arc<Mutex<Option<ConnectionAddr>>>,
}

impl Sentinels {
    pub(super) fn new<T: IntoConnectionInfo>(
        sentinels: Vec<T>,
        master: String,
        node: impl IntoConnectionInfo,
        patience: Duration,
    ) -> RedisResult<Self> {
        let node = node.into_connection_info()?;
        if matches!(node.addr(), ConnectionAddr::Unix(_)) {
            return Err(misfit("a master that sentinels name is not reached by a socket's path"));
        }
        if sentinels.is_empty() {
            return Err(misfit("a master of no sentinels"));
        }
        let asked = sentinels.into_iter().map(Redis::open).collect::<Result<_, _>>()?;
        Ok(Self { asked, master, node, patience, joined: Arc::default() })
    }

    /// A connection to the master.
    pub(super) async fn join(&self) -> RedisResult<MultiplexedConnection> {
        let master = self.master().await?;
        let config = config(self.patience);
        let connection = master.get_multiplexed_async_connection_with_config(&config).await?;
        *self.joined() = Some(master.get_connection_info().addr().clone());
        Ok(connection)
    }

    /// A client of the master, as the first sentinel that answers names it.
    pub(super) async fn master(&self) -> RedisResult<Redis> {
        let asked = self.asked.iter().map(|sentinel| Box::pin(self.ask(sentinel)));
        let ((host, port), _) = select_ok(asked).await?;
        let addr = match self.node.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        Redis::open(self.node.clone().set_addr(addr))
    }

    async fn ask(&self, sentinel: &Redis) -> RedisResult<(String, u16)> {
        let config = config(self.patience).set_response_timeout(Some(self.patience));
        let mut sentinel = sentinel.get_multiplexed_async_connection_with_config(&config).await?;
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
        let named: Option<(String, u16)> = ask.query_async(&mut sentinel).await?;
        named.ok_or_else(|| misfit("the sentinels know of no master of this name"))
    }

    /// Leaves the connection while the sentinels name another master than it was made to. Ends
    /// with the link.
    pub(super) async fn follow(self, link: Weak<Link<MultiplexedConnection>>) {
        loop {
            sleep(ASK_AGAIN).await;
            let Some(link) = link.upgrade() else { return };
            // Whoever cannot be asked names nobody else.
            let Ok(named) = self.master().await else { continue };
            let named = named.get_connection_info().addr();
            if self.joined().as_ref().is_some_and(|joined| joined != named) {
                link.replace_if_old();
            }
        }
    }

    fn joined(&self) -> MutexGuard<'_, Option<ConnectionAddr>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn misfit(why: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, why).into()
}
