//! A statement with its parameters, sent prepared or in one piece.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection};

/// A value for a `$1` of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Param<'q> {
    Bytes(&'q [u8]),
    Id([u8; 16]),
    Digest([u8; 32]),
    Integer(i64),
    MaybeInteger(Option<i64>),
    Bool(bool),
    Text(Cow<'q, str>),
    MaybeText(Option<Cow<'q, str>>),
}

/// A statement, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'q> {
    sql: Arc<str>,
    params: Vec<Param<'q>>,
    prepared: bool,
}

impl<'q> Statement<'q> {
    /// `prepared`: whether the server is asked to remember it, which takes two round trips the
    /// first time on each connection. If not, it is sent in one piece.
    ///
    /// sqlx has a way between, `persistent(false)`, and it is not for poolers: it sends the
    /// statement and its parameters one after the other, and a pooler may hand the second to
    /// another connection, where another's statement is.
    pub(crate) fn new(sql: Arc<str>, prepared: bool) -> Self {
        Self { sql, params: Vec::new(), prepared }
    }

    pub(crate) fn bind(mut self, param: Param<'q>) -> Self {
        self.params.push(param);
        self
    }

    /// Its one row.
    pub(crate) async fn fetch_one(&self, on: &mut PgConnection) -> sqlx::Result<PgRow> {
        if !self.prepared {
            let sql = AssertSqlSafe(self.in_one_piece());
            return sqlx::raw_sql(sql).fetch_one(on).await;
        }
        // The names in it were checked, and everything else is a parameter.
        let query = sqlx::query(AssertSqlSafe(Arc::clone(&self.sql)));
        let query = self.params.iter().fold(query, |query, param| match param {
            Param::Bytes(bytes) => query.bind(*bytes),
            Param::Id(bytes) => query.bind(&bytes[..]),
            Param::Digest(bytes) => query.bind(&bytes[..]),
            Param::Integer(integer) => query.bind(*integer),
            Param::MaybeInteger(integer) => query.bind(*integer),
            Param::Bool(bool) => query.bind(*bool),
            Param::Text(text) => query.bind(text.as_ref()),
            Param::MaybeText(text) => query.bind(text.as_deref()),
        });
        query.fetch_one(on).await
    }

    /// The statement with its parameters in their places.
    fn in_one_piece(&self) -> String {
        let mut parts = self.sql.split('$');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = part.split_at(digits);
            let param = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            if let Some(param) = param.and_then(|at| self.params.get(at)) {
                param.write(&mut sql);
            }
            sql.push_str(rest);
        }
        sql
    }
}

impl Param<'_> {
    /// As a literal of digits and nothing else that came from outside.
    fn write(&self, sql: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Id(bytes) => return Param::Bytes(bytes).write(sql),
            Self::Digest(bytes) => return Param::Bytes(bytes).write(sql),
            Self::Bytes(bytes) => write!(sql, "E'\\\\x{}'::bytea", hex(bytes)),
            Self::Integer(integer) | Self::MaybeInteger(Some(integer)) => {
                write!(sql, "('{integer}'::bigint)")
            }
            Self::MaybeInteger(None) => write!(sql, "NULL::bigint"),
            Self::Bool(bool) => write!(sql, "{bool}"),
            Self::Text(text) | Self::MaybeText(Some(text)) => {
                write!(sql, "convert_from(E'\\\\x{}'::bytea, 'UTF8')", hex(text.as_bytes()))
            }
            Self::MaybeText(None) => write!(sql, "NULL::text"),
        };
    }
}

/// Two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// What [`hex`] wrote of 32 bytes.
pub(crate) fn unhex(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let (left, right) = bytes.split_at_mut(16);
    for (half, at) in [(left, 0..32), (right, 32..64)] {
        let number = u128::from_str_radix(digits.get(at)?, 16).ok()?;
        half.copy_from_slice(&number.to_be_bytes());
    }
    (digits.len() == 64).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_code() {
        let hostile = "'; DROP TABLE x; -- \\ $1 \u{2400}";
        let statement = Statement::new("SELECT $1, $2, $10 - $3, $4, $5".into(), false)
            .bind(Param::Bytes(hostile.as_bytes()))
            .bind(Param::Text(hostile.into()))
            .bind(Param::Integer(i64::MIN))
            .bind(Param::Bool(true))
            .bind(Param::MaybeText(None));
        let sql = statement.in_one_piece();
        assert!(sql.contains(&hex(hostile.as_bytes())) && !sql.contains("DROP"), "{sql}");
        assert!(sql.ends_with(" - ('-9223372036854775808'::bigint), true, NULL::text"), "{sql}");
    }

    #[test]
    fn a_byte_is_two_digits() {
        assert_eq!(hex(&[0, 0x9f, 0xff]), "009fff");
        let bytes = std::array::from_fn(|at| 255 - u8::try_from(at).unwrap());
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        for odd in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64)] {
            assert_eq!(unhex(odd), None, "{odd}");
        }
    }
}
