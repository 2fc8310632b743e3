//! Runs a trace against the service.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use idem_kit::FingerprintError;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::backend::Backend;
use super::answer::Answer;
use super::request::Request;
use super::service::{Mode, Service};

/// What a trace came to.
#[derive(Debug)]
pub(super) struct Tally {
    /// How many clients were told what.
    pub(super) answers: BTreeMap<Answer, usize>,
    pub(super) charges: usize,
    /// How many of the charges were for what had been charged before.
    pub(super) duplicates: usize,
    /// How often the provider did not charge, because it knew the key it was given.
    pub(super) known_by_key: usize,
}

pub(super) async fn replay(
    requests: &[Request],
    mode: Mode,
    backend: &Backend,
) -> Result<Tally, Box<dyn Error>> {
    let service = Service::new(mode, backend).await?;
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for (number, request) in requests.iter().enumerate() {
        sleep_until(start + Duration::from_millis(request.at_ms.into())).await;
        let (service, request) = (service.clone(), request.clone());
        clients.spawn(async move { ask(&service, number, &request).await });
    }
    let mut answers = BTreeMap::new();
    while let Some(client) = clients.join_next().await {
        *answers.entry(client??).or_default() += 1;
    }
    service.drain().await?;
    let provider = service.provider();
    Ok(Tally {
        answers,
        charges: provider.charges().len(),
        duplicates: provider.duplicates(),
        known_by_key: provider.repeats(),
    })
}

/// A client: asks once, and waits as long as its patience lasts.
async fn ask(
    service: &Service,
    number: usize,
    request: &Request,
) -> Result<Answer, FingerprintError> {
    let answer = service.handle(number, request);
    match request.client_timeout_ms {
        None => answer.await,
        Some(patience) => timeout(Duration::from_millis(patience.into()), answer)
            .await
            .unwrap_or(Ok(Answer::GaveUp)),
    }
}
