//! Following a cluster's redirections, which a call meets while slots move from node to node.

use std::time::Duration;

use async_trait::async_trait;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::time::sleep;

/// How often a call is sent elsewhere, with pauses that double: 60 ms in all.
const REDIRECTIONS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// A connection whose calls may be sent elsewhere.
#[async_trait]
pub(crate) trait Redirect: ConnectionLike + Clone + Send + Sync + 'static {
    /// The answer from where the server's error says; the error itself if it says nothing of the
    /// kind. A redirected call was not carried out where it was redirected.
    async fn redirected(&mut self, error: RedisError, command: &Cmd) -> RedisResult<Value>;
}

#[async_trait]
impl Redirect for MultiplexedConnection {
    async fn redirected(&mut self, error: RedisError, _: &Cmd) -> RedisResult<Value> {
        Err(error)
    }
}

#[async_trait]
impl Redirect for ClusterConnection {
    async fn redirected(&mut self, mut error: RedisError, command: &Cmd) -> RedisResult<Value> {
        for redirection in 0..REDIRECTIONS {
            let sent = match error.kind() {
                // The slot is on its way, and the key has arrived already.
                ErrorKind::Server(ServerErrorKind::Ask) => match asked(&error) {
                    Some(node) => ask(self, command, node).await,
                    None => return Err(error),
                },
                // The connection learns where to, as long as the call waits.
                ErrorKind::Server(ServerErrorKind::Moved) => {
                    sleep(FIRST_PAUSE * 2_u32.pow(redirection)).await;
                    self.req_packed_command(command).await
                }
                _ => return Err(error),
            };
            match sent.and_then(Value::extract_error) {
                Err(again) => error = again,
                answer => return answer,
            }
        }
        Err(error)
    }
}

fn asked(error: &RedisError) -> Option<SingleNodeRoutingInfo> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port: port.parse().ok()? })
}

/// Both commands at once: `ASKING` is for the next one on the connection, whoever sends it.
async fn ask(
    connection: &mut ClusterConnection,
    command: &Cmd,
    node: SingleNodeRoutingInfo,
) -> RedisResult<Value> {
    let mut both = redis::pipe();
    both.cmd("ASKING").add_command(command.clone());
    let answers = connection.route_pipeline(both, 1, 1, node).await?;
    answers.into_iter().next_back().ok_or_else(|| {
        (ErrorKind::UnexpectedReturnType, "a cluster's node left a call unanswered").into()
    })
}
