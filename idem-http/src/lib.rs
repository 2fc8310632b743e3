#![doc = include_str!("../README.md")]

mod answer;
#[cfg(feature = "axum")]
pub mod axum;
mod body;
mod builder;
#[cfg(feature = "client")]
pub mod client;
mod codec;
mod collect;
mod config;
#[cfg(any(doc, doctest))]
#[doc = include_str!("../COOKBOOK.md")]
pub mod cookbook {}
mod disposition;
mod fingerprint;
mod future;
mod handling;
mod headers;
mod key;
mod layer;
mod principal;
mod problem;
mod render;
mod scope;
mod service;

pub use crate::body::Body;
pub use crate::builder::{Builder, ConfigError};
pub use crate::disposition::{Disposition, KeepFor};
pub use crate::fingerprint::{BodyPart, FingerprintParts};
pub use crate::future::ResponseFuture;
pub use crate::headers::IDEMPOTENT_REPLAYED;
pub use crate::key::{BadKey, IDEMPOTENCY_KEY, KeyFormat, read_key};
pub use crate::layer::IdempotencyLayer;
pub use crate::principal::{
    Anonymous, ByExtension, OrAnonymous, Principal, Principals, by_extension, or_anonymous,
};
pub use crate::problem::Problem;
pub use crate::service::Idempotency;
