//! The handler of the example `payments_api` over a socket, behind the layer and without it.
//!
//! Server and clients share this process and its cores. A provider that answers at once hides
//! nothing of what the layer costs; a real one takes a thousand times as long as the layer does.

mod api;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use idem_bench::{Better, BoxError, Comparison, Options, time};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// A quick provider.
const TAKES: Duration = Duration::from_millis(5);
const WAITED_FOR: Duration = Duration::from_millis(20);

fn main() -> Result<(), BoxError> {
    let options = Options::from_args();
    let runtime =
        &tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for connections in [1, 16, 64] {
        let bench = Bench {
            runtime,
            clients: runtime.block_on(connect(Duration::ZERO, connections))?,
            each: options.count(12_000, 64).div_ceil(connections),
        };
        let title = format!("http, {connections} connection(s)");
        Comparison::new(title, "us/request", Better::Higher, ["fresh", "replay"])
            .way("the handler", || bench.measure("/bare/charges"))
            .way_with_targets("behind the layer", [Some(">= .90"), Some(">= .95")], || {
                bench.measure("/charges")
            })
            .run(&options)?;
    }
    let clients = runtime.block_on(connect(TAKES, 64))?;
    let bench = Bench { runtime, clients, each: options.count(50, 2) };
    let title = format!("http, 64 connections, a provider of {TAKES:?}");
    Comparison::new(title, "us/request", Better::Higher, ["fresh"])
        .way("the handler", || bench.fresh("/bare/charges"))
        .way("behind the layer", || bench.fresh("/charges"))
        .run(&options)?;
    let clients = &runtime.block_on(connect(WAITED_FOR, 64))?;
    let wait = |path| runtime.block_on(together(clients, path));
    let title = format!("http, 64 clients of a charge of {WAITED_FOR:?}");
    Comparison::new(title, "ms until all have it", Better::Lower, ["waiting"])
        .way("each its own", || wait("/bare/charges"))
        .way("all the same", || wait("/charges"))
        .run(&options)
}

/// A connection, for one caller at a time.
type Client = Arc<Mutex<SendRequest<Full<Bytes>>>>;

/// A request, and whose it is.
type Sent = (Client, Request<Full<Bytes>>);

struct Bench<'a> {
    runtime: &'a Runtime,
    clients: Vec<Client>,
    each: usize,
}

impl Bench<'_> {
    /// A new key each time, and then, for each client, one key each time.
    fn measure(&self, path: &'static str) -> Result<[f64; 2], BoxError> {
        let [fresh] = self.fresh(path)?;
        let again: Vec<String> = self.clients.iter().map(|_| new_key()).collect();
        let replays =
            self.requests(path, |client| again.get(client).cloned().unwrap_or_default())?;
        let first: Vec<_> =
            replays.iter().map(|own| own.iter().take(1).cloned().collect()).collect();
        time(self.runtime, first, send)?;
        Ok([fresh, time(self.runtime, replays, send)?])
    }

    fn fresh(&self, path: &'static str) -> Result<[f64; 1], BoxError> {
        Ok([time(self.runtime, self.requests(path, |_| new_key())?, send)?])
    }

    fn requests(
        &self,
        path: &'static str,
        key: impl Fn(usize) -> String,
    ) -> Result<Vec<Vec<Sent>>, BoxError> {
        let of = |(number, client): (usize, &Client)| {
            (0..self.each).map(|_| Ok((client.clone(), request(path, &key(number))?))).collect()
        };
        self.clients.iter().enumerate().map(of).collect()
    }
}

/// How long clients take who ask at once, each for a charge of its own or all for one.
async fn together(clients: &[Client], path: &str) -> Result<[f64; 1], BoxError> {
    let key = new_key();
    let requests = clients.iter().map(|client| Ok((client.clone(), request(path, &key)?)));
    let requests: Vec<_> = requests.collect::<Result<_, BoxError>>()?;
    let began = Instant::now();
    try_join_all(requests.into_iter().map(send)).await?;
    Ok([began.elapsed().as_secs_f64() * 1e3])
}

/// To a server of their own, whose provider takes so long.
async fn connect(takes: Duration, connections: usize) -> Result<Vec<Client>, BoxError> {
    let to = api::serve(takes).await?;
    let connect = async || {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (client, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Arc::new(Mutex::new(client)))
    };
    try_join_all((0..connections).map(|_| connect())).await
}

fn request(path: &str, key: &str) -> Result<Request<Full<Bytes>>, BoxError> {
    Ok(Request::post(path)
        .header("host", "api")
        .header("authorization", "Bearer alice")
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Full::from(r#"{"order_id":"o-1","amount":100}"#))?)
}

async fn send((client, request): Sent) -> Result<(), BoxError> {
    let mut client = client.lock().await;
    client.ready().await?;
    let response = client.send_request(request).await?;
    if response.status() != StatusCode::CREATED {
        return Err(format!("{response:?}").into());
    }
    response.into_body().collect().await?;
    Ok(())
}

/// A key that no request has had.
fn new_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("\"k-{}\"", NEXT.fetch_add(1, Ordering::Relaxed))
}
