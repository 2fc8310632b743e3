//! A private server: a process, its folder and its port.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::{sleep, timeout};

use super::engine::{Engine, Home};
use super::error::{ServerError, io};
use super::owner::Owner;
use super::processes::{any_alive, any_moving, family, signal};
use super::reaper::Reaper;
use super::wire::greets;

/// How long a server may take to start or to stop. It ends a hung test; it measures nothing.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// A node of a Redis Cluster listens on its port + 10 000 as well.
const HIGHEST_PORT: u16 = u16::MAX - 10_000;
/// How often a start is tried when another process has just taken the port.
const PORT_TRIES: u32 = 10;
const PORT_PAUSE: Duration = Duration::from_millis(100);

/// A server process with its data in a temporary folder; both end with this value.
#[derive(Debug)]
pub(super) struct Instance {
    engine: &'static Engine,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    home: Home,
    port: u16,
    child: Option<Child>,
    reaper: Reaper,
}

/// Why a process that was started does not serve.
enum NotServing {
    PortTaken,
    Otherwise(ServerError),
}

impl From<ServerError> for NotServing {
    fn from(error: ServerError) -> Self {
        Self::Otherwise(error)
    }
}

impl Instance {
    pub(super) async fn start(
        engine: &'static Engine,
        program: PathBuf,
        settings: Vec<(String, String)>,
        environment: Vec<(String, String)>,
        primary: Option<SocketAddr>,
    ) -> Result<Self, ServerError> {
        let (home, reaper) = furnish(engine, program).map_err(io("make a server's folder"))?;
        prepare(engine, &home, primary).await?;
        let port = free_port()?;
        let mut this = Self { engine, settings, environment, home, port, child: None, reaper };
        this.launch_on(|_| free_port()).await?;
        Ok(this)
    }

    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.child.as_ref().map(Pid::from_child)
    }

    /// SIGKILL for the server and everything it started; back when all are gone.
    pub(super) async fn kill(&mut self) -> Result<(), ServerError> {
        let Some(root) = self.pid() else { return Ok(()) };
        let processes = self.freeze(root).await?;
        signal(&processes, Signal::KILL);
        self.kill_now();
        // The others are not children of this process, and cannot be waited for.
        self.until("die", || !any_alive(&processes)).await?;
        self.gone()
    }

    /// Asks the server to end in good order; back when it has.
    pub(super) async fn stop(&mut self) -> Result<(), ServerError> {
        let Some(pid) = self.pid() else { return Ok(()) };
        self.resume();
        signal(&[pid], self.engine.stop);
        let ended = timeout(PATIENCE, self.ended()).await;
        ended.map_err(|_| self.failed("stop", "it still runs"))??;
        self.gone()
    }

    /// Serves again, with the same port and data; a running server is stopped first.
    pub(super) async fn restart(&mut self) -> Result<(), ServerError> {
        self.stop().await?;
        self.launch_on(Ok).await
    }

    /// SIGSTOP for the server and everything it started; back when none of them moves.
    pub(super) async fn pause(&mut self) -> Result<(), ServerError> {
        let Some(root) = self.pid() else { return Err(self.failed("pause", "it does not run")) };
        let processes = self.freeze(root).await?;
        signal(&processes, Signal::STOP);
        // A stopped child does not notice that its parent has died.
        self.reaper.watch(&processes).map_err(io("watch the server"))?;
        self.until("pause", || !any_moving(&processes)).await
    }

    /// SIGCONT for whatever is stopped.
    pub(super) fn resume(&mut self) {
        if let Some(root) = self.pid() {
            signal(&family(root), Signal::CONT);
        }
    }

    /// Stops the root, so that it starts no further child while they are listed.
    async fn freeze(&self, root: Pid) -> Result<Vec<Pid>, ServerError> {
        signal(&[root], Signal::STOP);
        self.until("pause", || !any_moving(&[root])).await?;
        Ok(family(root))
    }

    /// Starts a process and waits until it serves.
    async fn launch(&mut self) -> Result<(), NotServing> {
        self.spawn().map_err(io("start the server"))?;
        if let Ok(answer) = timeout(PATIENCE, self.serves()).await {
            return answer;
        }
        self.kill_now();
        Err(self.failed("start", "it does not answer"))?
    }

    async fn serves(&mut self) -> Result<(), NotServing> {
        loop {
            if let Some(status) = self.exited()? {
                self.gone()?;
                if self.log().contains("Address already in use") {
                    return Err(NotServing::PortTaken);
                }
                Err(self.failed("start", &status.to_string()))?;
            }
            // A greeting alone could be another server's that was faster on the same port.
            if self.log().contains(self.engine.ready)
                && greets(self.address(), self.engine.hello).await
            {
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    /// Starts, and where another process has the port, again on the one that `next` names.
    async fn launch_on(
        &mut self,
        next: impl Fn(u16) -> Result<u16, ServerError>,
    ) -> Result<(), ServerError> {
        for _ in 0..PORT_TRIES {
            match self.launch().await {
                Err(NotServing::PortTaken) => self.port = next(self.port)?,
                Err(NotServing::Otherwise(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
            sleep(PORT_PAUSE).await;
        }
        Err(self.failed("start", "its port is taken"))
    }

    fn spawn(&mut self) -> io::Result<()> {
        let log = File::create(self.home.log())?;
        let mut command = (self.engine.serve)(&self.home, self.port, &self.settings)?;
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let pid = Pid::from_child(&child);
        self.child = Some(child);
        self.reaper.watch(&[pid])
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>, ServerError> {
        let Some(child) = &mut self.child else { return Ok(None) };
        child.try_wait().map_err(io("wait for the server"))
    }

    /// The process has been waited for: its id means nothing any more.
    fn gone(&mut self) -> Result<(), ServerError> {
        self.child = None;
        self.reaper.watch(&[]).map_err(io("watch the server"))
    }

    /// Kills all it finds, and waits for the root alone.
    fn kill_now(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal(&family(Pid::from_child(&child)), Signal::KILL);
            let _ = child.wait();
        }
    }

    async fn ended(&mut self) -> Result<(), ServerError> {
        while self.exited()?.is_none() {
            sleep(POLL).await;
        }
        Ok(())
    }

    async fn until(&self, verb: &'static str, done: impl Fn() -> bool) -> Result<(), ServerError> {
        let polled = async {
            while !done() {
                sleep(POLL).await;
            }
        };
        timeout(PATIENCE, polled).await.map_err(|_| self.failed(verb, "it takes too long"))
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.home.log()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn failed(&self, verb: &'static str, reason: &str) -> ServerError {
        let reason = format!("{reason}\n{}", self.log());
        ServerError::Failed { server: self.engine.name, verb, reason }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill_now();
        // The reaper's own drop removes the folder.
        let _ = self.reaper.watch(&[]);
    }
}

/// A folder for the server and its data, and the reaper that will remove it.
fn furnish(engine: &Engine, program: PathBuf) -> io::Result<(Home, Reaper)> {
    let folder = tempfile::Builder::new().prefix("idem-").tempdir()?;
    let names: &[_] = &["postgres", "nobody"];
    let owner = if engine.refuses_root { Owner::instead_of_root(names)? } else { None };
    let home = Home { program, folder: folder.path().to_owned(), owner };
    // Postgres refuses data that others may read.
    DirBuilder::new().mode(0o700).create(home.data())?;
    if let Some(owner) = owner {
        owner.takes(&home.folder)?;
        owner.takes(&home.data())?;
    }
    let reaper = Reaper::start(folder.path())?;
    // From here on the reaper removes it.
    let _ = folder.keep();
    Ok((home, reaper))
}

/// Runs the command that comes before the first start.
async fn prepare(
    engine: &'static Engine,
    home: &Home,
    primary: Option<SocketAddr>,
) -> Result<(), ServerError> {
    let Some(mut command) = (engine.prepare)(home, primary) else { return Ok(()) };
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .map_err(io::Error::other)
        .flatten()
        .map_err(io("prepare the server's data"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let reason = format!("{}\n{}", output.status, String::from_utf8_lossy(&said));
    Err(ServerError::Failed { server: engine.name, verb: "prepare its data", reason })
}

/// A port of the loopback interface that nobody listens on right now.
pub(super) fn free_port() -> Result<u16, ServerError> {
    let lend = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr();
    loop {
        let port = lend().map_err(io("find a free port"))?.port();
        if port <= HIGHEST_PORT {
            return Ok(port);
        }
    }
}
