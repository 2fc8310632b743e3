//! An API that charges cards, each request once.
//!
//! ```text
//! cargo run --example payments_api
//! curl -i localhost:3000/charges -H 'Authorization: Bearer alice' -H 'Idempotency-Key: "k-1"' \
//!      -H 'Content-Type: application/json' -d '{"order_id":"o-1","amount":100}'
//! ```
//!
//! | variable | default | |
//! |---|---|---|
//! | `PORT` | `3000` | on 127.0.0.1; `0` takes a free one |
//! | `PROVIDER_MS` | `300` | how long a charge takes |
//! | `IN_FLIGHT` | `wait` | or `reject`: 409 for the same request while it runs |
//! | `STORE` | `memory` | or `redis://…`, or `postgres://…`: for several processes at once |

mod app;
mod auth;
mod provider;

use std::env::{self, VarError};
use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use idem_core::{Coordinator, InFlight, Store};
use idem_memory::MemoryStore;
use idem_postgres::PostgresStore;
use idem_redis::{AtStart, RedisStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::provider::Provider;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let store = open(&variable("STORE", "memory".to_owned())?).await?;
    let provider = Provider::new(Duration::from_millis(variable("PROVIDER_MS", 300)?));
    let idem = Coordinator::builder(store).in_flight(in_flight()?).build()?;
    let app = app::router(&idem, provider)?;

    let listener = TcpListener::bind(("127.0.0.1", variable("PORT", 3000)?)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).with_graceful_shutdown(interrupted()).await?;
    // Charges whose clients have left are made and recorded all the same.
    idem.drain(Duration::from_secs(30)).await?;
    println!("every charge is recorded");
    Ok(())
}

/// The store at a URL. Any of them will do: the layer sees no difference.
async fn open(url: &str) -> Result<Arc<dyn Store>, Failure> {
    Ok(match url.split_once("://").map_or(url, |(scheme, _)| scheme) {
        "memory" => Arc::new(MemoryStore::new()),
        "redis" | "rediss" => {
            let builder = RedisStore::builder().prefix("payments_api");
            let store = builder.at_start(AtStart::Skip).connect(url).await?;
            // One that is not there is an error here, not a reason to run unprotected. What it is
            // set up to lose is for an operator to judge.
            for finding in store.check().await? {
                eprintln!("{finding}");
            }
            Arc::new(store)
        }
        "postgres" | "postgresql" => {
            Arc::new(PostgresStore::builder().table("payments_api").connect(url).await?)
        }
        _ => return Err(format!("STORE is memory, redis://… or postgres://…, not {url}").into()),
    })
}

/// By Ctrl-C, or as a supervisor ends it (SIGTERM).
async fn interrupted() {
    let noticed = async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    };
    if let Err(error) = noticed.await {
        eprintln!("an interrupt will not be noticed: {error}");
        std::future::pending::<()>().await;
    }
}

fn in_flight() -> Result<InFlight, Failure> {
    match variable("IN_FLIGHT", "wait".to_owned())?.as_str() {
        "wait" => Ok(InFlight::Wait { at_most: Duration::from_secs(30) }),
        "reject" => Ok(InFlight::Reject),
        other => Err(format!("IN_FLIGHT is wait or reject, not {other}").into()),
    }
}

/// An environment variable, or the default where there is none.
fn variable<T>(name: &str, default: T) -> Result<T, Failure>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    match env::var(name) {
        Ok(text) => text.parse().map_err(|error| format!("{name} is {text}: {error}").into()),
        Err(VarError::NotPresent) => Ok(default),
        Err(error) => Err(format!("{name}: {error}").into()),
    }
}
