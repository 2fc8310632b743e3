//! Making the tables, and checking them.

use idem_core::{Refusal, Store};
use idem_postgres::{PostgresStore, Schema, schema_sql};

use crate::database::{Database, HOUR, acquire, attempt};

fn validating() -> idem_postgres::Builder {
    PostgresStore::builder().schema(Schema::Validate)
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_instances_start_at_once() {
    let database = Database::fresh().await;
    for schema in ["public", "billing"] {
        let instances = (0..10).map(|_| {
            let (builder, url) = (PostgresStore::builder().in_schema(schema), database.url.clone());
            tokio::spawn(async move { builder.connect(&url).await })
        });
        for instance in futures_util::future::join_all(instances).await {
            instance.unwrap().unwrap();
        }
        let versions = format!("SELECT count(*) FROM {schema}.idem_record_schema");
        assert_eq!(database.number(&versions).await, 1);
    }
}

#[tokio::test]
async fn a_migration_tool_of_the_teams_own_does_as_well() {
    let database = Database::fresh().await;
    let missing = validating().connect(&database.url).await.unwrap_err();
    assert_eq!(missing.refusal(), Some(Refusal::Configuration));
    database.run("CREATE SCHEMA \"Ours\"").await;
    database.run(&schema_sql("Ours", "select").unwrap()).await;
    let store =
        validating().in_schema("Ours").table("select").connect(&database.url).await.unwrap();
    let lease = acquire(&store, &attempt("k")).await;
    store.complete(&lease, &"done".into(), HOUR).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM \"Ours\".\"select\"").await, 1);
}

#[tokio::test]
async fn two_tables_do_not_meet() {
    let database = Database::fresh().await;
    let ours = database.store().await;
    let theirs = database.store_with(PostgresStore::builder().table("theirs")).await;
    let _ours = acquire(&ours, &attempt("k")).await;
    let _theirs = acquire(&theirs, &attempt("k")).await;
}

#[tokio::test]
async fn a_table_that_is_not_what_is_needed_is_refused() {
    let changes = [
        "ALTER TABLE idem_record DROP COLUMN payload_bytes",
        "ALTER TABLE idem_record ALTER COLUMN attempts TYPE bigint",
        "ALTER TABLE idem_record DROP CONSTRAINT idem_record_pkey",
        "INSERT INTO idem_record_schema VALUES (2, 2)",
        "DELETE FROM idem_record_schema",
    ];
    for change in changes {
        let database = Database::fresh().await;
        let _store = database.store().await;
        database.run(change).await;
        let refused = validating().connect(&database.url).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(Refusal::Configuration), "{change}: {refused}");
    }
    // A later version that this one can work with.
    let database = Database::fresh().await;
    let _store = database.store().await;
    database.run("INSERT INTO idem_record_schema VALUES (2, 1)").await;
    validating().connect(&database.url).await.unwrap();
}

#[tokio::test]
async fn a_hostile_name_is_refused_before_anything_is_sent() {
    for name in ["a\"; DROP TABLE x; --", "", "pg_catalog", "a.b"] {
        let builders =
            [PostgresStore::builder().table(name), PostgresStore::builder().in_schema(name)];
        for builder in builders {
            // Nobody listens there.
            let refused = builder.connect("postgres://postgres@127.0.0.1:1/x").await.unwrap_err();
            assert_eq!(refused.refusal(), Some(Refusal::Configuration), "{name:?}");
        }
    }
}

#[tokio::test]
async fn a_database_that_is_not_utf8_is_refused() {
    let database = Database::fresh().await;
    let name = format!("latin_{}", std::process::id());
    database
        .run(&format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"))
        .await;
    let (server, _) = database.url.rsplit_once('/').unwrap();
    let refused = PostgresStore::connect(&format!("{server}/{name}")).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Configuration));
}
