//! What went wrong with a call, whichever client made it, and what that means (law L9).

use idem_core::{Applied, BoxError, Refusal, StoreError};

/// Why a call has no answer that could be used.
#[derive(Debug)]
pub(crate) struct Failure {
    what: What,
    source: BoxError,
}

#[derive(Debug)]
enum What {
    /// The server answered with an error.
    Answered,
    /// The request was never sent.
    NotSent,
    /// The request may have been sent, and no answer came that could be read.
    Unanswered,
}

impl Failure {
    /// The server's error, its code in front: `OOM command not allowed …`.
    pub(crate) fn answered(line: impl Into<String>) -> Self {
        Self { what: What::Answered, source: line.into().into() }
    }

    pub(crate) fn not_sent(source: impl Into<BoxError>) -> Self {
        Self { what: What::NotSent, source: source.into() }
    }

    pub(crate) fn unanswered(source: impl Into<BoxError>) -> Self {
        Self { what: What::Unanswered, source: source.into() }
    }

    /// Whether it is the server that said no.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.what, What::Answered)
    }

    /// Whether the server has no room, and has written nothing.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self.what, What::Answered) && self.source.to_string().starts_with("OOM ")
    }

    /// Whether the server does not know the script (any more).
    pub(crate) fn is_no_script(&self) -> bool {
        matches!(self.what, What::Answered) && self.source.to_string().starts_with("NOSCRIPT")
    }
}

impl From<Failure> for StoreError {
    fn from(Failure { what, source }: Failure) -> Self {
        match what {
            What::NotSent => Self::unavailable(Applied::No, source),
            What::Unanswered => Self::unavailable(Applied::Unknown, source),
            What::Answered => match Class::of(&source.to_string()) {
                Class::Unavailable(applied) => Self::unavailable(applied, source),
                Class::Refused(refusal) => Self::refused(refusal, source),
                Class::Corrupt => Self::corrupt(source),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Unavailable(Applied),
    Refused(Refusal),
    Corrupt,
}

/// What the server's errors mean, by how they begin; the first that fits counts.
///
/// A script writes with its last command that can fail, so an error that the server names comes
/// before the write. Of what it does not name, nothing is known.
const CLASSES: &[(&str, Class)] = &[
    // It will serve again, or another node does: on its way up, down, or to another role.
    ("LOADING", Class::Unavailable(Applied::No)),
    ("BUSY", Class::Unavailable(Applied::No)),
    ("CLUSTERDOWN", Class::Unavailable(Applied::No)),
    ("MASTERDOWN", Class::Unavailable(Applied::No)),
    ("READONLY", Class::Unavailable(Applied::No)),
    ("MOVED", Class::Unavailable(Applied::No)),
    ("ASK", Class::Unavailable(Applied::No)),
    ("TRYAGAIN", Class::Unavailable(Applied::No)),
    ("NOREPLICAS", Class::Unavailable(Applied::No)),
    // It cannot persist, and refuses writes until it can.
    ("MISCONF", Class::Unavailable(Applied::No)),
    // Flushed again between the reload and the call.
    ("NOSCRIPT", Class::Unavailable(Applied::No)),
    ("ERR max number of clients", Class::Unavailable(Applied::No)),
    ("OOM", Class::Refused(Refusal::Full)),
    ("NOPERM", Class::Refused(Refusal::Permission)),
    // Redis 7.0, of a command within a script.
    ("ERR The user executing the script", Class::Refused(Refusal::Permission)),
    ("NOAUTH", Class::Refused(Refusal::Permission)),
    ("WRONGPASS", Class::Refused(Refusal::Permission)),
    ("DENIED", Class::Refused(Refusal::Permission)),
    ("CROSSSLOT", Class::Refused(Refusal::Configuration)),
    ("ERR unknown command", Class::Refused(Refusal::Configuration)),
    ("ERR This instance has cluster support disabled", Class::Refused(Refusal::Configuration)),
    ("ERR Error compiling script", Class::Refused(Refusal::Configuration)),
    ("ERR DB index is out of range", Class::Refused(Refusal::Configuration)),
    ("NOPROTO", Class::Refused(Refusal::Configuration)),
    // Another program's list, hash or set under the record's name.
    ("WRONGTYPE", Class::Corrupt),
];

impl Class {
    fn of(line: &str) -> Self {
        let fits = |begins: &&(&str, Self)| {
            let rest = line.strip_prefix(begins.0);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        CLASSES.iter().find(fits).map_or(Self::Unavailable(Applied::Unknown), |&(_, class)| class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_classified_by_its_beginning() {
        let no = Class::Unavailable(Applied::No);
        let unknown = Class::Unavailable(Applied::Unknown);
        for (line, class) in [
            ("LOADING Redis is loading the dataset in memory", no),
            ("MOVED 3999 127.0.0.1:6381", no),
            ("READONLY You can't write against a read only replica.", no),
            ("MISCONF Redis is configured to save RDB snapshots", no),
            ("BUSY Redis is busy running a script.", no),
            ("ERR max number of clients reached", no),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                Class::Refused(Refusal::Full),
            ),
            ("NOPERM this user has no permissions", Class::Refused(Refusal::Permission)),
            ("WRONGTYPE Operation against a key", Class::Corrupt),
            ("ERR unknown command 'EVALSHA'", Class::Refused(Refusal::Configuration)),
            ("ERR something new", unknown),
            // Longer words that begin alike are other words.
            ("BUSYGROUP Consumer Group name already exists", unknown),
            ("ASKING", unknown),
            ("", unknown),
        ] {
            assert_eq!(Class::of(line), class, "{line}");
        }
    }

    // L9
    #[test]
    fn only_what_was_not_sent_or_was_answered_is_certain() {
        let applied = |failure: Failure| match StoreError::from(failure) {
            StoreError::Unavailable { applied, .. } => applied,
            other => panic!("{other:?}"),
        };
        assert_eq!(applied(Failure::not_sent("refused")), Applied::No);
        assert_eq!(applied(Failure::unanswered("reset")), Applied::Unknown);
        assert_eq!(applied(Failure::answered("NOREPLICAS Not enough good replicas")), Applied::No);
    }

    #[test]
    fn only_the_servers_word_means_that_it_lacks_the_script() {
        assert!(Failure::answered("NOSCRIPT No matching script.").is_no_script());
        assert!(!Failure::unanswered("NOSCRIPT").is_no_script());
        assert!(!Failure::answered("ERR NOSCRIPT").is_no_script());
    }
}
