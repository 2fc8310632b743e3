//! The listener's connection.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions};

use crate::table::Table;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// Where to listen.
#[derive(Clone, Debug)]
pub(super) struct Line {
    table: Table,
    options: PgConnectOptions,
}

/// A connection that listens.
pub(super) struct OpenLine {
    table: Table,
    listener: PgListener,
}

impl Line {
    pub(super) fn new(table: Table, options: PgConnectOptions) -> Self {
        Self { table, options }
    }

    /// Connects, and is subscribed when it returns.
    pub(super) async fn open(&self) -> sqlx::Result<OpenLine> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(CONNECT)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(self.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.ignore_pool_close_event(true);
        // A lost connection is noticed here, and another line is opened.
        listener.eager_reconnect(false);
        listener.listen(&self.table.channel()).await?;
        Ok(OpenLine { table: self.table.clone(), listener })
    }
}

impl OpenLine {
    /// Waits for the next news; `None` once the connection is lost.
    ///
    /// # Cancellation
    /// Safe: a message is taken from the buffer when all of it is there.
    pub(super) async fn news(&mut self) -> Option<PgNotification> {
        self.listener.try_recv().await.ok().flatten()
    }

    /// Holds the key's bell, with others; `false` while a change of the key is being committed.
    pub(super) async fn hold_bell(&mut self, digest: &[u8; 32]) -> sqlx::Result<bool> {
        self.about_bell("SELECT pg_try_advisory_lock_shared($1)", digest).await
    }

    pub(super) async fn let_go(&mut self, digest: &[u8; 32]) -> sqlx::Result<bool> {
        self.about_bell("SELECT pg_advisory_unlock_shared($1)", digest).await
    }

    async fn about_bell(&mut self, sql: &'static str, digest: &[u8; 32]) -> sqlx::Result<bool> {
        let query = sqlx::query(sql).bind(self.table.bell(digest));
        sqlx::Executor::fetch_one(&mut self.listener, query).await?.try_get(0)
    }

    /// Fails if the other side is gone and nobody has said so.
    pub(super) async fn check(&mut self) -> sqlx::Result<()> {
        sqlx::Executor::execute(&mut self.listener, "SELECT 1").await?;
        Ok(())
    }
}
