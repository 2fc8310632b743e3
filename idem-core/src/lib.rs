#![doc = include_str!("../README.md")]

mod attempt;
mod cas;
mod coordinator;
pub mod envelope;
mod error;
pub mod fingerprint;
mod hex;
mod key;
pub mod limits;
pub mod model;
pub mod observe;
mod panics;
mod record;
mod row;
mod store;
mod watch;

pub use crate::attempt::{Attempt, AttemptId, Fence, Lease};
pub use crate::cas::{Cas, CasStore, Snapshot};
pub use crate::coordinator::{
    Abandoned, ActionError, Builder, ByEffect, ByTrait, Call, CallError, Classify, Codec,
    Coordinator, Effect, InFlight, Invalid, Json, Keeping, Keyed, NoEffect, NoProbe,
    OnStoreFailure, Operation, Outcome, Oversize, Probe, ProbeFn, Probed, References, RunError,
    RunningAttempt, StillRunning, StoreBudget, by_trait, effect, keeping, no_effect,
};
pub use crate::envelope::NotKept;
pub use crate::error::{Applied, BoxError, Refusal, StoreError};
pub use crate::fingerprint::{Fields, Fingerprint, FingerprintError, FingerprintKey};
pub use crate::key::{Key, KeyError, KeyPart, Scope};
pub use crate::record::{Record, State, Verdict};
pub use crate::store::Store;
pub use crate::watch::Watch;
