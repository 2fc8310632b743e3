//! The client may leave at any moment.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use http::StatusCode;
use tokio::task::yield_now;
use tower::ServiceExt;

use crate::stores::Tampered;
use crate::support::{Calls, MS, SEC, behind, builder, charge, operation, post, routes, text};

// C31: dropped after any number of polls, before, inside and after the handler and inside the
// completion, the charge is made once, and the retry is answered with it.
#[tokio::test(start_paused = true)]
async fn a_charge_is_made_once_wherever_its_client_leaves() {
    let mut begun_by_the_retry = 0;
    for polls in 0..12 {
        let done = Calls::default();
        let begun = Calls::default();
        let handler = {
            let (begun, done) = (begun.clone(), done.clone());
            move |_| {
                let (begun, done) = (begun.clone(), done.clone());
                async move {
                    begun.one_more();
                    tokio::time::sleep(MS).await;
                    yield_now().await;
                    (StatusCode::CREATED, format!("ch_{}", done.one_more()))
                }
            }
        };
        let layer = builder(operation(Tampered::slow(MS))).build().unwrap();
        let app = behind(routes(handler), layer);
        {
            let request = post().body(Body::from(r#"{"amount":100}"#)).unwrap();
            let mut leaving = pin!(app.clone().oneshot(request));
            for _ in 0..polls {
                let mut cx = Context::from_waker(Waker::noop());
                if let Poll::Ready(response) = leaving.as_mut().poll(&mut cx) {
                    assert_eq!(response.unwrap().status(), StatusCode::CREATED);
                    break;
                }
                tokio::time::sleep(MS / 2).await;
            }
        }
        tokio::time::sleep(SEC).await;
        let begun_before = begun.count();
        assert_eq!(done.count(), begun_before, "what was begun is done, {polls} polls");
        begun_by_the_retry += 1 - begun_before;
        assert_eq!(text(&charge(&app).await), "ch_1", "{polls} polls");
        assert_eq!((begun.count(), done.count()), (1, 1), "{polls} polls");
    }
    assert!((1..12).contains(&begun_by_the_retry), "the client left both before and after");
}

// The article's scenario: the provider needs 300 ms, the client gives up after 100 and comes back.
#[tokio::test(start_paused = true)]
async fn a_retry_that_comes_while_the_first_still_runs_waits_for_it() {
    let done = Calls::default();
    let counted = done.clone();
    let app = crate::support::app(routes(move |_| {
        let counted = counted.clone();
        async move {
            tokio::time::sleep(300 * MS).await;
            format!("ch_{}", counted.one_more())
        }
    }));
    assert!(tokio::time::timeout(100 * MS, charge(&app)).await.is_err());
    let (one, other) = tokio::join!(charge(&app), charge(&app));
    assert_eq!((text(&one), text(&other), done.count()), ("ch_1", "ch_1", 1));
}
