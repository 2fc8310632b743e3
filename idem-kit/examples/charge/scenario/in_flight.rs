//! The retry arrives while the first request is still running.

use std::error::Error;
use std::time::Duration;

use idem_kit::{Coordinator, InFlight};
use tokio::time::sleep;

use super::super::backend::Backend;
use super::super::payment::{HandOn, pay};
use super::super::provider::Provider;
use super::{CENTS, Client, Scenario, order, response};

/// Two processes, which share nothing but the store: two coordinators over it.
///
/// The provider is told no key, so that nothing but the reservation stands between the two.
pub(super) async fn scenario(
    name: &'static str,
    title: &'static str,
    in_flight: InFlight,
    backend: &Backend,
) -> Result<Scenario, Box<dyn Error>> {
    let store = backend.open().await?;
    let process = || Coordinator::builder(store.clone()).in_flight(in_flight).build();
    let (client, provider) = (Client::new(), Provider::default());
    let (one, other) = (client.call(&process()?, CENTS)?, client.call(&process()?, CENTS)?);
    let (first, retry) = tokio::join!(pay(one, &provider, order(CENTS), HandOn::Nothing), async {
        sleep(Duration::from_millis(50)).await;
        pay(other, &provider, order(CENTS), HandOn::Nothing).await
    });
    let responses = vec![response(&first), response(&retry)];
    let charges = provider.charges();
    let note = match charges.len() {
        1 => "once".to_owned(),
        2 => "TWICE".to_owned(),
        times => format!("{times} times"),
    };
    Ok(Scenario { name, title, responses, charges, note })
}
