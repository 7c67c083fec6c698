//! The local cloud under load: an own server, or one that already runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use nix::unistd::Pid;
use serde::Deserialize;
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::cgroup::Throttled;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::options::{ServerOptions, TargetOptions};
use crate::processor_time;
use crate::request;
use crate::resident::Resident;
use crate::server::Server;
use crate::wire::Caller;

/// Addresses of the systems, and the server behind them when it is the bench's own.
pub struct Cloud {
    /// The Service Registry.
    pub service_registry: Endpoint,
    authorization: Option<Endpoint>,
    orchestrator: Option<Endpoint>,
    event_handler: Option<Endpoint>,
    gateway: Option<Endpoint>,
    /// Bodkin's own port for stages and health; a peer has none.
    pub monitor: Option<Endpoint>,
    /// The ZMTP port of an own server.
    pub zmtp: Option<SocketAddr>,
    /// Where the relay inside an own server listens, as HOST:PORT.
    pub relay: Option<String>,
    /// In secure mode those of everybody; the systems are called as the operator, unless a load calls as others.
    pub certificates: Option<Arc<Certificates>>,
    pid: Option<Pid>,
    own: Option<OwnServer>,
}

struct OwnServer {
    server: Server,
    directory: Directory,
    description: String,
}

/// A temporary directory with a server's data in it; gone when dropped.
pub struct Directory {
    directory: TempDir,
}

