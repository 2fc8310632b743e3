//! Every fault of the proxy, before a server that echoes and remembers.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_conformance::proxy::{Fault, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Short enough to wait for an answer that must not come.
const A_MOMENT: Duration = Duration::from_millis(200);
/// Ends a test that hangs.
const LONG: Duration = Duration::from_secs(30);

/// Answers with what it is sent, and remembers all of it.
struct Echo {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
        let ear = Arc::clone(&heard);
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let ear = Arc::clone(&ear);
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while let Ok(read @ 1..) = client.read(&mut buffer).await {
                        ear.lock().unwrap().extend_from_slice(&buffer[..read]);
                        if client.write_all(&buffer[..read]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }
}

async fn start() -> (Echo, Proxy, TcpStream) {
    let echo = Echo::start().await;
    let proxy = Proxy::start(echo.address).await.unwrap();
    let client = TcpStream::connect(proxy.addr()).await.unwrap();
    (echo, proxy, client)
}

/// Sends a request and waits for as many bytes of answer.
async fn call(client: &mut TcpStream, request: &[u8]) -> std::io::Result<Vec<u8>> {
    client.write_all(request).await?;
    let mut answer = vec![0; request.len()];
    timeout(LONG, client.read_exact(&mut answer)).await.unwrap()?;
    Ok(answer)
}

async fn is_reset(client: &mut TcpStream) -> bool {
    let end = timeout(LONG, client.read_u8()).await.unwrap();
    end.unwrap_err().kind() == ErrorKind::ConnectionReset
}

async fn is_silent(client: &mut TcpStream) -> bool {
    timeout(A_MOMENT, client.read_u8()).await.is_err()
}

#[tokio::test]
async fn without_a_fault_everything_passes() {
    let (_echo, proxy, mut client) = start().await;
    let large = vec![7; 1 << 20];
    let (mut reads, mut writes) = client.split();
    let mut answer = vec![0; large.len()];
    let (sent, received) = tokio::join!(writes.write_all(&large), reads.read_exact(&mut answer));
    sent.unwrap();
    received.unwrap();
    assert_eq!(answer, large);
    assert_eq!(proxy.connections(), 1);
    assert!(proxy.hits() >= 1);
}

#[tokio::test]
async fn the_end_of_a_conversation_passes_in_both_directions() {
    let (_echo, _proxy, mut client) = start().await;
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    timeout(LONG, client.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, b"last words");
}

// C103: to the client, a lost request and a lost answer look alike; they are not.
#[tokio::test]
async fn a_reset_comes_before_the_server_has_seen_the_request_or_after() {
    for (fault, seen) in [(Fault::ResetBefore, &b""[..]), (Fault::ResetAfter, b"pay")] {
        let (echo, proxy, mut client) = start().await;
        proxy.next(fault);
        client.write_all(b"pay").await.unwrap();
        assert!(is_reset(&mut client).await, "{fault:?}");
        assert_eq!(echo.heard(), seen, "{fault:?}");

        // Once was meant once.
        let mut again = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(call(&mut again, b"pay").await.unwrap(), b"pay");
        assert_eq!((proxy.connections(), proxy.hits()), (2, 2));
    }
}

#[tokio::test]
async fn a_hang_comes_before_the_server_has_seen_the_request_or_after() {
    for (fault, seen) in [(Fault::HangBefore, &b""[..]), (Fault::HangAfter, b"pay+more")] {
        let (echo, proxy, mut client) = start().await;
        proxy.next(fault);
        client.write_all(b"pay").await.unwrap();
        assert!(is_silent(&mut client).await, "{fault:?}");
        // The connection stays lost, though the fault was meant once.
        client.write_all(b"+more").await.unwrap();
        assert!(is_silent(&mut client).await, "{fault:?}");
        assert_eq!(echo.heard(), seen, "{fault:?}");
    }
}

#[tokio::test]
async fn a_delayed_request_is_answered_in_the_end() {
    let (echo, proxy, mut client) = start().await;
    proxy.next(Fault::Delay(A_MOMENT * 2));
    client.write_all(b"pay").await.unwrap();
    assert!(is_silent(&mut client).await);
    assert!(echo.heard().is_empty());
    assert_eq!(timeout(LONG, client.read_u8()).await.unwrap().unwrap(), b'p');
}

#[tokio::test]
async fn a_truncated_answer_has_just_the_bytes_asked_for() {
    for bytes in [0, 1, 2, 3, 9] {
        let (echo, proxy, mut client) = start().await;
        proxy.next(Fault::Truncate(bytes));
        client.write_all(b"pay").await.unwrap();
        let mut answer = vec![0; bytes.min(3)];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"pay"[..bytes.min(3)]);
        if bytes > 3 {
            // The cut is in an answer that comes in several pieces.
            client.write_all(b"pay, pay").await.unwrap();
            let mut answer = vec![0; bytes - 3];
            client.read_exact(&mut answer).await.unwrap();
        }
        assert!(is_reset(&mut client).await, "{bytes}");
        assert!(echo.heard().starts_with(b"pay"));
    }
}

