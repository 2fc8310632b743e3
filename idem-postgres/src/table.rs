//! The names of the tables, and the statements with the names in them.

use std::fmt;
use std::sync::Arc;

use idem_core::Key;
use thiserror::Error;

/// Why a text cannot be the name of a schema or a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{given:?} cannot be the name of a schema or a table: it must be 1 to {MOST} ASCII letters, \
     digits and underscores, must not start with a digit, and \"pg_\" is the system's"
)]
pub struct NameError {
    given: String,
}

/// A name may have 63 bytes, and the second table's is the first's with an ending.
const MOST: usize = 48;

/// A name that needs no escape, wherever it is put.
fn check(name: &str) -> Result<(), NameError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    let fits = starts_well && name.len() <= MOST && name.bytes().all(is_word);
    let is_systems = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("pg_"));
    if fits && !is_systems { Ok(()) } else { Err(NameError { given: name.to_owned() }) }
}

/// Where the records are: a schema and a table in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    schema: String,
    name: String,
}

/// What an advisory number stands for. Each kind has numbers of its own, and so has each table.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Held by a transaction that is about to write the key's row.
    Door = 1,
    /// Shared by those who wait for the key.
    Bell = 2,
}

impl Table {
    pub(crate) fn new(schema: &str, name: &str) -> Result<Self, NameError> {
        check(schema)?;
        check(name)?;
        Ok(Self { schema: schema.to_owned(), name: name.to_owned() })
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// The name of the table that says which version of the schema this is.
    pub(crate) fn versions(&self) -> String {
        format!("{}_schema", self.name)
    }

    /// The statement, with the table's name and the shared conditions filled in, for the server.
    pub(crate) fn render(&self, sql: &str) -> Arc<str> {
        const FRAGMENTS: [(&str, &str); 4] = [
            ("{why_not}", include_str!("sql/why_not.sql")),
            ("{judged}", include_str!("sql/judged.sql")),
            ("{held}", include_str!("sql/held.sql")),
            // Last: the others have it in them.
            ("{readable}", include_str!("sql/readable.sql")),
        ];
        let filled = FRAGMENTS
            .iter()
            .fold(bare(sql), |sql, (name, fragment)| sql.replace(name, bare(fragment).trim_end()));
        self.name_tables(&filled).into()
    }

    /// The statements with the tables' names alone filled in, and their comments left to people.
    pub(crate) fn name_tables(&self, sql: &str) -> String {
        sql.replace("{table}", &format!("\"{}\".\"{}\"", self.schema, self.name))
            .replace("{versions}", &format!("\"{}\".\"{}\"", self.schema, self.versions()))
    }

    /// The advisory number of the transaction that is about to write the key's row.
    pub(crate) fn door(&self, key: &Key) -> i64 {
        first_eight(key.digest()) ^ self.salt(Purpose::Door)
    }

    /// The advisory number that those who wait for the key share.
    pub(crate) fn bell(&self, digest: &[u8; 32]) -> i64 {
        first_eight(digest) ^ self.salt(Purpose::Bell)
    }

    /// The channel that changes of this table are told on.
    pub(crate) fn channel(&self) -> String {
        format!("idem_{:016x}", self.salt(Purpose::Bell))
    }

    /// FNV-1a: the same in every process and build, which is all that is asked of it.
    fn salt(&self, purpose: Purpose) -> i64 {
        let name = [self.schema.as_bytes(), b".", self.name.as_bytes(), &[purpose as u8]].concat();
        let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        i64::from_be_bytes(hash.to_be_bytes())
    }
}

fn first_eight(digest: &[u8; 32]) -> i64 {
    digest.first_chunk().map_or(0, |eight| i64::from_be_bytes(*eight))
}

/// The statement without its comments, which have lines of their own.
fn bare(sql: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("--");
    sql.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(MOST + 1);
        let hostile = [
            "", "1a", "a b", "a\"b", "a'b", "a;b", "a.b", "a\0b", "a\nb", "pg_x", "PG_temp",
            "\u{e9}", "a--b", "{table}", "a\\b", &long,
        ];
        for name in hostile {
            let refused = NameError { given: name.to_owned() };
            assert_eq!(Table::new(name, "t"), Err(refused.clone()), "{name:?}");
            assert_eq!(Table::new("s", name), Err(refused), "{name:?}");
        }
        for name in ["a", "_", "Idem_2", "select", "pgbouncer", &"a".repeat(MOST)] {
            assert!(Table::new(name, name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        let table = Table::new("select", "Table").unwrap();
        for sql in [
            include_str!("sql/schema.sql"),
            include_str!("sql/reserve.sql"),
            include_str!("sql/renew.sql"),
            include_str!("sql/complete.sql"),
            include_str!("sql/release.sql"),
            include_str!("sql/announce.sql"),
            include_str!("sql/purge.sql"),
        ] {
            let rendered = table.render(sql);
            assert!(!rendered.contains(['{', '}']), "{rendered}");
            assert!(!rendered.contains("--"), "{rendered}");
        }
        assert!(table.render("{table} {versions}").contains(r#""select"."Table_schema""#));
    }

    #[test]
    fn two_tables_share_no_number() {
        let key = Key::new(idem_core::Scope::new("op").unwrap(), "k").unwrap();
        let numbers: std::collections::HashSet<i64> = [("a", "b"), ("a", "c"), ("b", "b")]
            .into_iter()
            .map(|(schema, name)| Table::new(schema, name).unwrap())
            .flat_map(|table| [table.door(&key), table.bell(key.digest())])
            .collect();
        assert_eq!(numbers.len(), 6);
    }
}
