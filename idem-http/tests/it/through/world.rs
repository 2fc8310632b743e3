//! Two processes over one store, each behind a server of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::StatusCode;
use http_body_util::Full;
use idem_conformance::servers;
use idem_core::{Coordinator, InFlight, Store};
use idem_memory::MemoryStore;
use idem_postgres::PostgresStore;
use idem_redis::RedisStore;

use crate::support::{Answer, Calls, behind, builder, is_replay, routes, text, unkeyed};
use crate::wire::server::{Provider, connect1, serve, whole};

/// Longer than anything here takes on a store that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Time for others to come, where nothing depends on whether they have.
pub(crate) const MOMENT: Duration = Duration::from_millis(20);

/// Where the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    Redis,
    Postgres,
}

/// One key, and what two processes need.
pub(crate) struct World {
    pub(crate) one: Arc<dyn Store>,
    pub(crate) two: Arc<dyn Store>,
    key: String,
    pub(crate) provider: Provider,
}

impl World {
    /// A key of its own, by the name of the test, in the records that all tests share.
    pub(crate) async fn of(backend: Backend, key: &str) -> Self {
        let (one, two): (Arc<dyn Store>, Arc<dyn Store>) = match backend {
            Backend::Memory => {
                let shared = Arc::new(MemoryStore::new());
                (shared.clone(), shared)
            }
            Backend::Redis => {
                let server = servers::shared_redis().await.unwrap();
                let store = || RedisStore::builder().connect(server.url());
                (Arc::new(store().await.unwrap()), Arc::new(store().await.unwrap()))
            }
            Backend::Postgres => {
                let server = servers::shared_postgres().await.unwrap();
                let store = || PostgresStore::builder().max_connections(4).connect(server.url());
                (Arc::new(store().await.unwrap()), Arc::new(store().await.unwrap()))
            }
        };
        Self { one, two, key: format!("\"{key}\""), provider: Provider::free() }
    }

    /// The same, whose provider answers when it may.
    pub(crate) fn gated(self) -> Self {
        Self { provider: Provider::gated(), ..self }
    }

    /// The same under another key.
    pub(crate) fn under(&self, key: &str) -> Self {
        let Self { one, two, provider, .. } = self;
        let key = format!("\"{key}\"");
        Self { one: one.clone(), two: two.clone(), key, provider: provider.clone() }
    }

    /// A process that answers with the provider's charges.
    pub(crate) async fn process(
        &self,
        store: &Arc<dyn Store>,
        set: impl FnOnce(idem_core::Builder) -> idem_core::Builder,
    ) -> SocketAddr {
        serving(store.clone(), set, self.provider.routes()).await
    }

    /// Two processes with this policy.
    pub(crate) async fn processes(&self, in_flight: InFlight) -> (SocketAddr, SocketAddr) {
        let set = |builder: idem_core::Builder| builder.in_flight(in_flight);
        (self.process(&self.one, set).await, self.process(&self.two, set).await)
    }

    /// The request, sent to a process over a connection of its own.
    pub(crate) async fn send(&self, to: SocketAddr) -> Answer {
        self.send_for(to, 100).await
    }

    /// A request for so much under the same key.
    pub(crate) async fn send_for(&self, to: SocketAddr, amount: u32) -> Answer {
        let sent = sending(to, self.key.clone(), amount);
        tokio::time::timeout(2 * PATIENCE, sent).await.expect("it was left waiting")
    }

    /// Sends the request in a task.
    pub(crate) fn sent(&self, to: SocketAddr) -> tokio::task::JoinHandle<Answer> {
        tokio::spawn(sending(to, self.key.clone(), 100))
    }

    /// The key as it is on the wire.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn had(&self, effects: u32) {
        assert_eq!(self.provider.done.count(), effects);
    }
}

/// The routes behind the layer, in a process of their own: a coordinator and a server.
pub(crate) async fn serving(
    store: impl Store + 'static,
    set: impl FnOnce(idem_core::Builder) -> idem_core::Builder,
    routes: Router,
) -> SocketAddr {
    let idem = Coordinator::builder(store)
        .without_logs()
        .poll(MOMENT)
        .in_flight(InFlight::Wait { at_most: PATIENCE });
    let operation = set(idem).build().unwrap().operation("charge");
    serve(behind(routes, builder(operation).build().unwrap())).await
}

async fn sending(to: SocketAddr, key: String, amount: u32) -> Answer {
    let request = unkeyed(http::Method::POST, "/charges").header("host", "api");
    let request = request.header("idempotency-key", key);
    let body = Full::from(format!(r#"{{"amount":{amount}}}"#));
    let mut client = connect1(to).await;
    whole(client.send_request(request.body(body).unwrap()).await.unwrap()).await
}

/// Routes whose every request is answered so, and counted.
pub(crate) fn answering(status: StatusCode, calls: &Calls) -> Router {
    let calls = calls.clone();
    routes(move |_| {
        let number = calls.one_more();
        async move { (status, format!("answer {number}")) }
    })
}

/// The charge in an answer, and whether it was replayed.
pub(crate) fn charged(answer: &Answer) -> (&str, bool) {
    assert_eq!(answer.status(), StatusCode::CREATED, "{answer:?}");
    (text(answer), is_replay(answer))
}
