//! Hints that a key may have changed: `LISTEN` on one connection for the whole process.
//!
//! Whoever waits holds the key's *bell*, a shared advisory number, for as long as it waits.
//! Whoever changes the key tries to take the bell alone, until the change is committed. If that
//! fails, somebody waits (or is just coming), and is told on the table's channel, once the change
//! is committed. If nobody waits, nothing is sent.
//!
//! Whoever comes to wait and cannot have the bell has come while a change is being committed: it
//! is told to look again as soon as it can.

mod line;
mod listener;

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use idem_core::{Applied, Key, StoreError, Watch};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{mpsc, oneshot};

use self::line::Line;
use self::listener::{Command, Listener};
use crate::table::Table;

/// A handle to the process's listener, which is started by the first to wait.
#[derive(Clone, Debug)]
pub(crate) struct Hints(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    line: Line,
    listener: Mutex<Option<mpsc::UnboundedSender<Command>>>,
}

impl Hints {
    /// The hints of a table. The listener connects with these options.
    pub(crate) fn new(table: Table, options: PgConnectOptions) -> Self {
        Self(Arc::new(Inner { line: Line::new(table, options), listener: Mutex::new(None) }))
    }

    pub(crate) async fn watch(&self, key: &Key) -> Result<Watch, StoreError> {
        let commands = self.listener();
        let (reply, told) = oneshot::channel();
        let gone = || StoreError::unavailable(Applied::No, "the listener has ended");
        let waiting = Command::Watch { digest: *key.digest(), listener: commands.clone(), reply };
        commands.send(waiting).map_err(|_| gone())?;
        let Some(waiter) = told.await.map_err(|_| gone())?? else { return Ok(Watch::never()) };
        Ok(Watch::new(stream::unfold(waiter, |mut waiter| async move {
            waiter.hints.changed().await.ok()?;
            Some(((), waiter))
        })))
    }

    /// The listener; a new one if the runtime of the last is gone.
    fn listener(&self) -> mpsc::UnboundedSender<Command> {
        let mut listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner);
        match &*listener {
            Some(commands) if !commands.is_closed() => commands.clone(),
            _ => {
                let (commands, received) = mpsc::unbounded_channel();
                tokio::spawn(Listener::new(self.0.line.clone(), received).run());
                listener.insert(commands).clone()
            }
        }
    }
}
