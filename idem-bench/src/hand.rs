//! What one would write by hand instead of a store.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use idem_core::{Attempt, AttemptId, Fingerprint, Key, Lease};

/// A hand-written reservation: a hash map in a mutex.
///
/// It knows who holds a key, for which request and until when. It has no fence, no takeover, no
/// bound and nobody to wake, and it never forgets.
#[derive(Debug, Default)]
pub struct MapByHand(Mutex<HashMap<[u8; 32], Entry>>);

#[derive(Debug)]
struct Entry {
    holder: AttemptId,
    fingerprint: Fingerprint,
    until: Instant,
    answer: Option<Bytes>,
}

/// What a key was found to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum Found {
    /// Free, and it is this attempt's now.
    Reserved,
    /// Another's.
    InProgress,
    /// Done, with this answer.
    Answer(Bytes),
    /// Another request's.
    Mismatch,
}

impl MapByHand {
    /// Takes the key if it is free.
    pub fn reserve(&self, attempt: &Attempt) -> Found {
        let mut map = lock(&self.0);
        let now = Instant::now();
        match map.get(attempt.key().digest()).filter(|entry| entry.until > now) {
            Some(entry) if entry.fingerprint != attempt.fingerprint() => Found::Mismatch,
            Some(Entry { answer: Some(answer), .. }) => Found::Answer(answer.clone()),
            Some(_) => Found::InProgress,
            None => {
                let entry = Entry {
                    holder: attempt.id(),
                    fingerprint: attempt.fingerprint(),
                    until: now + attempt.lease_for(),
                    answer: None,
                };
                map.insert(*attempt.key().digest(), entry);
                Found::Reserved
            }
        }
    }

    /// Keeps the answer, and says whether the key was this lease's.
    pub fn complete(&self, lease: &Lease, answer: &Bytes, retention: Duration) -> bool {
        let mut map = lock(&self.0);
        match map.get_mut(lease.key().digest()) {
            Some(entry) if entry.holder == lease.attempt() => {
                entry.until = Instant::now() + retention;
                entry.answer = Some(answer.clone());
                true
            }
            _ => false,
        }
    }
}

/// A hand-written result cache: look the key up, else run and save. It charges twice.
#[derive(Debug, Default)]
pub struct CacheByHand(Mutex<HashMap<[u8; 32], (Instant, Bytes)>>);

impl CacheByHand {
    /// The answer, if there is one.
    pub fn get(&self, key: &Key) -> Option<Bytes> {
        let map = lock(&self.0);
        map.get(key.digest())
            .filter(|(until, _)| *until > Instant::now())
            .map(|(_, answer)| answer.clone())
    }

    /// Keeps the answer.
    pub fn put(&self, key: &Key, answer: &Bytes, retention: Duration) {
        lock(&self.0).insert(*key.digest(), (Instant::now() + retention, answer.clone()));
    }
}

fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
