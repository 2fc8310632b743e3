//! HTTP/2.

use futures_util::future::join_all;
use http::StatusCode;

use super::server::{Provider, charge, connect1, connect2, serve_charges, whole};
use crate::support::{is_replay, text};

// A hundred streams of one connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_streams_at_once_are_one_charge() {
    let provider = Provider::gated();
    let client = connect2(serve_charges(&provider).await).await;
    let requests = (0..100).map(|_| {
        let mut client = client.clone();
        async move { whole(client.send_request(charge()).await.unwrap()).await }
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

// The version of the protocol is no part of the request.
#[tokio::test]
async fn a_response_replays_over_the_other_version() {
    let provider = Provider::free();
    let server = serve_charges(&provider).await;
    let first = whole(connect1(server).await.send_request(charge()).await.unwrap()).await;
    let replay = whole(connect2(server).await.send_request(charge()).await.unwrap()).await;
    assert_eq!((first.status(), text(&first)), (StatusCode::CREATED, "ch_1"));
    assert_eq!((replay.status(), text(&replay)), (StatusCode::CREATED, "ch_1"));
    assert_eq!(replay.version(), http::Version::HTTP_2);
    assert!(is_replay(&replay));
}
