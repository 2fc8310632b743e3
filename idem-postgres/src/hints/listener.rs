//! The task that listens for all who wait in this process.

use std::collections::HashMap;
use std::time::Duration;

use idem_core::{Applied, StoreError};
use sqlx::postgres::PgNotification;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::line::{Line, OpenLine};
use crate::jitter::jittered;
use crate::statement::unhex;

/// How many keys a process holds the bells of. Each takes a place in the server's table of locks,
/// which has `max_locks_per_transaction` × `max_connections`; who waits for more keys polls.
const MOST: usize = 1_000;

/// The first and the longest pause before a connection is tried again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How often a bell is tried again that a change held.
const BELL: Duration = Duration::from_millis(20);

/// How long the connection may be silent before it is checked, and how long that may take.
const SILENCE: Duration = Duration::from_secs(30);
const CHECK: Duration = Duration::from_secs(5);

/// What a listener is asked.
#[derive(Debug)]
pub(super) enum Command {
    /// Answers once the subscription is there; with nothing if there is no room for it.
    Watch {
        digest: [u8; 32],
        listener: mpsc::UnboundedSender<Command>,
        reply: oneshot::Sender<Result<Option<Waiter>, StoreError>>,
    },
    /// One who waited for the key is gone.
    Leave { digest: [u8; 32] },
}

/// One who waits for a key. Dropping it ends the subscription, also on the way to who asked.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) hints: watch::Receiver<()>,
    /// After the hints: by the time it says so, they are gone.
    _leave: Leave,
}

#[derive(Debug)]
struct Leave {
    digest: [u8; 32],
    listener: mpsc::UnboundedSender<Command>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let _ = self.listener.send(Command::Leave { digest: self.digest });
    }
}

/// Everybody who waits in this process, by key.
pub(super) struct Listener {
    line: Line,
    commands: mpsc::UnboundedReceiver<Command>,
    watched: HashMap<[u8; 32], Watched>,
}

struct Watched {
    hints: watch::Sender<()>,
    /// Whether the bell is held. If not, it is tried again.
    bell: bool,
}

/// Nobody can ask any more: the store and all who waited are gone.
struct Over;

/// What happens next.
enum Next {
    Command(Option<Command>),
    News(Option<PgNotification>),
    TryBells,
    Check,
}

impl Listener {
    pub(super) fn new(line: Line, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        Self { line, commands, watched: HashMap::new() }
    }

    pub(super) async fn run(mut self) {
        let (mut pause, longest) = PAUSE;
        loop {
            match self.line.open().await {
                Ok(line) => {
                    pause = PAUSE.0;
                    if self.serve(line).await.is_ok() {
                        return;
                    }
                    tracing::debug!("the connection that listens was lost");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot listen; whoever waits polls");
                    if let Err(Over) = self.refuse_for(jittered(pause), &error).await {
                        return;
                    }
                    pause = (2 * pause).min(longest);
                }
            }
        }
    }

    /// Serves until the connection fails, which is an error, or nobody can ask any more.
    async fn serve(&mut self, mut line: OpenLine) -> sqlx::Result<()> {
        // Whatever happened while nobody listened was missed.
        for watched in self.watched.values_mut() {
            watched.bell = false;
            watched.hints.send_replace(());
        }
        self.try_bells(&mut line).await?;
        loop {
            match self.next(&mut line).await {
                Next::Command(None) => return Ok(()),
                Next::Command(Some(Command::Watch { digest, listener, reply })) => {
                    let hints = self.watch(&mut line, digest).await?;
                    let waiter =
                        hints.map(|hints| Waiter { hints, _leave: Leave { digest, listener } });
                    let _ = reply.send(Ok(waiter));
                }
                Next::Command(Some(Command::Leave { digest })) => {
                    self.leave(&mut line, digest).await?;
                }
                Next::News(Some(news)) => self.pass_on(news.payload()),
                Next::News(None) => return Err(sqlx::Error::WorkerCrashed),
                Next::TryBells => self.try_bells(&mut line).await?,
                Next::Check => {
                    let checked = timeout(CHECK, line.check()).await;
                    checked.map_err(|_| sqlx::Error::WorkerCrashed)??;
                }
            }
        }
    }

    async fn next(&mut self, line: &mut OpenLine) -> Next {
        let bells_missing = self.watched.values().any(|watched| !watched.bell);
        tokio::select! {
            command = self.commands.recv() => Next::Command(command),
            news = line.news() => Next::News(news),
            () = sleep(BELL), if bells_missing => Next::TryBells,
            () = sleep(SILENCE) => Next::Check,
        }
    }

    async fn watch(
        &mut self,
        line: &mut OpenLine,
        digest: [u8; 32],
    ) -> sqlx::Result<Option<watch::Receiver<()>>> {
        if let Some(watched) = self.watched.get(&digest) {
            let mut hints = watched.hints.subscribe();
            if !watched.bell {
                hints.mark_changed();
            }
            return Ok(Some(hints));
        }
        if self.watched.len() >= MOST {
            return Ok(None);
        }
        let bell = line.hold_bell(&digest).await?;
        let (sender, mut hints) = watch::channel(());
        self.watched.insert(digest, Watched { hints: sender, bell });
        if !bell {
            // A change is being committed, and may be over before anybody looks.
            hints.mark_changed();
        }
        Ok(Some(hints))
    }

    async fn leave(&mut self, line: &mut OpenLine, digest: [u8; 32]) -> sqlx::Result<()> {
        let is_last =
            |watched: &mut Watched| (watched.hints.receiver_count() == 0).then_some(watched.bell);
        if let Some(bell) = self.watched.get_mut(&digest).and_then(is_last) {
            self.watched.remove(&digest);
            if bell {
                line.let_go(&digest).await?;
            }
        }
        Ok(())
    }

    /// Once a bell can be had, the change that held it is committed: there is something to see.
    async fn try_bells(&mut self, line: &mut OpenLine) -> sqlx::Result<()> {
        for (digest, watched) in self.watched.iter_mut().filter(|(_, watched)| !watched.bell) {
            watched.bell = line.hold_bell(digest).await?;
            if watched.bell {
                watched.hints.send_replace(());
            }
        }
        Ok(())
    }

    fn pass_on(&self, payload: &str) {
        if let Some(watched) = unhex(payload).and_then(|digest| self.watched.get(&digest)) {
            watched.hints.send_replace(());
        }
    }

    /// There is no connection: who asks now is told so, and polls.
    async fn refuse_for(&mut self, pause: Duration, why: &sqlx::Error) -> Result<(), Over> {
        let until = Instant::now() + pause;
        loop {
            let command = tokio::select! {
                command = self.commands.recv() => command.ok_or(Over)?,
                () = sleep_until(until) => return Ok(()),
            };
            match command {
                Command::Watch { reply, .. } => {
                    let _ = reply.send(Err(StoreError::unavailable(Applied::No, why.to_string())));
                }
                Command::Leave { digest } => {
                    self.watched.retain(|at, one| *at != digest || one.hints.receiver_count() > 0);
                }
            }
        }
    }
}
