//! The routes.

use axum::extract::{Json, State};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::StatusCode;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use idem_core::Coordinator;
use idem_http::axum::Attempt;
use idem_http::{ConfigError, IdempotencyLayer, by_extension};
use serde::Deserialize;

use super::auth::{User, authenticate};
use super::provider::{Busy, Charge, Provider};

#[derive(Deserialize)]
pub(crate) struct NewCharge {
    order_id: String,
    amount: u64,
}

pub(crate) fn router(idem: &Coordinator, provider: Provider) -> Result<Router, ConfigError> {
    let operation = idem.operation("payment.charge");
    let idempotency =
        IdempotencyLayer::builder(operation, by_extension(|user: &User| user.0.into()))
            .max_body(64 << 10)
            .build()?;
    // The last layer is the first to see a request: nothing is replayed to one who may not ask. As
    // layers of the route they see POST alone, and another method is told that there is none.
    let charges = post(charge).route_layer(idempotency).route_layer(from_fn(authenticate));
    Ok(Router::new()
        .route("/charges", charges.get(list))
        .route("/openapi.json", get(openapi))
        .with_state(provider))
}

async fn charge(
    State(provider): State<Provider>,
    Extension(user): Extension<User>,
    Attempt(attempt): Attempt,
    Json(new): Json<NewCharge>,
) -> Response {
    made(&provider, &user, attempt.downstream_key(), new).await
}

/// The response to a charge that the provider is told by this key.
pub(crate) async fn made(
    provider: &Provider,
    user: &User,
    idempotency_key: String,
    NewCharge { order_id, amount }: NewCharge,
) -> Response {
    let charge = Charge { id: String::new(), order_id, amount, by: user.0.into(), idempotency_key };
    match provider.charge(charge).await {
        Ok(charge) => {
            let location = format!("/charges/{}", charge.id);
            (StatusCode::CREATED, [(LOCATION, location)], Json(charge)).into_response()
        }
        // Nothing was charged, and nothing is stored: a retry runs.
        Err(Busy) => (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]).into_response(),
    }
}

/// What was really charged, for all to see.
async fn list(State(provider): State<Provider>) -> Json<Vec<Charge>> {
    Json(provider.charges())
}

async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], include_str!("openapi.json"))
}
