//! What a store finds out about its server when it connects.

use std::time::Duration;

use idem_conformance::servers::{self, Server, Setup};
use idem_core::{Refusal, StoreError};
use idem_redis::{AtStart, Finding, RedisStore, Severity};

use crate::support::client::Client;
use crate::support::wire::say;

async fn found(client: Client, server: &Server) -> Vec<Finding> {
    let builder = RedisStore::builder().deadline(Duration::from_secs(5));
    client.connect(builder, &[server.addr()]).await.unwrap().check().await.unwrap()
}

// C104
#[tokio::test(flavor = "multi_thread")]
async fn each_setting_is_found() {
    let durable =
        |setup: Setup| setup.setting("appendonly", "yes").setting("appendfsync", "always");
    let late = |how: &str| Finding::PersistsLate { how: how.into() };
    let cases = [
        (durable(servers::redis()), vec![]),
        (
            durable(servers::redis())
                .setting("maxmemory", "2mb")
                .setting("maxmemory-policy", "allkeys-lru"),
            vec![Finding::Evicts { policy: "allkeys-lru".into() }],
        ),
        (servers::redis().own(), vec![Finding::NotPersistent]),
        (servers::redis().setting("save", "60 1"), vec![late("snapshots")]),
        (
            servers::redis().setting("appendonly", "yes").setting("appendfsync", "everysec"),
            vec![late("everysec")],
        ),
    ];
    for (setup, expected) in cases {
        let server = setup.await.unwrap();
        for &client in Client::SINGLE {
            assert_eq!(found(client, &server).await, expected, "{client:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_and_a_master_with_one_are_found() {
    let (master, replica) =
        (servers::redis().own().await.unwrap(), servers::redis().own().await.unwrap());
    say(replica.addr(), &format!("REPLICAOF 127.0.0.1 {}", master.port())).await;
    let copies = async {
        while !say(master.addr(), "INFO replication").await.text().contains("state=online") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    crate::support::soon(copies).await;
    for &client in Client::SINGLE {
        assert!(found(client, &master).await.contains(&Finding::FailsOver { replicas: 1 }));
        assert_eq!(found(client, &replica).await[0], Finding::Replica);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_asked_is_a_finding() {
    let server = servers::redis().own().await.unwrap();
    let acl = "ACL SETUSER default on nopass ~* &* +@all -config -@admin";
    assert_eq!(say(server.addr(), acl).await.text(), "OK");
    for &client in Client::SINGLE {
        let findings = found(client, &server).await;
        assert!(findings.contains(&Finding::Unseen { command: "CONFIG GET" }), "{findings:?}");
        let worst = findings.iter().map(Finding::severity).min();
        assert_ne!(worst, Some(Severity::Breaks));
    }
}

#[tokio::test]
async fn a_store_that_shall_refuses_a_server_that_breaks_the_laws() {
    let server =
        servers::redis().setting("maxmemory", "2mb").setting("maxmemory-policy", "volatile-lru");
    let server = server.await.unwrap();
    let connect = |at_start| RedisStore::builder().at_start(at_start).connect(server.url());
    let refused = connect(AtStart::Refuse).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Configuration));
    let StoreError::Refused { source, .. } = refused else { unreachable!() };
    assert!(source.to_string().contains("volatile-lru"), "{source}");
    assert!(connect(AtStart::Warn).await.is_ok());
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_connected_to_later() {
    let mut server = servers::redis().own().await.unwrap();
    let url = server.url().to_owned();
    server.stop().await.unwrap();
    let connect = |at_start| RedisStore::builder().at_start(at_start).connect(url.as_str());
    assert!(connect(AtStart::Refuse).await.unwrap_err().is_unavailable());
    let store = connect(AtStart::Warn).await.unwrap();
    server.restart().await.unwrap();
    crate::support::serves(&store).await;
}

#[tokio::test]
async fn a_setting_that_makes_no_sense_is_refused() {
    let builder = RedisStore::builder;
    for refused in [
        builder().prefix("{all}").connect("redis://127.0.0.1:1/").await,
        builder().deadline(Duration::from_millis(9)).connect("redis://127.0.0.1:1/").await,
        builder().connect("http://127.0.0.1:1/").await,
        builder().connect_cluster::<&str>([]).await,
    ] {
        assert_eq!(refused.unwrap_err().refusal(), Some(Refusal::Invalid));
    }
}
