//! Makes a trace up: some minutes of a payment service with three tenants.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

use serde_json::json;

use super::request::Request;
use super::rng::Rng;

/// How many payments there are; most are one request.
const PAYMENTS: u32 = 220;

/// Writes the trace of this seed.
pub(crate) fn generate(seed: u64, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut maker = Maker { rng: Rng(seed), orders: BTreeMap::new() };
    let mut requests: Vec<_> = (0..PAYMENTS).flat_map(|_| maker.payment()).collect();
    requests.sort_by_key(|request| request.at_ms);
    for request in requests {
        writeln!(out, "{}", serde_json::to_string(&request)?)?;
    }
    Ok(())
}

struct Maker {
    rng: Rng,
    /// The number of each tenant's last order.
    orders: BTreeMap<&'static str, u32>,
}

impl Maker {
    /// The requests for one payment.
    fn payment(&mut self) -> Vec<Request> {
        let first = self.order();
        match self.rng.within(1..=100) {
            1..=47 => vec![first],
            48..=50 => self.two_operations(first),
            51..=62 => self.timed_out(first),
            63..=70 => self.double_click(first),
            71..=78 => self.answer_lost(first),
            79..=86 => self.declined(first),
            87..=92 => self.key_reused(first),
            93..=97 => self.slow_provider(first),
            _ => self.worker_died(first),
        }
    }

    /// The next order of some tenant. Its number is its key, so tenants have keys in common.
    fn order(&mut self) -> Request {
        let tenant = match self.rng.within(1..=3) {
            1 => "acme",
            2 => "globex",
            _ => "initech",
        };
        let operation = match self.rng.within(1..=4) {
            1 => "subscription.renew",
            _ => "payment.charge",
        };
        let last = self.orders.entry(tenant).or_insert(1_000);
        *last += 1;
        Request {
            at_ms: self.rng.within(0..=240_000),
            tenant: Some(tenant.to_owned()),
            operation: operation.to_owned(),
            key: format!("order-{last}"),
            payload: json!({ "cents": self.rng.within(199..=49_999), "currency": "EUR" }),
            takes_ms: self.takes(),
            client_timeout_ms: None,
            fails: None,
            crash: false,
        }
    }

    fn takes(&mut self) -> u32 {
        self.rng.within(120..=900)
    }

    /// The same request, so much after the one before.
    fn again(&mut self, before: &Request, after_ms: u32) -> Request {
        Request { at_ms: before.at_ms + after_ms, takes_ms: self.takes(), ..before.clone() }
    }

    /// Another operation under the same key, which is another payment.
    fn two_operations(&mut self, mut first: Request) -> Vec<Request> {
        "payment.charge".clone_into(&mut first.operation);
        let mut other = self.again(&first, 1_500);
        "subscription.renew".clone_into(&mut other.operation);
        vec![first, other]
    }

    /// The client gives up while the provider is still at it, and asks again at once.
    fn timed_out(&mut self, mut first: Request) -> Vec<Request> {
        let patience = self.rng.within(1_000..=2_000);
        first.client_timeout_ms = Some(patience);
        first.takes_ms = patience + self.rng.within(200..=2_500);
        let mut retry = self.again(&first, patience);
        retry.at_ms += self.rng.within(10..=150);
        retry.client_timeout_ms = None;
        vec![first, retry]
    }

    /// Two requests within a moment.
    fn double_click(&mut self, first: Request) -> Vec<Request> {
        let gap = self.rng.within(20..=80);
        let second = self.again(&first, gap);
        vec![first, second]
    }

    /// The answer is given and gets lost; the client asks again much later, twice.
    fn answer_lost(&mut self, first: Request) -> Vec<Request> {
        let (gap, next) = (self.rng.within(4_000..=20_000), self.rng.within(1_000..=20_000));
        let second = self.again(&first, gap);
        let third = self.again(&second, next);
        vec![first, second, third]
    }

    /// The card is declined; the second try goes through, or is declined too.
    fn declined(&mut self, mut first: Request) -> Vec<Request> {
        first.fails = Some("insufficient funds".to_owned());
        let gap = self.rng.within(8_000..=30_000);
        let mut second = self.again(&first, gap);
        if self.rng.within(1..=3) > 1 {
            second.fails = None;
        }
        vec![first, second]
    }

    /// The key comes again with another amount.
    fn key_reused(&mut self, first: Request) -> Vec<Request> {
        let gap = self.rng.within(2_000..=30_000);
        let mut other = self.again(&first, gap);
        other.payload = json!({ "cents": self.rng.within(199..=49_999), "currency": "EUR" });
        vec![first, other]
    }

    /// The provider is slower than all patience. Clients ask again after each time-out.
    fn slow_provider(&mut self, mut first: Request) -> Vec<Request> {
        first.takes_ms = self.rng.within(9_000..=14_000);
        first.client_timeout_ms = Some(2_000);
        let mut second = self.again(&first, 2_100);
        second.client_timeout_ms = Some(10_000);
        let third = self.again(&second, 10_200);
        vec![first, second, third]
    }

    /// The worker dies after the charge. The client asks again, at longer and longer intervals.
    fn worker_died(&mut self, mut first: Request) -> Vec<Request> {
        first.crash = true;
        let mut requests = vec![first.clone()];
        first.crash = false;
        for after_ms in [2_000, 8_000, 16_000, 40_000] {
            requests.push(self.again(&first, after_ms));
        }
        requests
    }
}
