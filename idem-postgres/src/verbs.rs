//! The statements: one per verb, sent on whatever connection it is given.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use idem_core::{
    Applied, Attempt, AttemptId, Fence, Fingerprint, Key, Lease, Record, State, StoreError,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::error::of_statement;
use crate::statement::{Param, Statement, hex};
use crate::table::Table;

/// The statements, with the names of a table in them.
#[derive(Debug)]
pub(crate) struct Verbs {
    pub(crate) table: Table,
    reserve: Arc<str>,
    renew: Arc<str>,
    complete: Arc<str>,
    release: Arc<str>,
    announce: Arc<str>,
    purge: Arc<str>,
    /// Whether the server is asked to remember the statements.
    prepared: bool,
}

/// What came of a `reserve`.
#[derive(Debug)]
pub(crate) enum Reserved {
    /// This record is there.
    Record(Record),
    /// A transaction that is still open has the key.
    Busy,
    /// The attempt has released the key before.
    Lost,
}

/// What came of a verb of a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Whether somebody may be waiting for the key.
    pub(crate) awaited: bool,
}

/// What came of one step of a purge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purged {
    pub(crate) rows: u64,
    /// How many pages the table has.
    pub(crate) pages: i64,
}

/// What a statement fails with: what the driver says, or what its row says.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(sqlx::Error),
    Store(StoreError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Driver(error) => of_statement(error),
            Failure::Store(error) => error,
        }
    }
}

/// How often a verb is sent again because of what others did at the same moment: a row changed
/// between the look at it and its lock, or the server chose to roll the statement back.
pub(crate) const REPEATS: usize = 8;

/// How a row is read: `None` if the statement is to be sent again.
type Read<T> = fn(&PgRow) -> Result<Option<T>, Failure>;

/// A statement with its parameters, and how its row is read.
pub(crate) struct Verb<'q, T> {
    statement: Statement<'q>,
    read: Read<T>,
}

impl<'q, T> Verb<'q, T> {
    /// Sends it, and once more for as long as another changes the row under it.
    pub(crate) async fn send(self, on: &mut PgConnection) -> Result<T, Failure> {
        for _ in 0..=REPEATS {
            if let Some(answer) = (self.read)(&self.statement.fetch_one(on).await?)? {
                return Ok(answer);
            }
        }
        Err(StoreError::unavailable(Applied::No, "others kept changing the key's row").into())
    }

    fn bind(self, param: Param<'q>) -> Self {
        Self { statement: self.statement.bind(param), ..self }
    }
}

impl Verbs {
    pub(crate) fn new(table: Table, prepared: bool) -> Self {
        Self {
            reserve: table.render(include_str!("sql/reserve.sql")),
            renew: table.render(include_str!("sql/renew.sql")),
            complete: table.render(include_str!("sql/complete.sql")),
            release: table.render(include_str!("sql/release.sql")),
            announce: table.render(include_str!("sql/announce.sql")),
            purge: table.render(include_str!("sql/purge.sql")),
            table,
            prepared,
        }
    }

    fn verb<'q, T>(&self, sql: &Arc<str>, read: Read<T>) -> Verb<'q, T> {
        Verb { statement: Statement::new(Arc::clone(sql), self.prepared), read }
    }

