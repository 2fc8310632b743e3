//! The store: each verb is one script on one key.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_core::{Attempt, Key, Lease, Record, Store, StoreError, Watch, limits};
use tokio::time::{Instant, timeout};

use crate::answer::Answer;
use crate::builder::Builder;
use crate::check::{self, Finding};
use crate::client::{Client, Confirm};
use crate::failure::Failure;
use crate::name::Prefix;
use crate::script::{
    COMPLETE, COMPLETE_WHEN_FULL, RELEASE, RENEW, RESERVE, RESERVE_WHEN_FULL, Script, WATCH,
};
use crate::wake::Wake;

/// After this long without an answer, a call that is given up is a sign against its connection.
const SUSPICIOUS: Duration = Duration::from_millis(150);

/// A payload of so many bytes is completed with on a full server too. A little more than a word
/// that the response was not kept needs, so that it is known at least that the key is done.
const SMALL: usize = 128;

/// A store on Redis or Valkey.
///
/// Keeps every law of [`Store`] as long as the server keeps what it has acknowledged. What each
/// kind of persistence and topology loses, and when, is in the crate's documentation; what the
/// server at hand is set up to lose, [`check`](Self::check) finds.
///
/// Each verb is one script on one key, so one atomic step by the server's clock, and one round
/// trip. No call takes longer than the [deadline](Builder::deadline); a call whose answer did not
/// come by then may have been applied, and can be repeated (law L1). Dropping a call's future does
/// not take the script back.
///
/// Cloning is cheap; clones share their connections.
#[derive(Clone, Debug)]
pub struct RedisStore {
    client: Arc<dyn Client>,
    prefix: Prefix,
    deadline: Duration,
    confirm: Option<Confirm>,
    wake: Arc<Wake>,
}

impl RedisStore {
    /// Configures a store.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(
        client: Arc<dyn Client>,
        prefix: Prefix,
        deadline: Duration,
        replicas: u32,
    ) -> Self {
        let wake = Arc::new(Wake::new(client.clone(), deadline));
        // The rest of the deadline is for the way there and back.
        let confirm = Confirm { replicas, within: deadline / 2 };
        Self { client, prefix, deadline, confirm: (replicas > 0).then_some(confirm), wake }
    }

    /// What the server is set up to lose, or to do to the records, most harmful first.
    ///
    /// Asks with `INFO`, `CONFIG GET` and `CLUSTER INFO`. What the user may not ask is a finding
    /// of its own ([`Finding::Unseen`]). In a cluster, one node is asked.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the server does not answer within five deadlines.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let checked = timeout(5 * self.deadline, check::findings(&*self.client)).await;
        Ok(checked.map_err(|_| late())??)
    }

    /// The name of a key's record in Redis, for an operator who looks for it.
    ///
    /// `{prefix}:{operation}:{digest}`: the operation's first 64 characters, those that are not
    /// plain replaced by `_`, and [`Key::digest`] in hexadecimal.
    pub fn record_name(&self, key: &Key) -> String {
        self.prefix.record(key)
    }

    async fn call(
        &self,
        script: &'static Script,
        key: &Key,
        args: &[Bytes],
    ) -> Result<Answer, StoreError> {
        self.call_or(script, None, key, args).await
    }

    /// Runs a script within the deadline; on a full server, which has then written nothing, the
    /// other one instead.
    async fn call_or(
        &self,
        script: &'static Script,
        when_full: Option<&'static Script>,
        key: &Key,
        args: &[Bytes],
    ) -> Result<Answer, StoreError> {
        let key = self.record_name(key);
        let unanswered = Unanswered { client: &*self.client, since: Instant::now() };
        let asked = async {
            match (self.eval(script, &key, args).await, when_full) {
                (Err(failure), Some(script)) if failure.is_full() => {
                    self.eval(script, &key, args).await
                }
                (answer, _) => answer,
            }
        };
        let answer = timeout(self.deadline, asked).await;
        if answer.is_ok() {
            unanswered.no_more();
        }
        Ok(Answer(answer.map_err(|_| late())??))
    }

    /// The server forgets scripts when it restarts or fails over: then it is sent once more, with
    /// its text.
    async fn eval(
        &self,
        script: &'static Script,
        key: &str,
        args: &[Bytes],
    ) -> Result<Bytes, Failure> {
        match self.client.eval(true, script, key, args, self.confirm).await {
            Err(failure) if failure.is_no_script() => {
                self.client.eval(false, script, key, args, self.confirm).await
            }
            answer => answer,
        }
    }
}

fn late() -> Failure {
    Failure::unanswered("the server did not answer within the deadline")
}

/// A call under way. Dropped after a while, by the deadline here or by the caller's own, it casts
/// suspicion on the connection: on some, no answer will ever come, and nothing says so.
struct Unanswered<'a> {
    client: &'a dyn Client,
    since: Instant,
}

impl Unanswered<'_> {
    fn no_more(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.since.elapsed() >= SUSPICIOUS {
            self.client.stalled();
        }
    }
}

fn micros(duration: Duration) -> Bytes {
    duration.as_micros().to_string().into()
}

fn bytes(slice: &[u8]) -> Bytes {
    Bytes::copy_from_slice(slice)
}

#[async_trait]
impl Store for RedisStore {
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
        attempt.check()?;
        let args = [
            bytes(attempt.id().as_bytes()),
            bytes(attempt.fingerprint().as_bytes()),
            micros(attempt.lease_for()),
            micros(attempt.retention_for()),
            Bytes::from_static(if attempt.may_take_over() { b"1" } else { b"0" }),
        ];
        let when_full = Some(&*RESERVE_WHEN_FULL);
        self.call_or(&RESERVE, when_full, attempt.key(), &args).await?.record(attempt)
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError> {
        limits::check_renewal(duration)?;
        let args = [bytes(lease.attempt().as_bytes()), micros(duration)];
        self.call(&RENEW, lease.key(), &args).await?.left()
    }

    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError> {
        limits::check_retention(retention)?;
        let args = [bytes(lease.attempt().as_bytes()), payload.clone(), micros(retention)];
        let when_full = (payload.len() <= SMALL).then_some(&*COMPLETE_WHEN_FULL);
        self.call_or(&COMPLETE, when_full, lease.key(), &args).await?.done()
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let args = [bytes(lease.attempt().as_bytes())];
        self.call(&RELEASE, lease.key(), &args).await?.done()
    }

    /// Subscribes to the key's channel, and notes in its record that somebody waits.
    ///
    /// A key that has no record at that moment has nowhere to note it: should another take it
    /// afterwards, its first change is not hinted at, and polling finds it.
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let watch = self.wake.watch(self.record_name(key)).await?;
        self.call(&WATCH, key, &[]).await?.done()?;
        Ok(watch)
    }
}
