//! Commands sent past the store, over a connection of their own.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Text(Vec<u8>),
    Number(i64),
    List(Vec<Reply>),
    Error(String),
}

impl Reply {
    pub(crate) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Text(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn text(self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub(crate) fn list(self) -> Vec<Self> {
        match self {
            Self::List(list) => list,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            other => panic!("{other:?}"),
        }
    }
}

/// Sends one command and reads its answer. RESP2, whose parser fits here.
pub(crate) async fn ask(server: SocketAddr, words: &[&[u8]]) -> Reply {
    let mut stream = BufReader::new(TcpStream::connect(server).await.unwrap());
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    stream.write_all(&request).await.unwrap();
    read(&mut stream).await
}

/// The same for words that are text.
pub(crate) async fn say(server: SocketAddr, words: &str) -> Reply {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    ask(server, &words).await
}

async fn read(stream: &mut BufReader<TcpStream>) -> Reply {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let (kind, rest) = line.trim_end().split_at(1);
    match (kind, rest) {
        ("+", text) => Reply::Text(text.into()),
        ("-", text) => Reply::Error(text.into()),
        (":", number) => Reply::Number(number.parse().unwrap()),
        ("$" | "*", "-1") => Reply::Nil,
        ("$", length) => {
            let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
            stream.read_exact(&mut bytes).await.unwrap();
            bytes.truncate(bytes.len() - 2);
            Reply::Text(bytes)
        }
        ("*", length) => {
            let mut list = Vec::new();
            for _ in 0..length.parse().unwrap() {
                list.push(Box::pin(read(stream)).await);
            }
            Reply::List(list)
        }
        _ => panic!("{line:?}"),
    }
}
