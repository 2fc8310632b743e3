//! The client `redis`: single, through Sentinel, or a cluster.

mod link;
mod redirect;
mod sentinels;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client as Redis, ErrorKind, IntoConnectionInfo, RedisError, RedisResult,
    Value,
};

use self::link::Link;
use self::redirect::Redirect;
use self::sentinels::Sentinels;
use super::{Client, Confirm, Heard, Subscriber};
use crate::failure::Failure;
use crate::script::Script;

/// Any number of calls over one multiplexed connection (to each node) that is made when needed.
pub(crate) struct RedisRs<C> {
    link: Arc<Link<C>>,
    /// Where a subscriber connects: makes a connection's parameters anew each time.
    hears_at: Box<dyn Fn(u32) -> BoxFuture<'static, RedisResult<Redis>> + Send + Sync>,
    kind: &'static str,
}

impl RedisRs<MultiplexedConnection> {
    pub(crate) fn single(at: impl IntoConnectionInfo, patience: Duration) -> RedisResult<Self> {
        let client = Redis::open(at)?;
        let (dialled, heard) = (client.clone(), client);
        Ok(Self {
            link: Link::new(move || {
                let client = dialled.clone();
                Box::pin(async move {
                    client.get_multiplexed_async_connection_with_config(&config(patience)).await
                })
            }),
            hears_at: Box::new(move |_| {
                let client = heard.clone();
                Box::pin(async { Ok(client) })
            }),
            kind: "single",
        })
    }

    /// Asks the sentinels for the master each time a connection is made, and from time to time.
    pub(crate) fn sentinel<T: IntoConnectionInfo>(
        sentinels: Vec<T>,
        master: String,
        node: impl IntoConnectionInfo,
        patience: Duration,
    ) -> RedisResult<Self> {
        let sentinels = Sentinels::new(sentinels, master, node, patience)?;
        let (dialled, heard) = (sentinels.clone(), sentinels.clone());
        let link = Link::new(move || {
            let sentinels = dialled.clone();
            Box::pin(async move { sentinels.join().await })
        });
        tokio::spawn(sentinels.follow(Arc::downgrade(&link)));
        Ok(Self {
            link,
            hears_at: Box::new(move |_| {
                let sentinels = heard.clone();
                Box::pin(async move { sentinels.master().await })
            }),
            kind: "sentinel",
        })
    }
}

impl RedisRs<ClusterConnection> {
    pub(crate) fn cluster<T: IntoConnectionInfo>(
        nodes: Vec<T>,
        patience: Duration,
    ) -> RedisResult<Self> {
        let nodes: Vec<_> = nodes
            .into_iter()
            .map(IntoConnectionInfo::into_connection_info)
            .collect::<Result<_, _>>()?;
        let seeds: Vec<_> = nodes.iter().cloned().map(Redis::open).collect::<RedisResult<_>>()?;
        let client = redis::cluster::ClusterClient::builder(nodes)
            .connection_timeout(patience)
            .response_timeout(patience)
            // It would send again what may have been executed: a release that came second would
            // then be told that it was lost. Redirections, which it counts as well, are followed
            // here.
            .retries(0)
            .build()?;
        Ok(Self {
            link: Link::new(move || {
                let client = client.clone();
                Box::pin(async move { client.get_async_connection().await })
            }),
            // Messages reach every node of a cluster, so that any will do; another at each try.
            hears_at: Box::new(move |tried| {
                let seed = seeds.get(tried as usize % seeds.len().max(1)).cloned();
                let none = (ErrorKind::InvalidClientConfig, "a cluster of no nodes");
                Box::pin(async move { seed.ok_or_else(|| none.into()) })
            }),
            kind: "cluster",
        })
    }
}

fn config(patience: Duration) -> AsyncConnectionConfig {
    // The store has a deadline for each call, the time to connect included.
    AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(patience))
}

impl<C: Redirect> RedisRs<C> {
    async fn send(&self, command: &redis::Cmd) -> Result<Value, Failure> {
        let (id, mut connection) = self.link.get().await.map_err(dialling)?;
        let sent = connection.req_packed_command(command).await.and_then(Value::extract_error);
        let answer = match sent {
            Err(error) => connection.redirected(error, command).await,
            sent => sent,
        };
        answer.map_err(|error| self.failed(id, error))
    }

    /// Both in one go, so on one connection: `WAIT` is about what its own has written.
    async fn send_and_wait(&self, command: redis::Cmd, confirm: Confirm) -> Result<Value, Failure> {
        let (id, mut connection) = self.link.get().await.map_err(dialling)?;
        let mut both = redis::pipe();
        both.add_command(command).cmd("WAIT").arg(confirm.replicas).arg(confirm.millis());
        let answers = connection.req_packed_commands(&both, 0, 2).await;
        let mut answers = answers.map_err(|error| self.failed(id, error))?.into_iter();
        let mut next = || {
            let answer = answers.next().unwrap_or(Value::Nil).extract_error();
            answer.map_err(|error| self.failed(id, error))
        };
        let (answer, replicas) = (next()?, next()?);
        let Value::Int(replicas) = replicas else {
            return Err(Failure::unanswered("the server has not said who confirmed"));
        };
        confirm.by(replicas).map(|()| answer)
    }

