//! The names of the records in Redis: the one place that makes them.

use idem_core::{Key, Refusal, StoreError};

/// How much of an operation's name is shown in a record's.
const OPERATION_CHARS: usize = 64;

/// What every record's name begins with.
#[derive(Clone, Debug)]
pub(crate) struct Prefix(String);

impl Prefix {
    pub(crate) fn new(text: &str) -> Result<Self, StoreError> {
        if (1..=64).contains(&text.len()) && text.chars().all(|c| is_plain(c) || c == ':') {
            return Ok(Self(text.to_owned()));
        }
        Err(StoreError::refused(
            Refusal::Invalid,
            "a prefix has 1 to 64 of the characters A-Z a-z 0-9 . _ - :",
        ))
    }

    /// `{prefix}:{operation}:{digest}`.
    ///
    /// The digest makes it unique. The operation is there for people only, and whatever of it is
    /// not plain is replaced: with no brace in it a name is hashed whole, so that it has one slot
    /// of a cluster and no text from outside can choose which.
    pub(crate) fn record(&self, key: &Key) -> String {
        let operation = key.scope().operation().chars().take(OPERATION_CHARS);
        let mut name = String::with_capacity(self.0.len() + OPERATION_CHARS + 66);
        name.push_str(&self.0);
        name.push(':');
        name.extend(operation.map(|c| if is_plain(c) { c } else { '_' }));
        name.push(':');
        let digits = key.digest().iter().flat_map(|byte| [byte >> 4, byte & 15]);
        name.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
        name
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || ".-_".contains(character)
}

#[cfg(test)]
mod tests {
    use idem_core::Scope;

    use super::*;

    fn name(operation: &str, text: &str) -> String {
        let key = Key::new(Scope::new(operation).unwrap(), text).unwrap();
        Prefix::new("idem").unwrap().record(&key)
    }

    // C73, C100
    #[test]
    fn no_text_from_outside_can_move_a_record() {
        let evil = ["{tag}", "*", "a\r\nb", "\0", "../x", "}{", "\u{1f980}", "a:b"];
        for text in evil.map(|text| text.repeat(255 / text.chars().count())) {
            let name = name(&text, &text);
            assert!(name.chars().all(|c| is_plain(c) || c == ':'), "{name}");
            assert_eq!(name.split(':').count(), 3, "{name}");
            assert!(name.len() <= 4 + 1 + OPERATION_CHARS + 1 + 64, "{name}");
        }
    }

    // C79
    #[test]
    fn a_name_is_what_an_operator_can_look_for() {
        let name = name("payment.charge", "k-1");
        assert!(name.starts_with("idem:payment.charge:"), "{name}");
        assert_eq!(name.len(), "idem:payment.charge:".len() + 64);
    }

    #[test]
    fn names_that_look_alike_are_told_apart() {
        let alike = [name("a b", "k"), name("a_b", "k"), name("a{b", "k"), name("a_b", "K")];
        for (at, one) in alike.iter().enumerate() {
            assert!(!alike[at + 1..].contains(one));
        }
    }

    #[test]
    fn a_prefix_is_plain() {
        for good in ["idem", "app:prod:idem", "a", &"x".repeat(64)] {
            assert!(Prefix::new(good).is_ok(), "{good}");
        }
        for bad in ["", "{idem}", "a b", "é", "a\n", &"x".repeat(65)] {
            let refused = Prefix::new(bad).unwrap_err();
            assert_eq!(refused.refusal(), Some(Refusal::Invalid), "{bad}");
        }
    }
}
