//! The canonical form of a value: a serializer that any two builds agree on.
//!
//! Not by way of `serde_json::Value`: that has no NaN (it becomes null), fewer numbers than Rust,
//! and an order and a precision that its cargo features change for everyone.

use std::fmt::{self, Display, Write};

use serde::ser::{Serialize, Serializer};

use super::compound::{Elements, Entries, Kind, Part, Struct};
use super::error::{At, FingerprintError};
use super::number;
use super::unordered;

/// How many levels may be nested, so that no value overflows the stack.
const DEEPEST: u8 = 128;

const NULL: u8 = b'n';
const TRUE: u8 = b't';
const FALSE: u8 = b'f';
const NUMBER: u8 = b'#';
const STRING: u8 = b's';
const BYTES: u8 = b'b';

/// What the order of a sequence's elements means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// It counts, unless the value says otherwise (see [`unordered`](super::unordered)).
    AsGiven,
    /// Nothing: every sequence is a multiset. A tuple or an array keeps its order, because no
    /// unordered collection serializes as one.
    AnyOrder,
}

/// The canonical form of `value`.
pub(crate) fn canonical_bytes<T: Serialize + ?Sized>(
    value: &T,
    sequences: Order,
) -> Result<Vec<u8>, FingerprintError> {
    let mut canonical = Canonical::new(sequences);
    value.serialize(&mut canonical)?;
    Ok(canonical.into_bytes())
}

/// A canonical form in the making.
pub(super) struct Canonical {
    pub(super) out: Vec<u8>,
    /// The parts of the collections that are open, the outermost first.
    pub(super) parts: Vec<Part>,
    /// What sorting writes to; kept to spare an allocation for each collection.
    pub(super) scratch: Vec<u8>,
    sequences: Order,
    depth: u8,
    next: Next,
}

/// What was announced of the value that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Anything,
    /// If it is a sequence, its order means nothing.
    Unordered,
    /// If it is a string, it is a number.
    Decimal,
}

impl Canonical {
    pub(super) fn new(sequences: Order) -> Self {
        Self {
            out: Vec::with_capacity(256),
            parts: Vec::new(),
            scratch: Vec::new(),
            sequences,
            depth: 0,
            next: Next::Anything,
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// One level down; [`leave`](Self::leave) is the way back.
    pub(super) fn enter(&mut self) -> Result<(), FingerprintError> {
        if self.depth == DEEPEST {
            return Err(FingerprintError::too_deep());
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn nested<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), FingerprintError> {
        self.announced(Next::Anything, value)
    }

    /// One level down, with a word on what comes.
    pub(super) fn announced<T: Serialize + ?Sized>(
        &mut self,
        next: Next,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.enter()?;
        self.next = next;
        value.serialize(&mut *self)?;
        self.next = Next::Anything;
        self.leave();
        Ok(())
    }

    fn text(&mut self, tag: u8, text: &[u8]) {
        self.out.push(tag);
        self.out.extend_from_slice(&(text.len() as u64).to_be_bytes());
        self.out.extend_from_slice(text);
    }

    pub(super) fn string(&mut self, text: &str) {
        self.text(STRING, text.as_bytes());
    }

    /// A text that is written as it comes, without a copy of its own.
    fn formatted(&mut self, tag: u8, text: fmt::Arguments<'_>) -> Result<(), FingerprintError> {
        let length_at = self.out.len() + 1;
        self.out.push(tag);
        self.out.extend_from_slice(&[0; size_of::<u64>()]);
        // A `Vec` takes everything: what fails here is a `Display` of the value's own.
        Text(&mut self.out).write_fmt(text).map_err(|_| FingerprintError::unserializable())?;
        let length = (self.out.len() - length_at - size_of::<u64>()) as u64;
        self.put_length(length_at, length);
        Ok(())
    }

    /// Writes a length into the place that was left for it.
    pub(super) fn put_length(&mut self, at: usize, length: u64) {
        let place = self.out.split_at_mut(at).1.split_at_mut(size_of::<u64>()).0;
        place.copy_from_slice(&length.to_be_bytes());
    }

    /// A number, by its canonical decimal.
    pub(super) fn number(&mut self, decimal: fmt::Arguments<'_>) -> Result<(), FingerprintError> {
        self.formatted(NUMBER, decimal)
    }

    /// `{name: …}`, to be followed by the content and [`leave`](Self::leave).
    pub(super) fn variant(&mut self, name: &'static str) -> Result<(), FingerprintError> {
        self.enter()?;
        self.out.push(Kind::Map.tag());
        self.out.extend_from_slice(&1u64.to_be_bytes());
        self.string(name);
        Ok(())
    }
}

/// Text as bytes. (`io::Write` would panic at a `Display` that fails.)
struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident: $number:ty => $how:path,)+) => {$(
        fn $method(self, number: $number) -> Result<(), FingerprintError> {
            $how(self, number)
        }
    )+};
}

impl<'a> Serializer for &'a mut Canonical {
    type Ok = ();
    type Error = FingerprintError;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Elements<'a>;
    type SerializeTupleStruct = Elements<'a>;
    type SerializeTupleVariant = Elements<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Struct<'a>;
    type SerializeStructVariant = Entries<'a>;

