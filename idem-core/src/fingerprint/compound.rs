//! Collections in the canonical form: written as they come, sorted at their end.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

use super::canonical::{Canonical, Next};
use super::error::{At, FingerprintError};
use super::number;

/// A kind of collection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Elements in their order.
    List,
    /// Elements whose order means nothing.
    Multiset,
    /// Keys, each with a value, whose order means nothing.
    Map,
}

impl Kind {
    pub(super) const fn tag(self) -> u8 {
        match self {
            Self::List => b'[',
            Self::Multiset => b'<',
            Self::Map => b'{',
        }
    }
}

/// The sizes, in bytes, of one entry of a map, or of one element, which is all key.
#[derive(Clone, Copy)]
pub(super) struct Part {
    key: usize,
    value: usize,
}

/// A collection that has begun.
#[derive(Clone, Copy)]
pub(super) struct Open {
    kind: Kind,
    /// Where the place for its length is.
    length_at: usize,
    /// How many of [`Canonical::parts`] belong to the collections around it.
    outer_parts: usize,
    /// The variant that it is the content of.
    variant: Option<&'static str>,
}

impl Open {
    fn locate(&self, error: FingerprintError) -> FingerprintError {
        match self.variant {
            Some(name) => error.within(At::Name(name)),
            None => error,
        }
    }
}

impl Canonical {
    pub(super) fn open(
        &mut self,
        kind: Kind,
        variant: Option<&'static str>,
    ) -> Result<Open, FingerprintError> {
        if let Some(name) = variant {
            self.variant(name)?;
        }
        self.enter()?;
        self.out.push(kind.tag());
        let (length_at, outer_parts) = (self.out.len(), self.parts.len());
        let open = Open { kind, length_at, outer_parts, variant };
        self.out.extend_from_slice(&[0; size_of::<u64>()]);
        Ok(open)
    }

    /// Writes one entry of a map that has a name.
    pub(super) fn field(
        &mut self,
        name: &str,
        value: impl FnOnce(&mut Self) -> Result<(), FingerprintError>,
    ) -> Result<(), FingerprintError> {
        let start = self.out.len();
        self.string(name);
        let key = self.out.len() - start;
        value(self).map_err(|error| error.within(At::Name(name)))?;
        let value = self.out.len() - start - key;
        self.parts.push(Part { key, value });
        Ok(())
    }

    /// Ends a collection that is sorted: puts its parts in order, and counts them.
    pub(super) fn close_sorted(&mut self, open: Open) -> Result<(), FingerprintError> {
        let body_at = open.length_at + size_of::<u64>();
        let mut rest = self.out.split_at(body_at).1;
        let mut parts: Vec<(&[u8], &[u8])> =
            Vec::with_capacity(self.parts.len() - open.outer_parts);
        for part in self.parts.drain(open.outer_parts..) {
            let (key, tail) = rest.split_at(part.key);
            let (value, tail) = tail.split_at(part.value);
            parts.push((key, value));
            rest = tail;
        }
        let length = parts.len() as u64;
        let in_order = parts.is_sorted();
        parts.sort_unstable();
        if open.kind == Kind::Map && !parts.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(open.locate(FingerprintError::duplicate_key()));
        }
        if !in_order {
            self.scratch.clear();
            self.scratch.reserve(self.out.len() - body_at);
            for (key, value) in &parts {
                self.scratch.extend_from_slice(key);
                self.scratch.extend_from_slice(value);
            }
            self.out.truncate(body_at);
            self.out.extend_from_slice(&self.scratch);
        }
        self.close(open, length);
        Ok(())
    }

    fn close(&mut self, open: Open, length: u64) {
        self.put_length(open.length_at, length);
        self.leave();
        if open.variant.is_some() {
            self.leave();
        }
    }
}

/// The elements of a list or a multiset.
pub(super) struct Elements<'a> {
    canonical: &'a mut Canonical,
    open: Open,
    length: u64,
}

