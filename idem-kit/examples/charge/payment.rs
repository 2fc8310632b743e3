//! Paying through the provider, under a key.

use std::future::{Future, pending};

use idem_kit::{Call, Outcome, RunError, RunningAttempt};
use tokio::sync::Notify;

use super::provider::{Declined, Order, Provider};

/// What a payment comes to: the id of its charge, or why there is none.
pub(crate) type Paid = Result<Outcome<String>, RunError<Declined>>;

/// Whether the provider is told our key, so that it can tell a repeated charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOn {
    Key,
    Nothing,
}

impl HandOn {
    fn of(self, attempt: &RunningAttempt) -> Option<String> {
        (self == Self::Key).then(|| attempt.downstream_key())
    }
}

/// Pays.
pub(crate) fn pay(
    call: Call,
    provider: &Provider,
    order: Order,
    hand_on: HandOn,
) -> impl Future<Output = Paid> + use<> {
    let provider = provider.clone();
    call.run(move |attempt| provider.charge(order, hand_on.of(&attempt)))
}

/// Pays, in a worker that dies once the provider has charged, before anything is recorded. `None`
/// if it died; otherwise there was nothing for it to run.
///
/// As in a crash, nothing is cleaned up: the reservation stays until its lease has ended.
pub(crate) async fn pay_and_die(
    call: Call,
    provider: &Provider,
    order: Order,
    hand_on: HandOn,
) -> Option<Paid> {
    let charged = Notify::new();
    let paying = call.run_borrowed(async |attempt| {
        let _untold = provider.clone().charge(order, hand_on.of(&attempt)).await;
        charged.notify_one();
        pending().await
    });
    tokio::select! {
        biased;
        () = charged.notified() => None,
        paid = paying => Some(paid),
    }
}
