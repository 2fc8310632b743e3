//! What an action is told about its attempt.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Fence, Lease};
use crate::fingerprint::Fingerprint;
use crate::hex::Hex;
use crate::key::Key;

/// What is known here of a lease: until when, and whether it is lost.
#[derive(Debug)]
pub(super) struct Holding {
    until: Mutex<Instant>,
    lost: CancellationToken,
}

impl Holding {
    pub(super) fn until(until: Instant) -> Arc<Self> {
        Arc::new(Self { until: Mutex::new(until), lost: CancellationToken::new() })
    }

    pub(super) fn ends(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn renewed(&self, until: Instant) {
        let mut ends = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *ends = until.max(*ends);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Whether it was this call that lost it.
    pub(super) fn lose(&self) -> bool {
        // Under the mutex, so that of two who find out at once only one was the first.
        let _ends = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !self.lost.is_cancelled();
        self.lost.cancel();
        first
    }
}

/// What an action is told about the attempt it runs for. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct RunningAttempt {
    pub(super) key: Key,
    pub(super) fingerprint: Fingerprint,
    pub(super) number: u32,
    /// `None` where the action runs without the store's consent.
    pub(super) lease: Option<(Lease, Arc<Holding>)>,
}

impl RunningAttempt {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The fence of the lease: larger than that of any attempt before. `None` if the action runs
    /// unprotected.
    pub fn fence(&self) -> Option<Fence> {
        self.lease().map(Lease::fence)
    }

    /// The lease that the action runs under, to complete it in a transaction of the action's own:
    /// what the action writes there and its outcome are then committed together. `None` if the
    /// action runs unprotected.
    ///
    /// Complete it with the [envelope of the value](crate::envelope::Envelope::of_value) that the
    /// action is about to return, made by the codec of the call ([`Json`](crate::Json) unless told
    /// otherwise). What is committed is what is replayed (law L6): the coordinator's own completion
    /// repeats it, and changes nothing. If the lease was lost, completing it says so, and that
    /// error rolls the transaction back.
    ///
    /// A completed lease is not renewed any more. An action that goes on after that is not told
    /// that it is [lost](Self::lost): nobody else runs.
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|(lease, _)| lease)
    }

    /// Which attempt this is: 1, and one more for each that was abandoned before.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether an earlier attempt was abandoned, and may have had its effect.
    pub fn is_takeover(&self) -> bool {
        self.number > 1
    }

    /// Whether a reservation protects the action. `false` if the store failed and the operation
    /// runs without it.
    pub fn is_protected(&self) -> bool {
        self.lease.is_some()
    }

    /// How much of the lease is left, by this process's monotonic clock; zero if it has ended or
    /// there is none. Never more than the store grants: it counts from before the store was asked.
    pub fn lease_left(&self) -> Duration {
        self.lease.as_ref().map_or(Duration::ZERO, |(_, holding)| {
            holding.ends().saturating_duration_since(Instant::now())
        })
    }

    /// Whether the lease was lost: another attempt may be running.
    ///
    /// True once the store has said so, or the lease has ended by this process's monotonic clock
    /// without a renewal that succeeded. It stays true.
    pub fn is_lost(&self) -> bool {
        self.lease.as_ref().is_some_and(|(_, holding)| holding.is_lost())
    }

    /// Completes once the lease is [lost](Self::is_lost); never, if there is none.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn lost(&self) {
        match &self.lease {
            Some((_, holding)) => holding.lost.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// An idempotency key to hand on, so that the provider can tell a repeated effect.
    ///
    /// 32 hexadecimal digits, the same for every attempt at the same request under the same key
    /// in the same scope, in every process and build; another for any other request.
    pub fn downstream_key(&self) -> String {
        self.downstream_key_for("")
    }

    /// A key to hand on for one of several steps of the action; see
    /// [`downstream_key`](Self::downstream_key).
    pub fn downstream_key_for(&self, step: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(b"idem downstream key v1\0");
        hash.update(self.key.digest());
        hash.update(self.fingerprint.as_bytes());
        hash.update(step);
        let digest: [u8; 32] = hash.finalize().into();
        let (half, _) = digest.split_at(16);
        Hex(half).to_string()
    }
}