impl<'a> Elements<'a> {
    pub(super) fn open(
        canonical: &'a mut Canonical,
        kind: Kind,
        variant: Option<&'static str>,
    ) -> Result<Self, FingerprintError> {
        let open = canonical.open(kind, variant)?;
        Ok(Self { canonical, open, length: 0 })
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), FingerprintError> {
        let Self { canonical, open, length } = self;
        let start = canonical.out.len();
        let sorted = open.kind != Kind::List;
        let at = if sorted { At::Any } else { At::Index(*length) };
        value.serialize(&mut **canonical).map_err(|error| open.locate(error.within(at)))?;
        *length += 1;
        if sorted {
            let key = canonical.out.len() - start;
            canonical.parts.push(Part { key, value: 0 });
        }
        Ok(())
    }

    fn finish(self) -> Result<(), FingerprintError> {
        if self.open.kind == Kind::List {
            self.canonical.close(self.open, self.length);
            Ok(())
        } else {
            self.canonical.close_sorted(self.open)
        }
    }
}

/// The entries of a map.
pub(super) struct Entries<'a> {
    canonical: &'a mut Canonical,
    open: Open,
    /// Where the entry starts whose value is still to come, and how long its key is.
    key: Option<(usize, usize)>,
}

impl<'a> Entries<'a> {
    pub(super) fn open(
        canonical: &'a mut Canonical,
        variant: Option<&'static str>,
    ) -> Result<Self, FingerprintError> {
        let open = canonical.open(Kind::Map, variant)?;
        Ok(Self { canonical, open, key: None })
    }

    fn field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        let field = self.canonical.field(name, |canonical| value.serialize(canonical));
        field.map_err(|error| self.open.locate(error))
    }

    /// A key without a value, or the reverse, is a `Serialize` gone wrong.
    fn finish(self) -> Result<(), FingerprintError> {
        match self.key {
            None => self.canonical.close_sorted(self.open),
            Some(_) => Err(FingerprintError::unserializable()),
        }
    }
}

impl SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = FingerprintError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), FingerprintError> {
        let start = self.canonical.out.len();
        key.serialize(&mut *self.canonical).map_err(|error| error.within(At::Any))?;
        match self.key.replace((start, self.canonical.out.len() - start)) {
            None => Ok(()),
            Some(_) => Err(FingerprintError::unserializable()),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), FingerprintError> {
        let (start, key) = self.key.take().ok_or_else(FingerprintError::unserializable)?;
        value.serialize(&mut *self.canonical).map_err(|error| error.within(At::Any))?;
        let value = self.canonical.out.len() - start - key;
        self.canonical.parts.push(Part { key, value });
        Ok(())
    }

    fn end(self) -> Result<(), FingerprintError> {
        self.finish()
    }
}

/// A struct: a map whose keys are names, or a number in disguise (see [`number::DISGUISE`]).
pub(super) enum Struct<'a> {
    Map(Entries<'a>),
    Number(&'a mut Canonical),
}

impl<'a> Struct<'a> {
    pub(super) fn open(
        canonical: &'a mut Canonical,
        name: &'static str,
    ) -> Result<Self, FingerprintError> {
        if name == number::DISGUISE {
            Ok(Self::Number(canonical))
        } else {
            Entries::open(canonical, None).map(Self::Map)
        }
    }
}

impl SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = FingerprintError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        match self {
            Self::Map(entries) => entries.field(name, value),
            Self::Number(canonical) => canonical.announced(Next::Decimal, value),
        }
    }

    fn end(self) -> Result<(), FingerprintError> {
        match self {
            Self::Map(entries) => entries.finish(),
            Self::Number(_) => Ok(()),
        }
    }
}

impl SerializeStructVariant for Entries<'_> {
    type Ok = ();
    type Error = FingerprintError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), FingerprintError> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), FingerprintError> {
        self.finish()
    }
}

macro_rules! elements {
    ($($kind:ident: $method:ident,)+) => {$(
        impl $kind for Elements<'_> {
            type Ok = ();
            type Error = FingerprintError;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                value: &T,
            ) -> Result<(), FingerprintError> {
                self.element(value)
            }

            fn end(self) -> Result<(), FingerprintError> {
                self.finish()
            }
        }
    )+};
}

elements! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}
