//! The guard of a test's server.

use std::net::SocketAddr;

#[cfg(feature = "containers")]
use super::container::Container;
use super::endpoint;
use super::engine::Engine;
use super::error::ServerError;
use super::instance::Instance;

/// A running server; it ends when this is dropped, unless it was given.
///
/// The verbs that disturb a server need it whole (`&mut self`): a
/// [shared](super::shared_redis) one cannot be disturbed.
#[derive(Debug)]
pub struct Server {
    engine: &'static Engine,
    url: String,
    address: SocketAddr,
    source: Source,
}

/// Where a server comes from.
#[derive(Debug)]
pub(super) enum Source {
    Given,
    Private(Box<Instance>),
    #[cfg(feature = "containers")]
    Container(Box<Container>),
}

impl Server {
    pub(super) fn new(
        engine: &'static Engine,
        url: String,
        address: SocketAddr,
        source: Source,
    ) -> Self {
        Self { engine, url, address, source }
    }

    pub(super) fn private(engine: &'static Engine, instance: Instance) -> Self {
        let address = instance.address();
        Self::new(engine, engine.url_at(address), address, Source::Private(Box::new(instance)))
    }

    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same URL by way of another address: a proxy's.
    pub fn url_via(&self, address: SocketAddr) -> String {
        endpoint::replace(&self.url, address)
    }

    /// Its address, for a proxy in front of it.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The id of its main process, if that runs on this machine and is the test's own.
    pub fn pid(&self) -> Option<u32> {
        match &self.source {
            Source::Private(instance) => u32::try_from(instance.pid()?.as_raw_pid()).ok(),
            Source::Given => None,
            #[cfg(feature = "containers")]
            Source::Container(_) => None,
        }
    }

    /// Kills it without warning (SIGKILL), with every process it started. Its data stay.
    ///
    /// # Errors
    /// [`ServerError::Given`] if it is not the test's own.
    pub async fn kill(&mut self) -> Result<(), ServerError> {
        match &mut self.source {
            Source::Given => Err(self.not_ours("kill")),
            Source::Private(instance) => instance.kill().await,
            #[cfg(feature = "containers")]
            Source::Container(container) => container.kill().await,
        }
    }

    /// Stops it in good order, as an administrator would. Its data stay.
    ///
    /// # Errors
    /// [`ServerError::Given`] if it is not the test's own, [`ServerError::Failed`] if it does not
    /// end.
    pub async fn stop(&mut self) -> Result<(), ServerError> {
        match &mut self.source {
            Source::Given => Err(self.not_ours("stop")),
            Source::Private(instance) => instance.stop().await,
            #[cfg(feature = "containers")]
            Source::Container(container) => container.stop().await,
        }
    }

    /// Starts it again with the same port and data, once it was killed or stopped; one that runs
    /// is stopped first. It serves when this returns.
    ///
    /// # Errors
    /// [`ServerError::Given`] if it is not the test's own, [`ServerError::Failed`] if it does not
    /// start.
    pub async fn restart(&mut self) -> Result<(), ServerError> {
        match &mut self.source {
            Source::Given => Err(self.not_ours("restart")),
            Source::Private(instance) => instance.restart().await,
            #[cfg(feature = "containers")]
            Source::Container(container) => container.restart().await,
        }
    }

    /// Freezes it (SIGSTOP): connections stay open, and nothing answers until
    /// [`resume`](Self::resume). A clock goes on meanwhile.
    ///
    /// # Errors
    /// [`ServerError::Given`] if it is not the test's own, [`ServerError::Failed`] if it does not
    /// run.
    pub async fn pause(&mut self) -> Result<(), ServerError> {
        match &mut self.source {
            Source::Given => Err(self.not_ours("pause")),
            Source::Private(instance) => instance.pause().await,
            #[cfg(feature = "containers")]
            Source::Container(container) => container.pause().await,
        }
    }

    /// Lets it go on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// [`ServerError::Given`] if it is not the test's own.
    #[cfg_attr(
        not(feature = "containers"),
        expect(clippy::unused_async, reason = "a container's is awaited")
    )]
    pub async fn resume(&mut self) -> Result<(), ServerError> {
        match &mut self.source {
            Source::Given => Err(self.not_ours("resume")),
            Source::Private(instance) => {
                instance.resume();
                Ok(())
            }
            #[cfg(feature = "containers")]
            Source::Container(container) => container.resume().await,
        }
    }

    fn not_ours(&self, verb: &'static str) -> ServerError {
        ServerError::Given { server: self.engine.name, variable: self.engine.variable, verb }
    }
}
