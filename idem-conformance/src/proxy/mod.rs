//! A TCP proxy that injects faults between a client and its server.
//!
//! It stands on a port of the loopback interface, passes everything on, and harms the requests it
//! is told to: it loses them before the server has seen them, or their answers after the server
//! has acted. To the client, the two look alike, and telling them apart is what law L9 is about.
//!
//! ```
//! # use idem_conformance::proxy::{Fault, Proxy};
//! # async fn example(server: std::net::SocketAddr) -> std::io::Result<()> {
//! let proxy = Proxy::start(server).await?;
//! // … connect the store to `proxy.addr()`, then:
//! proxy.only_with("payment-4711");
//! proxy.next(Fault::ResetAfter);
//! // … the store's next call about this key is executed, and its answer is lost.
//! # Ok(())
//! # }
//! ```
//!
//! # What a request is
//! The proxy knows no protocol. What it reads from a connection at once counts as one request,
//! which is true of clients that send small requests one after the other. Where several share a
//! connection, a fault meets all that were read with the one it was meant for, and answers that
//! were under way; give the call its own connection if that matters.

mod fault;
mod needle;
mod relay;
mod rules;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use self::fault::Fault;
use self::relay::relay;
use self::rules::Rules;

/// The most connections that wait to be accepted.
const BACKLOG: u32 = 128;

/// A running proxy; its port and its connections end when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    upstream: SocketAddr,
    rules: Arc<Rules>,
    /// Ends the connections: they end at a change, and when this is dropped.
    cut: watch::Sender<()>,
    /// Accepts connections; none while the port is shut.
    door: Option<JoinHandle<()>>,
    /// Never listens. While the port is shut it keeps others from taking it.
    _holder: TcpSocket,
}

impl Proxy {
    /// Starts a proxy in front of `upstream` that passes everything on.
    ///
    /// # Errors
    /// The system has no port to give.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        let holder = bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let (cut, _) = watch::channel(());
        let mut this = Self {
            address: holder.local_addr()?,
            upstream,
            rules: Arc::default(),
            cut,
            door: None,
            _holder: holder,
        };
        this.open().await?;
        Ok(this)
    }

    /// The address for clients to connect to.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Harms only requests that contain these bytes, such as an idempotency key, also where two
    /// reads share them. Empty means every request, which is the default.
    pub fn only_with(&self, needle: impl Into<Vec<u8>>) {
        self.rules.only_with(needle.into());
    }

    /// Does this to every request from now on, until it is set to something else.
    pub fn set(&self, fault: Fault) {
        self.rules.set(fault);
    }

    /// Does this to the next request, once, before what was [set](Self::set); several of them
    /// queue.
    pub fn next(&self, fault: Fault) {
        self.rules.next(fault);
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> u64 {
        self.rules.connections()
    }

    /// How many requests contained the needle so far, harmed or not: a client that silently sends
    /// a request again is found out by it.
    pub fn hits(&self) -> u64 {
        self.rules.hits()
    }

    /// Resets the connections that are open now. New ones are accepted as before.
    pub fn cut(&self) {
        self.cut.send_replace(());
    }

    /// Closes the port: a connection is refused, until the port is [opened](Self::open) again.
    /// Open connections stay.
    pub async fn shut(&mut self) {
        if let Some(door) = self.door.take() {
            door.abort();
            // Once it has ended, its listener is gone.
            let _ = door.await;
        }
    }

    /// Opens the same port again after [`shut`](Self::shut).
    ///
    /// # Errors
    /// The system does not give the port back.
    pub async fn open(&mut self) -> io::Result<()> {
        self.shut().await;
        let listener = bind(self.address)?.listen(BACKLOG)?;
        let (rules, cut) = (Arc::clone(&self.rules), self.cut.subscribe());
        self.door = Some(tokio::spawn(accept(listener, self.upstream, rules, cut)));
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(door) = &self.door {
            door.abort();
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept(
    listener: TcpListener,
    upstream: SocketAddr,
    rules: Arc<Rules>,
    cut: watch::Receiver<()>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Either one connection's own, or the system is short of files for a while.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        rules.connected();
        let (rules, mut cut) = (Arc::clone(&rules), cut.clone());
        cut.mark_unchanged();
        tokio::spawn(async move { relay(client, upstream, &rules, cut).await });
    }
}
