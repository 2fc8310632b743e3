//! What is set once for a layer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use idem_core::Operation;

use crate::disposition::Disposition;
use crate::fingerprint::FingerprintParts;
use crate::headers::StoredHeaders;
use crate::key::KeyFormat;
use crate::principal::Principals;
use crate::problem::Problem;

pub(crate) type Statuses = dyn Fn(StatusCode) -> Disposition + Send + Sync;
pub(crate) type Render = dyn Fn(&Problem) -> Response<Bytes> + Send + Sync;

/// All that a layer's services share.
pub(crate) struct Config {
    pub(crate) operation: Operation,
    pub(crate) principals: Arc<dyn Principals>,
    pub(crate) methods: Vec<Method>,
    pub(crate) format: KeyFormat,
    pub(crate) required: bool,
    pub(crate) fingerprint: FingerprintParts,
    pub(crate) max_body: usize,
    pub(crate) max_response: usize,
    pub(crate) patience: Duration,
    pub(crate) statuses: Arc<Statuses>,
    pub(crate) stored_headers: StoredHeaders,
    pub(crate) problem_base: String,
    pub(crate) render: Option<Arc<Render>>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("operation", &self.operation)
            .field("methods", &self.methods)
            .field("format", &self.format)
            .field("required", &self.required)
            .field("fingerprint", &self.fingerprint)
            .field("max_body", &self.max_body)
            .field("max_response", &self.max_response)
            .field("patience", &self.patience)
            .field("stored_headers", &self.stored_headers)
            .field("problem_base", &self.problem_base)
            .finish_non_exhaustive()
    }
}
