//! The model over a table in memory, right or wrong.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::model::{Row, Step, Timestamp};
use idem_core::{Applied, Attempt, Key, Lease, Record, State, Store, StoreError, Watch};

use crate::harness::{Clock, Damage, Fault, Harness, HookError, Skew};
use crate::lab::attempt_at;
use crate::wrong::hints::Hints;
use crate::wrong::laws::{Answer, Asked, At, Completion, Laws, Right, Verb, Watching};
use crate::wrong::table::{Table, hold};

/// A harness over the reference store, right or wrong, with every hook and a virtual clock.
///
/// It is volatile; its "restart" is that of a store that would keep its rows.
#[derive(Clone, Debug)]
pub struct Reference(Arc<World>);

#[derive(Debug)]
struct World {
    laws: &'static dyn Laws,
    /// Microseconds since the epoch.
    clock: AtomicU64,
    table: Arc<Mutex<Table>>,
    hints: Arc<Hints>,
    fault: Mutex<Option<Fault>>,
    is_broken: AtomicBool,
    handles: AtomicUsize,
}

impl Reference {
    /// The store that keeps the laws.
    pub fn right() -> Self {
        Self::with(&Right)
    }

    /// The store that does what these laws say.
    pub fn with(laws: &'static dyn Laws) -> Self {
        Self(Arc::new(World {
            laws,
            clock: AtomicU64::new(1_750_000_000_000_000),
            table: Arc::default(),
            hints: Arc::default(),
            fault: Mutex::default(),
            is_broken: AtomicBool::new(false),
            handles: AtomicUsize::new(1),
        }))
    }

    fn handle(&self, number: usize) -> Handle {
        let (world, table) = (Arc::clone(&self.0), Arc::clone(&self.0.table));
        Handle { world, table, number, skew: None }
    }

    fn another_handle(&self) -> Handle {
        self.handle(self.0.handles.fetch_add(1, Ordering::SeqCst))
    }
}

#[async_trait]
impl Harness for Reference {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.handle(0))
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    async fn advance(&self, by: Duration) -> Result<(), HookError> {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.clock.fetch_add(by, Ordering::SeqCst);
        Ok(())
    }

    async fn fork(&self) -> Result<Arc<dyn Store>, HookError> {
        Ok(Arc::new(self.another_handle()))
    }

    async fn skewed(&self, skew: Skew) -> Result<Arc<dyn Store>, HookError> {
        Ok(Arc::new(Handle { skew: Some(skew), ..self.another_handle() }))
    }

    async fn corrupt(&self, key: &Key, damage: Damage) -> Result<(), HookError> {
        if hold(&self.0.table).damage(&self.0.laws.name(key), damage) {
            return Ok(());
        }
        Err(HookError::Failed("there is no row to damage".into()))
    }

    async fn purge(&self) -> Result<(), HookError> {
        let (laws, now) = (self.0.laws, self.0.now());
        if laws.purges_damaged() {
            hold(&self.0.table).remove_damaged();
        }
        let dead = |row: &Row| laws.purges(row, now);
        if laws.purge_is_torn() {
            let dead = hold(&self.0.table).names_where(dead);
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            hold(&self.0.table).remove(&dead);
        } else {
            hold(&self.0.table).remove_where(dead);
        }
        Ok(())
    }

    async fn bounded(&self, records: usize) -> Result<Arc<dyn Store>, HookError> {
        let table = Arc::new(Mutex::new(Table::with_room(records)));
        Ok(Arc::new(Handle { table, ..self.another_handle() }))
    }

    async fn restart(&self) -> Result<(), HookError> {
        hold(&self.0.table).restart(|row| self.0.laws.survives(row));
        Ok(())
    }

    async fn fail_next(&self, fault: Fault) -> Result<(), HookError> {
        *hold(&self.0.fault) = Some(fault);
        Ok(())
    }
}

impl World {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::SeqCst))
    }

    /// What goes wrong with the next call.
    fn fault(&self) -> Option<Fault> {
        let fault = hold(&self.fault).take();
        if fault.is_some() && !self.laws.recovers() {
            self.is_broken.store(true, Ordering::SeqCst);
        }
        fault
    }
}

/// The store as one process has it.
#[derive(Debug)]
struct Handle {
    world: Arc<World>,
    table: Arc<Mutex<Table>>,
    number: usize,
    skew: Option<Skew>,
}

