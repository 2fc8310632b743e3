//! The clients as they are, without a store.

use std::fmt;

use bytes::Bytes;
use idem_bench::BoxError;
use idem_redis::{AtStart, Builder, RedisStore, fred, redis};

/// Which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    RedisRs,
    Fred,
}

impl Client {
    /// A connection of the kind that a store has.
    pub(crate) async fn bare(self, url: &str) -> Result<Bare, BoxError> {
        match self {
            Self::RedisRs => {
                let client = redis::Client::open(url)?;
                let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
                let connection = client.get_multiplexed_async_connection_with_config(&config);
                Ok(Bare::RedisRs(connection.await?))
            }
            Self::Fred => {
                use fred::interfaces::ClientLike as _;
                let config = fred::types::config::Config::from_url(url)?;
                let client = fred::types::Builder::from_config(config).build()?;
                client.init().await?;
                Ok(Bare::Fred(client))
            }
        }
    }

    pub(crate) async fn store(self, url: &str) -> Result<RedisStore, BoxError> {
        let builder: Builder = RedisStore::builder().at_start(AtStart::Skip);
        Ok(match self {
            Self::RedisRs => builder.connect(url).await?,
            Self::Fred => builder.connect_fred(fred::types::config::Config::from_url(url)?).await?,
        })
    }
}

/// A connection of one of the clients.
#[derive(Clone)]
pub(crate) enum Bare {
    RedisRs(redis::aio::MultiplexedConnection),
    Fred(fred::clients::Client),
}

impl fmt::Display for Bare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RedisRs(_) => "redis-rs",
            Self::Fred(_) => "fred",
        })
    }
}

impl Bare {
    /// Sends a command; an error if the server refuses it.
    pub(crate) async fn send(
        &self,
        name: &'static str,
        args: impl IntoIterator<Item = Bytes>,
    ) -> Result<Answer, BoxError> {
        match self {
            Self::RedisRs(connection) => {
                let mut command = redis::cmd(name);
                for arg in args {
                    command.arg(&arg[..]);
                }
                Ok(Answer::RedisRs(command.query_async(&mut connection.clone()).await?))
            }
            Self::Fred(client) => {
                use fred::interfaces::ClientLike as _;
                use fred::types::{CustomCommand, Value};
                let command = CustomCommand::new_static(name, None::<u16>, false);
                let args: Vec<Value> = args.into_iter().map(Value::Bytes).collect();
                Ok(Answer::Fred(client.custom(command, args).await?))
            }
        }
    }
}

/// What the server answered.
pub(crate) enum Answer {
    RedisRs(redis::Value),
    Fred(fred::types::Value),
}

impl Answer {
    /// The text of an answer that is one.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::RedisRs(value) => redis::from_redis_value(value).ok(),
            Self::Fred(value) => value.into_string(),
        }
    }
}
