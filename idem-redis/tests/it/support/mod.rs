//! Servers, and stores on them.

pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod rig;
pub(crate) mod wire;

use std::sync::atomic::{AtomicU64, Ordering};

use idem_core::{Attempt, Fingerprint, Key, Scope};

/// A key that no other test uses.
pub(crate) fn fresh_key() -> Key {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let text = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Key::new(Scope::new("payment.charge").unwrap(), &text).unwrap()
}

/// An attempt at `key` with the request number `request`.
pub(crate) fn attempt(key: &Key, request: u8) -> Attempt {
    Attempt::new(key.clone(), Fingerprint::from_bytes([request; 32]))
}
