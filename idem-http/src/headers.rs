//! Which response headers are stored and replayed.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Tells the client that a response was replayed.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// About one connection (RFC 9110, section 7.6.1) or the framing of one message: a replay has its
/// own. Storing one is refused.
const OF_ONE_MESSAGE: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    IDEMPOTENT_REPLAYED,
];

/// About one moment or one caller. Not stored unless a layer asks for it.
const OF_ONE_CALLER: [HeaderName; 7] = [
    header::DATE,
    header::PROXY_AUTHENTICATE,
    header::SET_COOKIE,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("authentication-info"),
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("set-cookie2"),
];

/// Which response headers are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredHeaders {
    pub(crate) kept: Vec<HeaderName>,
    pub(crate) dropped: Vec<HeaderName>,
}

impl StoredHeaders {
    /// Whether a header of this name can be stored at all.
    pub(crate) fn may_be_kept(name: &HeaderName) -> bool {
        !OF_ONE_MESSAGE.contains(name)
    }

    /// The headers to store, repeats and order included.
    pub(crate) fn of<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
        let hops: Vec<_> = headers.get_all(header::CONNECTION).iter().collect();
        headers
            .iter()
            .filter(move |(name, _)| self.stores(name) && !hops.iter().any(|hop| lists(hop, name)))
    }

    fn stores(&self, name: &HeaderName) -> bool {
        if OF_ONE_MESSAGE.contains(name) || self.dropped.contains(name) {
            return false;
        }
        !OF_ONE_CALLER.contains(name) || self.kept.contains(name)
    }
}

/// Whether a `Connection` header names this one, which makes it a header of the connection.
fn lists(connection: &HeaderValue, name: &HeaderName) -> bool {
    let options = connection.as_bytes().split(|byte| *byte == b',');
    options.into_iter().any(|option| option.trim_ascii().eq_ignore_ascii_case(name.as_ref()))
}
