//! The atomic-store contract.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::attempt::{Attempt, Lease};
use crate::error::StoreError;
use crate::key::Key;
use crate::record::Record;
use crate::watch::Watch;

/// Who holds a key, and what it was completed with: four atomic verbs and a hint.
///
/// A store decides only *who holds the key*. What that means to a request (run, replay, wait,
/// refuse) is decided once, for every store, by [`Record::verdict`] and the
/// [`Coordinator`](crate::Coordinator).
///
/// # The laws
/// - **L1 repeatable.** Every verb may be repeated verbatim after a lost answer, with the effect
///   of once.
/// - **L2 free.** Only a free key is taken. A key is free if it has no record, or its retention
///   has passed, or it was released, or it is pending with an ended lease *and* the fingerprint
///   is the same *and* the attempt may take over.
/// - **L3 fence.** Each lease of a key has a larger fence than the one before, also across a
///   release.
/// - **L4 fenced.** `renew`, `complete` and `release` act only for the current holder, known by
///   its random attempt id; for anyone else they are [`StoreError::LeaseLost`] and write nothing.
/// - **L5 ends, not voids.** Until an ended lease is taken over, its holder may still renew or
///   complete.
/// - **L6 the first completion stands**, byte for byte, until its retention has passed.
/// - **L7 the store's clock decides.** Durations go in and come out; no timestamp crosses the
///   trait. One atomic step reads the clock, judges and writes.
/// - **L8 unreadable is not absent.** A damaged record, a newer format or a foreign type under
///   the key is [`StoreError::Corrupt`], never a free key.
/// - **L9 an error is never a grant**, and says whether it was certainly not applied, or may have
///   been.
///
/// [`model`](crate::model) states them as pure functions.
///
/// # Implementing
/// There are three ways to a store. If your backend can compare and swap, implement
/// [`Cas`](crate::Cas): two methods, and [`CasStore`](crate::CasStore) does the rest. If it can
/// run a step of your own under a mutex or in a transaction, call [`model`](crate::model) there.
/// If it has a language of its own (Lua, SQL), translate the model by hand. In every case run the
/// conformance suite (`idem-conformance`): each sentence above is a group of its properties.
///
/// A verb must take effect whole or not at all when its future is dropped, and must not need to
/// be polled again once it has. It need not bound its own time; the coordinator does.
#[async_trait]
pub trait Store: Send + Sync {
    /// Takes the key for `attempt` if it is free (L2), and answers with **whichever record is
    /// there afterwards**: the attempt's own, or the one that stands in its way.
    ///
    /// The lease starts when the store takes the key, by the store's clock (L7), and its fence is
    /// larger than any before it for this key (L3). An abandoned reservation is kept for the
    /// attempt's retention after its lease has ended.
    ///
    /// Repeated by the same attempt id (L1), it answers with the attempt's own record as it is:
    /// same fence, lease not extended, not counted again. An attempt that has released its key
    /// does not take it again, so that a request that arrives late cannot hold a key for nobody.
    ///
    /// # Errors
    /// - [`Refused`](StoreError::Refused): a duration outside its range, a missing right, no room.
    /// - [`Corrupt`](StoreError::Corrupt): there is a record and it cannot be read (L8).
    /// - [`LeaseLost`](StoreError::LeaseLost): this attempt was the last to hold the key, and has
    ///   released it.
    /// - [`Unavailable`](StoreError::Unavailable): no answer; the key may have been taken (L9).
    ///   Repeat with the same attempt to find out.
    ///
    /// # Cancellation
    /// The key is taken for the whole lease or not at all, and it is not known which.
    ///
    /// # Implementing
    /// Call [`Attempt::check`] first. Answer losing cases without a write. Leave the payload out
    /// if the fingerprint differs.
    async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError>;

