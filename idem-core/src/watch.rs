//! Hints that a record may have changed.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;

/// A stream of hints that a record may have changed.
///
/// A hint says "look again", never what there is to see. It may be spurious, late, or never
/// come; whoever waits polls as well.
pub struct Watch(Option<Pin<Box<dyn Stream<Item = ()> + Send>>>);

impl Watch {
    /// No hint will ever come: the store cannot give any.
    pub fn never() -> Self {
        Self(None)
    }

    /// The hints of `stream`. When it ends, none will come any more.
    pub fn new(stream: impl Stream<Item = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(stream)))
    }

    /// Whether it is known that no hint will come.
    pub fn is_never(&self) -> bool {
        self.0.is_none()
    }

    /// Waits for the next hint; for ever, once there can be none.
    ///
    /// # Cancellation
    /// Safe: dropping the future loses no hint.
    pub async fn changed(&mut self) {
        if let Some(hints) = &mut self.0
            && poll_fn(|cx| hints.as_mut().poll_next(cx)).await.is_some()
        {
            return;
        }
        self.0 = None;
        std::future::pending::<()>().await;
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_never() { "Watch(never)" } else { "Watch(hints)" })
    }
}
