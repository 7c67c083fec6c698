//! Starting and stopping the local cloud.

mod bind;
mod doors;
mod elsewhere;
pub mod ipc;
mod lead;

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Relaxed},
        },
    },
    time::{Duration, Instant},
};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_store::{
    OpenError, Opened, Store, StoreError,
    audit::AuditThread,
    event_log::{EventLog, EventLogReader, Position},
};
use bodkin_trust::TrustDirectory;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinHandle as Task,
};

use self::{
    doors::{Doors, answer_shard},
    elsewhere::BetweenNodes,
    ipc::{IpcError, SocketFile},
    lead::{Lead, Leading},
};
use crate::{
    api::{Api, AuditReaders, OnboardingApi, ZmtpPlaces},
    audit::{self, Audit, AuditError},
    config::HostConfig,
    control::{self, Control, Pings},
    destination::Destinations,
    disk::DataDisk,
    gate::Gate,
    gatekeeper::GatekeeperError,
    graph::{DeployError, Deployer},
    inbox::{Inbox, Message},
    listener::Traffic,
    live::Board,
    log_book::LogBook,
    monitor::{EventCounts, Monitor},
    node_events::Crossing,
    onboarding::Onboarding,
    pair::{
        Follows,
        primary::{PairTerms, Primary},
    },
    probe::Probes,
    push::{PushContext, backlog::BacklogSource, delivery::Deliveries},
    quality::Qualities,
    replay::{READERS_MAX, ReplayContext},
    security::{Security, SecurityConfig, SecurityError},
    shard::{CONTROL_REQUESTS_MAX, Shard, ShardContext, ShardThread},
    shared::{
        self,
        account::{Account, AccountError, OtherAuthority, refuse_other_authority},
    },
    shelf::Shelf,
    stage::Stages,
    stall::{StallWatch, Stalls},
    stopping::Stopping,
    token::{IssuerError, TokenIssuer},
    topics::{self, TopicError, asking::Asking, pushed::PushedWishes},
    trace::exporter::Exporter,
};

/// How long requests under way may take once a shutdown has begun.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How long what is being posted may take once a shutdown has begun; what is not answered then is posted again after the next start.
const POSTING_MAX: Duration = Duration::from_secs(6);
const POSTING_LOOK: Duration = Duration::from_millis(5);

/// A port of Bodkin's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// A core system's.
    System(CoreSystem),
    /// Bodkin's own.
    Monitor,
}

impl Port {
    /// All ports, in the order they are told. Behind the others is what is not in every cloud.
    pub const ALL: [Self; 7] = [
        Self::System(CoreSystem::ServiceRegistry),
        Self::System(CoreSystem::Authorization),
        Self::System(CoreSystem::Orchestrator),
        Self::System(CoreSystem::EventHandler),
        Self::Monitor,
        Self::System(CoreSystem::Gatekeeper),
        Self::System(CoreSystem::Gateway),
    ];
    /// Where the monitor's is among them.
    pub const MONITOR: usize = 4;

    /// Those of a cloud with so many core systems: the Gatekeeper and the Gateway are not in every cloud.
    pub fn served(core_systems: usize) -> &'static [Self] {
        let all: &'static [Self] = &Self::ALL;
        // The monitor's is one more.
        &all[..=core_systems.max(Self::MONITOR)]
    }

    /// The name it is told by.
    pub fn name(self) -> &'static str {
        match self {
            Self::System(system) => system.name(),
            Self::Monitor => "monitor",
        }
    }

    /// The standard port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::System(system) => system.default_port(),
            Self::Monitor => 8440,
        }
    }
}

