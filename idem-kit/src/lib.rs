#![doc = include_str!("../README.md")]

#[doc(inline)]
pub use idem_core::*;

/// The store in this process's memory.
#[cfg(feature = "memory")]
pub mod memory {
    #[doc(inline)]
    pub use idem_memory::*;
}

/// The store on Postgres, and one transaction with the application's writes.
#[cfg(feature = "postgres")]
pub mod postgres {
    #[doc(inline)]
    pub use idem_postgres::*;
}

/// The store on Redis or Valkey.
#[cfg(any(feature = "redis", feature = "fred"))]
pub mod redis {
    #[doc(inline)]
    pub use idem_redis::*;
}

/// The `Idempotency-Key` header, as a tower layer.
#[cfg(feature = "http")]
pub mod http {
    #[doc(inline)]
    pub use idem_http::*;
}

/// The front page of the repository: its code must compile and run too.
#[cfg(all(doctest, feature = "memory"))]
#[doc = include_str!("../../README.md")]
struct FrontPage;
