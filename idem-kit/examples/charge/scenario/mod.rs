//! What becomes of two requests with one key, case by case.

mod dead_worker;
mod in_flight;
mod report;
mod sequential;
mod store_down;

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use idem_kit::{AttemptId, Call, Coordinator, Fingerprint, InFlight};
use serde::Serialize;

use self::report::Report;
use super::backend::Backend;
use super::payment::Paid;
use super::provider::Order;

/// How long the provider takes.
const PROVIDER: Duration = Duration::from_millis(300);

/// What came of a scenario: what the clients were told, and what was charged.
#[derive(Debug, Serialize)]
pub(crate) struct Scenario {
    #[serde(rename = "scenario")]
    name: &'static str,
    #[serde(skip)]
    title: &'static str,
    /// Ids of charges, or stable codes of errors.
    responses: Vec<String>,
    charges: Vec<String>,
    /// What else was seen.
    #[serde(skip)]
    note: String,
}

/// Runs all scenarios, in real time.
pub(crate) fn run(
    backend: &Backend,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_all(backend, Report { json, out }))
}

async fn run_all(backend: &Backend, mut report: Report<'_>) -> Result<(), Box<dyn Error>> {
    let wait = InFlight::Wait { at_most: Duration::from_secs(10) };
    report.in_flight(&[
        in_flight::scenario("in_flight_run", "run (a result cache)", InFlight::Run, backend)
            .await?,
        in_flight::scenario("in_flight_wait", "wait (default)", wait, backend).await?,
        in_flight::scenario("in_flight_reject", "reject (HTTP 409)", InFlight::Reject, backend)
            .await?,
    ])?;
    report.others(&[
        sequential::key_reused(backend).await?,
        sequential::action_failed(backend).await?,
        dead_worker::scenario(backend).await?,
        store_down::open().await?,
        store_down::closed().await?,
    ])
}

/// The order that every scenario pays for, and its price in cents.
const CENTS: u64 = 1_999;

fn order(cents: u64) -> Order {
    Order { what: format!("order-1 for {cents}"), takes: PROVIDER, declined: None }
}

/// Whose order it is: somebody new in each scenario, so that no store knows the key from before.
struct Client {
    tenant: String,
}

impl Client {
    fn new() -> Self {
        let id = u128::from_be_bytes(*AttemptId::random().as_bytes());
        Self { tenant: format!("client-{id:032x}") }
    }

    /// The call for the order, as the client repeats it: one key, one request.
    fn call(&self, process: &Coordinator, cents: u64) -> Result<Call, Box<dyn Error>> {
        let request = Fingerprint::of(&("order-1", cents))?;
        let payments = process.operation("payment.charge").tenant(&self.tenant);
        Ok(payments.key("5f6c2a").fingerprint(request))
    }
}

/// What the client is told.
fn response(paid: &Paid) -> String {
    match paid {
        Ok(outcome) => outcome.value.clone(),
        Err(error) => error.code().to_owned(),
    }
}
