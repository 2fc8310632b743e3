//! What an error of the database means (law L9).

use std::borrow::Cow;

use idem_core::{Applied, Refusal, StoreError};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// An error of a statement that was sent.
pub(crate) fn of_statement(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(_) => of_database(error),
        // What came back is not what this version's statements answer.
        sqlx::Error::RowNotFound
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnNotFound(_) => StoreError::corrupt(error),
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => of_connecting(error),
        // The connection broke: the statement may have been committed.
        _ => StoreError::unavailable(Applied::Unknown, error),
    }
}

/// An error on the way to a connection: nothing was sent yet.
pub(crate) fn of_connecting(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Configuration(_) => StoreError::refused(Refusal::Configuration, error),
        sqlx::Error::Database(_) => match of_database(error) {
            StoreError::Unavailable { source, .. } => {
                StoreError::Unavailable { applied: Applied::No, source }
            }
            refused => refused,
        },
        _ => StoreError::unavailable(Applied::No, error),
    }
}

/// What is to be made of an SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Refused(Refusal),
    Corrupt,
    Unavailable,
}

/// The first entry that the code starts with counts; of any other, the statement may be repeated.
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
const MEANINGS: &[(&str, Meaning)] = &[
    // Text that the database's encoding does not have.
    ("22P05", Meaning::Refused(Refusal::Configuration)),
    // A number that left its range, a byte string that is none.
    ("22", Meaning::Corrupt),
    // A constraint that somebody added.
    ("23", Meaning::Refused(Refusal::Configuration)),
    // The caller's transaction has failed already.
    ("25P02", Meaning::Refused(Refusal::Invalid)),
    ("28", Meaning::Refused(Refusal::Permission)),
    ("42501", Meaning::Refused(Refusal::Permission)),
    // A missing table, column, function or database.
    ("42", Meaning::Refused(Refusal::Configuration)),
    ("3D000", Meaning::Refused(Refusal::Configuration)),
    ("3F000", Meaning::Refused(Refusal::Configuration)),
    // No room on the disk; a row or an index entry that is too large.
    ("53100", Meaning::Refused(Refusal::Full)),
    ("54", Meaning::Refused(Refusal::Full)),
    ("XX001", Meaning::Corrupt),
    ("XX002", Meaning::Corrupt),
];

fn meaning(sqlstate: &str) -> Meaning {
    MEANINGS
        .iter()
        .find_map(|(start, meaning)| sqlstate.starts_with(start).then_some(*meaning))
        .unwrap_or(Meaning::Unavailable)
}

/// The server said that it did not do it, and why.
fn of_database(error: sqlx::Error) -> StoreError {
    match meaning(&sqlstate(&error).unwrap_or_default()) {
        Meaning::Refused(refusal) => StoreError::refused(refusal, error),
        Meaning::Corrupt => StoreError::corrupt(error),
        Meaning::Unavailable => StoreError::unavailable(applied(&error), error),
    }
}

/// An error has rolled the statement back. What ended the connection may have come later.
fn applied(error: &sqlx::Error) -> Applied {
    let severity = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        .map(PgDatabaseError::severity);
    if severity == Some(PgSeverity::Error) { Applied::No } else { Applied::Unknown }
}

pub(crate) fn sqlstate(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

/// Whether the server chose this transaction to be repeated: `serialization_failure` or
/// `deadlock_detected`. It was rolled back.
pub(crate) fn wants_a_repeat(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error).as_deref(), Some("40001" | "40P01"))
}

/// Whether the connection reached a server that only reads: a standby, or a primary no more. A new
/// connection may find the one that writes.
pub(crate) fn is_read_only(error: &sqlx::Error) -> bool {
    sqlstate(error).as_deref() == Some("25006")
}

/// Whether the connection itself failed, and with it perhaps every other of its age.
pub(crate) fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => applied(error) == Applied::Unknown || is_read_only(error),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // L9
    #[test]
    fn every_sqlstate_has_a_meaning() {
        let refused = Meaning::Refused;
        let cases = [
            ("40001", Meaning::Unavailable),
            ("40P01", Meaning::Unavailable),
            ("55P03", Meaning::Unavailable),
            ("57014", Meaning::Unavailable),
            ("57P01", Meaning::Unavailable),
            ("57P03", Meaning::Unavailable),
            ("08006", Meaning::Unavailable),
            ("25006", Meaning::Unavailable),
            ("53200", Meaning::Unavailable),
            ("53300", Meaning::Unavailable),
            ("25P02", refused(Refusal::Invalid)),
            ("28P01", refused(Refusal::Permission)),
            ("42501", refused(Refusal::Permission)),
            ("42P01", refused(Refusal::Configuration)),
            ("3D000", refused(Refusal::Configuration)),
            ("23514", refused(Refusal::Configuration)),
            ("22P05", refused(Refusal::Configuration)),
            ("53100", refused(Refusal::Full)),
            ("54000", refused(Refusal::Full)),
            ("22003", Meaning::Corrupt),
            ("XX001", Meaning::Corrupt),
            ("99999", Meaning::Unavailable),
            ("", Meaning::Unavailable),
        ];
        for (code, expected) in cases {
            assert_eq!(meaning(code), expected, "{code}");
        }
    }

    #[test]
    fn what_was_not_sent_was_not_applied() {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into();
        let applied = |error| match error {
            StoreError::Unavailable { applied, .. } => Some(applied),
            _ => None,
        };
        assert_eq!(applied(of_connecting(refused())), Some(Applied::No));
        assert_eq!(applied(of_statement(refused())), Some(Applied::Unknown));
        assert_eq!(applied(of_statement(sqlx::Error::PoolTimedOut)), Some(Applied::No));
        assert_eq!(applied(of_statement(sqlx::Error::PoolClosed)), Some(Applied::No));
    }
}
