//! What becomes of a response.

use std::time::Duration;

use http::StatusCode;

/// What a response means for its key's record.
///
/// Decided by the status ([`of`](Self::of), or the layer's own rule), unless the handler says so
/// itself, by an extension of its response:
///
/// ```
/// use http::Response;
/// use idem_http::Disposition;
///
/// let mut response = Response::new("a secret that is shown once");
/// response.extensions_mut().insert(Disposition::Done);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "these are the ends that a record can come to")]
pub enum Disposition {
    /// The response is stored, and replayed to every retry.
    Keep,
    /// The effect happened, and the response is not to be stored. A retry is told so
    /// ([`Problem::ResponseNotKept`](crate::Problem::ResponseNotKept)), and does not run.
    Done,
    /// There was certainly no effect. The key is released: a retry runs again.
    Release,
    /// Nobody knows whether there was an effect. The record is abandoned: a retry does what the
    /// operation says of an abandoned key ([`Abandoned`](idem_core::Abandoned)).
    Abandon,
}

/// The client errors that are no answer for good; see [`Disposition::of`].
#[rustfmt::skip]
const RELEASED: [u16; 21] = [
    408, 423, 424, 425, 429,
    401, 403, 407, 421,
    400, 405, 406, 411, 413, 414, 415, 417, 422, 426, 428, 431,
];

impl Disposition {
    /// What a response of this status means, if nobody says otherwise.
    ///
    /// | status | |
    /// |---|---|
    /// | 2xx, 3xx, and 4xx but for those below | kept: they answer the request for good |
    /// | 408, 423, 424, 425, 429, 5xx | released: they pass |
    /// | 401, 403, 407, 421 | released: they are about the caller, who may come with other rights |
    /// | 400, 405, 406, 411, 413, 414, 415, 417, 422, 426, 428, 431 | released: the request was refused before it was begun, by a router, an extractor or a validator; it may be corrected under the same key |
    ///
    /// So 402, 404, 409, 410, 412 and 451 are kept. A handler that answers with, say, 422
    /// *after* an effect has to say [`Keep`](Self::Keep) in its response.
    ///
    /// ```
    /// use http::StatusCode;
    /// use idem_http::Disposition;
    ///
    /// assert_eq!(Disposition::of(StatusCode::CREATED), Disposition::Keep);
    /// assert_eq!(Disposition::of(StatusCode::PAYMENT_REQUIRED), Disposition::Keep);
    /// assert_eq!(Disposition::of(StatusCode::UNPROCESSABLE_ENTITY), Disposition::Release);
    /// assert_eq!(Disposition::of(StatusCode::BAD_GATEWAY), Disposition::Release);
    /// ```
    pub fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            // The connection becomes something else; there is nothing to replay.
            101 => Self::Done,
            500.. => Self::Release,
            refused if RELEASED.contains(&refused) => Self::Release,
            _ => Self::Keep,
        }
    }
}

/// How long a response is kept, said by the handler in an extension of its response.
///
/// Counted from its completion, instead of the operation's retention. What is less than a minute
/// is a minute, what is more than ten years is ten years.
///
/// ```
/// use std::time::Duration;
///
/// use http::Response;
/// use idem_http::KeepFor;
///
/// let mut response = Response::new("settled");
/// response.extensions_mut().insert(KeepFor(Duration::from_hours(24 * 90)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is a duration")]
pub struct KeepFor(pub Duration);
