//! Clients that leave (C31): their charge is made once, recorded, and replayed to them.

use http::StatusCode;

use super::server::{Provider, Raw, charge, connect1, connect2, head, serve, serve_charges, whole};
use crate::stores::Tampered;
use crate::support::{MS, behind, builder, is_replay, operation, text};

async fn retry(server: std::net::SocketAddr) -> crate::support::Answer {
    whole(connect1(server).await.send_request(charge()).await.unwrap()).await
}

/// A charge whose body has not all arrived, or has.
async fn sent(server: std::net::SocketAddr, body: &str) -> Raw {
    let mut raw = Raw::connect(server).await;
    let length = r#"{"amount":100}"#.len();
    let headers = format!("idempotency-key: k\r\ncontent-length: {length}\r\n");
    raw.write(&format!("{}{body}", head(&headers))).await;
    raw
}

#[tokio::test]
async fn inside_the_upload_nothing_happens() {
    let provider = Provider::free();
    let server = serve_charges(&provider).await;
    let mut half = sent(server, r#"{"amount":"#).await;
    // The server sees the end, and has nothing to answer to.
    tokio::io::AsyncWriteExt::shutdown(&mut half.0).await.unwrap();
    let end = half.read_to_end().await;
    assert!(end.is_empty() || end.starts_with("HTTP/1.1 400"), "{end}");
    assert_eq!(provider.done.count(), 0);
    let answer = retry(server).await;
    assert_eq!((text(&answer), is_replay(&answer)), ("ch_1", false));
}

#[tokio::test]
async fn inside_the_handler_it_goes_on() {
    let provider = Provider::gated();
    let server = serve_charges(&provider).await;
    let leaving = sent(server, r#"{"amount":100}"#).await;
    provider.has_begun().await;
    drop(leaving);
    // The retry is there before the charge is done, and waits for it.
    let (answer, ()) = tokio::join!(retry(server), async {
        tokio::time::sleep(20 * MS).await;
        provider.let_end();
    });
    assert_eq!((answer.status(), text(&answer)), (StatusCode::CREATED, "ch_1"));
    assert!(is_replay(&answer));
    assert_eq!(provider.done.count(), 1);
}

#[tokio::test]
async fn inside_the_completion_it_is_recorded() {
    let provider = Provider::free();
    let layer = builder(operation(Tampered::slow(100 * MS))).build().unwrap();
    let server = serve(behind(provider.routes(), layer)).await;
    let leaving = sent(server, r#"{"amount":100}"#).await;
    provider.has_done(1).await;
    drop(leaving);
    let answer = retry(server).await;
    assert_eq!((text(&answer), is_replay(&answer)), ("ch_1", true));
    assert_eq!(provider.done.count(), 1);
}

#[tokio::test]
async fn after_the_response_was_sent_it_is_replayed() {
    let provider = Provider::free();
    let server = serve_charges(&provider).await;
    let mut unread = sent(server, r#"{"amount":100}"#).await;
    unread.read_to("\r\n").await;
    drop(unread);
    let answer = retry(server).await;
    assert_eq!((text(&answer), is_replay(&answer)), ("ch_1", true));
}

// A stream that is reset, on a connection that lives on.
#[tokio::test]
async fn a_reset_stream_cancels_nothing() {
    let provider = Provider::gated();
    let mut client = connect2(serve_charges(&provider).await).await;
    let leaving = tokio::spawn(client.send_request(charge()));
    provider.has_begun().await;
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    let again = client.send_request(charge());
    let (answer, ()) = tokio::join!(async { whole(again.await.unwrap()).await }, async {
        tokio::time::sleep(20 * MS).await;
        provider.let_end();
    });
    assert_eq!((text(&answer), is_replay(&answer)), ("ch_1", true));
    assert_eq!(provider.done.count(), 1);
}
