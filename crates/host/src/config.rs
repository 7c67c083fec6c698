//! What a local cloud is started with.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bodkin_arrowhead::{
    authorization::token::TokenLifetimes,
    core_service::CoreSystem,
    dialogue::FixedAnswers,
    dns_sd::Announced,
    name::{EventType, NamingRules, SystemName},
    service_registry::AddressDetection,
};
use bodkin_broker::{ReplicationPace, topic::Platform};
use bodkin_relay::{
    native::hub::HubLimits,
    stomp::Logins,
    tunnel::{PortRange, Terms},
};
use bodkin_store::{audit::AuditLimits, event_log::EventLogLimits, shared::DatabasePlace};

use crate::{
    api::Modeller,
    audit::AUDIT_LIMITS,
    control::OrchestratorConfig,
    fleet::FleetConfig,
    gate::Origin,
    gateway::GatewayConfig,
    graph::{Carriers, DeclaredGraphs},
    job::JobSchedule,
    limits::Limits,
    log_book::LogBook,
    nats::NatsPlace,
    node_events::NodeStreamTerms,
    pair::PairHandle,
    quality::Forecast,
    realtime::Realtime,
    security::SecurityConfig,
    topics::DeclaredTopic,
    trace::TraceConfig,
};

/// Where systems publish and subscribe by ZMTP: in insecure mode by NULL, by which nobody shows who he is, in secure mode by CURVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZmtpConfig {
    /// Where it listens; 0 is any.
    pub port: u16,
    /// The system as which peers publish that do not say who they are: all PUB and PUSH, and REQ without a routing id.
    pub system: Option<SystemName>,
    /// The path of this machine (`ipc://`) on which the same is spoken; `None`: on the port only.
    pub ipc: Option<IpcConfig>,
}

/// A Unix socket on which ZMTP is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcConfig {
    /// Where. `None`: [`IpcConfig::DEFAULT_NAME`] in the data directory, if that can be, and else nowhere, which is told.
    pub path: Option<PathBuf>,
    /// Who may come.
    pub access: IpcAccess,
}

impl IpcConfig {
    /// The socket's name in the data directory.
    pub const DEFAULT_NAME: &str = "zmtp.ipc";
}

/// Whom the system lets come to a Unix socket, who passes the directories above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpcAccess {
    /// Processes of the same user, and the superuser's.
    Owner,
    /// Those of its group as well.
    Group,
}

impl IpcAccess {
    /// The rights of the socket's file.
    pub fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o660,
        }
    }
}

impl ZmtpConfig {
    /// The standard port.
    pub const DEFAULT_PORT: u16 = 5570;
}

/// Bodkin's own relay, inside this cloud (`docs/design/between-clouds.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What its clients may take.
    pub limits: HubLimits,
}

impl RelayConfig {
    /// The usual port.
    pub const DEFAULT_PORT: u16 = 5573;
}

