//! Whose key it is.

use std::fmt;
use std::marker::PhantomData;

use http::request::Parts;

/// Whose request it is. A key of one principal is never another's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Principal {
    /// Somebody, by an identity that outlives its credentials: an account or user id. **Not an
    /// access token**: when it is rotated between a request and its retry, the retry runs again.
    Id(String),
    /// Nobody in particular. Whoever is anonymous shares one scope, which is no principal's.
    Anonymous,
}

/// Says whose request it is, from what stands before it: a layer that authenticates.
///
/// A closure that gives an id, or `None` for a request that has none, is one;
/// [`by_extension`] reads what an authenticating layer has left in the request's extensions.
/// There is no default: a layer that does not know whose key it is would hand one caller's
/// response to another.
pub trait Principals: Send + Sync + 'static {
    /// The request's principal. `None`, or an empty id, refuses the request.
    fn principal(&self, request: &Parts) -> Option<Principal>;
}

impl<F: Fn(&Parts) -> Option<String> + Send + Sync + 'static> Principals for F {
    fn principal(&self, request: &Parts) -> Option<Principal> {
        self(request).map(Principal::Id)
    }
}

/// Nobody is told apart: every caller shares one scope, and can be given another's response by
/// sending the same key and request. For services with one client, or none to tell apart.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to it")]
pub struct Anonymous;

impl Principals for Anonymous {
    fn principal(&self, _: &Parts) -> Option<Principal> {
        Some(Principal::Anonymous)
    }
}

/// Reads the principal from an extension of the request; made by [`by_extension`].
pub struct ByExtension<T, F>(F, PhantomData<fn(&T)>);

/// Reads the principal from the extension `T` that an authenticating layer in front leaves in the
/// request. A request without it is refused.
///
/// ```
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// let principals = idem_http::by_extension(|user: &User| format!("user-{}", user.id));
/// ```
pub fn by_extension<T, F>(id: F) -> ByExtension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> String + Send + Sync + 'static,
{
    ByExtension(id, PhantomData)
}

impl<T, F> Principals for ByExtension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> String + Send + Sync + 'static,
{
    fn principal(&self, request: &Parts) -> Option<Principal> {
        request.extensions.get::<T>().map(|found| Principal::Id(self.0(found)))
    }
}

impl<T, F> fmt::Debug for ByExtension<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByExtension")
    }
}

/// Takes requests without a principal for anonymous; made by [`or_anonymous`].
#[derive(Clone, Copy, Debug)]
pub struct OrAnonymous<P>(P);

/// Takes a request to which `principals` gives none for [`Anonymous`](Principal::Anonymous),
/// instead of refusing it: those share a scope, which is no principal's.
pub fn or_anonymous<P: Principals>(principals: P) -> OrAnonymous<P> {
    OrAnonymous(principals)
}

impl<P: Principals> Principals for OrAnonymous<P> {
    fn principal(&self, request: &Parts) -> Option<Principal> {
        self.0.principal(request).or(Some(Principal::Anonymous))
    }
}
