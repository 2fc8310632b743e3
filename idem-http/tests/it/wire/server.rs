//! A server on a port of its own, a handler with gates, and clients.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use idem_core::BoxError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::support::{Answer, Calls, behind, layer, post, routes};

/// A handler that says when it has begun, and ends when it may.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) begun: Arc<Semaphore>,
    pub(crate) may_end: Arc<Semaphore>,
    pub(crate) done: Calls,
}

impl Provider {
    /// One that may always end.
    pub(crate) fn free() -> Self {
        let provider = Self::gated();
        provider.may_end.add_permits(1_000);
        provider
    }

    pub(crate) fn gated() -> Self {
        let closed = || Arc::new(Semaphore::new(0));
        Self { begun: closed(), may_end: closed(), done: Calls::default() }
    }

    pub(crate) fn routes(&self) -> Router {
        let provider = self.clone();
        routes(move |_| {
            let provider = provider.clone();
            async move {
                provider.begun.add_permits(1);
                provider.may_end.acquire().await.unwrap().forget();
                let charge = format!("ch_{}", provider.done.one_more());
                (StatusCode::CREATED, [("location", format!("/charges/{charge}"))], charge)
            }
        })
    }

    /// Waits until a handler has begun.
    pub(crate) async fn has_begun(&self) {
        self.begun.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_end(&self) {
        self.may_end.add_permits(1);
    }

    /// Waits until so many charges are done.
    pub(crate) async fn has_done(&self, charges: u32) {
        while self.done.count() < charges {
            tokio::time::sleep(crate::support::MS).await;
        }
    }
}

/// Serves HTTP/1.1 and HTTP/2 until the test's runtime ends.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Serves the provider behind the layer with its defaults.
pub(crate) async fn serve_charges(provider: &Provider) -> SocketAddr {
    serve(behind(provider.routes(), layer())).await
}

pub(crate) type Body = Full<Bytes>;

pub(crate) async fn connect1(to: SocketAddr) -> http1::SendRequest<Body> {
    let stream = TokioIo::new(TcpStream::connect(to).await.unwrap());
    let (client, connection) = http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn connect2(to: SocketAddr) -> http2::SendRequest<Body> {
    dial2(to).await
}

/// For bodies of any kind.
pub(crate) async fn dial2<B>(to: SocketAddr) -> http2::SendRequest<B>
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let stream = TokioIo::new(TcpStream::connect(to).await.unwrap());
    let (client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The charge that every test makes.
pub(crate) fn charge() -> Request<Body> {
    post().header("host", "api").body(Full::from(r#"{"amount":100}"#)).unwrap()
}

pub(crate) async fn whole(response: Response<hyper::body::Incoming>) -> Answer {
    let (parts, body) = response.into_parts();
    Answer::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

/// A connection on which a test writes bytes of its own.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        Self(TcpStream::connect(to).await.unwrap())
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until what was read ends with `end`.
    pub(crate) async fn read_to(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            match self.0.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&read)),
            }
        }
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Reads to the end of the connection.
    pub(crate) async fn read_to_end(&mut self) -> String {
        let mut read = Vec::new();
        self.0.read_to_end(&mut read).await.unwrap();
        String::from_utf8_lossy(&read).into_owned()
    }
}

/// The head of a charge, as it is written on the wire.
pub(crate) fn head(more: &str) -> String {
    format!(
        "POST /charges HTTP/1.1\r\nhost: api\r\nauthorization: Bearer alice\r\n\
         content-type: application/json\r\n{more}\r\n"
    )
}
