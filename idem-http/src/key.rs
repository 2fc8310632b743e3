//! Reading the `Idempotency-Key` header.

use std::borrow::Cow;
use std::convert::Infallible;

use http::HeaderMap;
use http::header::HeaderName;
use sfv::visitor::{Ignored, parameter_visitor_with};
use sfv::{BareItemFromInput, Parser};
use thiserror::Error;

/// The request header that carries the key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The most characters that a key may have.
const MAX_CHARS: usize = *idem_core::limits::NAME_CHARS.end();

/// Which spellings of a key are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a bare key is taken or it is not")]
pub enum KeyFormat {
    /// A structured-field String, `"5f6c2a"`, or the same key bare, `5f6c2a`: one record. Most
    /// clients send it bare. The default.
    #[default]
    Lenient,
    /// Only a structured-field String, as
    /// [draft-ietf-httpapi-idempotency-key-header-07, section 2.1] has it.
    ///
    /// [draft-ietf-httpapi-idempotency-key-header-07, section 2.1]:
    ///     https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07#section-2.1
    Strict,
}

/// Why a request has no key that can be used. The key's text is in no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum BadKey {
    /// There is none, and the route requires one.
    #[error("this operation requires an Idempotency-Key header")]
    Missing,
    /// There are two or more field lines. Which of them is the key is not guessed.
    #[error("there must be one Idempotency-Key header line")]
    Repeated,
    /// It has no characters.
    #[error("the idempotency key is empty; it must have 1 to 255 characters")]
    Empty,
    /// It has more than 255 characters.
    #[error("the idempotency key is too long; it must have 1 to 255 characters")]
    TooLong,
    /// It is bare, and the route takes only a structured-field String.
    #[error(
        "the idempotency key must be a structured-field String in double quotes (RFC 9651, section 3.3.3)"
    )]
    NotQuoted,
    /// It is neither a structured-field String nor a bare key: an unclosed quote, an unknown
    /// escape, a control or non-ASCII character, a comma, a structured field of another type.
    #[error(
        "the idempotency key must be one structured-field String of printable ASCII characters (RFC 9651, section 3.3.3)"
    )]
    Malformed,
}

impl BadKey {
    /// A stable name, the same in every version.
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "key_missing",
            Self::Repeated => "key_repeated",
            Self::Empty => "key_empty",
            Self::TooLong => "key_too_long",
            Self::NotQuoted => "key_not_quoted",
            Self::Malformed => "key_malformed",
        }
    }
}

/// The key of a request; `None` if it has no such header.
///
/// The key is the content of the String: quotes and escapes are how it is written, not part of
/// it, and parameters are ignored (RFC 9651, section 1.1).
///
/// ```
/// use http::HeaderMap;
/// use idem_http::{BadKey, KeyFormat, read_key};
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(read_key(&headers, KeyFormat::Lenient), Ok(None));
/// for spelling in [r#""5f6c2a""#, "5f6c2a", r#""5f6c2a";v=1"#] {
///     headers.insert("idempotency-key", spelling.parse()?);
///     assert_eq!(read_key(&headers, KeyFormat::Lenient)?.as_deref(), Some("5f6c2a"));
/// }
/// headers.insert("idempotency-key", "5f6c2a".parse()?);
/// assert_eq!(read_key(&headers, KeyFormat::Strict), Err(BadKey::NotQuoted));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BadKey`]; never [`Missing`](BadKey::Missing), which is for the route to judge.
pub fn read_key(headers: &HeaderMap, format: KeyFormat) -> Result<Option<Cow<'_, str>>, BadKey> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(BadKey::Repeated);
    }
    let key = parse(line.as_bytes(), format)?;
    // Every character is ASCII here: bytes are characters.
    match key.len() {
        0 => Err(BadKey::Empty),
        1..=MAX_CHARS => Ok(Some(key)),
        _ => Err(BadKey::TooLong),
    }
}

