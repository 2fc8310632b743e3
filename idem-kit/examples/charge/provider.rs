//! The payment provider.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

/// Charges cards, takes its time to answer, and remembers every charge.
///
/// Given an idempotency key it has seen, it answers with the charge it made then. Given none, it
/// charges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provider(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    /// What each charge was for; the first is `ch_1`.
    charges: Vec<String>,
    by_key: HashMap<String, String>,
    repeats: usize,
}

/// What the provider is asked for, and how it will go.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// What is bought, by whom, for how much.
    pub(crate) what: String,
    pub(crate) takes: Duration,
    /// Why the card is declined, if it is.
    pub(crate) declined: Option<String>,
}

/// The card was declined: no money moved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declined(pub(crate) String);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "declined: {}", self.0)
    }
}

impl std::error::Error for Declined {}

impl Provider {
    /// Charges at once and answers later, as the money moves before the answer is on its way.
    pub(crate) async fn charge(
        self,
        order: Order,
        idempotency_key: Option<String>,
    ) -> Result<String, Declined> {
        let Order { what, takes, declined } = order;
        let answer = match declined {
            Some(reason) => Err(Declined(reason)),
            None => Ok(self.book().charge(what, idempotency_key)),
        };
        sleep(takes).await;
        answer
    }

    /// The charges that were made.
    pub(crate) fn charges(&self) -> Vec<String> {
        (1..=self.book().charges.len()).map(charge_id).collect()
    }

    /// How many charges were for what had been charged before.
    pub(crate) fn duplicates(&self) -> usize {
        let charges = &self.book().charges;
        charges.len() - charges.iter().collect::<HashSet<_>>().len()
    }

    /// How often it did not charge, because it knew the idempotency key.
    pub(crate) fn repeats(&self) -> usize {
        self.book().repeats
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn charge(&mut self, what: String, idempotency_key: Option<String>) -> String {
        let known = idempotency_key.as_ref().and_then(|key| self.by_key.get(key));
        if let Some(charge) = known {
            self.repeats += 1;
            return charge.clone();
        }
        self.charges.push(what);
        let charge = charge_id(self.charges.len());
        if let Some(key) = idempotency_key {
            self.by_key.insert(key, charge.clone());
        }
        charge
    }
}

fn charge_id(number: usize) -> String {
    format!("ch_{number}")
}
