//! The store that the keys are kept in.

use std::sync::Arc;

use idem_kit::Store;
use idem_kit::memory::MemoryStore;

/// Where the keys are kept. A backend of another kind is another variant, behind its feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Backend {
    #[default]
    Memory,
}

impl Backend {
    pub(crate) fn from_url(url: &str) -> Result<Self, String> {
        match url {
            "memory:" => Ok(Self::Memory),
            other => Err(format!("no store for {other:?}: this build has `memory:` alone")),
        }
    }

    /// An empty store.
    pub(crate) fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory => Arc::new(MemoryStore::new()),
        }
    }
}
