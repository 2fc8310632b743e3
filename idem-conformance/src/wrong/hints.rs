//! Who watches which key.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_core::Stream;
use idem_core::Watch;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::wrong::laws::Watching;
use crate::wrong::table::hold;

/// Who watches which key.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<HashMap<Vec<u8>, Vec<UnboundedSender<()>>>>);

impl Hints {
    /// Wakes who watches this key.
    pub(crate) fn wake(&self, name: &[u8], watching: Watching) {
        let mut watchers = hold(&self.0);
        let Some(of_key) = watchers.get_mut(name) else { return };
        of_key.retain(|watcher| watcher.send(()).is_ok());
        if watching == Watching::Once {
            of_key.clear();
        }
    }

    /// Watches this key, now or when first asked.
    pub(crate) fn watch(self: &Arc<Self>, name: Vec<u8>, watching: Watching) -> Watch {
        match watching {
            Watching::Never => return Watch::never(),
            Watching::Late => {
                let hints = Arc::clone(self);
                return Watch::new(Subscription::Late(hints, name));
            }
            Watching::OneKey => hold(&self.0).retain(|of, _| *of == name),
            Watching::OneWatcher => drop(hold(&self.0).remove(&name)),
            _ => {}
        }
        Watch::new(Subscription::Subscribed(self.subscribe(name)))
    }

    fn subscribe(&self, name: Vec<u8>) -> UnboundedReceiver<()> {
        let (watcher, hints) = unbounded_channel();
        hold(&self.0).entry(name).or_default().push(watcher);
        hints
    }
}

enum Subscription {
    Subscribed(UnboundedReceiver<()>),
    Late(Arc<Hints>, Vec<u8>),
}

impl Stream for Subscription {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if let Self::Late(hints, name) = &*self {
            let subscribed = hints.subscribe(name.clone());
            *self = Self::Subscribed(subscribed);
        }
        match &mut *self {
            Self::Subscribed(hints) => hints.poll_recv(cx),
            Self::Late(..) => Poll::Pending,
        }
    }
}
