//! Two requests with one key, one after the other.

use std::error::Error;

use idem_kit::{CallError, Coordinator, Fingerprint, RunError};

use super::super::backend::Backend;
use super::super::payment::{HandOn, pay};
use super::super::provider::{Order, Provider};
use super::{CENTS, Client, Scenario, order, response};

/// The key comes again with another amount: a key stands for one request.
pub(super) async fn key_reused(backend: &Backend) -> Result<Scenario, Box<dyn Error>> {
    let process = Coordinator::builder(backend.open().await?).build()?;
    let (client, provider) = (Client::new(), Provider::default());
    let first = pay(client.call(&process, CENTS)?, &provider, order(CENTS), HandOn::Key).await;
    let other = pay(client.call(&process, 1)?, &provider, order(1), HandOn::Key).await;
    let Err(RunError::Call(CallError::Mismatch { recorded, given, .. })) = &other else {
        return Err(format!("expected a mismatch: {other:?}").into());
    };
    Ok(Scenario {
        name: "key_reused",
        title: "key reused, other amount",
        responses: vec![response(&first), response(&other)],
        charges: provider.charges(),
        note: format!("fingerprint was {}, is {}", short(recorded), short(given)),
    })
}

/// The card is declined, and the client tries once more: errors are not stored.
pub(super) async fn action_failed(backend: &Backend) -> Result<Scenario, Box<dyn Error>> {
    let process = Coordinator::builder(backend.open().await?).build()?;
    let (client, provider) = (Client::new(), Provider::default());
    let declined = Order { declined: Some("insufficient funds".to_owned()), ..order(CENTS) };
    let first = pay(client.call(&process, CENTS)?, &provider, declined, HandOn::Key).await;
    let retry = pay(client.call(&process, CENTS)?, &provider, order(CENTS), HandOn::Key).await;
    let Err(RunError::Action { error, .. }) = &first else {
        return Err(format!("expected a declined card: {first:?}").into());
    };
    Ok(Scenario {
        name: "action_failed",
        title: "card declined, then retried",
        responses: vec![response(&first), response(&retry)],
        charges: provider.charges(),
        note: format!("{error}; nothing was stored"),
    })
}

fn short(fingerprint: &Fingerprint) -> String {
    fingerprint.to_string().chars().take(8).collect()
}
