//! The client `fred`, in whatever topology its configuration names.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fred::clients::Client as Fred;
use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface, LuaInterface, PubsubInterface};
use fred::types::config::{Config, ReconnectPolicy, ServerConfig};
use fred::types::{
    Builder, ClusterHash, ConnectHandle, CustomCommand, Message, RespVersion, Value,
};
use fred::util::redis_keyslot;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{sleep, timeout};

use super::{Client, Confirm, Heard, Subscriber};
use crate::failure::Failure;
use crate::script::Script;

/// Messages that may wait to be heard; the default of 32 is less than one burst.
const MESSAGES: usize = 4_096;

/// How often it is asked whether there is a connection while there is none.
const AGAIN: Duration = Duration::from_millis(10);

/// The pauses between two calls of which the first was redirected; doubled.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(60);

/// Any number of calls over one connection (to each node) that reconnects by itself.
#[derive(Debug)]
pub(crate) struct FredClient {
    client: Fred,
    /// Runs as long as the client lives: reconnecting is part of it.
    task: Mutex<ConnectHandle>,
    patience: Duration,
    /// How often a subscriber connected, or tried to.
    tries: AtomicUsize,
}

impl FredClient {
    /// Starts to connect, and does not wait for it.
    pub(crate) fn new(config: Config, patience: Duration) -> Result<Self, Error> {
        let mut builder = builder(config, patience);
        builder.with_config(|config| config.fail_fast = false);
        // For ever, from 20 ms to 1 s apart.
        builder.set_policy(ReconnectPolicy::new_exponential(0, 20, 1_000, 2));
        let client = builder.build()?;
        let task = Mutex::new(client.connect());
        Ok(Self { client, task, patience, tries: AtomicUsize::new(0) })
    }

    /// Both in one go, so on one connection: `WAIT` is about what its own has written.
    async fn eval_and_wait(
        &self,
        (eval, script): (&'static str, &'static str),
        key: &str,
        args: Vec<Value>,
        confirm: Confirm,
    ) -> Result<(Value, i64), Error> {
        let node = || ClusterHash::Custom(redis_keyslot(key.as_bytes()));
        let both = self.client.pipeline();
        let mut words: Vec<Value> = vec![script.into(), 1.into(), key.into()];
        words.extend(args);
        both.custom::<(), _>(CustomCommand::new_static(eval, node(), false), words).await?;
        let words = vec![confirm.replicas.to_string(), confirm.millis().to_string()];
        both.custom::<(), _>(CustomCommand::new_static("WAIT", node(), false), words).await?;
        let mut answers = both.try_all::<Value>().await.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Ok(Value::Null));
        let (answer, replicas) = (next()?, next()?);
        Ok((answer, replicas.convert()?))
    }
}

impl Drop for FredClient {
    fn drop(&mut self) {
        quit(&self.client);
    }
}

/// Ends a client's connection; its task would reconnect for ever otherwise.
fn quit(client: &Fred) {
    let client = client.clone();
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            // It ends as well if the server does not say goodbye.
            let _ = client.quit().await;
        });
    }
}

fn builder(config: Config, patience: Duration) -> Builder {
    let mut builder = Builder::from_config(config);
    builder.with_performance_config(|config| config.broadcast_channel_capacity = MESSAGES);
    builder.with_connection_config(|config| {
        config.connection_timeout = patience;
        config.internal_command_timeout = patience;
        // It would send again what may have been executed: a release that came second would then
        // be told that it was lost.
        config.max_command_attempts = 1;
        // With one attempt, to follow a slot that is on its way would end the client for good.
        config.max_redirections = 0;
        config.reconnect_on_auth_error = true;
        // By default a connection on which nothing comes back is kept for ever.
        config.unresponsive.max_timeout = Some(patience);
        config.unresponsive.interval = (patience / 4).max(Duration::from_millis(2));
    });
    builder
}

/// Waits until there is a connection, as long as no try to make one has failed. To a client that
/// has none, fred says different things by topology, or keeps the call until it has one.
async fn connected(client: &Fred) -> Result<(), Failure> {
    while !client.is_connected() {
        // The news can come between the question and the wait for it.
        if let Ok(news) = timeout(AGAIN, client.wait_for_connect()).await {
            news.map_err(dialling)?;
        }
    }
    Ok(())
}

/// What went wrong while a connection was made: nothing was sent on it yet.
fn dialling(error: Error) -> Failure {
    if is_servers(error.details()) {
        Failure::answered(error.details())
    } else {
        Failure::not_sent(error)
    }
}

