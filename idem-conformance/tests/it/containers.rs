//! The same obedience from a server in Docker, which these tests need.

use std::net::SocketAddr;
use std::time::Duration;

use idem_conformance::servers;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a server that answers says first.
async fn greets(address: SocketAddr, hello: &[u8]) -> Option<u8> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(hello).await.ok()?;
        stream.read_u8().await.ok()
    };
    timeout(Duration::from_secs(1), exchange).await.ok().flatten()
}

#[tokio::test]
async fn a_container_obeys_and_keeps_its_port() {
    let redis = servers::redis().setting("appendonly", "yes");
    let postgres = servers::postgres().setting("max_connections", "17");
    let hello = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";
    for (setup, hello, welcome) in [(redis, &b"PING\r\n"[..], b'+'), (postgres, hello, b'R')] {
        let mut server = setup.container().await.unwrap();
        let address = server.addr();
        assert_eq!(server.pid(), None);
        assert_eq!(greets(address, hello).await, Some(welcome));

        server.pause().await.unwrap();
        assert_eq!(greets(address, hello).await, None);
        server.resume().await.unwrap();
        assert_eq!(greets(address, hello).await, Some(welcome));

        server.kill().await.unwrap();
        assert_eq!(greets(address, hello).await, None);
        server.restart().await.unwrap();
        assert_eq!(greets(address, hello).await, Some(welcome));

        drop(server);
        assert_eq!(greets(address, hello).await, None);
    }
}
