//! One try at a key, and the lease it may be given.

use std::fmt;
use std::time::Duration;

use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::limits;

/// Names one attempt: 16 random bytes, never used again.
///
/// It lets an attempt that lost the answer to its `reserve` ask again and be told that it holds
/// the key, and it is what `renew`, `complete` and `release` are checked against (law L4).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptId([u8; 16]);

impl AttemptId {
    /// A new id, from the operating system's random source.
    ///
    /// # Panics
    /// If the operating system has no randomness to give, as `HashMap::new` does.
    #[expect(clippy::panic, reason = "without randomness no two attempts could be told apart")]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        match getrandom::fill(&mut bytes) {
            Ok(()) => Self(bytes),
            Err(why) => panic!("the operating system's random source failed: {why}"),
        }
    }

    /// The id that a store wrote down as these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes for a store to write down.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttemptId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// A fencing token: every lease of a key has a larger one than the lease before (law L3).
///
/// Minted by the store as the larger of its clock, in microseconds since the Unix epoch, and the
/// previous fence plus one. Pass it to a resource outside that can refuse a smaller number than
/// the largest it has seen (Kleppmann, *How to do distributed locking*, 2016). It stops a stale
/// write that arrives after a newer one; it does not stop a second charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One try at running the operation behind a key: what [`Store::reserve`] is asked with.
///
/// Not `Clone`: an id belongs to one attempt. To repeat a call, pass the same attempt again; to
/// try once more, make another.
///
/// [`Store::reserve`]: crate::Store::reserve
#[derive(Debug)]
pub struct Attempt {
    key: Key,
    id: AttemptId,
    fingerprint: Fingerprint,
    lease: Duration,
    retention: Duration,
    takeover: bool,
}

impl Attempt {
    /// The lease an attempt asks for unless told otherwise: 30 seconds.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);
    /// The retention an attempt asks for unless told otherwise: 24 hours.
    pub const DEFAULT_RETENTION: Duration = Duration::from_hours(24);

    /// A new attempt with a fresh id, the default lease and retention, and the right to take over.
    pub fn new(key: Key, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            id: AttemptId::random(),
            fingerprint,
            lease: Self::DEFAULT_LEASE,
            retention: Self::DEFAULT_RETENTION,
            takeover: true,
        }
    }

    /// Asks for a lease of this length. Checked by the store, not here.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Asks for the record to be kept this long after its lease, should it never be completed.
    /// Checked by the store, not here.
    pub fn retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// Says whether the attempt may take over a reservation whose lease has ended (law L2).
    pub fn takeover(self, takeover: bool) -> Self {
        Self { takeover, ..self }
    }

    /// The same attempt, asking for what it holds and taking nothing over.
    pub(crate) fn without_takeover(&self) -> Self {
        let Self { ref key, id, fingerprint, lease, retention, .. } = *self;
        Self { key: key.clone(), id, fingerprint, lease, retention, takeover: false }
    }

    /// The key that the attempt is for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The attempt's own id.
    pub fn id(&self) -> AttemptId {
        self.id
    }

    /// What the request is.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// How long the reservation is to be held, from the moment the store takes it.
    pub fn lease_for(&self) -> Duration {
        self.lease
    }

    /// How long the record is kept once its lease has ended and nobody completed it.
    pub fn retention_for(&self) -> Duration {
        self.retention
    }

    /// Whether the attempt may take over a reservation whose lease has ended.
    pub fn may_take_over(&self) -> bool {
        self.takeover
    }

    /// Refuses a lease or a retention outside its range. A store calls this before any work.
    ///
    /// # Errors
    /// [`StoreError::Refused`] with [`Refusal::Invalid`](crate::Refusal::Invalid).
    pub fn check(&self) -> Result<(), StoreError> {
        limits::check_lease(self.lease)?;
        limits::check_retention(self.retention)
    }
}

/// The right to finish one attempt, until another takes over.
///
/// Held by whoever was granted the key. Dropping it does nothing: the reservation stays until
/// its lease ends, because only the holder can know whether the action had an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a lease that is neither completed nor released holds the key until it ends"]
pub struct Lease {
    key: Key,
    attempt: AttemptId,
    fence: Fence,
}

impl Lease {
    /// The lease that a store granted to `attempt`.
    pub fn new(key: Key, attempt: AttemptId, fence: Fence) -> Self {
        Self { key, attempt, fence }
    }

    /// The key it holds.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The attempt that holds it; what a store checks (law L4).
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Its fence, for resources outside. A store does not check it: after a failover the same
    /// number can be issued again, the random id cannot.
    pub fn fence(&self) -> Fence {
        self.fence
    }
}
