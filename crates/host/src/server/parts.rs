//! What the planes of a local cloud share: made in front of all of them, and given to each.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_store::{
    Store,
    audit::AuditThread,
    event_log::{self, EventLog, EventLogReader},
};
use tokio::sync::{Semaphore, mpsc};

use super::{
    StartError,
    elsewhere::{self, BetweenNodes},
};
use crate::{
    api::{Api, AuditReaders, OnboardingApi, ZmtpPlaces},
    audit::Audit,
    config::HostConfig,
    control::{self, Control, Pings},
    dashboard::sign_in::SignIn,
    destination::Destinations,
    disk::DataDisk,
    fleet::FleetState,
    gate::Gate,
    gatekeeper::Gatekeeper,
    gateway::Gateway,
    graph::Deployer,
    inbox::{Inbox, Message},
    live::Board,
    monitor::{EventCounts, Monitor},
    node_events::Crossing,
    onboarding::Onboarding,
    probe::Probes,
    push::{PushContext, backlog::BacklogSource},
    quality::Qualities,
    quotas::{FittedLimits, Quotas},
    relay::server::RelayServer,
    replay::{READERS_MAX, ReplayContext},
    security::{Security, SecurityConfig},
    shard::{ControlRequest, ShardContext},
    shared::account::Account,
    shelf::Shelf,
    stage::Stages,
    stall::Stalls,
    token::TokenIssuer,
    topics::{self, AdmittedTopics, RealTimeTopics, asking::Asking, pushed::PushedWishes},
    trace::{Traces, exporter::Exporter},
};

/// What is there before them: the database is open, the ports are taken, certificates are read.
pub(super) struct Ground<'c> {
    pub config: &'c HostConfig,
    pub store: &'c Store,
    pub admitted: &'c AdmittedTopics,
    /// Of certificates, where nodes share one.
    pub account: Option<Account>,
    pub security: Option<Arc<Security>>,
    /// Where each port listens that is served, in the order of [`Port::ALL`](super::Port::ALL).
    pub addresses: Vec<SocketAddr>,
    /// Where ZMTP is spoken.
    pub zmtp: ZmtpPlaces,
    /// The shard's.
    pub inbox: Arc<Inbox>,
}

/// What is begun with them and belongs to one place each.
pub(super) struct Begun {
    pub audit: AuditThread,
    /// Tells of traces.
    pub exporter: Option<Exporter>,
    /// The shard's end of the event log.
    pub log: Option<EventLog>,
    pub node_events: Option<BetweenNodes>,
}

/// See the module.
pub(super) struct Parts {
    pub config: HostConfig,
    pub store: Store,
    pub topics: Arc<RealTimeTopics>,
    pub account: Option<Account>,
    pub security: Option<Arc<Security>>,
    pub addresses: Vec<SocketAddr>,
    pub zmtp: ZmtpPlaces,
    pub inbox: Arc<Inbox>,
    pub destinations: Destinations,
    pub audit: Audit,
    pub stages: Arc<Stages>,
    pub quotas: Quotas,
    pub stalls: Arc<Stalls>,
    pub counts: Arc<EventCounts>,
    pub probes: Arc<Probes>,
    pub qualities: Arc<Qualities>,
    pub tokens: Option<Arc<TokenIssuer>>,
    pub traces: Option<Arc<Traces>>,
    pub gatekeeper: Option<Arc<Gatekeeper>>,
    pub gateway: Option<Arc<Gateway>>,
    /// Who reads the event log.
    pub log: Option<EventLogReader>,
    /// Event types whose publishers are answered when the event is synced, as stored.
    pub durable: BTreeSet<Box<str>>,
    pub fleet: Option<Arc<FleetState>>,
    pub crossing: Option<Crossing>,
    pub push: PushContext,
    pub graphs: Arc<Deployer>,
}

