//! Futures that outlive those who wait for them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::panics::{Panicked, caught};

/// Whether somebody still waits for the answer.
#[derive(Clone, Debug)]
pub(super) struct Caller(CancellationToken);

impl Caller {
    pub(super) fn is_gone(&self) -> bool {
        self.0.is_cancelled()
    }

    pub(super) async fn gone(&self) {
        self.0.cancelled().await;
    }
}

/// Why a future did not come to its end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The runtime was shut down.
    Shutdown,
    Panicked(Panicked),
}

/// Drives a future to its end, whether or not its caller stays.
///
/// The future is polled once where it is; only if that does not finish it, it moves to a task of
/// its own. So a call that never has to wait, as on the memory store, costs no task. Dropping
/// the returned future drops nothing but the answer. It is `tracked` to its end, wherever it is.
pub(super) async fn detached<T, Fut>(
    tracked: TaskTrackerToken,
    make: impl FnOnce(Caller) -> Fut,
) -> Result<T, Stopped>
where
    T: Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let waiting = CancellationToken::new();
    let caller = Caller(waiting.clone());
    let _gone_when_dropped = waiting.drop_guard();
    let mut future = Box::pin(caught(make(caller)));
    if let Some(done) = poll_once(future.as_mut()).await {
        return done.map_err(Stopped::Panicked);
    }
    let (send, receive) = oneshot::channel();
    tokio::spawn(in_span(async move {
        let _tracked = tracked;
        // Nobody may be left to tell.
        let _ = send.send(future.await);
    }));
    receive.await.map_err(|_| Stopped::Shutdown)?.map_err(Stopped::Panicked)
}

/// Polls a future once, with the waker of the task at hand.
pub(super) async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        })
    })
    .await
}

/// The future, in the log span that its caller is in.
#[cfg(feature = "tracing")]
pub(super) fn in_span<F: Future>(future: F) -> impl Future<Output = F::Output> {
    use tracing::Instrument;
    future.in_current_span()
}

#[cfg(not(feature = "tracing"))]
pub(super) fn in_span<F: Future>(future: F) -> F {
    future
}
