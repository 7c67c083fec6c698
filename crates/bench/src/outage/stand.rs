//! What a campaign strikes: PostgreSQL, NATS, the nodes of one cloud, and the edges of a fleet, all on this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::fault::Kind;
use super::member::{AUTHORIZATION_PORT, EVENT_HANDLER_PORT, Member, REGISTRY_PORT};
use super::plan::{EDGES, NODES};
use super::postgres::Postgres;
use super::tls::Tls;
use crate::cloud::Directory;
use crate::link::Link;
use crate::options::OutageOptions;
use crate::ports::held_port;
use crate::realtime::fleet::bare::Bare;
use crate::realtime::peer::PeerServer;
use crate::request;
use crate::wire::Caller;

/// Stream of the edges' events.
pub const FLEET_STREAM: &str = "FLEET";
/// Lane of the edges' events.
pub const LANE: &str = "events";
/// Stream of commands to the edges.
pub const COMMANDS_STREAM: &str = "COMMANDS";
/// Event type of all published events.
pub const EVENT_TYPE: &str = "outage";
/// Event type of commands.
pub const COMMAND_TYPE: &str = "setpoint";
/// System that publishes and registers services.
pub const PUBLISHER: &str = "outagepublisher";
/// Port of the publisher, at which nothing listens.
pub const PUBLISHER_PORT: u16 = 7001;
const SUBSCRIBER: &str = "outagesubscriber";
const ADDRESS: &str = "127.0.0.1";
/// Bytes of a node's event log: what a listener misses between two nodes fits many times.
const EVENT_LOG_BYTES: u64 = 64 << 20;
/// Longest wait until all members are ready at the begin.
const READY_MAX: Duration = Duration::from_secs(120);
/// A node that started for the first time within this time reports losses.
const FIRST_START: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Everything that runs.
pub struct Stand {
    /// Nodes, then edges.
    pub members: Vec<Member>,
    /// The nodes' database.
    pub postgres: Postgres,
    /// The NATS servers.
    pub nats: PeerServer,
    /// Port of the push subscriber.
    pub push_port: u16,
    tls: Option<Tls>,
    program: PathBuf,
    directory: Directory,
}

impl Stand {
    /// Starts everything and prepares the cloud and the edges for the load.
    ///
    /// # Errors
    /// Returns an error if a program is missing, or something does not become ready.
    pub fn start(options: &OutageOptions) -> anyhow::Result<Self> {
        let tls = options.tls.then(Tls::new).transpose()?;
        let postgres = Postgres::start(options.postgres.as_deref(), tls.as_ref())?;
        let nats = PeerServer::nats_synced(options.nats_servers.into(), &tls.as_ref().map_or_else(String::new, Tls::of_nats))?;
        let directory = Directory::new(options.data.as_deref())?;
        let (push_port, program) = (held_port()?, options.program()?);
        let mut stand = Self { members: Vec::new(), postgres, nats, push_port, tls, program, directory };
        for index in 0..NODES + EDGES {
            let member = stand.member(index, options)?;
            stand.members.push(member);
        }
        let mut bare = Bare::connect_as(stand.nats.address, stand.caller())?;
        bare.create(FLEET_STREAM, "fleet.*.*", options.nats_servers)?;
        bare.create(COMMANDS_STREAM, "commands.*.*", options.nats_servers)?;
        stand.members.iter_mut().try_for_each(Member::start)?;
        stand.wait_until_ready()?;
        stand.prepare()?;
        thread::sleep(FIRST_START);
        // The kept copies are of members that have ended in order.
        for member in &mut stand.members {
            member.stop()?;
            member.keep_copy()?;
            member.start()?;
        }
        stand.wait_until_ready()?;
        Ok(stand)
    }

    fn member(&self, index: usize, options: &OutageOptions) -> anyhow::Result<Member> {
        let (kind, name) =
            if index < NODES { (Kind::Node, format!("node-{}", index + 1)) } else { (Kind::Edge, format!("edge-{}", index - NODES + 1)) };
        let mut member = Member::new(&name, kind, &self.program, &self.directory.path().join(&name))?;
        member.nats = self.nats.addresses().into_iter().map(Link::to).collect::<anyhow::Result<_>>()?;
        let servers: Vec<SocketAddr> = member.nats.iter().map(|link| link.address).collect();
        let replicas = options.nats_servers;
        let scheme = if self.tls.is_some() { "tls" } else { "nats" };
        if kind == Kind::Edge {
            let servers: Vec<String> = servers.iter().map(|server| format!("{scheme}://{server}")).collect();
            let certificates = self.tls.as_ref().map_or_else(String::new, |tls| nats_certificates(tls, ""));
            member.configure(format!(
                "[fleet]\nservers = {servers:?}\n{certificates}edge = \"{name}\"\nstream = \"{FLEET_STREAM}\"\ncreate_replicas = {replicas}\n\
                 lanes = {{ {LANE} = [\"{EVENT_TYPE}\"] }}\nfrom_fleet = [\"{COMMAND_TYPE}\"]\n"
            ));
            return Ok(member);
        }
        let database = Link::to((std::net::Ipv4Addr::LOCALHOST, self.postgres.port()).into())?;
        let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
        let (query, certificates) = self.tls.as_ref().map_or_else(Default::default, |tls| {
            let [certificate, key] = tls.client_files();
            let [trusted, certificate, key] = [tls.trust_file(), certificate, key].map(|path| path.display().to_string());
            let query = format!("?sslmode=verify-full&sslrootcert={trusted}&sslcert={certificate}&sslkey={key}").replace('/', "%2F");
            (query, nats_certificates(tls, "node_events_"))
        });
        member.configure(format!(
            "database = \"postgres://bodkin@{}/cloud{query}\"\nnode_events = \"{scheme}://{}\"\n{certificates}\
             node_events_stream = \"NODES\"\nnode_events_replicas = {replicas}\nevent_log_bytes_max = {EVENT_LOG_BYTES}\n",
            database.address,
            servers.join(",")
        ));
        member.database = Some(database);
        if options.with_disks
            && let Err(error) = member.give_disk()
        {
            eprintln!("{name} has no disk of its own, so its disk is never full: {error:#}");
        }
        Ok(member)
    }