#[tokio::test]
async fn a_fault_that_is_set_stays_until_it_is_changed_and_others_go_before() {
    let (_echo, proxy, mut client) = start().await;
    proxy.set(Fault::ResetBefore);
    proxy.next(Fault::Pass);
    proxy.next(Fault::Pass);
    call(&mut client, b"1").await.unwrap();
    call(&mut client, b"2").await.unwrap();
    for _ in 0..2 {
        client.write_all(b"3").await.unwrap();
        assert!(is_reset(&mut client).await);
        client = TcpStream::connect(proxy.addr()).await.unwrap();
    }
    proxy.set(Fault::Pass);
    call(&mut client, b"4").await.unwrap();
}

#[tokio::test]
async fn only_requests_with_the_needle_are_harmed_also_in_two_reads() {
    let (echo, proxy, mut client) = start().await;
    proxy.only_with("key-1");
    proxy.set(Fault::ResetBefore);
    call(&mut client, b"get key-2").await.unwrap();
    assert_eq!(proxy.hits(), 0);
    // Its answer shows that the first half has been read on its own.
    call(&mut client, b"get ke").await.unwrap();
    client.write_all(b"y-1").await.unwrap();
    assert!(is_reset(&mut client).await);
    assert_eq!((echo.heard().as_slice(), proxy.hits()), (&b"get key-2get ke"[..], 1));
}

#[tokio::test]
async fn a_cut_resets_the_connections_of_now() {
    let (_echo, proxy, mut client) = start().await;
    call(&mut client, b"1").await.unwrap();
    let mut hung = TcpStream::connect(proxy.addr()).await.unwrap();
    proxy.next(Fault::HangBefore);
    hung.write_all(b"1").await.unwrap();
    assert!(is_silent(&mut hung).await);

    proxy.cut();
    assert!(is_reset(&mut client).await && is_reset(&mut hung).await);
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    call(&mut new, b"2").await.unwrap();
}

#[tokio::test]
async fn a_shut_port_refuses_and_open_connections_stay() {
    let (_echo, mut proxy, mut client) = start().await;
    call(&mut client, b"1").await.unwrap();
    for _ in 0..3 {
        proxy.shut().await;
        let refused = TcpStream::connect(proxy.addr()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        call(&mut client, b"2").await.unwrap();

        proxy.open().await.unwrap();
        let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
        call(&mut new, b"3").await.unwrap();
    }
}

#[tokio::test]
async fn an_upstream_that_is_gone_is_a_reset() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::start(nobody).await.unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert!(is_reset(&mut client).await);
}

#[tokio::test]
async fn everything_ends_with_the_proxy() {
    let (_echo, proxy, mut client) = start().await;
    call(&mut client, b"1").await.unwrap();
    let address = proxy.addr();
    drop(proxy);
    assert!(is_reset(&mut client).await);
    let ended = async {
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, ended).await.unwrap();
}