    numbers! {
        serialize_i8: i8 => number::integer,
        serialize_i16: i16 => number::integer,
        serialize_i32: i32 => number::integer,
        serialize_i64: i64 => number::integer,
        serialize_i128: i128 => number::integer,
        serialize_u8: u8 => number::integer,
        serialize_u16: u16 => number::integer,
        serialize_u32: u32 => number::integer,
        serialize_u64: u64 => number::integer,
        serialize_u128: u128 => number::integer,
        serialize_f32: f32 => number::float,
        serialize_f64: f64 => number::float,
    }

    fn serialize_bool(self, value: bool) -> Result<(), FingerprintError> {
        self.out.push(if value { TRUE } else { FALSE });
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), FingerprintError> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), FingerprintError> {
        if self.next == Next::Decimal {
            return number::decimal(self, value);
        }
        self.string(value);
        Ok(())
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), FingerprintError> {
        self.formatted(STRING, format_args!("{value}"))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), FingerprintError> {
        self.text(BYTES, value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), FingerprintError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), FingerprintError> {
        self.nested(value)
    }

    fn serialize_unit(self) -> Result<(), FingerprintError> {
        self.out.push(NULL);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), FingerprintError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), FingerprintError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        let next = if name == unordered::NAME { Next::Unordered } else { Next::Anything };
        self.announced(next, value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.variant(variant)?;
        self.nested(value).map_err(|error| error.within(At::Name(variant)))?;
        self.leave();
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Elements<'a>, FingerprintError> {
        let declared = std::mem::replace(&mut self.next, Next::Anything) == Next::Unordered;
        let sorted = declared || self.sequences == Order::AnyOrder;
        Elements::open(self, if sorted { Kind::Multiset } else { Kind::List }, None)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Elements<'a>, FingerprintError> {
        Elements::open(self, Kind::List, None)
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        length: usize,
    ) -> Result<Elements<'a>, FingerprintError> {
        self.serialize_tuple(length)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Elements<'a>, FingerprintError> {
        Elements::open(self, Kind::List, Some(variant))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Entries<'a>, FingerprintError> {
        Entries::open(self, None)
    }

    fn serialize_struct(
        self,
        name: &'static str,
        _length: usize,
    ) -> Result<Struct<'a>, FingerprintError> {
        Struct::open(self, name)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Entries<'a>, FingerprintError> {
        Entries::open(self, Some(variant))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use serde::Serialize;

    use super::*;

    fn bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
        canonical_bytes(value, Order::AsGiven).unwrap()
    }

    fn tagged(tag: u8, length: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0, 0, 0, 0, 0, 0, 0, length], content].concat()
    }

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Newtype<T>(T);

    #[derive(Serialize)]
    enum Variant {
        Unit,
        Newtype(u8),
        Tuple(u8, u8),
        Struct { b: u8, a: u8 },
    }

    /// A map that is written in this order.
    struct Pairs<'a, K, V>(&'a [(K, V)]);

    impl<K: Serialize, V: Serialize> Serialize for Pairs<'_, K, V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
        }
    }

    struct Raw<'a>(&'a [u8]);

    impl Serialize for Raw<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.0)
        }
    }

    #[test]
    fn every_leaf_has_its_form() {
        for null in [bytes(&()), bytes(&Unit), bytes(&None::<u8>), bytes(&Some(()))] {
            assert_eq!(null, b"n");
        }
        assert_eq!(bytes(&true), b"t");
        assert_eq!(bytes(&Some(false)), b"f");
        assert_eq!(bytes(&Newtype(-125)), tagged(b'#', 7, b"-1.25e2"));
        let text = tagged(b's', 4, b"Unit");
        assert_eq!(bytes("Unit"), text);
        assert_eq!(bytes(&Variant::Unit), text);
        assert_eq!(bytes(&'\u{e9}'), tagged(b's', 2, b"\xc3\xa9"));
        assert_eq!(bytes(&format_args!("{}-{}", 1, 2)), tagged(b's', 3, b"1-2"));
        assert_eq!(bytes(&Raw(b"Unit")), tagged(b'b', 4, b"Unit"));
    }

    #[test]
    fn every_collection_has_its_form() {
        let one = bytes(&1);
        let two = bytes(&2);
        let list = tagged(b'[', 2, &[two.clone(), one.clone()].concat());
        assert_eq!(bytes(&vec![2, 1]), list);
        assert_eq!(bytes(&(2, 1)), list);
        assert_eq!(bytes(&[2, 1]), list);
        let entries = [bytes("a"), two.clone(), bytes("b"), one.clone()].concat();
        let map = tagged(b'{', 2, &entries);
        assert_eq!(bytes(&Pairs(&[("b", 1), ("a", 2)])), map);
        let set = tagged(b'<', 2, &[one.clone(), two.clone()].concat());
        assert_eq!(bytes(&crate::fingerprint::Unordered(&[2, 1])), set);

        let variant = |name: &str, content: &[u8]| {
            tagged(b'{', 1, &[bytes(name).as_slice(), content].concat())
        };
        assert_eq!(bytes(&Variant::Newtype(1)), variant("Newtype", &one));
        assert_eq!(bytes(&Variant::Tuple(2, 1)), variant("Tuple", &list));
        assert_eq!(bytes(&Variant::Struct { b: 1, a: 2 }), variant("Struct", &map));
    }

    #[test]
    fn a_collection_after_a_collection_keeps_its_own_parts() {
        let nested = BTreeMap::from([("b", vec![BTreeMap::from([("y", 1), ("x", 2)])])]);
        let json = serde_json::json!({"b": [{"x": 2, "y": 1}]});
        assert_eq!(bytes(&nested), bytes(&json));
        let pair = (Pairs(&[("b", Pairs(&[("z", 1), ("c", 2)])), ("a", Pairs(&[]))]), [3]);
        assert_eq!(
            bytes(&pair),
            bytes(&serde_json::json!([{"a": {}, "b": {"c": 2, "z": 1}}, [3]]))
        );
    }

    #[test]
    fn the_same_key_twice_is_an_error_whatever_the_type_of_the_number() {
        let here = |path: &str| FingerprintError::DuplicateKey { path: path.into() };
        let twice = canonical_bytes(&Pairs(&[("a", 1), ("b", 2), ("a", 1)]), Order::AsGiven);
        assert_eq!(twice, Err(here("$")));
        let inner = canonical_bytes(&[Pairs(&[(1.0, 1), (1.0, 2)])], Order::AsGiven);
        assert_eq!(inner, Err(here("$[0]")));
        // C58: these are keys of their own.
        let all = serde_json::json!([0, "0", "", false, null, [], {}]);
        let keys: Vec<_> = all.as_array().unwrap().iter().map(|key| (key, 1)).collect();
        assert!(canonical_bytes(&Pairs(&keys), Order::AsGiven).is_ok());
    }

    #[test]
    fn a_key_without_a_value_is_an_error() {
        use serde::ser::SerializeMap;
        struct Broken(&'static [bool]);
        impl Serialize for Broken {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                for is_key in self.0 {
                    if *is_key { map.serialize_key("k") } else { map.serialize_value("v") }?;
                }
                map.end()
            }
        }
        for broken in [&[false][..], &[true], &[true, true], &[true, false, false]] {
            let refused = FingerprintError::Unserializable { path: "$".into() };
            assert_eq!(canonical_bytes(&Broken(broken), Order::AsGiven), Err(refused));
        }
        assert!(canonical_bytes(&Broken(&[true, false]), Order::AsGiven).is_ok());
    }

    #[test]
    fn a_display_that_fails_is_an_error_and_no_panic() {
        struct Failing;
        impl Display for Failing {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("half a text")?;
                Err(fmt::Error)
            }
        }
        impl Serialize for Failing {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        let refused = FingerprintError::Unserializable { path: "$[1]".into() };
        assert_eq!(canonical_bytes(&(1, Failing), Order::AsGiven), Err(refused));
    }

    #[test]
    fn nesting_is_limited_before_the_stack_is() {
        struct Deep(u32);
        impl Serialize for Deep {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.0 {
                    0 => serializer.serialize_unit(),
                    n if n % 2 == 0 => serializer.serialize_some(&Deep(n - 1)),
                    n => serializer.collect_seq([Deep(n - 1)]),
                }
            }
        }
        assert!(canonical_bytes(&Deep(128), Order::AsGiven).is_ok());
        for depth in [129, 1_000_000] {
            let error = canonical_bytes(&Deep(depth), Order::AsGiven).unwrap_err();
            assert_eq!(error.code(), "fingerprint_too_deep");
        }
        // What is beside counts once.
        assert!(canonical_bytes(&[Deep(127), Deep(127)], Order::AsGiven).is_ok());
        let wide: Vec<_> = (0..1000).map(|_| Variant::Tuple(1, 2)).collect();
        assert!(canonical_bytes(&wide, Order::AsGiven).is_ok());
        let wide: Vec<_> = (0..1000).map(|_| Variant::Struct { b: 1, a: 2 }).collect();
        assert!(canonical_bytes(&wide, Order::AsGiven).is_ok());
    }

    #[test]
    fn in_any_order_a_set_equals_its_replay_and_a_tuple_keeps_its_order() {
        let any =
            |value: &dyn Fn() -> HashSet<u32>| canonical_bytes(&value(), Order::AnyOrder).unwrap();
        let first = any(&|| (0..50).collect());
        assert_eq!(any(&|| (0..50).rev().collect()), first);
        assert_ne!(any(&|| (1..51).collect()), first);
        let tuple = |value| canonical_bytes(&value, Order::AnyOrder).unwrap();
        assert_ne!(tuple((1, 2)), tuple((2, 1)));
        let repeated = |value: Vec<u8>| canonical_bytes(&value, Order::AnyOrder).unwrap();
        assert_ne!(repeated(vec![1, 1, 2]), repeated(vec![1, 2, 2]));
    }
}