impl Parts {
    /// Makes them.
    ///
    /// # Errors
    /// The system refuses a thread, or a log, key or note cannot be used.
    pub async fn make(ground: Ground<'_>) -> Result<(Self, Begun), StartError> {
        let Ground { config, store, admitted: (topics, admitted), account, security, addresses, zmtp, inbox } = ground;
        let trust = security.as_ref().map(|security| security.trust());
        let destinations = Destinations::new(&addresses.iter().copied().chain(zmtp.address).collect::<Vec<_>>());
        let mode = if config.security.is_some() { "secure" } else { "insecure" };
        let (audit, audit_thread) = Audit::open(&config.data, config.audit, store, mode).await?;
        let tokens = trust.as_deref().map(|trust| {
            let authorization = trust.identity(CoreSystem::Authorization);
            TokenIssuer::start_with(authorization, config.token_lifetimes, config.tokens_without_expiry_for.clone())
        });
        let tokens = tokens.transpose()?.map(Arc::new);
        let (traces, exporter) = elsewhere::traces(config, trust.as_deref());
        let gatekeeper = elsewhere::gatekeeper(config, security.as_ref(), &destinations, traces.clone())?.map(Arc::new);
        let gateway = elsewhere::gateway(config, security.as_ref(), &destinations)?.map(Arc::new);
        let (log, reader) = open_event_log(config, store, &inbox).await?.unzip();
        let fleet = elsewhere::fleet(config, reader.as_ref())?;
        let (node_events, crossing) = elsewhere::node_events(config, store, reader.as_ref(), &inbox)?.unzip();
        if let (Some(gatekeeper), Some(log)) = (&gatekeeper, &reader) {
            gatekeeper.heard.recall_from(log.clone());
        }
        let quotas = Quotas::new(&FittedLimits::of_this_process(&config.limits, config.security.is_some()), &config.limits);
        let durable_topics = admitted.iter().filter(|(topic, _)| topic.is_durable).map(|(topic, _)| topic.event_type.as_ref().into());
        let counts = Arc::<EventCounts>::default();
        let push = PushContext {
            store: store.clone(),
            inbox: inbox.clone(),
            counts: counts.clone(),
            timeout: config.limits.push_timeout,
            policy: config.limits.delivery,
            dead_letters_max: config.limits.dead_letters_max,
            destinations: destinations.clone(),
            security: security.clone(),
            gatekeeper: gatekeeper.clone(),
            backlog: reader.clone().map(|log| BacklogSource::new(store.clone(), log)),
            log_of_pair: reader.as_ref().filter(|_| config.pair.is_some()).map(EventLogReader::identity),
            deliveries: Arc::default(),
            started: Instant::now(),
            traces: traces.clone(),
            leadership: config.pair.as_ref().map(|pair| pair.leadership().clone()),
        };
        let graphs = Deployer::new(
            &config.graphs,
            config.limits.event_bytes_max,
            config.realtime.clone(),
            inbox.clone(),
            config.pair.clone(),
            config.carriers.clone(),
        );
        let parts = Self {
            durable: topics::durable_event_types(config).chain(durable_topics).collect(),
            stalls: Arc::new(Stalls::new(topics.assumed())),
            qualities: Arc::new(Qualities::new(config.security.is_some())),
            graphs: Arc::new(graphs),
            stages: Arc::default(),
            quotas,
            probes: Arc::default(),
            config: config.clone(),
            store: store.clone(),
            topics: topics.clone(),
            account,
            security,
            addresses,
            zmtp,
            inbox,
            destinations,
            audit,
            counts,
            tokens,
            traces,
            gatekeeper,
            gateway,
            log: reader,
            fleet,
            crossing,
            push,
        };
        Ok((parts, Begun { audit: audit_thread, exporter, log, node_events }))
    }

    /// The control plane.
    pub fn control(&self) -> Control {
        let config = &self.config;
        Control {
            store: self.store.clone(),
            stages: self.stages.clone(),
            naming: config.naming,
            address_detection: config.address_detection.clone(),
            pings: Pings::new(config.ping_timeout, self.destinations.clone()),
            log_book: config.log_book.clone(),
            subscriptions_max: config.limits.subscriptions_max,
            owner_quota: self.quotas.owners.clone(),
            wishes: PushedWishes::new(self.topics.clone(), self.inbox.clone()),
            audit: self.audit.clone(),
            orchestrator: config.orchestrator,
            qualities: self.qualities.clone(),
            traces: self.traces.clone(),
            tokens: self.tokens.clone(),
            inbox: self.inbox.clone(),
            gatekeeper: self.gatekeeper.clone(),
            gateway: self.gateway.clone(),
            gateway_is_mandatory: config.gateway_is_mandatory,
            unsubscribe_by_any: config.unsubscribe_by_any,
            malformed: Default::default(),
        }
    }

