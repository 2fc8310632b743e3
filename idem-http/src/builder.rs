//! Configuring a layer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderName;
use http::{Method, Response, StatusCode};
use idem_core::{Invalid, Operation};
use thiserror::Error;

use crate::config::{Config, Render, Statuses};
use crate::disposition::Disposition;
use crate::fingerprint::FingerprintParts;
use crate::headers::StoredHeaders;
use crate::key::KeyFormat;
use crate::layer::IdempotencyLayer;
use crate::principal::Principals;
use crate::problem::{DEFAULT_BASE, Problem};

/// Why a layer cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The operation cannot work.
    #[error("the operation is invalid: {0}")]
    Operation(#[from] Invalid),
    /// There is no method whose requests are deduplicated.
    #[error("there is no method")]
    NoMethod,
    /// Requests of a safe method (RFC 9110, section 9.2.1) have no effect to deduplicate, and
    /// their answers must not be pinned.
    #[error("{0} is a safe method")]
    SafeMethod(Method),
    /// A header about one connection or the framing of one message cannot be stored.
    #[error("the header {0} is about one message and cannot be replayed")]
    Header(HeaderName),
    /// No response of any size could be kept.
    #[error("a response of at most zero bytes could not be kept")]
    NoResponse,
}

/// Configures an [`IdempotencyLayer`].
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    operation: Operation,
    principals: Arc<dyn Principals>,
    methods: Vec<Method>,
    format: KeyFormat,
    required: bool,
    fingerprint: FingerprintParts,
    max_body: usize,
    max_response: Option<usize>,
    patience: Duration,
    statuses: Arc<Statuses>,
    stored_headers: StoredHeaders,
    problem_base: String,
    render: Option<Arc<Render>>,
}

impl Builder {
    pub(crate) fn new(operation: Operation, principals: impl Principals) -> Self {
        Self {
            operation,
            principals: Arc::new(principals),
            methods: vec![Method::POST, Method::PATCH],
            format: KeyFormat::default(),
            required: true,
            fingerprint: FingerprintParts::default(),
            max_body: 2 << 20,
            max_response: None,
            patience: Duration::from_secs(1),
            statuses: Arc::new(Disposition::of),
            stored_headers: StoredHeaders::default(),
            problem_base: DEFAULT_BASE.to_owned(),
            render: None,
        }
    }

    /// The methods whose requests are deduplicated; all others pass. Default: POST and PATCH.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        Self { methods: methods.into_iter().collect(), ..self }
    }

    /// Which spellings of a key are taken. Default: quoted and bare.
    pub fn key_format(self, format: KeyFormat) -> Self {
        Self { format, ..self }
    }

    /// A request without a key passes, unprotected. Default: it is refused with 400. A key that is
    /// there and malformed is refused all the same.
    pub fn optional_key(self) -> Self {
        Self { required: false, ..self }
    }

    /// What makes two requests the same request. Default: method, path, query, content type and
    /// the bytes of the body.
    pub fn fingerprint(self, fingerprint: FingerprintParts) -> Self {
        Self { fingerprint, ..self }
    }

    /// The largest request body, in bytes, of a request with a key. Default: 2 MiB (2,097,152).
    ///
    /// It is read into memory before the handler runs. A larger one is refused with 413; nothing
    /// was reserved.
    pub fn max_body(self, bytes: usize) -> Self {
        Self { max_body: bytes, ..self }
    }

    /// The largest response body, in bytes, that is held in memory to be stored. Default: the
    /// operation's [`max_result`](idem_core::Operation::max_result), which says what fits a record.
    ///
    /// A larger one flows to its client, and a retry is told that the effect happened. Raise this
    /// alone only where larger results are [kept elsewhere](idem_core::Oversize::Reference).
    pub fn max_response(self, bytes: usize) -> Self {
        Self { max_response: Some(bytes), ..self }
    }

    /// For how long the end of a response body of unknown length is waited for. Default: 1 s.
    ///
    /// A body that has not ended by then is taken for a stream: it flows to its client, and a
    /// retry is told that the effect happened. One of type `text/event-stream` is taken for a
    /// stream at once, one that says its length never.
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// What a response means for its key's record, by its status. Default: [`Disposition::of`].
    /// A handler that says so itself has the last word.
    pub fn statuses<F>(self, rule: F) -> Self
    where
        F: Fn(StatusCode) -> Disposition + Send + Sync + 'static,
    {
        Self { statuses: Arc::new(rule), ..self }
    }

    /// Stores and replays this response header, although it is about one caller or one moment:
    /// `Date`, `Set-Cookie` or an authentication challenge.
    pub fn keep_header(mut self, name: HeaderName) -> Self {
        self.stored_headers.kept.push(name);
        self
    }

    /// Does not store this response header: only the first caller is given it.
    pub fn drop_header(mut self, name: HeaderName) -> Self {
        self.stored_headers.dropped.push(name);
        self
    }

    /// What the type URIs of problem documents begin with. Default: `urn:idem:problem:`.
    pub fn problem_base(self, base: impl Into<String>) -> Self {
        Self { problem_base: base.into(), ..self }
    }

    /// Renders refusals in a way of one's own. Where it sets no `Retry-After` and the problem has
    /// one, it is added.
    pub fn render<F>(self, render: F) -> Self
    where
        F: Fn(&Problem) -> Response<Bytes> + Send + Sync + 'static,
    {
        Self { render: Some(Arc::new(render)), ..self }
    }

    /// The layer.
    ///
    /// # Errors
    /// [`ConfigError`] for what could only fail later, request by request.
    pub fn build(self) -> Result<IdempotencyLayer, ConfigError> {
        self.operation.check()?;
        if self.methods.is_empty() {
            return Err(ConfigError::NoMethod);
        }
        if let Some(safe) = self.methods.iter().find(|method| method.is_safe()) {
            return Err(ConfigError::SafeMethod(safe.clone()));
        }
        let mut kept = self.stored_headers.kept.iter();
        if let Some(name) = kept.find(|name| !StoredHeaders::may_be_kept(name)) {
            return Err(ConfigError::Header(name.clone()));
        }
        let max_response = self.max_response.unwrap_or_else(|| self.operation.largest_result());
        if max_response == 0 {
            return Err(ConfigError::NoResponse);
        }
        Ok(IdempotencyLayer::new(Config {
            operation: self.operation,
            principals: self.principals,
            methods: self.methods,
            format: self.format,
            required: self.required,
            fingerprint: self.fingerprint,
            max_body: self.max_body,
            max_response,
            patience: self.patience,
            statuses: self.statuses,
            stored_headers: self.stored_headers,
            problem_base: self.problem_base,
            render: self.render,
        }))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("operation", &self.operation).finish_non_exhaustive()
    }
}