    /// Moves the end of a held lease to `duration` from now, never earlier than it was, and
    /// answers with how much of it is left then.
    ///
    /// Zero ends the lease now and leaves the record abandoned: the holder gives up, and cannot
    /// say whether the action had an effect. The record's retention moves with the lease.
    ///
    /// Works for a lease that has ended and was not taken over (L5). A repeat is safe (L1).
    ///
    /// # Errors
    /// - [`LeaseLost`](StoreError::LeaseLost): not the holder, or already completed or released (L4).
    /// - [`Refused`](StoreError::Refused): neither zero nor in [`limits::LEASE`](crate::limits::LEASE).
    /// - [`Corrupt`](StoreError::Corrupt), [`Unavailable`](StoreError::Unavailable): as above.
    ///
    /// # Cancellation
    /// The lease was moved or was not, and it is not known which.
    ///
    /// # Implementing
    /// Call [`check_renewal`](crate::limits::check_renewal) first.
    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Duration, StoreError>;

    /// Turns the holder's pending record into a completed one with this payload, kept for
    /// `retention` from now.
    ///
    /// The payload is opaque, may be empty, and comes back byte for byte. The first completion
    /// stands (L6): repeated by the same attempt it is `Ok` and changes neither payload nor
    /// retention (L1). Works for a lease that has ended and was not taken over (L5).
    ///
    /// # Errors
    /// - [`LeaseLost`](StoreError::LeaseLost): not the holder (L4). Nothing was written; an
    ///   error, so that `?` rolls the caller's transaction back.
    /// - [`Refused`](StoreError::Refused): a retention outside
    ///   [`limits::RETENTION`](crate::limits::RETENTION), or no room for the payload.
    /// - [`Corrupt`](StoreError::Corrupt), [`Unavailable`](StoreError::Unavailable): as above.
    ///
    /// # Cancellation
    /// The record was completed or was not, and it is not known which. Repeat to make sure.
    ///
    /// # Implementing
    /// Call [`check_retention`](crate::limits::check_retention) first.
    async fn complete(
        &self,
        lease: &Lease,
        payload: &Bytes,
        retention: Duration,
    ) -> Result<(), StoreError>;

    /// Frees the holder's key for any request: the action certainly took no effect.
    ///
    /// The record's fence and holder are remembered (L3, L1). A repeat is `Ok` until another
    /// attempt takes the key.
    ///
    /// # Errors
    /// - [`LeaseLost`](StoreError::LeaseLost): not the holder, or already completed (L4, L6).
    /// - [`Corrupt`](StoreError::Corrupt), [`Refused`](StoreError::Refused),
    ///   [`Unavailable`](StoreError::Unavailable): as above.
    ///
    /// # Cancellation
    /// The key was freed or was not, and it is not known which.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Hints that the key's record may have changed.
    ///
    /// Optional: the default never hints. A hint may be spurious and may never come. It is an
    /// optimisation; polling is the truth.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable), [`Refused`](StoreError::Refused). A waiter goes
    /// on without hints.
    ///
    /// # Cancellation
    /// Nothing is left behind. Dropping the [`Watch`] ends the subscription.
    ///
    /// # Implementing
    /// Be subscribed when this returns: a change made after that must be hinted at.
    async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let _ = key;
        Ok(Watch::never())
    }
}

macro_rules! forward {
    ($($pointer:ident),+) => {$(
        #[deny(clippy::missing_trait_methods)]
        #[async_trait]
        impl<S: Store + ?Sized> Store for $pointer<S> {
            async fn reserve(&self, attempt: &Attempt) -> Result<Record, StoreError> {
                (**self).reserve(attempt).await
            }

            async fn renew(&self, lease: &Lease, by: Duration) -> Result<Duration, StoreError> {
                (**self).renew(lease, by).await
            }

            async fn complete(
                &self,
                lease: &Lease,
                payload: &Bytes,
                retention: Duration,
            ) -> Result<(), StoreError> {
                (**self).complete(lease, payload, retention).await
            }

            async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
                (**self).release(lease).await
            }

            async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
                (**self).watch(key).await
            }
        }
    )+};
}

forward!(Arc, Box);
