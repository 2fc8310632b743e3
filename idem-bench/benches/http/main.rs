//! The HTTP layer over a real socket, as ratios to the same handler without it.
//!
//! `cargo bench -p idem-bench --bench http`. Server and clients share this process and its cores.
//! The variants take turns within each repetition, so that what disturbs one disturbs all; what is
//! printed is the median of the repetitions.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use idem_core::Coordinator;
use idem_http::{Anonymous, IdempotencyLayer};
use idem_memory::MemoryStore;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const REPETITIONS: usize = 7;
const REQUESTS: usize = 12_000;
const WAITED_FOR: Duration = Duration::from_millis(20);

/// Which keys a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// To the handler without the layer.
    Plain,
    /// A new key each time.
    Fresh,
    /// The same key each time.
    Replay,
}

const VARIANTS: [Variant; 3] = [Variant::Plain, Variant::Fresh, Variant::Replay];

type Client = SendRequest<Full<Bytes>>;

async fn charge(Json(order): Json<Value>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({"id": "ch_1", "order": order["order_id"]})))
}

async fn slow(order: Json<Value>) -> (StatusCode, Json<Value>) {
    tokio::time::sleep(WAITED_FOR).await;
    charge(order).await
}

async fn serve() -> SocketAddr {
    let idem = Coordinator::builder(MemoryStore::new()).build().unwrap();
    let layer = IdempotencyLayer::builder(idem.operation("charge"), Anonymous).build().unwrap();
    let app = Router::new()
        .route("/charges", post(charge))
        .route("/slow", post(slow))
        .layer(layer)
        .route("/plain/charges", post(charge))
        .route("/plain/slow", post(slow));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn connect(to: SocketAddr) -> Client {
    let stream = TcpStream::connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (client, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn request(path: &str, key: &str) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("host", "api")
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Full::from(r#"{"order_id":"o-1","amount":100}"#))
        .unwrap()
}

async fn send(client: &mut Client, request: Request<Full<Bytes>>) {
    client.ready().await.unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    response.into_body().collect().await.unwrap();
}

/// A key that no request has had.
fn new_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("\"k-{}\"", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Requests per second, over these connections.
async fn rate(clients: &mut [Client], variant: Variant, requests: usize) -> f64 {
    let each = requests / clients.len();
    let path = if variant == Variant::Plain { "/plain/charges" } else { "/charges" };
    let started = Instant::now();
    join_all(clients.iter_mut().map(async |client| {
        let own = new_key();
        for _ in 0..each {
            let key = if variant == Variant::Replay { own.clone() } else { new_key() };
            send(client, request(path, &key)).await;
        }
    }))
    .await;
    let sent = u32::try_from(each * clients.len()).unwrap();
    f64::from(sent) / started.elapsed().as_secs_f64()
}

/// How long clients take that all wait for one slow charge, against as many that each make one.
async fn waiting(clients: &mut [Client], path: &str) -> f64 {
    let key = new_key();
    let started = Instant::now();
    join_all(clients.iter_mut().map(|client| send(client, request(path, &key)))).await;
    started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn rates(server: SocketAddr, connections: usize) {
    let mut clients = join_all((0..connections).map(|_| connect(server))).await;
    let mut seen = VARIANTS.map(|_| Vec::new());
    for variant in VARIANTS {
        rate(&mut clients, variant, REQUESTS / 4).await;
    }
    for _ in 0..REPETITIONS {
        for (seen, variant) in seen.iter_mut().zip(VARIANTS) {
            seen.push(rate(&mut clients, variant, REQUESTS).await);
        }
    }
    let plain = seen[0].clone();
    for (seen, variant) in seen.into_iter().zip(VARIANTS) {
        let ratios = seen.iter().zip(&plain).map(|(rate, plain)| rate / plain).collect();
        let (rate, ratio) = (median(seen), median(ratios));
        println!("{connections:>4} connections  {variant:<7?} {rate:>8.0}/s  {ratio:.2}");
    }
}

async fn waits(server: SocketAddr, connections: usize) {
    let mut clients = join_all((0..connections).map(|_| connect(server))).await;
    let (mut plain, mut together) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        plain.push(waiting(&mut clients, "/plain/slow").await);
        together.push(waiting(&mut clients, "/slow").await);
    }
    let (plain, together) = (1e3 * median(plain), 1e3 * median(together));
    println!(
        "{connections:>4} clients of one {WAITED_FOR:?} charge: each its own {plain:.1} ms, \
         all waiting for one {together:.1} ms"
    );
}

#[tokio::main]
async fn main() {
    // Run as a test, it only shows that it runs.
    if !std::env::args().any(|argument| argument == "--bench") {
        let mut clients = [connect(serve().await).await];
        for variant in VARIANTS {
            rate(&mut clients, variant, 10).await;
        }
        return;
    }
    let server = serve().await;
    for connections in [1, 16, 64] {
        rates(server, connections).await;
    }
    waits(server, 64).await;
}