    /// What answers on Bodkin's own port; it is not ready yet.
    pub fn monitor(&self, control: Arc<Control>, relay: Option<RelayServer>) -> Monitor {
        Monitor {
            store: self.store.clone(),
            stages: self.stages.clone(),
            quotas: self.quotas.clone(),
            events: self.counts.clone(),
            crossing: self.crossing.clone(),
            api: self.api(control),
            pair: self.config.pair.clone(),
            security: self.security.clone(),
            sign_in: self.security.clone().map(|security| SignIn::new(security, self.addresses[super::Port::MONITOR].port())),
            relay,
            disk: DataDisk::of(&self.config, &self.store),
            addresses: self.addresses.clone(),
            live: Board::default(),
            ready: AtomicBool::new(false),
        }
    }

    fn api(&self, control: Arc<Control>) -> Api {
        let config = &self.config;
        let authority = config.security.as_ref().and_then(SecurityConfig::own_authority);
        let onboarding = authority.map(|own| Arc::new(Onboarding::new(own, self.account.clone())));
        Api {
            store: self.store.clone(),
            control,
            stages: self.stages.clone(),
            log: self.log.clone(),
            durable: self.durable.clone(),
            topics: self.topics.clone(),
            fleet: self.fleet.clone(),
            node_events: self.crossing.as_ref().and_then(Crossing::stream).cloned(),
            stalls: self.stalls.clone(),
            realtime: config.realtime.clone(),
            graphs: self.graphs.clone(),
            zmtp: self.zmtp.clone(),
            inbox: self.inbox.clone(),
            realtime_at: config.realtime_at.clone(),
            pair: config.pair.clone(),
            push: self.push.clone(),
            probes: self.probes.clone(),
            deregistration: config.jobs.deregistration,
            audit: self.audit.clone(),
            audit_readers: AuditReaders::default(),
            reports: Shelf::new(config.data.join("reports")),
            models: Shelf::new(config.data.join("models")),
            modeller: config.modeller,
            onboarding: OnboardingApi { store: self.store.clone(), onboarding },
        }
    }

    /// What the shard is made of, which hands requests of the control plane over by `control`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system has no thread for the admission test.
    pub fn shard(&self, control: mpsc::Sender<ControlRequest>, gate: Arc<Gate>) -> Result<ShardContext, StartError> {
        let replay = |log| ReplayContext {
            store: self.store.clone(),
            log,
            inbox: self.inbox.clone(),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
        };
        Ok(ShardContext {
            store: self.store.clone(),
            stages: self.stages.clone(),
            limits: self.config.limits,
            quotas: self.quotas.clone(),
            durable: self.durable.clone(),
            gate,
            control,
            push: self.push.clone(),
            crossing: self.crossing.clone(),
            replay: self.log.clone().map(replay),
            counts: self.counts.clone(),
            stalls: self.stalls.clone(),
            realtime: self.config.realtime.clone(),
            security: self.security.clone(),
            asking: Asking::start(self.topics.clone(), self.inbox.clone())?,
            runtime: tokio::runtime::Handle::current(),
        })
    }
}

/// Opens the event log of the one shard; its keeper tells the shard what is synced.
async fn open_event_log(config: &HostConfig, store: &Store, inbox: &Arc<Inbox>) -> Result<Option<(EventLog, EventLogReader)>, StartError> {
    let Some(limits) = config.event_log else { return Ok(None) };
    let directory = config.data.join("events").join("shard-0");
    let failed = |error| StartError::EventLog { directory: directory.clone(), error };
    let log_of_pair = config.pair.as_ref().map(|_| event_log::identity(&directory)).transpose().map_err(failed)?;
    // A position of a log that was moved away must not name another event.
    let from = store.read(move |draft| draft.positions_end(log_of_pair)).await?;
    let inbox = inbox.clone();
    let on_sync = Box::new(move |end, result| inbox.post(Message::Synced { end, result }));
    EventLog::open(&directory, limits, from, control::now().unix_nanos(), on_sync).map(Some).map_err(failed)
}
