//! The schema: made, checked, or left to its owner.

use std::time::Duration;

use idem_core::{Applied, Refusal, StoreError};
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use tokio::time::sleep;

use crate::error::{of_statement, sqlstate};
use crate::statement::{Param, Statement};
use crate::table::Table;

/// The version that this code makes.
const VERSION: i32 = 1;

/// The oldest server whose SQL this code speaks: Postgres 14.
const SERVER: i32 = 140_000;

/// How often an instance looks again that was not the first to make the tables.
const TRIES: u32 = 20;

/// What a store does about its tables before it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// Makes them if they are not there, then checks them. Any number of instances may start at
    /// once. The default.
    #[default]
    Migrate,
    /// Checks that they are there and are what this version works with, and refuses to start
    /// otherwise. For users without the right to create tables; [`schema_sql`] has the statements.
    Validate,
    /// Neither.
    None,
}

/// The statements that make the tables, for a migration tool of your own.
///
/// # Errors
/// [`NameError`](crate::NameError) for a name that is not plain.
pub fn schema_sql(schema: &str, table: &str) -> Result<String, crate::NameError> {
    Ok(Table::new(schema, table)?.name_tables(include_str!("sql/schema.sql")))
}

pub(crate) async fn prepare(
    on: &mut PgConnection,
    table: &Table,
    how: Schema,
) -> Result<(), StoreError> {
    match how {
        Schema::None => Ok(()),
        Schema::Validate => validate(on, table).await,
        Schema::Migrate => {
            migrate(on, table).await?;
            validate(on, table).await
        }
    }
}

/// Whoever finds the tables missing makes them; whoever finds that another was faster looks again.
async fn migrate(on: &mut PgConnection, table: &Table) -> Result<(), StoreError> {
    for tries in 1..=TRIES {
        if version(on, table).await.map_err(of_statement)?.is_some() {
            return Ok(());
        }
        match make(on, table).await {
            Ok(()) => return Ok(()),
            Err(error) if was_made_meanwhile(&error) => {}
            Err(error) => return Err(of_statement(error)),
        }
        sleep(Duration::from_millis(10) * tries).await;
    }
    Err(StoreError::unavailable(Applied::No, "other instances keep changing the schema"))
}

async fn make(on: &mut PgConnection, table: &Table) -> sqlx::Result<()> {
    let there = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    let there = about(there, table.schema()).fetch_one(&mut *on).await?;
    if !there.try_get::<bool, _>(0)? {
        let schema = format!("CREATE SCHEMA \"{}\"", table.schema());
        sqlx::raw_sql(AssertSqlSafe(schema)).execute(&mut *on).await?;
    }
    // Several statements in one message are one transaction.
    let all = table.render(include_str!("sql/schema.sql"));
    sqlx::raw_sql(AssertSqlSafe(all)).execute(on).await?;
    Ok(())
}

/// The ways in which it shows that two instances make the same thing at once: it exists, or is
/// about to, or its catalogue row was just written.
fn was_made_meanwhile(error: &sqlx::Error) -> bool {
    let codes = ["42P06", "42P07", "42710", "23505", "40001", "40P01", "XX000"];
    sqlstate(error).is_some_and(|code| codes.contains(&&*code))
}

/// The latest version that was made, and the oldest whose code works with it.
async fn version(on: &mut PgConnection, table: &Table) -> sqlx::Result<Option<(i32, i32)>> {
    let there = about("SELECT to_regclass($1) IS NOT NULL", &table.render("{versions}"));
    if !there.fetch_one(&mut *on).await?.try_get::<bool, _>(0)? {
        return Ok(None);
    }
    let sql = table.render("SELECT max(version), max(works_from) FROM {versions}");
    let row = Statement::new(sql, false).fetch_one(on).await?;
    let (version, works_from): (Option<i32>, Option<i32>) = (row.try_get(0)?, row.try_get(1)?);
    Ok(version.zip(works_from))
}

async fn validate(on: &mut PgConnection, table: &Table) -> Result<(), StoreError> {
    let refuse = |why: String| Err(StoreError::refused(Refusal::Configuration, why));
    let (server, encoding) = server(on).await.map_err(of_statement)?;
    if server < SERVER {
        return refuse(format!("the server is older than Postgres 14: {server}"));
    }
    if encoding != "UTF8" {
        return refuse(format!("the database's encoding is {encoding}, and must be UTF8"));
    }
    match version(on, table).await.map_err(of_statement)? {
        None => return refuse(format!("the table {table} was not made")),
        Some((version, works_from)) if version < VERSION || works_from > VERSION => {
            return refuse(format!(
                "the table {table} is of version {version} (works from {works_from}); \
                 this code is of version {VERSION}"
            ));
        }
        Some(_) => {}
    }
    let missing = missing(on, table).await.map_err(of_statement)?;
    if missing.is_empty() {
        return Ok(());
    }
    refuse(format!("the table {table} lacks {}", missing.join(", ")))
}

async fn server(on: &mut PgConnection) -> sqlx::Result<(i32, String)> {
    let sql = "SELECT current_setting('server_version_num')::integer, \
               current_setting('server_encoding')";
    let row = Statement::new(sql.into(), false).fetch_one(on).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// What the statements need and the table has not.
async fn missing(on: &mut PgConnection, table: &Table) -> sqlx::Result<Vec<String>> {
    let missing = about(&table.render(include_str!("sql/missing.sql")), &table.render("{table}"));
    missing.fetch_one(on).await?.try_get(0)
}

/// A question about a name. In one piece: there may be a pooler in between.
fn about(sql: &str, name: &str) -> Statement<'static> {
    Statement::new(sql.into(), false).bind(Param::Text(name.to_owned().into()))
}