impl Handle {
    /// One verb, with whatever goes wrong with it.
    async fn verb<T>(
        &self,
        verb: Verb,
        key: &Key,
        judge: impl Fn(At) -> Answer<T> + Send + Sync,
    ) -> Result<T, StoreError>
    where
        T: Send,
    {
        let laws = self.world.laws;
        if self.world.is_broken.load(Ordering::SeqCst) {
            return Err(failed(Applied::No));
        }
        let name = laws.name(key);
        match self.world.fault() {
            None => self.step(verb, &name, judge).await,
            Some(Fault::Before) if laws.pretends(verb) => Ok(judge(self.at(&name, verb)?)?.answer),
            Some(fault) => {
                if fault == Fault::After || laws.applies_what_it_denies() {
                    self.step(verb, &name, judge).await?;
                }
                Err(failed(laws.applied(fault)))
            }
        }
    }

    /// Reads, judges and writes, in one step unless it is torn.
    async fn step<T>(
        &self,
        verb: Verb,
        name: &[u8],
        judge: impl Fn(At) -> Answer<T> + Send + Sync,
    ) -> Result<T, StoreError> {
        if self.world.laws.is_torn(verb) {
            let at = self.at(name, verb)?;
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            return self.write(&mut hold(&self.table), verb, name, judge(at)?);
        }
        let mut table = hold(&self.table);
        let at = self.seen_in(&mut table, name, verb)?;
        self.write(&mut table, verb, name, judge(at)?)
    }

    fn at(&self, name: &[u8], verb: Verb) -> Result<At, StoreError> {
        self.seen_in(&mut hold(&self.table), name, verb)
    }

    fn seen_in(&self, table: &mut Table, name: &[u8], verb: Verb) -> Result<At, StoreError> {
        let now = self.world.now();
        let client = match self.skew {
            None => now,
            Some(Skew::Ahead(by)) => now.after(by),
            Some(Skew::Behind(by)) => Timestamp(now.0.saturating_sub(Timestamp(0).after(by).0)),
        };
        let row = table.read(self.world.laws, name, self.number, verb)?;
        Ok(At { row, now, client, holders: table.holders(name), granted: table.granted })
    }

    fn write<T>(
        &self,
        table: &mut Table,
        verb: Verb,
        name: &[u8],
        step: Step<T>,
    ) -> Result<T, StoreError> {
        let World { laws, hints, .. } = &*self.world;
        if let Some(row) = &step.write {
            table.write(*laws, name, self.number, row, self.world.now())?;
            if laws.hints_after(verb, row) {
                hints.wake(name, laws.watching());
            }
        }
        Ok(step.answer)
    }
}

fn failed(applied: Applied) -> StoreError {
    StoreError::unavailable(applied, "the connection broke")
}

#[async_trait]
impl Store for Handle {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        let laws = self.world.laws;
        laws.check(Asked::Attempt(attempt))?;
        let answer = self.verb(Verb::Reserve, attempt.key(), |at| laws.reserve(at, attempt)).await;
        let in_the_way = |record: &Record| {
            let live = matches!(record.state, State::Pending { left } if !left.is_zero());
            live && record.holder != attempt.id()
        };
        if laws.waits() && answer.as_ref().is_ok_and(in_the_way) {
            std::future::pending::<()>().await;
        }
        answer
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        let laws = self.world.laws;
        laws.check(Asked::Renewal(duration))?;
        self.verb(Verb::Renew, lease.key(), |at| laws.renew(at, lease, duration)).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let laws = self.world.laws;
        laws.check(Asked::Retention(retention))?;
        let with = Completion { payload: payload.clone(), retention };
        self.verb(Verb::Complete, lease.key(), |at| laws.complete(at, lease, &with)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let laws = self.world.laws;
        self.verb(Verb::Release, lease.key(), |at| laws.release(at, lease)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let (laws, name) = (self.world.laws, self.world.laws.name(key));
        match laws.watching() {
            Watching::Hangs => std::future::pending().await,
            Watching::WithARecord => {
                self.reserve_for_nobody(&name, key)?;
            }
            _ => {}
        }
        Ok(self.world.hints.watch(name, laws.watching()))
    }
}

impl Handle {
    /// Reserves the key, if it is free, for an attempt that nobody makes.
    fn reserve_for_nobody(&self, name: &[u8], key: &Key) -> Result<(), StoreError> {
        let attempt = attempt_at(key.clone());
        let mut table = hold(&self.table);
        let at = self.seen_in(&mut table, name, Verb::Reserve)?;
        let step = at.reserve(&attempt)?;
        self.write(&mut table, Verb::Reserve, name, step).map(drop)
    }
}
