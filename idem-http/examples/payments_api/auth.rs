//! Who is asking. A real one would verify a token; what matters is that it stands in front of
//! the layer, and that it leaves an identity, not the token.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

#[derive(Clone, Debug)]
pub(crate) struct User(pub(crate) &'static str);

pub(crate) async fn authenticate(mut request: Request, next: Next) -> Response {
    let user = match request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes) {
        Some(b"Bearer alice") => User("alice"),
        Some(b"Bearer bob") => User("bob"),
        _ => return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response(),
    };
    request.extensions_mut().insert(user);
    next.run(request).await
}