    /// What the error means; a connection that is of no use any more is left.
    fn failed(&self, id: u64, error: RedisError) -> Failure {
        if is_over(&error) {
            self.link.replace(id);
        }
        failure(error)
    }
}

/// Whether the connection is of no use any more. A master that became a replica answers, but
/// another is master now.
fn is_over(error: &RedisError) -> bool {
    error.is_unrecoverable_error() || error.is_io_error() || error.code() == Some("READONLY")
}

/// What went wrong while a connection was made: nothing was sent on it yet.
fn dialling(error: RedisError) -> Failure {
    match error.kind() {
        ErrorKind::AuthenticationFailed => Failure::answered(format!("WRONGPASS {error}")),
        _ => line(&error).map_or_else(|| Failure::not_sent(error), Failure::answered),
    }
}

fn failure(error: RedisError) -> Failure {
    if error.kind() == ErrorKind::ClusterConnectionNotFound || error.is_connection_refusal() {
        return Failure::not_sent(error);
    }
    line(&error).map_or_else(|| Failure::unanswered(error), Failure::answered)
}

/// What the server said, if it was the server that said it.
fn line(error: &RedisError) -> Option<String> {
    let code = error.code()?;
    Some(format!("{code} {}", error.detail().unwrap_or_default()))
}

#[async_trait]
impl<C: Redirect> Client for RedisRs<C> {
    async fn eval(
        &self,
        by_name: bool,
        script: &'static Script,
        key: &str,
        args: &[Bytes],
        confirm: Option<Confirm>,
    ) -> Result<Bytes, Failure> {
        let (name, script) =
            if by_name { ("EVALSHA", &*script.sha) } else { ("EVAL", script.code) };
        let size = script.len() + key.len() + args.iter().map(Bytes::len).sum::<usize>();
        let mut eval = redis::Cmd::with_capacity(args.len() + 4, size + 16);
        eval.arg(name).arg(script).arg(1).arg(key);
        for arg in args {
            eval.arg(&arg[..]);
        }
        let answer = match confirm {
            None => self.send(&eval).await?,
            Some(confirm) => self.send_and_wait(eval, confirm).await?,
        };
        match answer {
            Value::BulkString(answer) => Ok(answer.into()),
            _ => Err(Failure::unanswered("the script's answer is no string")),
        }
    }

    async fn ask(&self, command: &'static str, args: &[&str]) -> Result<Vec<String>, Failure> {
        let answer = self.send(redis::cmd(command).arg(args)).await?;
        let mut strings = Vec::new();
        flatten(answer, &mut strings);
        Ok(strings)
    }

    fn stalled(&self) {
        self.link.replace_if_old();
    }

    async fn subscriber(&self) -> Result<Box<dyn Subscriber>, Failure> {
        let client = (self.hears_at)(self.link.next_try()).await.map_err(dialling)?;
        let (sink, stream) = client.get_async_pubsub().await.map_err(dialling)?.split();
        Ok(Box::new(Hearing { sink, stream }))
    }
}

/// The texts in a value, in order: a map in RESP3 is a list of pairs in RESP2.
fn flatten(value: Value, into: &mut Vec<String>) {
    match value {
        Value::BulkString(bytes) => into.push(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => into.push(text),
        Value::Okay => into.push("OK".into()),
        Value::Int(number) => into.push(number.to_string()),
        Value::Array(values) => values.into_iter().for_each(|value| flatten(value, into)),
        Value::Map(pairs) => pairs.into_iter().for_each(|(key, value)| {
            flatten(key, into);
            flatten(value, into);
        }),
        _ => {}
    }
}

struct Hearing {
    sink: PubSubSink,
    stream: PubSubStream,
}

#[async_trait]
impl Subscriber for Hearing {
    async fn subscribe(&mut self, channels: &[String]) -> Result<(), Failure> {
        self.sink.subscribe(channels).await.map_err(failure)
    }

    async fn unsubscribe(&mut self, channels: &[String]) -> Result<(), Failure> {
        self.sink.unsubscribe(channels).await.map_err(failure)
    }

    async fn heard(&mut self) -> Option<Heard> {
        self.stream.next().await.map(|message| Heard::On(message.get_channel_name().to_owned()))
    }
}

impl<C> fmt::Debug for RedisRs<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisRs").field(&self.kind).finish()
    }
}
