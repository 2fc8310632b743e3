//! The client's half: a key for each logical request, the same on every retry.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use idem_http::client::{MintKey, RetryWithKey};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Infallible> {
//! # let https = tower::service_fn(|request: Request<Full<Bytes>>| async move {
//! #     assert!(request.headers().contains_key("idempotency-key"));
//! #     Ok::<_, Infallible>(Response::new(""))
//! # });
//! let mut client = ServiceBuilder::new()
//!     .layer(MintKey::default())
//!     .retry(RetryWithKey::default())
//!     .service(https);
//! let request = Request::post("https://api.example.com/charges").body(Full::from("{}")).unwrap();
//! let response = client.ready().await?.call(request).await?;
//! # let _ = response;
//! # Ok(())
//! # }
//! ```

mod mint;
mod retry;

pub use self::mint::{MintKey, MintingService};
pub use self::retry::RetryWithKey;