    /// Makes a member that runs on a copy of this member's data.
    ///
    /// # Errors
    /// Returns an error if no ports are free, or the copy fails.
    pub fn clone_of(&self, member: &Member) -> anyhow::Result<Member> {
        let name = format!("{}-clone", member.name);
        let mut clone = Member::new(&name, member.kind, &self.program, &self.directory.path().join(&name))?;
        clone.become_copy_of(member)?;
        Ok(clone)
    }

    /// Waits until every member serves.
    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let begin = Instant::now();
        for member in &mut self.members {
            while let Some(why) = member.lacks() {
                let ended = member.ended();
                if ended.is_some() || begin.elapsed() > READY_MAX {
                    bail!("{} is not ready ({why}); {ended:?}; its log ends:\n  {}", member.name, member.last_words());
                }
                thread::sleep(LOOK_EVERY);
            }
            member.was_ready = true;
        }
        Ok(())
    }

    /// Registers publishers and the push subscriber, with the rule by which it receives events.
    fn prepare(&self) -> anyhow::Result<()> {
        let node = &self.members[0];
        let offered = service("outage-events");
        let registered = post(node, REGISTRY_PORT, "/serviceregistry/register", &offered, 201)?;
        let registered: request::Registered = serde_json::from_value(registered).context("the answer to a registration")?;
        let subscriber = request::system(SUBSCRIBER, ADDRESS, self.push_port);
        let known = post(node, REGISTRY_PORT, "/serviceregistry/register-system", &subscriber, 201)?;
        let id = known["id"].as_i64().context("a system has an id")?;
        post(node, AUTHORIZATION_PORT, "/authorization/mgmt/intracloud", &request::rule(id, &registered), 201)?;
        let subscription = json!({"eventType": EVENT_TYPE, "subscriberSystem": subscriber, "notifyUri": "/outage", "matchMetaData": false});
        post(node, EVENT_HANDLER_PORT, "/eventhandler/subscribe", &subscription, 200)?;
        let publisher = request::system(PUBLISHER, ADDRESS, PUBLISHER_PORT);
        for edge in &self.members[NODES..] {
            post(edge, REGISTRY_PORT, "/serviceregistry/register-system", &publisher, 201)?;
        }
        Ok(())
    }

    /// Copies the logs of all members, their configurations, and the listeners' traces.
    ///
    /// # Errors
    /// Returns an error if they cannot be copied.
    pub fn keep_logs(&self, to: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
        let entries = std::fs::read_dir(self.directory.path())?.flatten().map(|entry| entry.path());
        let is_kept =
            |path: &PathBuf| path.extension().is_some_and(|extension| ["log", "toml", "trace"].iter().any(|kept| extension == *kept));
        for file in entries.filter(is_kept).chain([self.postgres.log()]) {
            let name = file.file_name().expect("a file has a name");
            std::fs::copy(&file, to.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
        }
        Ok(())
    }

    /// Returns as whom the campaign's own clients speak to NATS.
    pub fn caller(&self) -> &Caller {
        self.tls.as_ref().map_or(&Caller::Nobody, Tls::caller)
    }

    /// Returns the directory of logs and data.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Returns the lines of a configuration that name the certificates for NATS, by keys that begin with `prefix`.
fn nats_certificates(tls: &Tls, prefix: &str) -> String {
    let [certificate, key] = tls.client_files();
    let files = [("trust_file", tls.trust_file()), ("certificate_file", certificate), ("certificate_key_file", key)];
    files.map(|(name, path)| format!("{prefix}{name} = {path:?}\n")).concat()
}

/// Returns a service of the publisher.
pub fn service(definition: &str) -> Value {
    json!({
        "serviceDefinition": definition, "providerSystem": request::system(PUBLISHER, ADDRESS, PUBLISHER_PORT),
        "serviceUri": "/", "interfaces": ["HTTP-INSECURE-JSON"],
    })
}

fn post(member: &Member, port: u16, target: &str, body: &Value, expected: u16) -> anyhow::Result<Value> {
    let answer = member.call("POST", port, target, &body.to_string())?;
    ensure!(answer.status == expected, "{target} at {}: {} {}", member.name, answer.status, answer.text());
    Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
}
