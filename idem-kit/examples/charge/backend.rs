//! The store that the keys are kept in.

use std::error::Error;
use std::sync::Arc;

use idem_kit::Store;
use idem_kit::memory::MemoryStore;

/// The stores of this build.
#[cfg(feature = "redis")]
pub(crate) const STORES: &str = "`memory:` and `redis:`";
#[cfg(not(feature = "redis"))]
pub(crate) const STORES: &str = "`memory:` alone";

/// Where the keys are kept. A backend of another kind is another variant, behind its feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Backend {
    #[default]
    Memory,
    #[cfg(feature = "redis")]
    Redis { url: String },
}

impl Backend {
    pub(crate) fn from_url(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            #[cfg(feature = "redis")]
            Some(("redis" | "rediss", _)) => Ok(Self::Redis { url: url.to_owned() }),
            _ => Err(format!("no store for {url:?}: this build has {STORES}")),
        }
    }

    /// Whether time passes for it as it does for this process, really or not.
    pub(crate) fn follows_virtual_time(&self) -> bool {
        *self == Self::Memory
    }

    /// A store without any of the keys that were used before.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, Box<dyn Error>> {
        match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new())),
            #[cfg(feature = "redis")]
            Self::Redis { url } => {
                use idem_kit::AttemptId;
                use idem_kit::redis::{AtStart, RedisStore};
                let run = u128::from_be_bytes(*AttemptId::random().as_bytes());
                let builder = RedisStore::builder().prefix(format!("charge:{run:x}"));
                // A demonstration may as well be of a server that keeps nothing.
                let store = builder.at_start(AtStart::Skip).connect(url.as_str()).await?;
                // One that is not there shall be an error, not a demonstration of failing open.
                store.check().await?;
                Ok(Arc::new(store))
            }
        }
    }
}
