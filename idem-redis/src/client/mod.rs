//! What the store asks of a Redis client, so that one set of scripts serves all of them.

#[cfg(feature = "fred")]
pub(crate) mod fred;
#[cfg(feature = "redis-rs")]
pub(crate) mod redis_rs;

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::failure::Failure;
use crate::script::Script;

/// A connection to a Redis, a Sentinel's master or a Cluster, that comes back by itself.
///
/// No call bounds its own time: the store does, and drops the future.
#[async_trait]
pub(crate) trait Client: Debug + Send + Sync {
    /// Runs a script by its name, or by its text, on one key, which decides the node; and waits
    /// for replicas, on the same connection, if it is to be confirmed. The answer is one string.
    async fn eval(
        &self,
        by_name: bool,
        script: &'static Script,
        key: &str,
        args: &[Bytes],
        confirm: Option<Confirm>,
    ) -> Result<Bytes, Failure>;

    /// A command without a key, about the server; to any node.
    async fn ask(&self, command: &'static str, args: &[&str]) -> Result<Vec<String>, Failure>;

    /// A call was given up after a while: the connection may be one that nothing comes back on.
    fn stalled(&self);

    /// A connection of its own that hears messages.
    async fn subscriber(&self) -> Result<Box<dyn Subscriber>, Failure>;
}

/// What is waited for after a script: `WAIT replicas within`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirm {
    pub(crate) replicas: u32,
    pub(crate) within: Duration,
}

impl Confirm {
    /// Whether so many replicas have what the connection has written.
    pub(crate) fn by(self, replicas: i64) -> Result<(), Failure> {
        if replicas >= i64::from(self.replicas) {
            return Ok(());
        }
        let asked = self.replicas;
        Err(Failure::unanswered(format!("{replicas} of {asked} replicas have confirmed")))
    }

    pub(crate) fn millis(self) -> u64 {
        // `WAIT` takes 0 for ever.
        u64::try_from(self.within.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// A connection that hears messages, until it is lost. It does not come back by itself.
#[async_trait]
pub(crate) trait Subscriber: Send {
    /// Back when the server has confirmed.
    async fn subscribe(&mut self, channels: &[String]) -> Result<(), Failure>;

    async fn unsubscribe(&mut self, channels: &[String]) -> Result<(), Failure>;

    /// The next message; `None` once the connection is lost. Dropping the future loses none.
    async fn heard(&mut self) -> Option<Heard>;
}

/// What a subscriber heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A message on this channel.
    On(String),
    /// More than could be kept: it may have been any channel.
    #[cfg_attr(not(feature = "fred"), expect(dead_code, reason = "the other client keeps all"))]
    TooMuch,
}