/// What the server says begins with a code in capitals; what the client says does not.
fn is_servers(text: &str) -> bool {
    let code = text.split(' ').next().unwrap_or_default();
    code.len() >= 3 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn failure(error: Error) -> Failure {
    match error.kind() {
        _ if is_servers(error.details()) => Failure::answered(error.details()),
        ErrorKind::Routing
        | ErrorKind::Config
        | ErrorKind::Url
        | ErrorKind::InvalidArgument
        | ErrorKind::InvalidCommand
        | ErrorKind::Backpressure => Failure::not_sent(error),
        _ => Failure::unanswered(error),
    }
}

#[async_trait]
impl Client for FredClient {
    async fn eval(
        &self,
        by_name: bool,
        script: &'static Script,
        key: &str,
        args: &[Bytes],
        confirm: Option<Confirm>,
    ) -> Result<Bytes, Failure> {
        let args: Vec<Value> = args.iter().cloned().map(Value::Bytes).collect();
        let mut pause = FIRST_PAUSE;
        loop {
            connected(&self.client).await?;
            let answer = match (confirm, by_name) {
                (None, true) => self.client.evalsha(script.sha.as_str(), key, args.clone()).await,
                (None, false) => self.client.eval(script.code, key, args.clone()).await,
                (Some(confirm), _) => {
                    let words = if by_name {
                        ("EVALSHA", script.sha.as_str())
                    } else {
                        ("EVAL", script.code)
                    };
                    match self.eval_and_wait(words, key, args.clone(), confirm).await {
                        Ok((answer, replicas)) => confirm.by(replicas).map(|()| Ok(answer))?,
                        Err(error) => Err(error),
                    }
                }
            };
            match answer {
                // Redirected, so not carried out. Where the slots are, fred has learned by now.
                Err(error) if *error.kind() == ErrorKind::Routing && pause < LONGEST_PAUSE => {
                    sleep(pause).await;
                    pause *= 2;
                }
                Ok(Value::Bytes(answer)) => return Ok(answer),
                // fred tells them apart by whether they are UTF-8.
                Ok(Value::String(answer)) => return Ok(answer.into_inner()),
                Ok(_) => return Err(Failure::unanswered("the script's answer is no string")),
                Err(error) => return Err(failure(error)),
            }
        }
    }

    async fn ask(&self, command: &'static str, args: &[&str]) -> Result<Vec<String>, Failure> {
        connected(&self.client).await?;
        let args: Vec<Value> = args.iter().map(|&arg| arg.into()).collect();
        let command = CustomCommand::new_static(command, None::<u16>, false);
        let answer: Value = self.client.custom(command, args).await.map_err(failure)?;
        let mut strings = Vec::new();
        flatten(answer, &mut strings);
        Ok(strings)
    }

    /// A connection on which nothing comes back fred leaves by itself. A client that an error has
    /// ended does not come back by itself.
    fn stalled(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_finished() {
            *task = self.client.connect();
        }
    }

    async fn subscriber(&self) -> Result<Box<dyn Subscriber>, Failure> {
        // Without a policy: it ends when its connection is lost, and says so.
        let mut builder = builder(self.client.client_config(), self.patience);
        builder.with_config(|config| {
            config.fail_fast = true;
            // In RESP2, a connection that listens answers to nothing else.
            config.version = RespVersion::RESP3;
            // Messages reach every node of a cluster, so that any will do; another at each try.
            if config.server.is_clustered() {
                let tried = self.tries.fetch_add(1, Ordering::Relaxed);
                let nodes = config.server.hosts();
                if let Some(node) = nodes.get(tried % nodes.len().max(1)) {
                    let (host, port) = (node.host.to_string(), node.port);
                    config.server = ServerConfig::new_centralized(host, port);
                }
            }
        });
        let client = builder.build().map_err(Failure::not_sent)?;
        let (messages, task) = (client.message_rx(), client.connect());
        // From here on, it is closed if this is dropped.
        let hearing = Hearing { client, messages, task };
        connected(&hearing.client).await?;
        Ok(Box::new(hearing))
    }
}

/// The texts in a value, in order: a map in RESP3 is a list of pairs in RESP2.
fn flatten(value: Value, into: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| flatten(value, into)),
        Value::Map(map) => map.inner().into_iter().for_each(|(key, value)| {
            into.push(key.into_string().unwrap_or_default());
            flatten(value, into);
        }),
        other => into.extend(other.into_string()),
    }
}

struct Hearing {
    client: Fred,
    messages: Receiver<Message>,
    task: ConnectHandle,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        quit(&self.client);
    }
}

#[async_trait]
impl Subscriber for Hearing {
    async fn subscribe(&mut self, channels: &[String]) -> Result<(), Failure> {
        self.client.subscribe(channels.to_vec()).await.map_err(failure)?;
        // fred does not wait for the server's confirmation. What is asked next on the same
        // connection is answered after it.
        self.client.ping::<()>(None).await.map_err(failure)
    }

    async fn unsubscribe(&mut self, channels: &[String]) -> Result<(), Failure> {
        self.client.unsubscribe(channels.to_vec()).await.map_err(failure)
    }

    async fn heard(&mut self) -> Option<Heard> {
        if self.task.is_finished() {
            return None;
        }
        tokio::select! {
            message = self.messages.recv() => match message {
                Ok(message) => Some(Heard::On(message.channel.to_string())),
                Err(RecvError::Lagged(_)) => Some(Heard::TooMuch),
                Err(RecvError::Closed) => None,
            },
            _ = &mut self.task => None,
        }
    }
}
