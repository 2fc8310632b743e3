//! A worker dies between the charge and the record of it.

use std::error::Error;
use std::time::Duration;

use idem_kit::{Coordinator, StoreBudget};
use tokio::time::Instant;

use super::super::backend::Backend;
use super::super::payment::{HandOn, pay_and_die};
use super::super::provider::{Declined, Provider};
use super::{CENTS, Client, Scenario, order};

/// How long a dead worker holds its key here; 30 s unless set.
const LEASE: Duration = Duration::from_millis(600);

/// The retry waits until the lease has ended and takes over. Nobody here can know whether the
/// dead worker charged. The provider can: it is given the same key again.
pub(super) async fn scenario(backend: &Backend) -> Result<Scenario, Box<dyn Error>> {
    let store = backend.open().await?;
    let budget = StoreBudget::default().per_try(LEASE / 6);
    let process = || Coordinator::builder(store.clone()).lease(LEASE).store_budget(budget).build();
    let (client, provider) = (Client::new(), Provider::default());

    let worker = client.call(&process()?, CENTS)?;
    if let Some(paid) = pay_and_die(worker, &provider, order(CENTS), HandOn::Key).await {
        return Err(format!("the worker was to die, and came to {paid:?}").into());
    }

    let (died, asked) = (Instant::now(), provider.clone());
    let retry = client
        .call(&process()?, CENTS)?
        .run(move |attempt| async move {
            let took_over = attempt.is_takeover().then(|| died.elapsed());
            let charge = asked.charge(order(CENTS), Some(attempt.downstream_key())).await?;
            Ok::<_, Declined>((charge, took_over))
        })
        .await?;
    let (charge, took_over) = retry.value;
    let (Some(after), 1) = (took_over, provider.repeats()) else {
        return Err("the retry was to take over, and the provider to know its key".into());
    };
    let after = after.as_millis();
    Ok(Scenario {
        name: "dead_worker",
        title: "worker died after charging",
        responses: vec![charge],
        charges: provider.charges(),
        note: format!("the retry took over after {after} ms; the provider knew its key"),
    })
}