/// What a local cloud is started with.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where state is kept.
    pub data: PathBuf,
    /// The database that this node shares with others; `None`: its own one, in `data`.
    pub database: Option<DatabasePlace>,
    /// By what best-effort events go from node to node of those that share a database; `None`: they do not.
    pub nats: Option<NatsPlace>,
    /// The stream by which they go, and which keeps them; `None`: they go at most once.
    pub node_stream: Option<NodeStreamTerms>,
    /// Where real-time topics and graphs are served, for nodes that share a database and do not: Service Registries, HOST:PORT each.
    pub realtime_at: Vec<String>,
    /// Address to listen on.
    pub listen: IpAddr,
    /// Address the core systems register under.
    pub domain_name: String,
    /// The port of each listener, in the order of [`Port::ALL`](crate::server::Port::ALL); 0 is any.
    pub ports: [u16; 7],
    /// The ports at which consumers reach tunnels to other clouds.
    pub tunnel_ports: PortRange,
    /// Maximum number of these that one consumer holds; 0: half of them.
    pub tunnel_ports_of_one: usize,
    /// Whether consumers of other clouds reach providers of this one by tunnels only.
    pub gateway_is_mandatory: bool,
    /// True if every system may end the subscriptions of others, as upstream has it.
    pub unsubscribe_by_any: bool,
    /// ZMTP; `None` switches it off.
    pub zmtp: Option<ZmtpConfig>,
    /// A relay for this cloud and those that it knows, in secure mode; `None`: there is none.
    pub relay: Option<RelayConfig>,
    /// Names and passcodes for brokers that ask for them.
    pub relay_logins: Arc<Logins>,
    /// What other clouds are answered whatever they ask: for measurements.
    pub fixed_answers: FixedAnswers,
    /// Naming rules of the Service Registry.
    pub naming: NamingRules,
    /// How the addresses of systems are found that do not know their own; `None` takes what they give.
    pub address_detection: Option<AddressDetection>,
    /// What is done without being asked.
    pub jobs: JobSchedule,
    /// How long a provider may take to accept a pinging connection.
    pub ping_timeout: Duration,
    /// The limits.
    pub limits: Limits,
    /// What the event log keeps; `None` switches it off.
    pub event_log: Option<EventLogLimits>,
    /// Event types whose publishers are answered when the event is synced to the disk.
    pub durable_event_types: Vec<EventType>,
    /// What real-time topics count on.
    pub platform: Platform,
    /// Event types that are real-time topics; those that do not fit are refused, and then nothing is started.
    pub topics: Arc<[DeclaredTopic]>,
    /// Event-processing graphs that run from the start.
    pub graphs: Arc<DeclaredGraphs>,
    /// What fetches events from other edges for them.
    pub carriers: Carriers,
    /// How the threads of the data plane are scheduled.
    pub realtime: Arc<Realtime>,
    /// Where log entries wait to be kept.
    pub log_book: Arc<LogBook>,
    /// Which services are announced by multicast DNS; `None`: none.
    pub dns_sd: Option<Announced>,
    /// Which events go on to a stream of NATS JetStream, and where it is; `None`: none do.
    pub fleet: Option<Arc<FleetConfig>>,
    /// Where traces are told; `None`: nowhere, and they are handed on only.
    pub traces: Option<TraceConfig>,
    /// Log entries that are kept.
    pub log_entries_max: u64,
    /// What the audit log keeps.
    pub audit: AuditLimits,
    /// Names under which clients call, beside those that need no list ([`OwnNames`](crate::host_name::OwnNames)).
    pub host_names: Vec<String>,
    /// Origins whose pages may call, beside the own dashboard's.
    pub cors_origins: Vec<Origin>,
    /// How the Orchestrator is configured.
    pub orchestrator: OrchestratorConfig,
    /// What says how providers will answer from how they have; `None`: nothing is predicted of them.
    pub forecast: Option<Forecast>,
    /// What draws nets and fits laws for the operator; `None`: nothing is drawn or fitted.
    pub modeller: Option<Modeller>,
    /// How long tokens count.
    pub token_lifetimes: TokenLifetimes,
    /// Names of providers (lower-case) whose tokens have no expiry.
    pub tokens_without_expiry_for: BTreeSet<String>,
    /// Certificates and keys; `None` is insecure mode.
    pub security: Option<SecurityConfig>,
    /// Whether data of the other mode is taken over.
    pub adopt_data: bool,
    /// When events go to the Backup.
    pub replication_pace: ReplicationPace,
    /// Events of each stream that the Backup keeps although they are covered: for comparison.
    pub backup_keeps: u32,
    /// The node of the reliable pair that this cloud is led by; `None` of a cloud by itself.
    pub pair: Option<PairHandle>,
}

impl HostConfig {
    /// How many core systems the cloud has: all in secure mode, as far as there are certificates; without, those that need none.
    pub fn core_systems(&self) -> usize {
        let without_keys = || CoreSystem::ALL.iter().filter(|system| !system.needs_keys()).count();
        self.security.as_ref().map_or_else(without_keys, |security| security.systems().len())
    }

    /// How the Gateway is configured.
    pub fn gateway(&self) -> GatewayConfig {
        GatewayConfig {
            listen: self.listen,
            address: self.domain_name.clone(),
            ports: self.tunnel_ports,
            ports_of_one: self.tunnel_ports_of_one,
            terms: Terms { idle: self.limits.tunnel_idle_timeout, opening: self.limits.neighbor_timeout },
            patience: self.limits.handshake_timeout,
        }
    }

    /// A cloud in insecure mode on any ports of the loopback address, without an event log, and all else as it is by default.
    pub fn on_loopback(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            database: None,
            nats: None,
            node_stream: None,
            realtime_at: Vec::new(),
            listen: Ipv4Addr::LOCALHOST.into(),
            domain_name: Ipv4Addr::LOCALHOST.to_string(),
            ports: [0; 7],
            tunnel_ports: PortRange::Any,
            tunnel_ports_of_one: 0,
            gateway_is_mandatory: false,
            unsubscribe_by_any: false,
            zmtp: None,
            relay: None,
            relay_logins: Arc::default(),
            fixed_answers: FixedAnswers::default(),
            naming: NamingRules::default(),
            address_detection: None,
            jobs: JobSchedule::default(),
            ping_timeout: Duration::from_secs(5),
            limits: Limits::default(),
            event_log: None,
            durable_event_types: Vec::new(),
            platform: Platform::default(),
            topics: Arc::default(),
            graphs: Arc::default(),
            carriers: Carriers::default(),
            realtime: Realtime::ordinary(),
            log_book: Arc::default(),
            dns_sd: None,
            fleet: None,
            traces: None,
            log_entries_max: 10_000,
            audit: AUDIT_LIMITS,
            host_names: Vec::new(),
            cors_origins: Vec::new(),
            orchestrator: OrchestratorConfig::default(),
            forecast: None,
            modeller: None,
            token_lifetimes: TokenLifetimes::default(),
            tokens_without_expiry_for: BTreeSet::new(),
            security: None,
            adopt_data: false,
            replication_pace: ReplicationPace::Lazy,
            backup_keeps: 0,
            pair: None,
        }
    }
}
