//! The payment provider: it takes its time, and charges whenever it is asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;

/// How many charges may be under way.
pub(crate) const IN_FLIGHT_CAP: usize = 256;

/// A charge that was made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Charge {
    pub(crate) id: String,
    pub(crate) order_id: String,
    pub(crate) amount: u64,
    pub(crate) by: String,
    /// What a real provider would tell a repeated charge by.
    pub(crate) idempotency_key: String,
}

#[derive(Clone)]
pub(crate) struct Provider {
    charges: Arc<Mutex<Vec<Charge>>>,
    in_flight: Arc<Semaphore>,
    takes: Duration,
}

/// Too many charges are under way.
#[derive(Debug)]
pub(crate) struct Busy;

impl Provider {
    pub(crate) fn new(takes: Duration) -> Self {
        let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_CAP));
        Self { charges: Arc::default(), in_flight, takes }
    }

    /// Charges. It does not ask whether it has done so before: that is shown here to be prevented.
    pub(crate) async fn charge(&self, mut charge: Charge) -> Result<Charge, Busy> {
        // Counted here, and not per connection: a charge goes on when its client has left.
        let _place = self.in_flight.try_acquire().map_err(|_| Busy)?;
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        let mut charges = self.charges.lock().unwrap_or_else(PoisonError::into_inner);
        charge.id = format!("ch_{}", charges.len() + 1);
        charges.push(charge.clone());
        Ok(charge)
    }

    /// Every charge that was made.
    pub(crate) fn charges(&self) -> Vec<Charge> {
        self.charges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
