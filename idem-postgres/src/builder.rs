//! What a store is made of.

use std::str::FromStr as _;
use std::sync::Arc;

use idem_core::{Refusal, StoreError};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

use crate::error::of_connecting;
use crate::hints::Hints;
use crate::pool::{self, Trouble};
use crate::schema::{self, Schema};
use crate::store::PostgresStore;
use crate::table::{NameError, Table};
use crate::verbs::Verbs;

/// Configures a [`PostgresStore`].
#[derive(Clone, Debug)]
pub struct Builder {
    schema_name: String,
    table: String,
    schema: Schema,
    connections: u32,
    prepared: bool,
    hints: bool,
    listen_at: Option<PgConnectOptions>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            schema_name: "public".to_owned(),
            table: "idem_record".to_owned(),
            schema: Schema::default(),
            connections: 8,
            prepared: true,
            hints: true,
            listen_at: None,
        }
    }
}

impl Builder {
    /// The schema that the table is in. Default: `public`.
    ///
    /// ASCII letters, digits and underscores; anything else is refused at the start.
    pub fn in_schema(mut self, name: impl Into<String>) -> Self {
        self.schema_name = name.into();
        self
    }

    /// The name of the table. Default: `idem_record`; the version of its schema is kept in
    /// `idem_record_schema`.
    ///
    /// ASCII letters, digits and underscores; anything else is refused at the start.
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.table = name.into();
        self
    }

    /// What is done about the tables before the store starts. Default: [`Schema::Migrate`].
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// How many connections the store's own pool may have. Default: 8.
    ///
    /// A verb holds one for one round trip, and waiting holds none, so few are enough: 8 are
    /// thousands of verbs a second. Hints have one more. Without effect on a pool that is given.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Whether statements are prepared once for each connection. Default: `true`.
    ///
    /// `false` behind a pooler that hands out connections by transaction and does not know prepared
    /// statements, such as pgbouncer before 1.21. Each verb is one message of the simple protocol
    /// then, with its parameters in it, and is parsed each time. sqlx's own `persistent(false)` is
    /// no substitute: it sends two messages, and the pooler may give them to two connections.
    ///
    /// sqlx logs statements unless told otherwise, and these have payloads in them: connect a pool
    /// of your own with `disable_statement_logging()`. The store's own does.
    pub fn prepared(mut self, prepared: bool) -> Self {
        self.prepared = prepared;
        self
    }

    /// Whether waiting is cut short by `LISTEN` and `NOTIFY`. Default: `true`.
    ///
    /// The first wait opens one connection for the whole process. `false` behind a pooler that
    /// hands out connections by transaction: `LISTEN` seems to succeed there, and nothing ever
    /// comes. Waiting then polls, which is all that correctness needs. Or listen past the pooler,
    /// see [`listen_at`](Self::listen_at).
    pub fn hints(mut self, hints: bool) -> Self {
        self.hints = hints;
        self
    }

    /// Where to listen for hints, if not where the pool connects: the server itself, for a pool
    /// that goes through a pooler.
    pub fn listen_at(mut self, options: PgConnectOptions) -> Self {
        self.listen_at = Some(options);
        self
    }

    /// The store, with a small pool of its own.
    ///
    /// # Errors
    /// - [`Refused`](StoreError::Refused) with [`Refusal::Configuration`]: a name or a URL that is
    ///   none, a server before Postgres 14, a database that is not UTF-8, a table that is not
    ///   what this version works with. With [`Refusal::Permission`]: a right is missing.
    /// - [`Unavailable`](StoreError::Unavailable): the server cannot be reached. Not with
    ///   [`Schema::None`], which sends nothing.
    ///
    /// # Cancellation
    /// The tables were made or were not. Call it again.
    pub async fn connect(self, url: &str) -> Result<PostgresStore, StoreError> {
        let options = PgConnectOptions::from_str(url).map_err(of_connecting)?;
        self.connect_with(options).await
    }

    /// The same, of options that are no URL.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancellation
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        self,
        options: PgConnectOptions,
    ) -> Result<PostgresStore, StoreError> {
        let trouble = Trouble::none();
        let pool = pool::own(options, self.connections, &trouble);
        self.build(pool, trouble).await
    }

    /// The store, on a pool of the application's.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancellation
    /// As [`connect`](Self::connect).
    pub async fn on_pool(self, pool: PgPool) -> Result<PostgresStore, StoreError> {
        self.build(pool, Trouble::none()).await
    }

    async fn build(self, pool: PgPool, trouble: Trouble) -> Result<PostgresStore, StoreError> {
        let table = Table::new(&self.schema_name, &self.table).map_err(refused)?;
        if self.schema != Schema::None {
            let mut on = pool.acquire().await.map_err(of_connecting)?;
            schema::prepare(&mut on, &table, self.schema).await?;
        }
        let listen_at = self.listen_at.unwrap_or_else(|| (*pool.connect_options()).clone());
        let hints = self.hints.then(|| Hints::new(table.clone(), listen_at));
        let verbs = Arc::new(Verbs::new(table, self.prepared));
        Ok(PostgresStore { pool, verbs, trouble, hints })
    }
}

fn refused(error: NameError) -> StoreError {
    StoreError::refused(Refusal::Configuration, error)
}
