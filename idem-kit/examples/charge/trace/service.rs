//! The service that the requests of a trace go to.

use std::error::Error;
use std::time::Duration;

use idem_kit::{Builder, Call, Coordinator, Fingerprint, FingerprintError, InFlight, StoreBudget};

use super::super::backend::Backend;
use super::super::payment::{HandOn, pay, pay_and_die};
use super::super::provider::{Order, Provider};
use super::answer::Answer;
use super::request::Request;

/// What stands between a request and the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing: every request is carried out.
    NoStore,
    /// A cache of results: look the key up, else run and save.
    ResultCache,
    /// Reservations.
    Idem,
}

/// Two processes behind a load balancer, with one store and one provider.
#[derive(Clone, Debug)]
pub(super) struct Service {
    /// None without a store.
    processes: Option<[Coordinator; 2]>,
    hand_on: HandOn,
    provider: Provider,
}

impl Service {
    pub(super) async fn new(mode: Mode, backend: &Backend) -> Result<Self, Box<dyn Error>> {
        let provider = Provider::default();
        let (configure, hand_on): (fn(Builder) -> Builder, _) = match mode {
            Mode::NoStore => {
                return Ok(Self { processes: None, hand_on: HandOn::Nothing, provider });
            }
            Mode::ResultCache => (result_cache, HandOn::Nothing),
            Mode::Idem => (reservations, HandOn::Key),
        };
        let store = backend.open().await?;
        let process = || configure(Coordinator::builder(store.clone())).build();
        Ok(Self { processes: Some([process()?, process()?]), hand_on, provider })
    }

    pub(super) fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Handles the request of this number. Dropped when its client gives up, as a handler is.
    pub(super) async fn handle(
        &self,
        number: usize,
        request: &Request,
    ) -> Result<Answer, FingerprintError> {
        let order = Order {
            what: request.what(),
            takes: Duration::from_millis(request.takes_ms.into()),
            declined: request.fails.clone(),
        };
        let Some([even, odd]) = &self.processes else {
            let charged = self.provider.clone().charge(order, None).await;
            return Ok(if request.crash {
                Answer::WorkerDied
            } else {
                Answer::without_store(&charged)
            });
        };
        let call = call(if number.is_multiple_of(2) { even } else { odd }, request)?;
        let paid = if request.crash {
            pay_and_die(call, &self.provider, order, self.hand_on).await
        } else {
            Some(pay(call, &self.provider, order, self.hand_on).await)
        };
        Ok(paid.as_ref().map_or(Answer::WorkerDied, Answer::of))
    }

    /// Waits until all that was begun is done, also where the client gave up.
    pub(super) async fn drain(&self) -> Result<(), Box<dyn Error>> {
        for process in self.processes.iter().flatten() {
            process.drain(Duration::from_hours(24 * 365)).await?;
        }
        Ok(())
    }
}

/// A cache knows of no request before it has the result, so a worker that dies leaves nothing in
/// it. A short lease comes near to that.
fn result_cache(process: Builder) -> Builder {
    let budget = StoreBudget::default().per_try(Duration::from_millis(10));
    process.in_flight(InFlight::Run).lease(Duration::from_millis(30)).store_budget(budget)
}

fn reservations(process: Builder) -> Builder {
    process.in_flight(InFlight::Wait { at_most: Duration::from_secs(5) })
}

fn call(process: &Coordinator, request: &Request) -> Result<Call, FingerprintError> {
    let mut operation = process.operation(&request.operation);
    if let Some(tenant) = &request.tenant {
        operation = operation.tenant(tenant);
    }
    Ok(operation.key(&request.key).fingerprint(Fingerprint::of(&request.payload)?))
}
