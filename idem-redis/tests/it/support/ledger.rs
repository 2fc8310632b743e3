//! What happened outside of the store, in the order in which it did.

use std::net::SocketAddr;

use super::wire::ask;

/// Lists on a Redis that is no idempotency store: what a provider knows, whoever dies.
#[derive(Clone, Copy)]
pub(crate) struct Ledger(pub(crate) SocketAddr);

impl Ledger {
    /// Writes an entry down, and says how many the list has now.
    pub(crate) async fn add(self, list: &str, entry: &str) -> i64 {
        ask(self.0, &[b"RPUSH", list.as_bytes(), entry.as_bytes()]).await.number()
    }

    /// The entries of a list, the oldest first.
    pub(crate) async fn read(self, list: &str) -> Vec<String> {
        let entries = ask(self.0, &[b"LRANGE", list.as_bytes(), b"0", b"-1"]).await.list();
        entries.into_iter().map(super::wire::Reply::text).collect()
    }
}