/// Why the local cloud did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A port cannot be listened on.
    #[error("cannot listen on {address} for {name}: {error}. Stop what uses the port, or move all ports with --port-offset.")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// For whom.
        name: &'static str,
        /// The system's words.
        error: io::Error,
    },
    /// A path of this machine cannot be listened on.
    #[error("cannot listen on ipc://{}: {error}", path.display())]
    Ipc {
        /// Where.
        path: PathBuf,
        /// Why.
        error: IpcError,
    },
    /// The core systems could not be registered.
    #[error("cannot register the core systems' services: {0}")]
    Register(#[from] StoreError),
    /// The event log cannot be used.
    #[error("cannot use the event log {directory}: {error}. Repair it, move it away, or switch it off with --event-log false.")]
    EventLog {
        /// Its directory.
        directory: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// Certificates and keys cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// Tokens cannot be signed.
    #[error(transparent)]
    Tokens(#[from] IssuerError),
    /// No other cloud can be spoken with.
    #[error(transparent)]
    Gatekeeper(#[from] GatekeeperError),
    /// The data was written in the other mode.
    #[error(
        "{directory} was used in {} mode. {} Start with another --data, or take what is there over as it is with --adopt-data.",
        if *.was_secure { "secure" } else { "insecure" },
        if *.was_secure { "Without certificates everybody who reaches the ports could read and change it." }
        else { "Everybody who reached the ports could write systems and rules there, under any name." }
    )]
    OtherMode {
        /// Where it is.
        directory: PathBuf,
        /// In which mode.
        was_secure: bool,
    },
    /// The other nodes of the cloud have another authority.
    #[error(transparent)]
    Authority(#[from] OtherAuthority),
    /// What they have revoked is not known.
    #[error("the account of certificates that the nodes share: {0}")]
    Account(#[from] AccountError),
    /// The audit log cannot be used.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A real-time topic does not fit, or what they all count on.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// Events cannot be forwarded.
    #[error("cannot forward events to the fleet: {0}")]
    Fleet(io::Error),
    /// A graph cannot run.
    #[error("a graph cannot run: {0}")]
    Graph(DeployError),
    /// A thread or poll could not be made.
    #[error("the system refuses what the data plane needs: {0}")]
    System(#[from] io::Error),
}

/// A running local cloud.
pub struct Server {
    /// Where each port listens that is served, in the order of [`Port::ALL`].
    pub addresses: Vec<SocketAddr>,
    /// Where ZMTP is spoken.
    pub zmtp: Option<SocketAddr>,
    /// On which path of this machine.
    pub zmtp_ipc: Option<SocketFile>,
    /// Where the relay listens.
    pub relay: Option<SocketAddr>,
    opened: Opened,
    pub(crate) monitor: Arc<Monitor>,
    /// Ends who accepts connections, and those.
    stopping: Arc<Stopping>,
    shard: ShardThread,
    /// Answers the shard's requests to the control plane.
    answerer: Task<()>,
    /// Carries events between the nodes of a shared database.
    node_events: Option<BetweenNodes>,
    /// Looks for new certificates and keys, in secure mode, whether this node of a pair leads or not.
    trust_watch: Option<Task<()>>,
    /// Tells the audit log of repeated denials.
    denials_told: Task<()>,
    /// What it needs to lead, and what runs since it does.
    lead: Lead,
    leading: Option<Leading>,
    log_book: Arc<LogBook>,
    log_entries_max: u64,
    security: Option<Arc<Security>>,
    /// Tells of traces.
    exporter: Option<Exporter>,
    /// Watches the machine's stalls.
    _stall_watch: StallWatch,
    audit: AuditThread,
}

impl Server {
    /// Starts everything; when it returns, every listener answers. Must be called within a tokio runtime.
    pub async fn start(config: &HostConfig) -> Result<Self, StartError> {
        let (topics, admitted) = topics::admit_configured(config)?;
        let (opened, following) = match &config.pair {
            None => (lead::open(config)?, None),
            Some(pair) => {
                let (opened, following) = Store::follow(&config.data, pair.reporter())?;
                (opened, Some(following))
            }
        };
        // Before certificates are made for a cloud that does not start.
        lead::refuse_other_mode(&opened.store, config)?;
        let authority = config.security.as_ref().and_then(SecurityConfig::own_authority);
        refuse_other_authority(&opened.store, authority.as_ref()).await?;
        let account_of = |own: &TrustDirectory| Account::of(own, &opened.store).map_err(SecurityError::from);
        // What was revoked while this node was away counts for the first who comes.
        if let Some(account) = authority.as_ref().filter(|own| own.exists()).map(account_of).transpose()?.flatten() {
            account.take().await?;
        }
        let listeners = bind::ports(config)?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().map(|group| group[0].local_addr().expect("a bound listener has an address")).collect();
        let security = open_security(config).await?;
        let trust = security.as_ref().map(|security| security.trust());
        let (endpoint, zmtp_ipc) = bind::zmtp(config, trust.as_deref())?;
        let zmtp = endpoint.listeners.first().map(|listener| listener.local_addr().expect("a bound listener has an address"));
        let destinations = Destinations::new(&addresses.iter().copied().chain(zmtp).collect::<Vec<_>>());
        let mode = if config.security.is_some() { "secure" } else { "insecure" };
        let (audit, audit_thread) = Audit::open(&config.data, config.audit, &opened.store, mode).await?;
        let stages = Arc::new(Stages::default());
        let traffic = Arc::new(Traffic::default());
        let stalls = Arc::new(Stalls::new(topics.assumed()));
        let counts = Arc::new(EventCounts::default());
        let tokens = trust.as_deref().map(|trust| TokenIssuer::start(trust.identity(CoreSystem::Authorization), config.token_lifetimes));
        let tokens = tokens.transpose()?.map(Arc::new);
        let (traces, exporter) = elsewhere::traces(config, trust.as_deref());
        let gatekeeper = elsewhere::gatekeeper(config, security.as_ref(), &destinations, traces.clone())?.map(Arc::new);
        let gateway = elsewhere::gateway(config, security.as_ref(), &destinations)?.map(Arc::new);
        let (poll, inbox) = Shard::inbox()?;
        let qualities = Arc::new(Qualities::new(config.security.is_some()));
        let control = Arc::new(Control {
            store: opened.store.clone(),
            stages: stages.clone(),
            naming: config.naming,
            address_detection: config.address_detection.clone(),
            pings: Pings::new(config.ping_timeout, destinations.clone()),
            log_book: config.log_book.clone(),
            subscriptions_max: config.limits.subscriptions_max,
            wishes: PushedWishes::new(topics.clone(), inbox.clone()),
            audit: audit.clone(),
            orchestrator: config.orchestrator,
            qualities: qualities.clone(),
            traces: traces.clone(),
            tokens: tokens.clone(),
            inbox: inbox.clone(),
            gatekeeper: gatekeeper.clone(),
            gateway,
            gateway_is_mandatory: config.gateway_is_mandatory,
        });
        let from = opened.store.read(|draft| draft.positions_end()).await?;
        let (log, log_reader) = open_event_log(config, from, &inbox)?.unzip();
        let fleet = elsewhere::fleet(config, log_reader.as_ref())?;
        let (node_events, crossing) = elsewhere::node_events(config, &opened.store, log_reader.as_ref(), &inbox)?.unzip();
        if let (Some(gatekeeper), Some(log)) = (&gatekeeper, &log_reader) {
            gatekeeper.heard.recall_from(log.clone());
        }
        let durable_topics = admitted.iter().filter(|(topic, _)| topic.is_durable).map(|(topic, _)| topic.event_type.as_ref().into());
        let durable: BTreeSet<Box<str>> = topics::durable_event_types(config).chain(durable_topics).collect();
        let push = PushContext {
            store: opened.store.clone(),
            inbox: inbox.clone(),
            counts: counts.clone(),
            timeout: config.limits.push_timeout,
            policy: config.limits.delivery,
            dead_letters_max: config.limits.dead_letters_max,
            destinations: destinations.clone(),
            security: security.clone(),
            gatekeeper,
            backlog: log_reader.clone().map(|log| BacklogSource::new(opened.store.clone(), log)),
            deliveries: Arc::default(),
            started: Instant::now(),
            traces,
        };
        let probes = Arc::new(Probes::default());
        let relay = bind::relay(config, security.as_ref(), &opened.store)?;
        let relay_address = relay.as_ref().map(|relay| relay.address);
        let graphs = Deployer::new(
            &config.graphs,
            config.limits.event_bytes_max,
            config.realtime.clone(),
            inbox.clone(),
            config.pair.clone(),
            config.carriers.clone(),
        );
        let graphs = Arc::new(graphs);
        let account = authority.as_ref().map(account_of).transpose()?.flatten();
        let monitor = Arc::new(Monitor {
            store: opened.store.clone(),
            stages: stages.clone(),
            traffic: traffic.clone(),
            events: counts.clone(),
            crossing: crossing.clone(),
            api: Api {
                store: opened.store.clone(),
                control: control.clone(),
                stages: stages.clone(),
                log: log_reader.clone(),
                durable: durable.clone(),
                topics: topics.clone(),
                fleet: fleet.clone(),
                node_events: crossing.as_ref().and_then(Crossing::stream).cloned(),
                stalls: stalls.clone(),
                realtime: config.realtime.clone(),
                graphs: graphs.clone(),
                zmtp: ZmtpPlaces { address: zmtp, ipc: zmtp_ipc.as_ref().map(|file| file.path().display().to_string()) },
                inbox: inbox.clone(),
                realtime_at: config.realtime_at.clone(),
                pair: config.pair.clone(),
                push: push.clone(),
                probes: probes.clone(),
                deregistration: config.jobs.deregistration,
                audit: audit.clone(),
                audit_readers: AuditReaders::default(),
                reports: Shelf::new(config.data.join("reports")),
                models: Shelf::new(config.data.join("models")),
                modeller: config.modeller,
                onboarding: OnboardingApi {
                    store: opened.store.clone(),
                    onboarding: authority.map(|own| Arc::new(Onboarding::new(own, account.clone()))),
                },
            },
            pair: config.pair.clone(),
            security: security.clone(),
            relay,
            disk: DataDisk::of(config, &opened.store),
            addresses: addresses.clone(),
            live: Board::default(),
            ready: AtomicBool::new(false),
        });
        let gate = Arc::new(Gate::of(config, &addresses));
        let (requests, asked) = mpsc::channel(CONTROL_REQUESTS_MAX);
        let context = ShardContext {
            store: opened.store.clone(),
            stages,
            limits: config.limits,
            durable,
            gate: gate.clone(),
            control: requests,
            push,
            crossing,
            replay: log_reader.map(|log| ReplayContext {
                store: opened.store.clone(),
                log,
                inbox: inbox.clone(),
                readers: Arc::new(Semaphore::new(READERS_MAX)),
            }),
            counts,
            stalls: stalls.clone(),
            realtime: config.realtime.clone(),
            security: security.clone(),
            asking: Asking::start(topics.clone(), inbox.clone())?,
            runtime: tokio::runtime::Handle::current(),
        };
        let lead = Lead {
            config: config.clone(),
            addresses: addresses.clone(),
            store: opened.store.clone(),
            topics: topics.clone(),
            inbox: inbox.clone(),
            announced: monitor.events.announced.clone(),
            log: monitor.api.log.clone(),
            deliveries: monitor.api.push.deliveries.clone(),
            probes,
            qualities,
            destinations,
            security: security.clone(),
            tokens,
            control: control.clone(),
            audit: audit.clone(),
            graphs,
            fleet,
            account,
        };
        // A cloud by itself serves nobody before it can serve everybody.
        let leading = if config.pair.is_none() { Some(lead.begin().await?) } else { None };
        let trust_watch = security.clone().map(|security| tokio::spawn(security.watch(audit.clone())));
        let denials_told = tokio::spawn(audit.clone().tell_repeats());
        let answerer = tokio::spawn(answer_shard(asked, control.clone(), inbox.clone()));
        let stopping = Arc::<Stopping>::default();
        let doors = Doors {
            control,
            monitor: monitor.clone(),
            security: security.clone(),
            audit,
            gate,
            limits: config.limits,
            traffic,
            inbox: inbox.clone(),
        };
        let shards_own = doors.open(listeners, &stopping)?;
        let notices = inbox.clone();
        let tell = move |_| notices.post(Message::GuaranteesChanged);
        let stall_watch = StallWatch::start(stalls, config.realtime.clone(), tell)?;
        let primary = config.pair.clone().map(|pair| Primary::new(pair, config.data.clone(), PairTerms::of(config)));
        let mut shard = Shard::new(context, poll, inbox.clone(), shards_own, endpoint, log, primary)?;
        admitted.into_iter().try_for_each(|(topic, terms)| shard.admit(topic, terms)).map_err(TopicError::from)?;
        let shard = ShardThread::start(shard)?;
        if let (Some(pair), Some(following)) = (&config.pair, following) {
            let (store, topics_max) = (opened.store.clone(), config.limits.event_types_max);
            pair.attach(Follows { following, store, topics, topics_max, shard: inbox });
        }
        for (port, address) in Port::ALL.iter().zip(&addresses) {
            tracing::info!(system = port.name(), %address, "serving");
        }
        if let Some(address) = zmtp {
            tracing::info!(system = "zmtp", %address, "serving");
        }
        if let Some(file) = &zmtp_ipc {
            tracing::info!(system = "zmtp", path = %file.path().display(), "serving");
        }
        if let Some(address) = relay_address {
            tracing::info!(system = "relay", %address, "serving");
        }
        opened.store.introduce(shared::place(config, &addresses));
        monitor.ready.store(true, Relaxed);
        let (log_book, log_entries_max) = (config.log_book.clone(), config.log_entries_max);
        Ok(Self {
            addresses,
            zmtp,
            zmtp_ipc,
            relay: relay_address,
            opened,
            monitor,
            stopping,
            shard,
            answerer,
            node_events,
            trust_watch,
            denials_told,
            lead,
            leading,
            log_book,
            log_entries_max,
            security,
            exporter,
            _stall_watch: stall_watch,
            audit: audit_thread,
        })
    }

    /// Reads certificates, keys and revocations again. Insecure mode has none.
    pub async fn reload(&self, why: &str) {
        if let Some(security) = &self.security {
            security.reload_and_tell(why, &self.monitor.api.audit).await;
        }
    }

    /// The cloud's certificates and keys; `None` in insecure mode.
    pub fn security(&self) -> Option<&Arc<Security>> {
        self.security.as_ref()
    }

    /// Accepts nothing more, answers what is under way, writes out what is queued. The store is left to be closed when
    /// the runtime, whose idle connections hold on to it, is gone.
    pub async fn stop(self) -> Opened {
        self.monitor.ready.store(false, Relaxed);
        tracing::info!("stopping: what is under way is answered");
        self.trust_watch.iter().for_each(Task::abort);
        self.leading.iter().for_each(Leading::stop_jobs);
        let deliveries = self.monitor.api.push.deliveries.clone();
        deliveries.end();
        let begun = Instant::now();
        if let Some(gateway) = &self.monitor.api.control.gateway {
            gateway.stop().await;
        }
        if let Some(relay) = &self.monitor.relay {
            relay.stop().await;
        }
        let (all_answered, posting) = tokio::join!(self.stopping.stop(DRAIN_MAX), self.shard.drain());
        if !all_answered {
            tracing::warn!("the time to stop was over before everything was answered");
        }
        if let Some(posting) = posting {
            end_of_posting(posting, &deliveries, begun + POSTING_MAX).await;
        }
        self.answerer.abort();
        self.denials_told.abort();
        self.monitor.api.audit.tell_rest().await;
        if let Some(node_events) = self.node_events {
            // It has sent what it could, or is left.
            let _ = tokio::task::spawn_blocking(|| node_events.stop()).await;
        }
        let (audit, store) = (self.audit, &self.opened.store);
        let has_led = self.leading.is_some();
        if let Some(leading) = self.leading {
            leading.end().await;
        }
        let log = self.monitor.api.audit.log().reader();
        match tokio::task::spawn_blocking(|| audit.close(control::now(), audit::stop_event())).await {
            Ok(head) if has_led => audit::copies::end(store, log, head).await,
            // Who follows writes nothing; the log's last entry is noted when it leads.
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the audit log was not written to the end"),
        }
        if has_led {
            self.log_book.flush(store, self.log_entries_max).await;
        }
        // Until now it has answered what was written.
        match tokio::task::spawn_blocking(|| self.shard.end()).await {
            Ok(Ok(Ok(()))) => {}
            ended => tracing::error!(?ended, "the data plane ended badly"),
        }
        if let Some(exporter) = self.exporter {
            exporter.stop().await;
        }
        self.opened
    }
}

/// Waits until push tasks and replays have their last answers, so that what is written down of deliveries holds.
async fn end_of_posting(tasks: Vec<Task<()>>, deliveries: &Deliveries, until: Instant) {
    for task in tasks {
        if tokio::time::timeout_at(until.into(), task).await.is_err() {
            tracing::warn!("the time to stop was over before a subscriber had answered");
            break;
        }
    }
    let is_replaying = || deliveries.all().values().any(|delivery| delivery.is_replaying.load(Acquire));
    while is_replaying() && Instant::now() < until {
        tokio::time::sleep(POSTING_LOOK).await;
    }
}

/// Opens the event log of the one shard; its keeper tells the shard what is synced.
fn open_event_log(config: &HostConfig, from: Position, inbox: &Arc<Inbox>) -> Result<Option<(EventLog, EventLogReader)>, StartError> {
    let Some(limits) = config.event_log else { return Ok(None) };
    let directory = config.data.join("events").join("shard-0");
    let inbox = inbox.clone();
    let on_sync = Box::new(move |end, result| inbox.post(Message::Synced { end, result }));
    let opened = EventLog::open(&directory, limits, from, control::now().unix_nanos(), on_sync);
    opened.map(Some).map_err(|error| StartError::EventLog { directory, error })
}

/// Reads certificates and keys, which takes its time: not on a thread that serves others.
async fn open_security(config: &HostConfig) -> Result<Option<Arc<Security>>, StartError> {
    let Some(config) = config.security.clone() else { return Ok(None) };
    let opened = tokio::task::spawn_blocking(|| Security::open(config)).await.map_err(io::Error::other)?;
    Ok(Some(opened?))
}