fn parse(value: &[u8], format: KeyFormat) -> Result<Cow<'_, str>, BadKey> {
    let value = value.trim_ascii();
    match (value.first(), format) {
        (None, _) => Err(BadKey::Empty),
        (Some(b'"'), _) => string(value),
        (Some(_), KeyFormat::Lenient) => bare(value),
        (Some(_), KeyFormat::Strict) => Err(match bare(value) {
            Ok(_) => BadKey::NotQuoted,
            Err(why) => why,
        }),
    }
}

/// An Item that is a String; its parameters have to be well-formed, and are ignored.
fn string(value: &[u8]) -> Result<Cow<'_, str>, BadKey> {
    Parser::new(value)
        .parse_item_with_visitor(|item| {
            let content = match item {
                BareItemFromInput::String(Cow::Borrowed(text)) => {
                    Some(Cow::Borrowed(text.as_str()))
                }
                BareItemFromInput::String(Cow::Owned(text)) => Some(Cow::Owned(text.into())),
                _ => None,
            };
            Ok::<_, Infallible>(parameter_visitor_with(Ignored, move |()| Ok(content)))
        })
        .ok()
        .flatten()
        .ok_or(BadKey::Malformed)
}

/// A key without quotes: what most clients send.
fn bare(value: &[u8]) -> Result<Cow<'_, str>, BadKey> {
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    let (key, parameters) = value.split_at(end);
    // A structured field of another type is no key: a byte sequence, a boolean, a date, a
    // display string, an inner list.
    let other_type = matches!(key.first(), Some(b':' | b'?' | b'@' | b'%' | b'('));
    if key.is_empty() || other_type || !key.iter().copied().all(is_bare) {
        return Err(BadKey::Malformed);
    }
    if !parameters.is_empty() {
        // They follow an Item, and any will do.
        let item = [b"1", parameters].concat();
        Parser::new(&item).parse_item_with_visitor(Ignored).map_err(|_| BadKey::Malformed)?;
    }
    str::from_utf8(key).map(Cow::Borrowed).map_err(|_| BadKey::Malformed)
}

