//! The properties: one file per law or theme, one function per sentence.
//!
//! Each takes a [`Lab`](crate::lab::Lab), uses keys nobody else has, and returns at the first
//! thing that is not as the contract says. The one list of them is in `catalogue.rs`.

pub(crate) mod hints;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod l1_repeatable;
pub(crate) mod l2_free;
pub(crate) mod l3_fence;
pub(crate) mod l4_fenced;
pub(crate) mod l5_ends_not_voids;
pub(crate) mod l6_first_completion;
pub(crate) mod l7_store_clock;
pub(crate) mod l8_unreadable;
pub(crate) mod l9_errors;
pub(crate) mod limits;
pub(crate) mod one_effect;
pub(crate) mod payloads;
pub(crate) mod races;
pub(crate) mod renewal;
pub(crate) mod retention;
pub(crate) mod upkeep;
