//! The task that owns the subscriber connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use idem_core::{Applied, StoreError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Hints;
use crate::client::{Client, Heard, Subscriber};
use crate::failure::Failure;

/// How many orders are carried out with one command.
const BATCH: usize = 512;
/// The pause after a connection was lost or could not be made; doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What the task is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Somebody waits; answered when the channel is subscribed.
    Watch { channel: String, answer: oneshot::Sender<Result<Hints, StoreError>> },
    /// Somebody waits no more. The sender's receiver may live a moment longer.
    Leave { channel: String },
}

/// A channel and those who wait at it.
struct Channel {
    hints: watch::Sender<()>,
    waiters: usize,
}

/// Ends when the store and everyone who waits are gone.
pub(super) struct Hub {
    client: Arc<dyn Client>,
    deadline: Duration,
    orders: mpsc::UnboundedReceiver<Order>,
    channels: HashMap<String, Channel>,
    link: Option<Box<dyn Subscriber>>,
    /// Not before this is another connection made.
    retry_at: Instant,
    pause: Duration,
}

enum Event {
    Ordered,
    Heard(Option<Heard>),
    Retry,
}

impl Hub {
    pub(super) fn spawn(
        client: Arc<dyn Client>,
        deadline: Duration,
    ) -> mpsc::UnboundedSender<Order> {
        let (sender, orders) = mpsc::unbounded_channel();
        let (retry_at, pause) = (Instant::now(), FIRST_PAUSE);
        let channels = HashMap::new();
        let hub = Self { client, deadline, orders, channels, link: None, retry_at, pause };
        tokio::spawn(hub.run());
        sender
    }

    async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            match self.next(&mut batch).await {
                Event::Ordered if batch.is_empty() => return,
                Event::Ordered => self.carry_out(batch.drain(..)).await,
                Event::Heard(Some(Heard::On(channel))) => self.hint(&channel),
                Event::Heard(Some(Heard::TooMuch)) => self.hint_all(),
                Event::Heard(None) => self.lost(),
                Event::Retry => self.reconnect().await,
            }
        }
    }

    async fn next(&mut self, batch: &mut Vec<Order>) -> Event {
        let waited_for = !self.channels.is_empty();
        let heard = async {
            match &mut self.link {
                Some(link) => Event::Heard(link.heard().await),
                None if waited_for => {
                    sleep_until(self.retry_at).await;
                    Event::Retry
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.orders.recv_many(batch, BATCH) => Event::Ordered,
            event = heard => event,
        }
    }

    /// Subscribes to what is new, unsubscribes from what nobody waits at any more, each with one
    /// command.
    async fn carry_out(&mut self, batch: impl Iterator<Item = Order>) {
        let (mut joining, mut new, mut empty) = (Vec::new(), Vec::new(), Vec::new());
        for order in batch {
            match order {
                Order::Watch { channel, answer } => {
                    let joined = self.channels.entry(channel.clone()).or_insert_with(|| {
                        new.push(channel.clone());
                        Channel { hints: watch::Sender::new(()), waiters: 0 }
                    });
                    joined.waiters += 1;
                    joining.push((channel, answer));
                }
                Order::Leave { channel } => {
                    if let Some(left) = self.channels.get_mut(&channel) {
                        left.waiters = left.waiters.saturating_sub(1);
                        empty.push(channel);
                    }
                }
            }
        }
        let subscribed = self.subscribe(&new).await;
        for (name, answer) in joining {
            let hints = self.channels.get(&name).map(|channel| channel.hints.subscribe());
            // One that does not wait for the answer any more has left, and says so by itself.
            let _ = answer.send(match (&subscribed, hints) {
                (Ok(()), Some(hints)) => Ok(hints),
                (Err(error), _) => Err(error.clone()),
                (Ok(()), None) => Err(StoreError::unavailable(Applied::No, "nobody waits")),
            });
        }
        empty.retain(|name| self.channels.get(name).is_some_and(|channel| channel.waiters == 0));
        for name in &empty {
            self.channels.remove(name);
        }
        self.unsubscribe(&empty).await;
    }

    /// Makes sure of the connection and of these channels. With an error, everything will be
    /// subscribed once there is a connection again.
    async fn subscribe(&mut self, new: &[String]) -> Result<(), StoreError> {
        if self.link.is_none() {
            if Instant::now() < self.retry_at {
                return Err(StoreError::unavailable(
                    Applied::No,
                    "the subscriber is not connected",
                ));
            }
            return self.connect().await;
        }
        if new.is_empty() {
            return Ok(());
        }
        let Some(link) = &mut self.link else { return Ok(()) };
        let subscribed = bounded(self.deadline, link.subscribe(new)).await;
        if subscribed.is_err() {
            self.lost();
        }
        subscribed
    }

    async fn unsubscribe(&mut self, channels: &[String]) {
        if let Some(link) = &mut self.link
            && !channels.is_empty()
            && bounded(self.deadline, link.unsubscribe(channels)).await.is_err()
        {
            self.lost();
        }
    }

    async fn connect(&mut self) -> Result<(), StoreError> {
        let all: Vec<String> = self.channels.keys().cloned().collect();
        let made = bounded(self.deadline, async {
            let mut link = self.client.subscriber().await?;
            if !all.is_empty() {
                link.subscribe(&all).await?;
            }
            Ok(link)
        });
        match made.await {
            Ok(link) => {
                self.link = Some(link);
                self.pause = FIRST_PAUSE;
                Ok(())
            }
            Err(error) => {
                self.lost();
                Err(error)
            }
        }
    }

    async fn reconnect(&mut self) {
        match self.connect().await {
            // Whatever happened in the meantime was not heard.
            Ok(()) => self.hint_all(),
            Err(error) => tracing::debug!(%error, "waiters poll: no subscriber connection"),
        }
    }

    fn lost(&mut self) {
        self.link = None;
        self.retry_at = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }

    fn hint(&self, channel: &str) {
        if let Some(channel) = self.channels.get(channel) {
            channel.hints.send_replace(());
        }
    }

    fn hint_all(&self) {
        self.channels.values().for_each(|channel| channel.hints.send_replace(()));
    }
}

async fn bounded<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, Failure>>,
) -> Result<T, StoreError> {
    let late = |_| Failure::unanswered("the subscriber's deadline has passed");
    Ok(timeout(deadline, call).await.map_err(late)??)
}
