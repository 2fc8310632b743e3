//! Waking those who wait: one subscriber connection for a store, however many keys.
//!
//! Each key has a channel of its own, named like its record. A hint is an optimisation: while the
//! connection is lost, waiters poll; when it is back, everything is subscribed again and everyone
//! is hinted at once, for what they may have missed.

mod hub;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;
use idem_core::{Applied, StoreError, Watch};
use tokio::sync::{mpsc, oneshot, watch};

use self::hub::{Hub, Order};
use crate::client::Client;

/// Subscribes for a store; does not connect before somebody waits.
#[derive(Debug)]
pub(crate) struct Wake {
    client: Arc<dyn Client>,
    deadline: Duration,
    hub: Mutex<Option<mpsc::UnboundedSender<Order>>>,
}

impl Wake {
    pub(crate) fn new(client: Arc<dyn Client>, deadline: Duration) -> Self {
        Self { client, deadline, hub: Mutex::new(None) }
    }

    /// Hints of a channel, subscribed when this returns.
    pub(crate) async fn watch(&self, channel: String) -> Result<Watch, StoreError> {
        let orders = self.orders();
        let (answer, subscribed) = oneshot::channel();
        let ended = || StoreError::unavailable(Applied::No, "the subscriber has ended");
        let order = Order::Watch { channel: channel.clone(), answer };
        orders.send(order).map_err(|_| ended())?;
        // Before the answer is there: a caller that is dropped here leaves as well.
        let leaves = Leaves { channel, orders };
        let hints = subscribed.await.map_err(|_| ended())??;
        Ok(Watch::new(stream::unfold((hints, leaves), |(mut hints, leaves)| async move {
            hints.changed().await.ok()?;
            Some(((), (hints, leaves)))
        })))
    }
}

impl Wake {
    /// To the hub that is there, or to a new one: the first, or one whose runtime is gone.
    fn orders(&self) -> mpsc::UnboundedSender<Order> {
        let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = hub.as_ref().filter(|orders| !orders.is_closed()) {
            return orders.clone();
        }
        hub.insert(Hub::spawn(self.client.clone(), self.deadline)).clone()
    }
}

/// Tells the hub that one waiter less is there, whatever way it went.
struct Leaves {
    channel: String,
    orders: mpsc::UnboundedSender<Order>,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Leave { channel: std::mem::take(&mut self.channel) });
    }
}

/// What a waiter holds.
type Hints = watch::Receiver<()>;
