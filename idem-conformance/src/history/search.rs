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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use idem_core::{Attempt, AttemptId, Fence, Key, Record, Scope, State};

    use super::*;
    use crate::history::operation::{Answer, Call};
    use crate::lab::{LONG, Moment, attempt_at};

    fn attempt() -> Arc<Attempt> {
        Arc::new(attempt_at(Key::new(Scope::new("o").unwrap(), "k").unwrap()))
    }

    fn at(sent: u64, answered: u64, call: Call, answer: Option<Answer>) -> Operation {
        let moment = Moment { earliest: Duration::ZERO, latest: Duration::ZERO };
        Operation { sent, answered, moment, call, answer }
    }

    fn granted(sent: u64, answered: u64, attempt: &Arc<Attempt>, fence: u64) -> Operation {
        let record = Record {
            fingerprint: attempt.fingerprint(),
            holder: attempt.id(),
            fence: Fence(fence),
            attempts: 1,
            state: State::Pending { left: LONG },
        };
        let call = Call::Reserve(Arc::clone(attempt));
        at(sent, answered, call, Some(Answer::Record(record)))
    }

    fn released(sent: u64, answered: u64, id: AttemptId, answer: Option<Answer>) -> Operation {
        at(sent, answered, Call::Release(id), answer)
    }

    #[test]
    fn two_grants_of_one_key_have_no_order() {
        let (a, b) = (attempt(), attempt());
        let history = [granted(0, 3, &a, 1), granted(1, 2, &b, 2)];
        let found = explain(&history, Duration::ZERO);
        assert_eq!(found, Err(NotLinearizable { explained: 1, answers: 2 }));
    }

    #[test]
    fn a_release_whose_answer_was_lost_explains_the_second_grant() {
        let (a, b) = (attempt(), attempt());
        let lost = released(2, u64::MAX, a.id(), None);
        let history = [granted(0, 1, &a, 1), lost, granted(3, 4, &b, 2)];
        assert_eq!(explain(&history, Duration::ZERO), Ok(()));
    }

    #[test]
    fn a_release_after_the_second_grant_does_not_explain_it() {
        let (a, b) = (attempt(), attempt());
        let late = released(4, 5, a.id(), Some(Answer::Done));
        let history = [granted(0, 1, &a, 1), granted(2, 3, &b, 2), late];
        assert!(explain(&history, Duration::ZERO).is_err());
    }

    #[test]
    fn a_fence_that_does_not_grow_has_no_order() {
        let (a, b) = (attempt(), attempt());
        let freed = released(2, 3, a.id(), Some(Answer::Done));
        let history = [granted(0, 1, &a, 7), freed, granted(4, 5, &b, 7)];
        assert!(explain(&history, Duration::ZERO).is_err());
    }
}
