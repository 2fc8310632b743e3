//! What is charged, and under which keys.

use idem_core::{Attempt, AttemptId, Fingerprint, Key, Scope};
use serde::{Deserialize, Serialize};

use crate::comparison::BoxError;

/// The answer of a payment provider: about 1 KiB of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Charge {
    /// The provider's name for it.
    pub id: String,
    /// In the smallest unit of the currency.
    pub amount: u64,
    /// Three letters.
    pub currency: String,
    /// Whether the money was taken.
    pub paid: bool,
    /// What the customer is shown.
    pub receipt: String,
}

impl Charge {
    /// A charge of about 1 KiB.
    pub fn sample() -> Self {
        Self {
            id: "ch_3MmlLrLkdIwHu7ix0snN0B15".to_owned(),
            amount: 1_999,
            currency: "EUR".to_owned(),
            paid: true,
            receipt: "Thank you for your order, and come again. ".repeat(22),
        }
    }
}

/// The text of the `n`th key: 32 characters in no order.
pub fn key_text(n: usize) -> String {
    let mixed = (n as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    format!("{mixed:032x}")
}

/// An attempt at each of `count` keys.
///
/// # Errors
/// If a key is refused, which none is.
pub fn attempts(count: usize) -> Result<Vec<Attempt>, BoxError> {
    let scope = Scope::new("payment.charge")?;
    let attempt = |n| {
        let key = Key::new(scope.clone(), &key_text(n))?;
        Ok(Attempt::new(key, Fingerprint::from_bytes([7; 32])))
    };
    (0..count).map(attempt).collect()
}

/// For each of so many callers, attempts at `each` keys that nobody had before.
///
/// # Errors
/// If a key is refused, which none is.
pub fn fresh_attempts(callers: usize, each: usize) -> Result<Vec<Vec<Attempt>>, BoxError> {
    let attempt = |_| {
        let key = Key::new(Scope::new("bench")?, &format!("{:?}", AttemptId::random()))?;
        Ok(Attempt::new(key, Fingerprint::from_bytes([7; 32])))
    };
    let caller = |_| (0..each).map(attempt).collect::<Result<Vec<_>, BoxError>>();
    (0..callers).map(caller).collect()
}
