//! `CasStore` over a table in memory, by the clock of the machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use idem_conformance::{Clock, Harness, HookError};
use idem_core::model::{Row, Timestamp};
use idem_core::{Cas, CasStore, Key, Snapshot, Store, StoreError};

/// Rows with a version each.
#[derive(Debug, Default)]
struct Rows(Mutex<HashMap<Key, (u64, Row)>>);

#[async_trait]
impl Cas for Rows {
    type Version = u64;

    async fn read(&self, key: &Key) -> Result<Snapshot<u64>, StoreError> {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let now = Timestamp(u64::try_from(since.as_micros()).unwrap());
        let found = self.0.lock().unwrap().get(key).cloned();
        let (version, row) = found.map_or((0, None), |(version, row)| (version, Some(row)));
        Ok(Snapshot { row, version, now })
    }

    async fn swap(&self, key: &Key, expected: u64, row: &Row) -> Result<bool, StoreError> {
        let mut rows = self.0.lock().unwrap();
        let found = rows.get(key).map_or(0, |(version, _)| *version);
        if found == expected {
            rows.insert(key.clone(), (expected + 1, row.clone()));
        }
        Ok(found == expected)
    }
}

struct CasHarness(Arc<CasStore<Rows>>);

#[async_trait]
impl Harness for CasHarness {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn clock(&self) -> Clock {
        Clock::Real { tick: Duration::from_millis(20) }
    }

    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Ok(self.0.clone())
    }
}

idem_conformance::suite!(async { CasHarness(Arc::new(CasStore::new(Rows::default()))) });
