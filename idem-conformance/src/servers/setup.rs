//! What a test asks of its server.

use std::env;
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;

use super::endpoint;
use super::engine::Engine;
use super::error::ServerError;
use super::instance::Instance;
use super::programs;
use super::server::{Server, Source};

/// What a test asks of its server; awaiting it starts the server.
///
/// # Errors
/// Awaited, it is [`ServerError::Missing`] where no server is to be had,
/// [`ServerError::Unreachable`] if the given one cannot be reached, and [`ServerError::Failed`],
/// with what the server logged, if a private one does not start.
///
/// # Cancellation
/// Nothing is left behind.
#[derive(Debug)]
#[must_use = "a server starts when this is awaited"]
pub struct Setup {
    engine: &'static Engine,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    place: Place,
    folder: Option<PathBuf>,
    primary: Option<SocketAddr>,
}

/// Which of the places a server may come from.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Place {
    Anywhere,
    /// Not given by an environment variable.
    Own,
    /// From the binaries of this machine.
    Process,
    #[cfg(feature = "containers")]
    Container,
}

impl Setup {
    pub(super) fn new(engine: &'static Engine) -> Self {
        let (settings, environment) = (Vec::new(), Vec::new());
        let (place, folder, primary) = (Place::Anywhere, None, None);
        Self { engine, settings, environment, place, folder, primary }
    }

    /// A line of Redis's configuration or a parameter of Postgres; the last of a name counts.
    /// Makes the server the test's own.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self.own()
    }

    /// A variable in the environment of the server's process, which has to be one of this
    /// machine.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self.process()
    }

    /// A server of the test's own, even if one is given: the test kills it, or needs it empty.
    pub fn own(self) -> Self {
        self.at(Place::Own)
    }

    /// A process of this machine: neither a given server nor a container will do.
    pub fn process(self) -> Self {
        self.at(Place::Process)
    }

    /// A container, even if this machine has the binaries.
    #[cfg(feature = "containers")]
    pub fn container(self) -> Self {
        self.at(Place::Container)
    }

    /// Takes the binaries from this folder and from nowhere else, to test with a certain version.
    pub fn binaries(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self.process()
    }

    /// A hot standby of the Postgres at this address, with its data and all that it writes from
    /// now on. By way of a proxy it can be left behind. A Redis pays no attention.
    pub fn standby_of(mut self, primary: SocketAddr) -> Self {
        self.primary = Some(primary);
        self.process()
    }

    /// The narrower of two places counts.
    fn at(mut self, place: Place) -> Self {
        if place > self.place {
            self.place = place;
        }
        self
    }

    async fn start(self) -> Result<Server, ServerError> {
        if let Some(url) = self.given() {
            return Self::reach(self.engine, url).await;
        }
        if let Some(program) = self.program() {
            let Self { engine, settings, environment, primary, .. } = self;
            let starting = Instance::start(engine, program, settings, environment, primary);
            let instance = starting.await?;
            return Ok(Server::private(engine, instance));
        }
        #[cfg(feature = "containers")]
        if self.place != Place::Process {
            let Self { engine, settings, environment, .. } = self;
            return super::container::start(engine, &settings, environment).await;
        }
        Err(self.missing())
    }

    fn given(&self) -> Option<String> {
        if self.place > Place::Anywhere {
            return None;
        }
        env::var(self.engine.variable).ok().filter(|url| !url.is_empty())
    }

    fn program(&self) -> Option<PathBuf> {
        if self.place > Place::Process {
            return None;
        }
        programs::find(self.engine, self.folder.as_deref())
    }

    async fn reach(engine: &'static Engine, url: String) -> Result<Server, ServerError> {
        let unreachable =
            |reason: String| ServerError::Unreachable { variable: engine.variable, reason };
        let address = endpoint::resolve(&url, engine.default_port).await.map_err(unreachable)?;
        let stream = tokio::net::TcpStream::connect(address).await;
        stream.map_err(|error| unreachable(format!("{address}: {error}")))?;
        Ok(Server::new(engine, url, address, Source::Given))
    }

    fn missing(&self) -> ServerError {
        let Engine { name, variable, install, .. } = self.engine;
        let remedy = match &self.folder {
            Some(folder) => format!("no binary of it in {}", folder.display()),
            None if self.place > Place::Anywhere => {
                format!("install {install}; this test needs one of its own")
            }
            None => format!("install {install}, or set {variable} to the URL of one"),
        };
        let docker = if self.place == Place::Process {
            ""
        } else {
            ", or start Docker and turn the feature `containers` on"
        };
        ServerError::Missing { server: name, remedy: remedy + docker }
    }
}

/// The start of a server, on its way.
pub type Starting = Pin<Box<dyn Future<Output = Result<Server, ServerError>> + Send>>;

impl IntoFuture for Setup {
    type Output = Result<Server, ServerError>;
    type IntoFuture = Starting;

    fn into_future(self) -> Starting {
        Box::pin(self.start())
    }
}
