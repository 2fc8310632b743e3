//! Looks for an order in which one verb at a time would have given the same answers.
//!
//! Wing and Gong's search (*Testing and verifying concurrent objects*, 1993) with Lowe's memo of
//! what was tried (*Testing for linearizability*, 2017). An operation may come next if no other
//! had been answered before it was sent. One whose answer was lost may come at any time after it
//! was sent, or never.

use std::collections::HashSet;
use std::time::Duration;

use crate::history::operation::Operation;
use crate::history::spec::State;

/// The most operations a history may have: one bit each.
pub(crate) const MOST: usize = 64;

/// No order explains the answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotLinearizable {
    /// How many of the answers the best order explains.
    pub(crate) explained: u32,
    pub(crate) answers: u32,
}

/// Looks for an order that explains every answer.
pub(crate) fn explain(history: &[Operation], slack: Duration) -> Result<(), NotLinearizable> {
    assert!(history.len() <= MOST, "a history of {} operations", history.len());
    let answered = bits(history, |operation| operation.answer.is_some());
    let mut explained = 0;
    let mut tried = HashSet::new();
    let mut open = vec![(0_u64, State::START)];
    while let Some((done, state)) = open.pop() {
        if done & answered == answered {
            return Ok(());
        }
        explained = explained.max((done & answered).count_ones());
        let first_answer = remaining(history, done & answered)
            .filter(|(_, operation)| operation.answer.is_some())
            .map(|(_, operation)| operation.answered)
            .min()
            .unwrap_or(u64::MAX);
        for (bit, operation) in remaining(history, done) {
            if operation.sent > first_answer {
                continue;
            }
            for next in state.after(operation, slack) {
                let step = (done | bit, next);
                if tried.insert(step.clone()) {
                    open.push(step);
                }
            }
        }
    }
    Err(NotLinearizable { explained, answers: answered.count_ones() })
}

fn bits(history: &[Operation], which: impl Fn(&Operation) -> bool) -> u64 {
    remaining(history, 0).filter(|(_, operation)| which(operation)).map(|(bit, _)| bit).sum()
}

fn remaining(history: &[Operation], done: u64) -> impl Iterator<Item = (u64, &Operation)> {
    let numbered = history.iter().enumerate().map(|(number, operation)| (1 << number, operation));
    numbered.filter(move |(bit, _)| done & bit == 0)
}
