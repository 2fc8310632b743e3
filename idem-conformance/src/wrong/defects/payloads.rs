//! Stores that give back other bytes, or to others.

use bytes::Bytes;
use idem_core::model::Phase;
use idem_core::{Attempt, Lease, Record, State};

use crate::wrong::laws::{Answer, At, Completion, Laws, only, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &EndsPayloadAtNul,
    &PayloadIsText,
    &EmptyPayloadIsNone,
    &EmptyPayloadIsIgnored,
    &CutsPayloadAt64KiB,
    &TrimsPayload,
    &NullIsEmpty,
    &ShowsPayloadToAnyone,
];

/// What is kept of a payload.
fn kept(
    at: &At,
    lease: &Lease,
    with: &Completion,
    change: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Answer<()> {
    writing(at.complete(lease, with), |row| {
        if let Phase::Completed { payload, .. } = &mut row.phase {
            *payload = Bytes::from(change(payload));
        }
    })
}

macro_rules! keeps {
    ($(#[$why:meta] $name:ident: |$payload:ident| $as:expr;)+) => {$(
        #[$why]
        #[derive(Debug)]
        struct $name;

        impl Laws for $name {
            fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
                kept(&at, lease, with, |$payload| $as)
            }
        }
    )+};
}

keeps! {
    /// A text for a language in which NUL ends it.
    EndsPayloadAtNul: |payload| payload.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();

    /// C81: a column of text.
    PayloadIsText: |payload| String::from_utf8_lossy(payload).into_owned().into_bytes();

    /// C84: a column of limited length that cuts what is longer.
    CutsPayloadAt64KiB: |payload| payload.iter().take(1 << 16).copied().collect();

    /// A text that was trimmed on the way.
    TrimsPayload: |payload| payload.trim_ascii().to_vec();

    /// C95: a value that means "nothing" in some language is taken for nothing.
    NullIsEmpty: |payload| if payload == b"null" { Vec::new() } else { payload.to_vec() };
}

/// C95: an empty answer is taken for none, and comes back as missing.
#[derive(Debug)]
struct EmptyPayloadIsNone;

impl Laws for EmptyPayloadIsNone {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let mut step = at.reserve(attempt)?;
        if let State::Completed { payload } = &mut step.answer.state {
            payload.take_if(|payload| payload.is_empty());
        }
        Ok(step)
    }
}

/// C25, C95: an empty answer is acknowledged and not stored.
#[derive(Debug)]
struct EmptyPayloadIsIgnored;

impl Laws for EmptyPayloadIsIgnored {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let step = at.complete(lease, with)?;
        if with.payload.is_empty() { Ok(only(())) } else { Ok(step) }
    }
}

/// C61: the answer is shown to another request, which is then told that it must not see it.
#[derive(Debug)]
struct ShowsPayloadToAnyone;

impl Laws for ShowsPayloadToAnyone {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let mut step = at.reserve(attempt)?;
        let row = at.kept().map(|row| &row.phase);
        if let (State::Completed { payload }, Some(Phase::Completed { payload: stored, .. })) =
            (&mut step.answer.state, row)
        {
            *payload = Some(stored.clone());
        }
        Ok(step)
    }
}
