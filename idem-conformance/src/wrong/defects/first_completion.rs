//! Stores in which the first completion does not stand (L6).

use idem_core::model::{Phase, Row, Step, Timestamp};
use idem_core::{Attempt, AttemptId, Fingerprint, Lease, Record, State};

use crate::wrong::laws::{Answer, At, Completion, Laws, writing};

pub(super) const ALL: &[&dyn Laws] = &[
    &SecondCompletionReplaces,
    &SecondCompletionLengthens,
    &SecondCompletionShortens,
    &CompletionForgetsTheCount,
    &CompletionForgetsTheFingerprint,
    &CompletionForgetsTheHolder,
    &AnswersOnce,
    &CompletionIsReplacedByAMismatch,
];

/// The completed row, if it is completed by this lease.
fn completed_by(at: &At, lease: &Lease) -> Option<Row> {
    let own = at.kept().filter(|row| row.holder == lease.attempt())?;
    matches!(own.phase, Phase::Completed { .. }).then(|| own.clone())
}

fn kept_until(answer: Answer<()>, row: Option<Row>, until: Timestamp) -> Answer<()> {
    let step = answer?;
    Ok(Step { write: row.map(|row| Row { retain_until: until, ..row }).or(step.write), ..step })
}

/// A re-sent completion with another body replaces the answer that was already replayed.
#[derive(Debug)]
struct SecondCompletionReplaces;

impl Laws for SecondCompletionReplaces {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let Some(row) = completed_by(&at, lease) else { return at.complete(lease, with) };
        let Phase::Completed { fingerprint, .. } = row.phase else {
            return at.complete(lease, with);
        };
        let phase = Phase::Completed { fingerprint, payload: with.payload.clone() };
        Ok(Step { write: Some(Row { phase, ..row }), answer: () })
    }
}

/// A re-sent completion makes the record live longer.
#[derive(Debug)]
struct SecondCompletionLengthens;

impl Laws for SecondCompletionLengthens {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let row = completed_by(&at, lease);
        let until = at.now.after(with.retention);
        let until = row.as_ref().map_or(until, |row| until.max(row.retain_until));
        kept_until(at.complete(lease, with), row, until)
    }
}

/// A re-sent completion makes the record live shorter.
#[derive(Debug)]
struct SecondCompletionShortens;

impl Laws for SecondCompletionShortens {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        let row = completed_by(&at, lease);
        let until = at.now.after(with.retention);
        let until = row.as_ref().map_or(until, |row| until.min(row.retain_until));
        kept_until(at.complete(lease, with), row, until)
    }
}

/// A completion is not an update of the record: the count starts over.
#[derive(Debug)]
struct CompletionForgetsTheCount;

impl Laws for CompletionForgetsTheCount {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        writing(at.complete(lease, with), |row| row.attempts = 1)
    }
}

/// C55: a completion is not an update of the record: an identical retry mismatches.
#[derive(Debug)]
struct CompletionForgetsTheFingerprint;

impl Laws for CompletionForgetsTheFingerprint {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        writing(at.complete(lease, with), |row| {
            if let Phase::Completed { fingerprint, .. } = &mut row.phase {
                *fingerprint = Fingerprint::from_bytes([0; 32]);
            }
        })
    }
}

/// A completion is not an update of the record: nobody can repeat it.
#[derive(Debug)]
struct CompletionForgetsTheHolder;

impl Laws for CompletionForgetsTheHolder {
    fn complete(&self, at: At, lease: &Lease, with: &Completion) -> Answer<()> {
        writing(at.complete(lease, with), |row| row.holder = AttemptId::from_bytes([0; 16]))
    }
}

/// The answer is fetched, and gone.
#[derive(Debug)]
struct AnswersOnce;

impl Laws for AnswersOnce {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let step = at.reserve(attempt)?;
        let fetched = matches!(step.answer.state, State::Completed { payload: Some(_) });
        let write = at.row.filter(|_| fetched).map(|row| Row { retain_until: at.now, ..row });
        Ok(Step { write: write.or(step.write), ..step })
    }
}

/// C8, C56: a request that was refused has left its fingerprint behind.
#[derive(Debug)]
struct CompletionIsReplacedByAMismatch;

impl Laws for CompletionIsReplacedByAMismatch {
    fn reserve(&self, at: At, attempt: &Attempt) -> Answer<Record> {
        let step = at.reserve(attempt)?;
        if !matches!(step.answer.state, State::Completed { payload: None }) {
            return Ok(step);
        }
        let write = at.seeing(|row| {
            if let Phase::Completed { fingerprint, .. } = &mut row.phase {
                *fingerprint = attempt.fingerprint();
            }
        });
        Ok(Step { write: write.row, ..step })
    }
}
