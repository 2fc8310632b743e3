//! The conformance suite, with virtual time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use idem_conformance::{Clock, Harness, HookError};
use idem_core::Store;
use idem_memory::{MemoryStore, TestClock};

struct Memory {
    store: Arc<MemoryStore>,
    clock: TestClock,
}

impl Memory {
    fn new() -> Self {
        let clock = TestClock::new();
        let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
        Self { store, clock }
    }
}

#[async_trait]
impl Harness for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    async fn advance(&self, by: Duration) -> Result<(), HookError> {
        self.clock.advance(by);
        Ok(())
    }

    async fn purge(&self) -> Result<(), HookError> {
        self.store.sweep();
        Ok(())
    }

    async fn bounded(&self, records: usize) -> Result<Arc<dyn Store>, HookError> {
        let clock = self.clock.clone();
        Ok(Arc::new(MemoryStore::builder().max_entries(records).clock(clock).build()))
    }
}

idem_conformance::suite!(async { Memory::new() });
