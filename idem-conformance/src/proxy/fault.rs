//! What may happen to a request.

use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing: it is passed on, and so is its answer.
    #[default]
    Pass,
    /// The server does not see it, and the connection is reset.
    ResetBefore,
    /// The server executes it; as soon as it answers, the connection is reset instead.
    ResetAfter,
    /// The server does not see it or anything else on this connection, which stays open.
    HangBefore,
    /// The server executes it; no answer comes on this connection any more, which stays open.
    HangAfter,
    /// The server sees it, and what follows it on this connection, this much later.
    Delay(Duration),
    /// The server executes it; this many bytes of its answer arrive, then the connection is reset.
    Truncate(usize),
}
