//! One connection through the proxy.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::sleep;

use super::fault::Fault;
use super::needle::Tail;
use super::rules::Rules;

const READ: usize = 64 * 1024;

/// How the client's side of a connection ends.
enum End {
    InOrder,
    Reset,
}

/// What happens to the server's answers from now on.
#[derive(Clone, Copy)]
enum Answers {
    Pass,
    Swallow,
    /// This many more bytes pass, then the connection is reset.
    Truncate(usize),
}

/// Relays one connection until it ends or is cut.
pub(super) async fn relay(
    mut client: TcpStream,
    upstream: SocketAddr,
    rules: &Rules,
    mut cut: watch::Receiver<()>,
) {
    let relayed = async {
        let Ok(mut server) = TcpStream::connect(upstream).await else { return (End::Reset, None) };
        // Small packets are the point here.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let end = converse(&mut client, &mut server, rules).await;
        (end, Some(server))
    };
    let (end, server) = tokio::select! {
        ended = relayed => ended,
        _ = cut.changed() => (End::Reset, None),
    };
    if matches!(end, End::Reset) {
        // Closing such a socket sends a reset.
        let _ = client.set_zero_linger();
    }
    drop(client);
    if let Some(server) = server {
        tokio::select! {
            () = part(server) => {}
            _ = cut.changed() => {}
        }
    }
}

/// Takes leave of the server so that it still executes what it was sent: closing a socket with
/// unread answers would reset the connection under its requests.
async fn part(mut server: TcpStream) {
    let _ = server.shutdown().await;
    let mut unread = vec![0; READ];
    while matches!(server.read(&mut unread).await, Ok(1..)) {}
}

/// Both directions at once: were they taken in turns, two full buffers could wait for each other.
async fn converse(client: &mut TcpStream, server: &mut TcpStream, rules: &Rules) -> End {
    let answers = Mutex::new(Answers::Pass);
    let (client_reads, client_writes) = client.split();
    let (server_reads, server_writes) = server.split();
    tokio::select! {
        end = forth(client_reads, server_writes, rules, &answers) => end,
        end = back(server_reads, client_writes, &answers) => end,
    }
}

/// Passes requests on, with the faults that are due.
async fn forth(
    mut client: ReadHalf<'_>,
    mut server: WriteHalf<'_>,
    rules: &Rules,
    answers: &Mutex<Answers>,
) -> End {
    let (mut buffer, mut tail) = (vec![0; READ], Tail::default());
    loop {
        let Ok(read) = client.read(&mut buffer).await else { return End::Reset };
        let request = buffer.get(..read).unwrap_or_default();
        if request.is_empty() {
            // The client has said all; what the server has to say may still come.
            let _ = server.shutdown().await;
            return pending().await;
        }
        match rules.judge(&mut tail, request) {
            Fault::Pass => {}
            Fault::ResetBefore => return End::Reset,
            Fault::ResetAfter => set(answers, Answers::Truncate(0)),
            Fault::HangBefore => return hang(client, &mut buffer).await,
            Fault::HangAfter => set(answers, Answers::Swallow),
            Fault::Delay(time) => sleep(time).await,
            Fault::Truncate(bytes) => set(answers, Answers::Truncate(bytes)),
        }
        if server.write_all(request).await.is_err() {
            return End::Reset;
        }
    }
}

/// Reads and forgets, until the client gives up.
async fn hang(mut client: ReadHalf<'_>, buffer: &mut [u8]) -> End {
    while matches!(client.read(buffer).await, Ok(1..)) {}
    End::InOrder
}

/// Passes answers on, or does not.
async fn back(
    mut server: ReadHalf<'_>,
    mut client: WriteHalf<'_>,
    answers: &Mutex<Answers>,
) -> End {
    let mut buffer = vec![0; READ];
    loop {
        let Ok(read) = server.read(&mut buffer).await else { return End::Reset };
        if read == 0 {
            let _ = client.shutdown().await;
            return End::InOrder;
        }
        let passes = match get(answers) {
            Answers::Pass => read,
            Answers::Swallow => 0,
            Answers::Truncate(bytes) => bytes.min(read),
        };
        let answer = buffer.get(..passes).unwrap_or_default();
        if client.write_all(answer).await.is_err() {
            return End::Reset;
        }
        if let Answers::Truncate(bytes) = get(answers) {
            if bytes <= read {
                return End::Reset;
            }
            set(answers, Answers::Truncate(bytes - passes));
        }
    }
}

fn get(answers: &Mutex<Answers>) -> Answers {
    *answers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set(answers: &Mutex<Answers>, to: Answers) {
    *answers.lock().unwrap_or_else(PoisonError::into_inner) = to;
}
