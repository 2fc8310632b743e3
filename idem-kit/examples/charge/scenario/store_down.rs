//! The store does not answer.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use idem_kit::{
    Applied, Attempt, CallError, Coordinator, Lease, OnStoreFailure, Record, RunError, Store,
    StoreError,
};

use super::super::payment::{HandOn, pay};
use super::super::provider::Provider;
use super::{CENTS, Client, Scenario, order, response};

/// Fail open, the default: the payment is made without protection, and says so.
pub(super) async fn open() -> Result<Scenario, Box<dyn Error>> {
    scenario("store_down_open", "store down, fail open", OnStoreFailure::RunUnprotected).await
}

/// Fail closed: the payment is refused.
pub(super) async fn closed() -> Result<Scenario, Box<dyn Error>> {
    scenario("store_down_closed", "store down, fail closed", OnStoreFailure::Refuse).await
}

async fn scenario(
    name: &'static str,
    title: &'static str,
    on_store_failure: OnStoreFailure,
) -> Result<Scenario, Box<dyn Error>> {
    let process = Coordinator::builder(Down).on_store_failure(on_store_failure).build()?;
    let (client, provider) = (Client::new(), Provider::default());
    let paid = pay(client.call(&process, CENTS)?, &provider, order(CENTS), HandOn::Key).await;
    let note = match &paid {
        Ok(outcome) => format!("ran unprotected; recorded: {}", outcome.recorded),
        Err(RunError::Call(CallError::Store { source, .. })) => source.to_string(),
        Err(other) => return Err(format!("expected the store's error: {other:?}").into()),
    };
    let responses = vec![response(&paid)];
    Ok(Scenario { name, title, responses, charges: provider.charges(), note })
}

/// A store that cannot be reached.
struct Down;

fn unreachable<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable(Applied::No, "connection refused"))
}

#[async_trait]
impl Store for Down {
    async fn reserve(&self, _: &Attempt) -> Result<Record, StoreError> {
        unreachable()
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<Duration, StoreError> {
        unreachable()
    }

    async fn complete(&self, _: &Lease, _: &Bytes, _: Duration) -> Result<(), StoreError> {
        unreachable()
    }

    async fn release(&self, _: &Lease) -> Result<(), StoreError> {
        unreachable()
    }
}
