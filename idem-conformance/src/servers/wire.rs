//! Just enough of the protocols to see that a server serves.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For a server that may not be there yet, and is asked again.
const PATIENCE: Duration = Duration::from_secs(1);
/// For one that is there, on a busy machine.
const LONGER: Duration = Duration::from_secs(20);

/// Whether the server at `address` answers `hello` with something that begins with `welcome`.
pub(super) async fn greets(address: SocketAddr, (hello, welcome): (&[u8], u8)) -> bool {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(hello).await?;
        stream.read_u8().await
    };
    matches!(timeout(PATIENCE, exchange).await, Ok(Ok(first)) if first == welcome)
}

/// Sends a Redis one command of plain words, and returns its whole answer as text.
pub(super) async fn ask(address: SocketAddr, command: &str) -> io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    timeout(LONGER, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
