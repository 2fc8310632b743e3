//! Sending a request again, under its key.

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use tokio::time::{Sleep, sleep};
use tower::retry::Policy;

use crate::key::IDEMPOTENCY_KEY;

/// Sends a request again whose fate is not known, or that may fare better: a
/// [retry policy](Policy) of tower.
///
/// | what came of it | |
/// |---|---|
/// | an error of the service: no connection, no answer in time | again |
/// | 408, 425, 429, 500, 502, 503, 504 | again |
/// | 409 with `Retry-After`: in progress | again |
/// | anything else, 422 and 410 above all | not again: it would be the same |
///
/// Only a request with an `Idempotency-Key` is sent again. The pause is what `Retry-After` asks
/// for, at most [`longest_pause`](Self::longest_pause); where there is none it is 200 ms, and
/// twice as long each time, give or take a quarter.
#[derive(Clone, Debug)]
pub struct RetryWithKey {
    retries: u32,
    pause: Duration,
    longest: Duration,
}

impl Default for RetryWithKey {
    fn default() -> Self {
        let (pause, longest) = (Duration::from_millis(200), Duration::from_secs(30));
        Self { retries: 4, pause, longest }
    }
}

impl RetryWithKey {
    /// How often a request is sent again. Default: 4 times.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The longest pause before a request is sent again. Default: 30 s.
    pub fn longest_pause(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    fn next_pause(&mut self, asked: Option<Duration>) -> Duration {
        let own = jittered(self.pause);
        self.pause = (2 * self.pause).min(self.longest);
        asked.unwrap_or(own).min(self.longest)
    }
}

impl<B: Clone, R, E> Policy<Request<B>, Response<R>, E> for RetryWithKey {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<B>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Sleep> {
        if !request.headers().contains_key(IDEMPOTENCY_KEY) {
            return None;
        }
        let asked = match result {
            Ok(response) if may_fare_better(response) => retry_after(response.headers()),
            Ok(_) => return None,
            Err(_) => None,
        };
        self.retries = self.retries.checked_sub(1)?;
        Some(sleep(self.next_pause(asked)))
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}

fn may_fare_better<R>(response: &Response<R>) -> bool {
    match response.status() {
        StatusCode::CONFLICT => response.headers().contains_key(RETRY_AFTER),
        status => matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502..=504),
    }
}

/// Seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Three to five quarters of a pause, so that those who failed together do not return together.
fn jittered(pause: Duration) -> Duration {
    let mut random = [128];
    // Without randomness it is the pause itself.
    let _ = getrandom::fill(&mut random);
    let [random] = random;
    pause.mul_f64(0.75 + f64::from(random) / 512.0)
}
