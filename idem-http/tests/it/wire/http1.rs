//! HTTP/1.1.

use axum::body::Body;
use futures_util::future::join_all;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;

use super::server::{Provider, Raw, charge, connect1, head, serve, serve_charges, whole};
use crate::support::{app, behind, builder, code, is_replay, layer, operation, routes, text};

#[tokio::test]
async fn a_replay_on_the_same_connection_and_on_another() {
    let provider = Provider::free();
    let server = serve_charges(&provider).await;
    let mut kept_alive = connect1(server).await;
    for replayed in [false, true, true] {
        let answer = whole(kept_alive.send_request(charge()).await.unwrap()).await;
        assert_eq!((answer.status(), text(&answer)), (StatusCode::CREATED, "ch_1"));
        assert_eq!(answer.headers()["location"], "/charges/ch_1");
        assert_eq!(answer.headers()[CONTENT_LENGTH], "4");
        assert_eq!(answer.headers().get_all("date").iter().count(), 1);
        assert_eq!(is_replay(&answer), replayed);
        kept_alive.ready().await.unwrap();
    }
    let mut closing = charge();
    closing.headers_mut().insert("connection", HeaderValue::from_static("close"));
    let answer = connect1(server).await.send_request(closing).await.unwrap();
    assert!(is_replay(&whole(answer).await));
    assert_eq!(provider.done.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_connections_at_once_are_one_charge() {
    let provider = Provider::gated();
    let server = serve_charges(&provider).await;
    let requests = (0..100).map(|_| async move {
        let response = connect1(server).await.send_request(charge()).await.unwrap();
        whole(response).await
    });
    let release = async {
        provider.has_begun().await;
        provider.let_end();
    };
    let (answers, ()) = tokio::join!(join_all(requests), release);
    assert!(answers.iter().all(|answer| text(answer) == "ch_1"));
    assert_eq!(answers.iter().filter(|answer| !is_replay(answer)).count(), 1);
    assert_eq!(provider.done.count(), 1);
}

// Both requests are on the wire before either is answered.
#[tokio::test]
async fn pipelined_duplicates_are_one_charge() {
    let provider = Provider::free();
    let mut raw = Raw::connect(serve_charges(&provider).await).await;
    let request = format!("{}{{}}", head("idempotency-key: \"k\"\r\ncontent-length: 2\r\n"));
    raw.write(&request.repeat(2)).await;
    let first = raw.read_to("ch_1").await;
    // The second `ch_1` is in its Location.
    let first = first + &raw.read_to("ch_1").await;
    let second = raw.read_to("ch_1").await + &raw.read_to("ch_1").await;
    assert!(first.starts_with("HTTP/1.1 201") && !first.contains("idempotent-replayed"), "{first}");
    assert!(second.starts_with("HTTP/1.1 201"), "{second}");
    assert!(second.contains("idempotent-replayed: true\r\n"), "{second}");
    assert_eq!(provider.done.count(), 1);
}

#[tokio::test]
async fn a_body_is_asked_for_only_if_it_will_be_read() {
    let provider = Provider::free();
    let layer = builder(operation(crate::stores::Shared::default())).max_body(10).build().unwrap();
    let server = serve(behind(provider.routes(), layer)).await;
    let refused = [
        ("content-length: 2\r\n", "400"),
        ("idempotency-key: \"k\r\ncontent-length: 2\r\n", "400"),
        ("idempotency-key: k\r\ncontent-length: 11\r\n", "413"),
    ];
    for (headers, status) in refused {
        let mut raw = Raw::connect(server).await;
        raw.write(&head(&format!("expect: 100-continue\r\n{headers}"))).await;
        let answer = raw.read_to("\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let mut raw = Raw::connect(server).await;
    raw.write(&head("expect: 100-continue\r\nidempotency-key: k\r\ncontent-length: 2\r\n")).await;
    assert_eq!(raw.read_to("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    raw.write("{}").await;
    assert!(raw.read_to("\r\n").await.starts_with("HTTP/1.1 201"));
    assert_eq!(provider.done.count(), 1);
}

// C81, C85: what is on the wire, byte by byte.
#[tokio::test]
async fn a_chunked_response_replays_framed_by_its_length() {
    let chunked = || {
        let chunks = ["one", "two"].map(Ok::<_, std::io::Error>);
        let mut response = http::Response::new(Body::from_stream(stream::iter(chunks)));
        let cafe = HeaderValue::from_bytes(b"caf\xe9").unwrap();
        response.headers_mut().append("x-name", cafe);
        response.headers_mut().append("x-name", HeaderValue::from_static("b"));
        response
    };
    let server = serve(app(routes(move |_| std::future::ready(chunked())))).await;
    for _ in 0..2 {
        let mut client = connect1(server).await;
        let answer = whole(client.send_request(charge()).await.unwrap()).await;
        assert_eq!(text(&answer), "onetwo");
        let names: Vec<_> =
            answer.headers().get_all("x-name").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(names, [&b"caf\xe9"[..], b"b"]);
        assert!(!answer.headers().contains_key(TRANSFER_ENCODING));
        assert_eq!(answer.headers()[CONTENT_LENGTH], "6");
    }
}

// C90: the first event arrives while the stream has no end.
#[tokio::test]
async fn an_endless_stream_flows() {
    let events = || {
        let first = stream::iter(["data: 1\n\n"]);
        let endless = futures_util::StreamExt::chain(first, stream::pending());
        let events = futures_util::StreamExt::map(endless, Ok::<_, std::io::Error>);
        ([("content-type", "text/event-stream")], Body::from_stream(events))
    };
    let server = serve(behind(routes(move |_| std::future::ready(events())), layer())).await;
    let mut response = connect1(server).await.send_request(charge()).await.unwrap();
    let first = response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: 1\n\n");
    let retry = whole(connect1(server).await.send_request(charge()).await.unwrap()).await;
    assert_eq!((retry.status(), code(&retry).as_str()), (StatusCode::GONE, "response_not_kept"));
}
