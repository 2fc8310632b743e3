//! What is finished even if nobody waits for it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// A future that goes on in a task of its own if it is dropped. Until then it costs no task.
pub(crate) struct Finished<T: Send + 'static> {
    /// `None` once it is done.
    rest: Option<BoxFuture<'static, T>>,
    runtime: Handle,
}

impl<T: Send + 'static> Finished<T> {
    /// Of a future that is driven by the current runtime.
    pub(crate) fn of(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self { rest: Some(Box::pin(future)), runtime: Handle::current() }
    }
}

impl<T: Send + 'static> Future for Finished<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(rest) = &mut self.rest else { return Poll::Pending };
        let polled = rest.as_mut().poll(cx);
        if polled.is_ready() {
            self.rest = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Finished<T> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.runtime.spawn(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_is_dropped_is_finished() {
        for polled in [false, true] {
            let (go, gone) = oneshot::channel::<()>();
            let (done, finished) = oneshot::channel::<()>();
            let mut future = Finished::of(async move {
                gone.await.unwrap();
                done.send(()).unwrap();
            });
            if polled {
                let pending =
                    poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx).is_pending()));
                assert!(pending.await);
            }
            drop(future);
            go.send(()).unwrap();
            finished.await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_awaited_is_here() {
        assert_eq!(Finished::of(async { 7 }).await, 7);
    }
}