impl Directory {
    /// A new empty one below `parent`, or below the system's directory for temporary files.
    ///
    /// # Errors
    /// The parent cannot be written.
    pub fn new(parent: Option<&Path>) -> anyhow::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("bodkin-bench-");
        let directory = match parent {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        };
        Ok(Self { directory: directory.context("cannot make a directory for the server's data")? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The server's data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Writes a file beside the data, and gives its path.
    ///
    /// # Errors
    /// It cannot be written, or the path is no text.
    pub fn file(&self, name: &str, text: &str) -> anyhow::Result<String> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        path.into_os_string().into_string().map_err(|path| anyhow!("{} is no text", path.display()))
    }

    /// Starts a server on it.
    ///
    /// # Errors
    /// See [`Server::start`].
    pub fn serve(&self, options: &ServerOptions) -> anyhow::Result<Server> {
        let program = std::env::current_exe().context("cannot tell the path of this program")?;
        Server::start(&program, &self.data(), &self.directory.path().join("server.log"), options)
    }

    /// A new one with the same data, whose server has ended.
    ///
    /// # Errors
    /// The data cannot be read, or the copy not be written.
    pub fn copy(&self, parent: Option<&Path>) -> anyhow::Result<Self> {
        let copy = Self::new(parent)?;
        copy_tree(&self.data(), &copy.data()).with_context(|| format!("cannot copy {}", self.data().display()))?;
        Ok(copy)
    }
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Cloud {
    /// The cloud that the options name: the one at `--target`, or an own server.
    ///
    /// # Errors
    /// The target does not answer, or the own server does not start.
    pub fn open(options: &TargetOptions) -> anyhow::Result<Self> {
        match &options.target {
            Some(target) => Self::at(target.clone(), options),
            None => Self::start(Directory::new(options.server.data.as_deref())?, &options.server),
        }
    }

    /// An own server on this directory.
    ///
    /// # Errors
    /// It does not start, or names no Service Registry.
    pub fn start(directory: Directory, options: &ServerOptions) -> anyhow::Result<Self> {
        let server = directory.serve(options)?;
        let cloud = Self::of_server(&server, options.certificates.as_ref())?;
        Ok(Self { own: Some(OwnServer { server, directory, description: options.description() }), ..cloud })
    }

    /// The cloud of a server that the caller keeps.
    ///
    /// # Errors
    /// The server names no Service Registry.
    pub fn of_server(server: &Server, certificates: Option<&Arc<Certificates>>) -> anyhow::Result<Self> {
        let caller = certificates.map_or(Ok(Caller::Nobody), |certificates| certificates.operator())?;
        let endpoint = |name: &str| {
            let resolve = |authority: &String| Endpoint::resolve(authority).map(|endpoint| endpoint.called_as(&caller));
            server.ready.listeners.get(name).map(resolve).transpose()
        };
        Ok(Self {
            service_registry: endpoint("serviceregistry")?.context("the server's ready line names no serviceregistry")?,
            authorization: endpoint("authorization")?,
            orchestrator: endpoint("orchestrator")?,
            event_handler: endpoint("eventhandler")?,
            gateway: endpoint("gateway")?,
            monitor: endpoint("monitor")?,
            zmtp: server.ready.listeners.get("zmtp").map(|address| address.parse()).transpose().context("the server's ready line")?,
            relay: server.ready.listeners.get("relay").cloned(),
            certificates: certificates.cloned(),
            pid: Some(server.pid()),
            own: None,
        })
    }

    fn at(service_registry: Endpoint, options: &TargetOptions) -> anyhow::Result<Self> {
        let mut client = Client::connect(&service_registry)?;
        let mut found = |given: &Option<Endpoint>, definition: &str| match given {
            Some(endpoint) => Ok(Some(endpoint.clone())),
            None => provider_of(&mut client, &service_registry, definition),
        };
        Ok(Self {
            authorization: found(&options.authorization, "authorization-control-intra")?,
            orchestrator: found(&options.orchestrator, "orchestration-service")?,
            event_handler: found(&options.event_handler, "event-publish")?,
            gateway: None,
            monitor: options.monitor.clone(),
            zmtp: None,
            relay: None,
            certificates: None,
            pid: options.server_pid.map(Pid::from_raw),
            own: None,
            service_registry,
        })
    }

    /// The Authorization system.
    ///
    /// # Errors
    /// The Service Registry knows none, and none was given.
    pub fn authorization(&self) -> anyhow::Result<&Endpoint> {
        self.authorization.as_ref().context("no Authorization system: not in the Service Registry; give --authorization http://HOST:PORT")
    }

    /// The Orchestrator.
    ///
    /// # Errors
    /// The Service Registry knows none, and none was given.
    pub fn orchestrator(&self) -> anyhow::Result<&Endpoint> {
        self.orchestrator.as_ref().context("no Orchestrator: not in the Service Registry; give --orchestrator http://HOST:PORT")
    }

    /// The Event Handler.
    ///
    /// # Errors
    /// The Service Registry knows none, and none was given.
    pub fn event_handler(&self) -> anyhow::Result<&Endpoint> {
        self.event_handler.as_ref().context("no Event Handler: not in the Service Registry; give --event-handler http://HOST:PORT")
    }

    /// The Gateway of an own server in secure mode.
    ///
    /// # Errors
    /// There is none.
    pub fn gateway(&self) -> anyhow::Result<&Endpoint> {
        self.gateway.as_ref().context("no Gateway: an own cloud in secure mode has one")
    }

    /// Bodkin's own port for `/api/v1`.
    ///
    /// # Errors
    /// A foreign cloud without `--monitor`.
    pub fn api(&self) -> anyhow::Result<&Endpoint> {
        self.monitor.as_ref().context("no /api/v1: give --monitor http://HOST:PORT of a Bodkin")
    }

    /// The server's process, where it is known.
    pub fn pid(&self) -> Option<Pid> {
        self.pid
    }

    /// The server's memory, where its process is known.
    pub fn resident(&self) -> Option<Resident> {
        self.pid.map(Resident::of)
    }

    /// Processor time of the server so far, where its process is known.
    ///
    /// # Errors
    /// It is gone.
    pub fn processor_time(&self) -> anyhow::Result<Option<Duration>> {
        self.pid.map(processor_time::of).transpose()
    }

    /// How long the server's threads stood in front of a processor so far, where its process is known and the kernel counts it.
    pub fn queued_time(&self) -> Option<Duration> {
        processor_time::queued(self.pid?)
    }

    /// How long the own server was held back by its processor limit so far, where it has one.
    pub fn throttled(&self) -> Option<Throttled> {
        self.own.as_ref()?.server.cgroup()?.throttled()
    }

    /// How the own server ended by itself, if it did.
    pub fn ended(&mut self) -> Option<String> {
        self.own.as_mut()?.server.ended()
    }

    /// The own server's directory.
    pub fn directory(&self) -> Option<&Directory> {
        self.own.as_ref().map(|own| &own.directory)
    }

    /// What the report says about where the load went.
    pub fn description(&self) -> String {
        match &self.own {
            Some(own) => own.description.clone(),
            None => format!("http://{}", self.service_registry.authority),
        }
    }

    /// Ends the own server, if there is one, and gives back its directory.
    ///
    /// # Errors
    /// It did not end well.
    pub fn close(self) -> anyhow::Result<Option<Directory>> {
        match self.own {
            Some(own) => own.server.stop().map(|()| Some(own.directory)),
            None => Ok(None),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    service_query_data: Vec<FoundEntry>,
}

#[derive(Deserialize)]
struct FoundEntry {
    provider: FoundProvider,
}

#[derive(Deserialize)]
struct FoundProvider {
    address: String,
    port: u16,
}

fn provider_of(client: &mut Client, registry: &Endpoint, definition: &str) -> anyhow::Result<Option<Endpoint>> {
    let found: Found = client.ask(&request::post(registry, "/serviceregistry/query", &request::query(definition)), 200)?;
    let Some(entry) = found.service_query_data.first() else { return Ok(None) };
    if entry.provider.port == 0 {
        bail!("the Service Registry gives port 0 for {definition}");
    }
    let host = &entry.provider.address;
    let authority =
        if host.contains(':') { format!("[{host}]:{}", entry.provider.port) } else { format!("{host}:{}", entry.provider.port) };
    Endpoint::resolve(&authority).map(Some)
}
