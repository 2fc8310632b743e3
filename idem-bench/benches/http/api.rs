//! The example's server, with its handler a second time, where no layer is.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{Json, State};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use http::HeaderMap;
use idem_bench::BoxError;
use idem_core::Coordinator;
use idem_memory::MemoryStore;
use tokio::net::TcpListener;

#[path = "../../../idem-http/examples/payments_api/app.rs"]
mod app;
#[path = "../../../idem-http/examples/payments_api/auth.rs"]
mod auth;
#[path = "../../../idem-http/examples/payments_api/provider.rs"]
mod provider;

use self::app::{NewCharge, made};
use self::auth::{User, authenticate};
use self::provider::Provider;

/// The layer at `/charges`, none at `/bare/charges`, and a provider that takes so long.
pub(crate) async fn serve(takes: Duration) -> Result<SocketAddr, BoxError> {
    let idem = Coordinator::builder(MemoryStore::new()).build()?;
    let provider = Provider::new(takes);
    let bare = Router::new()
        .route("/bare/charges", post(charge).route_layer(from_fn(authenticate)))
        .with_state(provider.clone());
    let app = app::router(&idem, provider)?.merge(bare);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

/// The client's key goes to the provider as it is.
async fn charge(
    State(provider): State<Provider>,
    Extension(user): Extension<User>,
    headers: HeaderMap,
    Json(new): Json<NewCharge>,
) -> Response {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default();
    made(&provider, &user, key.to_owned(), new).await
}