/// Printable ASCII, without what ends or quotes something in a header. A comma may be two lines
/// that a proxy has joined.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn read(lines: &[&[u8]], format: KeyFormat) -> Result<Option<String>, BadKey> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(line).unwrap());
        }
        read_key(&headers, format).map(|key| key.map(Cow::into_owned))
    }

    fn lenient(line: &[u8]) -> Result<String, BadKey> {
        read(&[line], KeyFormat::Lenient).map(Option::unwrap)
    }

    fn strict(line: &[u8]) -> Result<String, BadKey> {
        read(&[line], KeyFormat::Strict).map(Option::unwrap)
    }

    // C78: quoted and bare forms of one key meet; parameters are ignored.
    #[test]
    fn spellings_of_one_key_meet() {
        let spellings: &[(&[u8], &str)] = &[
            (br#""abc""#, "abc"),
            (br#"  "abc"  "#, "abc"),
            (br#""abc";p=1"#, "abc"),
            (br#""abc";p;q="x;y";r=?0;s=:YWJj:;t=@1"#, "abc"),
            (br#""a\"b""#, "a\"b"),
            (br#""a\\b""#, "a\\b"),
            (br#"" abc""#, " abc"),
            (br#""a,b;c""#, "a,b;c"),
            (br#"":YWJj:""#, ":YWJj:"),
        ];
        for (line, key) in spellings {
            assert_eq!(lenient(line), Ok((*key).into()), "{}", line.escape_ascii());
            assert_eq!(strict(line), Ok((*key).into()), "{}", line.escape_ascii());
        }
    }

    // C73, C78
    #[test]
    fn a_bare_key_is_the_same_key_where_it_is_taken() {
        let keys = [
            "abc",
            "0",
            "-1",
            "user",
            "../x",
            "{tag}",
            "*",
            "a:b/c",
            "8e03978e-40d5-43dd-bc93-6894a57f9324",
            "MTIz+/==",
            "_nano-id~",
        ];
        for key in keys {
            assert_eq!(lenient(key.as_bytes()), Ok(key.into()));
            assert_eq!(lenient(format!("\"{key}\"").as_bytes()), Ok(key.into()));
            assert_eq!(lenient(format!("{key};p=1;q").as_bytes()), Ok(key.into()));
            assert_eq!(strict(key.as_bytes()), Err(BadKey::NotQuoted));
        }
    }

    // C58, C78, C81
    #[test]
    fn what_is_no_key_is_refused_by_the_rule_it_breaks() {
        let refused: &[(&[u8], BadKey)] = &[
            (b"", BadKey::Empty),
            (b"   ", BadKey::Empty),
            (br#""""#, BadKey::Empty),
            (br#""abc"#, BadKey::Malformed),
            (br#"abc""#, BadKey::Malformed),
            (br#""a\bc""#, BadKey::Malformed),
            (br#""abc" x"#, BadKey::Malformed),
            (br#""abc", "def""#, BadKey::Malformed),
            (br#""abc";"#, BadKey::Malformed),
            (br#""abc";P=1"#, BadKey::Malformed),
            (br#""abc" ;p=1"#, BadKey::Malformed),
            (br#""abc";p=(1 2)"#, BadKey::Malformed),
            (b"abc, def", BadKey::Malformed),
            (b"abc def", BadKey::Malformed),
            (b"a\tb", BadKey::Malformed),
            (b"\"a\tb\"", BadKey::Malformed),
            (b"abc;", BadKey::Malformed),
            (b"abc;p=", BadKey::Malformed),
            (b";p=1", BadKey::Malformed),
            (b"caf\xe9", BadKey::Malformed),
            (b"\"caf\xc3\xa9\"", BadKey::Malformed),
            (b":YWJj:", BadKey::Malformed),
            (b"?1", BadKey::Malformed),
            (b"@1659578233", BadKey::Malformed),
            (b"%\"caf%c3%a9\"", BadKey::Malformed),
            (b"(\"abc\")", BadKey::Malformed),
            (b"\\", BadKey::Malformed),
        ];
        for (line, why) in refused {
            assert_eq!(lenient(line), Err(*why), "{}", line.escape_ascii());
            assert_eq!(strict(line), Err(*why), "{}", line.escape_ascii());
        }
    }

    // C74, C76: the length of the key, not of its spelling.
    #[test]
    fn a_key_has_at_most_255_characters() {
        for character in ["a", "\\\"", "\\\\"] {
            let quoted = |chars| format!("\"{}\"", character.repeat(chars));
            assert_eq!(lenient(quoted(255).as_bytes()).unwrap().len(), 255);
            for chars in [256, 2_049, 1 << 20] {
                assert_eq!(lenient(quoted(chars).as_bytes()), Err(BadKey::TooLong));
            }
        }
        assert!(lenient("k".repeat(255).as_bytes()).is_ok());
        assert_eq!(lenient("k".repeat(256).as_bytes()), Err(BadKey::TooLong));
    }

    // C78
    #[test]
    fn two_lines_are_refused_even_if_they_agree() {
        for lines in [[b"abc", b"abc"], [b"abc", b"def"]] {
            let lines = lines.map(<[u8; 3]>::as_slice);
            assert_eq!(read(&lines, KeyFormat::Lenient), Err(BadKey::Repeated));
            assert_eq!(read(&lines, KeyFormat::Strict), Err(BadKey::Repeated));
        }
        assert_eq!(read(&[], KeyFormat::Strict), Ok(None));
    }

    proptest! {
        #[test]
        fn any_printable_text_is_a_key_once_it_is_quoted(key in "[ -~]{1,255}") {
            let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(strict(quoted.as_bytes()), Ok(key.clone()));
            prop_assert_eq!(lenient(quoted.as_bytes()), Ok(key));
        }

        #[test]
        fn any_header_value_gives_a_key_within_its_rules_or_a_reason(
            line in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let Ok(value) = HeaderValue::from_bytes(&line) else { return Ok(()) };
            if let Ok(key) = lenient(value.as_bytes()) {
                prop_assert!((1..=255).contains(&key.len()));
                prop_assert!(key.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            }
            // Where strict finds a key, lenient finds the same.
            if let Ok(key) = strict(value.as_bytes()) {
                prop_assert_eq!(lenient(value.as_bytes()), Ok(key));
            }
        }
    }
}
