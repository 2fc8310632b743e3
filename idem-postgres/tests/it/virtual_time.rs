//! A real Postgres whose clock stands still until a test moves it.
//!
//! One server serves all tests of a process, one test after the other: there is one clock.

use std::sync::Arc;

use idem_conformance::servers::{self, Server, WallClock};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};

/// A server and its clock.
pub(crate) struct Timed {
    pub(crate) server: Server,
    pub(crate) clock: WallClock,
}

/// The server, for one test alone. Its clock has been stopped.
pub(crate) async fn server() -> OwnedMutexGuard<Timed> {
    static TIMED: OnceCell<Arc<Mutex<Timed>>> = OnceCell::const_new();
    let timed = TIMED.get_or_init(|| async { Arc::new(Mutex::new(Timed::start().await)) }).await;
    let timed = Arc::clone(timed).lock_owned().await;
    timed.clock.stop().unwrap();
    timed
}

impl Timed {
    async fn start() -> Self {
        let clock = WallClock::new().unwrap();
        let server = servers::postgres().clock(&clock).setting("max_connections", "200");
        Self { server: server.await.unwrap(), clock }
    }
}
