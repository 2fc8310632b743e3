//! A server in a container, where the machine has no binaries.

use std::net::SocketAddr;
use std::time::Duration;

use testcontainers::core::{ContainerPort, error::TestcontainersError};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use tokio::time::{sleep, timeout};

use super::engine::{Engine, Settings};
use super::error::{ServerError, io};
use super::instance::free_port;
use super::reaper::Reaper;
use super::server::{Server, Source};
use super::wire::greets;

const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// The image of an engine.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) name: &'static str,
    pub(super) tag: &'static str,
    pub(super) env: &'static [(&'static str, &'static str)],
    pub(super) command: fn(&Settings) -> Invocation,
}

/// How the image is run.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) arguments: Vec<String>,
    /// A file to put into the container first.
    pub(super) file: Option<(&'static str, String)>,
}

/// A container with one server, on a fixed port of the host so that a restart keeps it.
#[derive(Debug)]
pub(super) struct Container {
    engine: &'static Engine,
    address: SocketAddr,
    handle: ContainerAsync<GenericImage>,
    _reaper: Reaper,
}

/// Starts a container and waits until its server serves.
pub(super) async fn start(
    engine: &'static Engine,
    settings: &Settings,
    environment: Vec<(String, String)>,
) -> Result<Server, ServerError> {
    let failed = |error: TestcontainersError| failed(engine, "start in Docker", &error);
    let Image { name, tag, env, command } = &engine.image;
    let Invocation { arguments, file } = command(settings);
    let port = free_port()?;
    let mut request = GenericImage::new(*name, *tag)
        .with_mapped_port(port, ContainerPort::Tcp(engine.default_port))
        .with_cmd(arguments);
    for (name, value) in *env {
        request = request.with_env_var(*name, *value);
    }
    for (name, value) in environment {
        request = request.with_env_var(name, value);
    }
    if let Some((path, text)) = file {
        request = request.with_copy_to(path, text.into_bytes());
    }
    let container = request.start().await.map_err(failed)?;
    let reaper = Reaper::of_container(container.id()).map_err(io("watch the container"))?;
    let host = container.get_host().await.map_err(failed)?;
    let url = engine.url_at(format_args!("{host}:{port}"));
    let address = super::endpoint::resolve(&url, port).await.map_err(|reason| {
        ServerError::Failed { server: engine.name, verb: "start in Docker", reason }
    })?;
    let container = Container { engine, address, handle: container, _reaper: reaper };
    container.serves().await?;
    Ok(Server::new(engine, url, address, Source::Container(Box::new(container))))
}

impl Container {
    pub(super) async fn kill(&self) -> Result<(), ServerError> {
        self.done("die", self.handle.stop_with_timeout(Some(0)).await)
    }

    pub(super) async fn stop(&self) -> Result<(), ServerError> {
        self.done("stop", self.handle.stop_with_timeout(None).await)
    }

    pub(super) async fn restart(&self) -> Result<(), ServerError> {
        self.stop().await?;
        self.done("start", self.handle.start().await)?;
        self.serves().await
    }

    pub(super) async fn pause(&self) -> Result<(), ServerError> {
        self.done("pause", self.handle.pause().await)
    }

    pub(super) async fn resume(&self) -> Result<(), ServerError> {
        self.done("resume", self.handle.unpause().await)
    }

    async fn serves(&self) -> Result<(), ServerError> {
        let greeted = async {
            while !greets(self.address, self.engine.hello).await {
                sleep(POLL).await;
            }
        };
        timeout(PATIENCE, greeted).await.map_err(|_| ServerError::Failed {
            server: self.engine.name,
            verb: "start in Docker",
            reason: "it does not answer".to_owned(),
        })
    }

    fn done(
        &self,
        verb: &'static str,
        result: Result<(), TestcontainersError>,
    ) -> Result<(), ServerError> {
        result.map_err(|error| failed(self.engine, verb, &error))
    }
}

fn failed(engine: &Engine, verb: &'static str, error: &TestcontainersError) -> ServerError {
    let Engine { name, variable, install, .. } = engine;
    let reason = format!("{error}; install {install}, set {variable}, or start Docker");
    ServerError::Failed { server: name, verb, reason }
}