    fn of_lease<'q, T>(&self, sql: &Arc<str>, lease: &'q Lease, read: Read<T>) -> Verb<'q, T> {
        self.verb(sql, read)
            .bind(Param::Bytes(lease.key().digest()))
            .bind(Param::Id(*lease.attempt().as_bytes()))
    }

    /// `door`: whether others are to find, without waiting, that the connection's transaction has
    /// the key.
    pub(crate) fn reserve<'q>(&self, attempt: &'q Attempt, door: bool) -> Verb<'q, Reserved> {
        let (key, scope) = (attempt.key(), attempt.key().scope());
        self.verb(&self.reserve, reserved)
            .bind(Param::Bytes(key.digest()))
            .bind(Param::Digest(*attempt.fingerprint().as_bytes()))
            .bind(Param::Id(*attempt.id().as_bytes()))
            .bind(Param::Integer(micros(attempt.lease_for())))
            .bind(Param::Integer(micros(attempt.retention_for())))
            .bind(Param::Bool(attempt.may_take_over()))
            .bind(Param::MaybeInteger(door.then(|| self.table.door(key))))
            .bind(Param::Text(shown(scope.operation())))
            .bind(Param::MaybeText(scope.tenant_id().map(shown)))
    }

    pub(crate) fn renew<'q>(
        &self,
        lease: &'q Lease,
        duration: Duration,
    ) -> Verb<'q, (Duration, Done)> {
        self.of_lease(&self.renew, lease, renewed)
            .bind(Param::Integer(micros(duration)))
            .bind(Param::Integer(self.table.bell(lease.key().digest())))
    }

    /// `door`: as of [`reserve`](Self::reserve).
    pub(crate) fn complete<'q>(
        &self,
        lease: &'q Lease,
        payload: &'q [u8],
        retention: Duration,
        door: bool,
    ) -> Verb<'q, Done> {
        self.of_lease(&self.complete, lease, done)
            .bind(Param::Bytes(payload))
            .bind(Param::Integer(micros(retention)))
            .bind(Param::Integer(self.table.bell(lease.key().digest())))
            .bind(Param::MaybeInteger(door.then(|| self.table.door(lease.key()))))
    }

    pub(crate) fn release<'q>(&self, lease: &'q Lease) -> Verb<'q, Done> {
        self.of_lease(&self.release, lease, done)
            .bind(Param::Integer(self.table.bell(lease.key().digest())))
    }

    /// At most `most` expired rows from these pages.
    pub(crate) fn purge<'q>(&self, pages: &Range<i64>, most: u32) -> Verb<'q, Purged> {
        self.verb(&self.purge, purged)
            .bind(Param::Integer(pages.start))
            .bind(Param::Integer(pages.end))
            .bind(Param::Integer(i64::from(most)))
    }

    /// The key's waiters are told to look again, if there are any.
    pub(crate) fn announce<'q>(&self, key: &Key) -> Verb<'q, ()> {
        self.verb(&self.announce, |_| Ok(Some(())))
            .bind(Param::Text(self.table.channel().into()))
            .bind(Param::Text(hex(key.digest()).into()))
            .bind(Param::Integer(self.table.bell(key.digest())))
    }
}

fn reserved(row: &PgRow) -> Result<Option<Reserved>, Failure> {
    let state = match row.try_get("answer")? {
        "again" => return Ok(None),
        "busy" => return Ok(Some(Reserved::Busy)),
        "lost" => return Ok(Some(Reserved::Lost)),
        "pending" => State::Pending { left: left(row)? },
        "completed" => {
            let payload: Option<Vec<u8>> = row.try_get("payload")?;
            State::Completed { payload: payload.map(Into::into) }
        }
        _ => return Err(unreadable()),
    };
    let (fence, attempts): (i64, i32) = (row.try_get("fence")?, row.try_get("attempts")?);
    Ok(Some(Reserved::Record(Record {
        fingerprint: Fingerprint::from_bytes(array(row, "fingerprint")?),
        holder: AttemptId::from_bytes(array(row, "holder")?),
        fence: Fence(fence.try_into().map_err(StoreError::corrupt)?),
        attempts: attempts.try_into().map_err(StoreError::corrupt)?,
        state,
    })))
}

fn renewed(row: &PgRow) -> Result<Option<(Duration, Done)>, Failure> {
    done(row)?.map(|done| Ok((left(row)?, done))).transpose()
}

fn done(row: &PgRow) -> Result<Option<Done>, Failure> {
    match row.try_get("answer")? {
        "done" => Ok(Some(Done { awaited: row.try_get("awaited")? })),
        "again" => Ok(None),
        "lost" => Err(StoreError::LeaseLost.into()),
        _ => Err(unreadable()),
    }
}

fn purged(row: &PgRow) -> Result<Option<Purged>, Failure> {
    let rows: i64 = row.try_get("deleted")?;
    Ok(Some(Purged { rows: rows.unsigned_abs(), pages: row.try_get("pages")? }))
}

fn unreadable() -> Failure {
    StoreError::corrupt("the row is damaged, or of another format").into()
}

fn array<const N: usize>(row: &PgRow, column: &str) -> Result<[u8; N], Failure> {
    let bytes: Vec<u8> = row.try_get(column)?;
    bytes.try_into().map_err(|_| unreadable())
}

fn left(row: &PgRow) -> Result<Duration, Failure> {
    let micros: i64 = row.try_get("left_us")?;
    Ok(Duration::from_micros(micros.try_into().map_err(StoreError::corrupt)?))
}

/// What does not fit was refused long before.
fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A name as an operator sees it: a text of Postgres has no NUL.
fn shown(name: &str) -> Cow<'_, str> {
    if name.contains('\0') { name.replace('\0', "\u{2400}").into() } else { name.into() }
}
