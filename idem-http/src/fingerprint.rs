//! What makes two requests the same request.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;
use idem_core::{BoxError, Fingerprint, FingerprintKey};
use serde::{Serialize, Serializer};

use crate::scope::path;

/// How a request's body counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyPart {
    /// Byte for byte: a retry must send the same bytes, as one of the same client does. The
    /// default.
    #[default]
    Bytes,
    /// As JSON: the order of members and white space mean nothing. A number is what `serde_json`
    /// reads it as, a 64-bit integer or a double, and of two members with one name the last
    /// counts. A body that is not JSON counts byte for byte.
    Json,
    /// Not at all: a key that was used stands for any body.
    Ignored,
}

type Rule = dyn Fn(&Parts, &Bytes) -> Result<Fingerprint, BoxError> + Send + Sync;

/// Which parts of a request make it the same request.
///
/// Method and path always do. By default so do the query, the content type and the body.
///
/// ```
/// use idem_http::{BodyPart, FingerprintParts};
///
/// // Members in another order are the same charge; the version of the API is not a detail.
/// let parts = FingerprintParts::default().body(BodyPart::Json).header("api-version")?;
/// # Ok::<(), http::header::InvalidHeaderName>(())
/// ```
#[derive(Clone)]
pub struct FingerprintParts {
    query: bool,
    body: BodyPart,
    headers: Vec<HeaderName>,
    key: Option<FingerprintKey>,
    rule: Option<Arc<Rule>>,
}

impl Default for FingerprintParts {
    fn default() -> Self {
        let headers = vec![CONTENT_TYPE];
        Self { query: true, body: BodyPart::Bytes, headers, key: None, rule: None }
    }
}

impl FingerprintParts {
    /// A rule of one's own, for a request that is more or less than its parts: only some fields
    /// of a body, say. It is given the head and the whole body.
    ///
    /// Its error refuses the request as malformed (400), and its text is shown to the client.
    /// The scope still tells methods, paths and principals apart.
    pub fn by<F>(rule: F) -> Self
    where
        F: Fn(&Parts, &Bytes) -> Result<Fingerprint, BoxError> + Send + Sync + 'static,
    {
        Self { rule: Some(Arc::new(rule)), ..Self::default() }
    }

    /// The query does not count.
    pub fn ignore_query(self) -> Self {
        Self { query: false, ..self }
    }

    /// The content type does not count. A `multipart` boundary that a client makes anew for each
    /// try is one reason; its body then differs too.
    pub fn ignore_content_type(mut self) -> Self {
        self.headers.retain(|name| name != CONTENT_TYPE);
        self
    }

    /// How the body counts.
    pub fn body(self, body: BodyPart) -> Self {
        Self { body, ..self }
    }

    /// The values of this request header count too.
    ///
    /// # Errors
    /// If it is no name of a header.
    pub fn header<N>(mut self, name: N) -> Result<Self, N::Error>
    where
        N: TryInto<HeaderName>,
    {
        let name = name.try_into()?;
        if !self.headers.contains(&name) {
            self.headers.push(name);
        }
        Ok(self)
    }

    /// Makes fingerprints that cannot be guessed, of personal data; see [`FingerprintKey`].
    pub fn keyed(self, key: FingerprintKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// What counts, for people.
    pub(crate) fn names(&self) -> String {
        if self.rule.is_some() {
            return "method, path and what else defines this operation".to_owned();
        }
        let mut names = vec!["method", "path"];
        names.extend(self.query.then_some("query"));
        names.extend(self.headers.iter().map(HeaderName::as_str));
        names.extend((self.body != BodyPart::Ignored).then_some("body"));
        let last = names.pop().unwrap_or_default();
        format!("{} and {last}", names.join(", "))
    }

    pub(crate) fn of(&self, request: &Parts, body: &Bytes) -> Result<Fingerprint, BoxError> {
        if let Some(rule) = &self.rule {
            return rule(request, body);
        }
        let fields = self.key.as_ref().map_or_else(Fingerprint::fields, FingerprintKey::fields);
        let json = || serde_json::from_slice::<serde_json::Value>(body);
        // Mostly in the order in which they are hashed, so that little is moved.
        let mut fields = match self.body {
            BodyPart::Ignored => fields,
            BodyPart::Bytes => fields.bytes("body", body),
            BodyPart::Json => match json() {
                Ok(value) => fields.field("json body", &value),
                Err(_) => fields.bytes("body", body),
            },
        };
        fields = fields.field("path", path(request));
        if self.query {
            fields = fields.field("query", &request.uri.query());
        }
        fields = fields.field("method", request.method.as_str());
        for name in &self.headers {
            let values = request.headers.get_all(name).iter();
            let values: Vec<_> = values.map(|value| Raw(value.as_bytes())).collect();
            fields = fields.field(&format!("header {name}"), &values);
        }
        Ok(fields.finish()?)
    }
}

/// Bytes as bytes, where serde would take them for a list of numbers.
struct Raw<'a>(&'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl fmt::Debug for FingerprintParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query, body, headers, key, rule } = self;
        f.debug_struct("FingerprintParts")
            .field("query", query)
            .field("body", body)
            .field("headers", headers)
            .field("keyed", &key.is_some())
            .field("by_rule", &rule.is_some())
            .finish()
    }
}
