//! What a key is unique in: the operation, the method, the concrete path, the principal.

use http::request::Parts;
use idem_core::{Fingerprint, FingerprintError};

use crate::principal::Principal;

/// The tenant of the core's scope, for method, path and principal together. The operation's name
/// stays what it is: a label of few values.
///
/// A hash, since a path has no limit and a principal may be personal. Its parts are tagged and
/// length-prefixed, and no principal's id is "none".
pub(crate) fn tenant(request: &Parts, principal: &Principal) -> Result<String, FingerprintError> {
    let principal = match principal {
        Principal::Id(id) => Some(id),
        Principal::Anonymous => None,
    };
    // In the order in which they are hashed, so that none is moved.
    let fields = Fingerprint::fields()
        .field("path", path(request))
        .field("method", request.method.as_str())
        .field("principal", &principal);
    fields.finish().map(|hash| hash.to_string())
}

/// The path as the client sent it. A nested axum router cuts its prefix off the URI, and with it
/// what tells two resources apart.
pub(crate) fn path(request: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = request.extensions.get() {
        return uri.path();
    }
    request.uri.path()
}
