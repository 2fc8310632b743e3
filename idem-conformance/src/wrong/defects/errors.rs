//! Stores that misstate what a failure means (L9).

use idem_core::Applied;

use crate::harness::Fault;
use crate::wrong::laws::{Laws, Verb};

pub(super) const ALL: &[&dyn Laws] = &[
    &FailureIsSuccess(Verb::Reserve),
    &FailureIsSuccess(Verb::Renew),
    &FailureIsSuccess(Verb::Complete),
    &FailureIsSuccess(Verb::Release),
    &LostReplyIsNotApplied,
    &AppliesWhatItDenies,
    &NeverRecovers,
];

/// C98, C134: a call that failed is answered as if it had succeeded.
#[derive(Debug)]
struct FailureIsSuccess(Verb);

impl Laws for FailureIsSuccess {
    fn pretends(&self, verb: Verb) -> bool {
        verb == self.0
    }
}

/// A lost reply is said to be a lost request.
#[derive(Debug)]
struct LostReplyIsNotApplied;

impl Laws for LostReplyIsNotApplied {
    fn applied(&self, _fault: Fault) -> Applied {
        Applied::No
    }
}

/// A call that failed at first is tried again behind the caller's back, and said to have failed.
#[derive(Debug)]
struct AppliesWhatItDenies;

impl Laws for AppliesWhatItDenies {
    fn applies_what_it_denies(&self) -> bool {
        true
    }
}

/// A broken connection stays broken.
#[derive(Debug)]
struct NeverRecovers;

impl Laws for NeverRecovers {
    fn recovers(&self) -> bool {
        false
    }
}
