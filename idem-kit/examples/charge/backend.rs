//! The store that the keys are kept in.

use std::error::Error;
use std::sync::Arc;

use idem_kit::Store;
use idem_kit::memory::MemoryStore;

/// The stores of this build.
pub(crate) const STORES: &[&str] = &[
    "memory:",
    #[cfg(feature = "redis")]
    "redis:",
    #[cfg(feature = "postgres")]
    "postgres:",
];

/// Where the keys are kept. A backend of another kind is another variant, behind its feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Backend {
    #[default]
    Memory,
    #[cfg(feature = "redis")]
    Redis { url: String },
    #[cfg(feature = "postgres")]
    Postgres { url: String },
}

impl Backend {
    pub(crate) fn from_url(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            #[cfg(feature = "redis")]
            Some(("redis" | "rediss", _)) => Ok(Self::Redis { url: url.to_owned() }),
            #[cfg(feature = "postgres")]
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres { url: url.to_owned() }),
            _ => Err(format!("no store for {url:?}: this build has {}", STORES.join(", "))),
        }
    }

    /// Whether time passes for it as it does for this process, really or not.
    pub(crate) fn follows_virtual_time(&self) -> bool {
        *self == Self::Memory
    }

    /// A store of the example's own: on a server, its keys are kept apart from the others there.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, Box<dyn Error>> {
        match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new())),
            #[cfg(feature = "redis")]
            Self::Redis { url } => {
                use idem_kit::redis::{AtStart, RedisStore};
                let builder = RedisStore::builder().prefix("charge_example");
                // A demonstration may as well be of a server that keeps nothing.
                let store = builder.at_start(AtStart::Skip).connect(url.as_str()).await?;
                // One that is not there shall be an error, not a demonstration of failing open.
                store.check().await?;
                Ok(Arc::new(store))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { url } => {
                use idem_kit::postgres::PostgresStore;
                let builder = PostgresStore::builder().table("charge_example");
                Ok(Arc::new(builder.connect(url).await?))
            }
        }
    }
}
