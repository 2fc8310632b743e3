//! Why a test has no server.

use std::io;

/// Why a server is not there, or does not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no server to be had; the message says what to install or to set.
    #[error("no {server} to test with: {remedy}")]
    Missing {
        /// The kind of server.
        server: &'static str,
        /// What to install or to set.
        remedy: String,
    },
    /// The server was given by an environment variable; it is not a test's to stop.
    #[error("cannot {verb} the {server} given by {variable}: ask for one of the test's own")]
    Given {
        /// The kind of server.
        server: &'static str,
        /// The environment variable.
        variable: &'static str,
        /// What was asked of it.
        verb: &'static str,
    },
    /// The server given by an environment variable is not reached.
    #[error("{variable} names no reachable server: {reason}")]
    Unreachable {
        /// The environment variable.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The server did not do what was asked.
    #[error("{server} did not {verb}: {reason}")]
    Failed {
        /// The kind of server.
        server: &'static str,
        /// What was asked of it.
        verb: &'static str,
        /// What happened instead, and what the server logged.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot {doing}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Adds to an I/O error what was attempted.
pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> ServerError {
    move |source| ServerError::Io { doing, source }
}
