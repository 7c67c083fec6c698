//! Starting and stopping the local cloud.

mod bind;
mod doors;
mod elsewhere;
mod error;
pub mod ipc;
mod lead;
mod memory;
mod open;
mod parts;
mod port;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed},
    },
    time::{Duration, Instant},
};

use bodkin_store::{Opened, audit::AuditThread};
use tokio::{
    sync::{OnceCell, mpsc},
    task::JoinHandle as Task,
};

use self::{
    doors::{Doors, answer_shard},
    elsewhere::BetweenNodes,
    ipc::SocketFile,
    lead::{Lead, Leading},
    parts::{Begun, Ground, Parts},
};
pub use self::{error::StartError, port::Port};
use crate::{
    api::ZmtpPlaces,
    audit,
    config::HostConfig,
    control,
    gate::Gate,
    inbox::Message,
    log_book::LogBook,
    monitor::Monitor,
    pair::{
        Follows,
        primary::{PairTerms, Primary},
    },
    push::delivery::Deliveries,
    security::Security,
    shard::{CONTROL_REQUESTS_MAX, Shard, ShardThread},
    shared,
    stall::StallWatch,
    stopping::Stopping,
    topics::{self, TopicError},
    trace::exporter::Exporter,
};

/// How long requests under way may take once a shutdown has begun.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How long what is being posted may take once a shutdown has begun; what is not answered then is posted again after the next start.
const POSTING_MAX: Duration = Duration::from_secs(6);
const POSTING_LOOK: Duration = Duration::from_millis(5);

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
    /// Exchanges ledger lines with the other node of the pair, whether this one leads or not.
    account_watch: Option<Task<()>>,
    /// Tells the audit log of repeated denials.
    denials_told: Task<()>,
    /// Returns free memory to the system.
    memory: Task<()>,
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
    ///
    /// # Errors
    /// The database, a port, a certificate, a topic or a graph cannot be used, or the system refuses what is needed.
    pub async fn start(config: &HostConfig) -> Result<Self, StartError> {
        let admitted = topics::admit_configured(config)?;
        let (opened, following) = open::database(config).await?;
        let store = &opened.store;
        let listeners = bind::ports(config)?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().map(|group| group[0].local_addr().expect("a bound listener has an address")).collect();
        let security = open::security(config).await?;
        let account = open::account(config, store)?;
        if let (Some(pair), Some(_)) = (&config.pair, &account) {
            pair.leadership().begin_lines();
        }
        let trust = security.as_ref().map(|security| security.trust());
        let (endpoint, zmtp_ipc) = bind::zmtp(config, trust.as_deref())?;
        let zmtp = endpoint.listeners.first().map(|listener| listener.local_addr().expect("a bound listener has an address"));
        let zmtp_places = ZmtpPlaces { address: zmtp, ipc: zmtp_ipc.as_ref().map(|file| file.path().display().to_string()) };
        let (poll, inbox) = Shard::inbox()?;
        let ground = Ground { config, store, admitted: &admitted, account, security, addresses, zmtp: zmtp_places, inbox };
        let (parts, begun) = Parts::make(ground).await?;
        let relay = bind::relay(config, parts.security.as_ref(), store)?;
        let relay_address = relay.as_ref().map(|relay| relay.address);
        let control = Arc::new(parts.control());
        let monitor = Arc::new(parts.monitor(control.clone(), relay));
        let gate = Arc::new(Gate::of(config, &parts.addresses));
        let (requests, asked) = mpsc::channel(CONTROL_REQUESTS_MAX);
        let context = parts.shard(requests, gate.clone())?;
        let lead = Lead { parts, control: control.clone(), graphs: OnceCell::new() };
        // A cloud by itself serves nobody before it can serve everybody.
        let leading = if config.pair.is_none() { Some(lead.begin().await?) } else { None };
        let Parts { addresses, security, inbox, audit, topics, .. } = &lead.parts;
        let trust_watch = security.clone().map(|security| tokio::spawn(security.watch(audit.clone())));
        let account = config.pair.as_ref().and(lead.parts.account.clone()).zip(security.clone());
        let account_watch = account.map(|(account, security)| tokio::spawn(account.follow(security, audit.clone())));
        let denials_told = tokio::spawn(audit.clone().tell_repeats());
        let answerer = tokio::spawn(answer_shard(asked, control.clone(), inbox.clone()));
        let stopping = Arc::<Stopping>::default();
        let doors = Doors { parts: &lead.parts, control, monitor: monitor.clone(), gate };
        let shards_own = doors.open(listeners, &stopping)?;
        let notices = inbox.clone();
        let tell = move |_| notices.post(Message::GuaranteesChanged);
        let stall_watch = StallWatch::start(lead.parts.stalls.clone(), config.realtime.clone(), tell)?;
        let primary = config.pair.clone().map(|pair| Primary::new(pair, config.data.clone(), PairTerms::of(config)));
        let Begun { audit: audit_thread, exporter, log, node_events } = begun;
        let mut shard = Shard::new(context, poll, inbox.clone(), shards_own, endpoint, log, primary)?;
        admitted.1.into_iter().try_for_each(|(topic, terms)| shard.admit(topic, terms)).map_err(TopicError::from)?;
        let shard = ShardThread::start(shard)?;
        if let (Some(pair), Some(following)) = (&config.pair, following) {
            let topics_max = config.limits.event_types_max;
            pair.attach(Follows { following, topics: topics.clone(), topics_max, shard: inbox.clone() });
        }
        store.introduce(shared::place(config, addresses));
        monitor.ready.store(true, Relaxed);
        let server = Self {
            addresses: addresses.clone(),
            zmtp,
            zmtp_ipc,
            relay: relay_address,
            monitor,
            stopping,
            shard,
            answerer,
            node_events,
            trust_watch,
            account_watch,
            denials_told,
            memory: tokio::spawn(memory::release()),
            leading,
            log_book: config.log_book.clone(),
            log_entries_max: config.log_entries_max,
            security: security.clone(),
            exporter,
            _stall_watch: stall_watch,
            audit: audit_thread,
            lead,
            opened,
        };
        server.tell_places();
        Ok(server)
    }

    /// Tells the log where it is served.
    fn tell_places(&self) {
        for (port, address) in Port::ALL.iter().zip(&self.addresses) {
            tracing::info!(system = port.name(), %address, "serving");
        }
        if let Some(address) = self.zmtp {
            tracing::info!(system = "zmtp", %address, "serving");
        }
        if let Some(file) = &self.zmtp_ipc {
            tracing::info!(system = "zmtp", path = %file.path().display(), "serving");
        }
        if let Some(address) = self.relay {
            tracing::info!(system = "relay", %address, "serving");
        }
    }

    /// Waits until another process serves under this node's name, and returns why this one may not serve any more.
    pub async fn displaced(&self) -> String {
        let Some(mut displaced) = self.opened.store.displaced() else { return std::future::pending().await };
        match displaced.wait_for(Option::is_some).await {
            Ok(why) => why.clone().expect("it was waited for"),
            // The store ends with the server.
            Err(_) => std::future::pending().await,
        }
    }

    /// Reads certificates, keys and revocations again. Insecure mode has none.
    pub async fn reload(&self, why: &str) {
        match &self.security {
            Some(security) => security.reload_and_tell(why, &self.monitor.api.audit).await,
            None => tracing::info!("{why}: in insecure mode there is nothing to read again"),
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
        self.trust_watch.iter().chain(&self.account_watch).for_each(Task::abort);
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
        self.memory.abort();
        self.monitor.api.audit.tell_rest().await;
        if let Some(node_events) = self.node_events {
            // It has sent what it could, or is left.
            let _ = tokio::task::spawn_blocking(|| node_events.stop()).await;
        }
        let (audit, store) = (self.audit, &self.opened.store);
        // After a hand-over the database belongs to the next leader.
        let leads = self.leading.is_some() && self.monitor.pair.as_ref().is_none_or(|pair| pair.leadership().leads());
        if let Some(leading) = self.leading {
            leading.end().await;
        }
        let log = self.monitor.api.audit.log().reader();
        match tokio::task::spawn_blocking(|| audit.close(control::now(), audit::stop_event())).await {
            Ok(head) if leads => audit::copies::end(store, log, head).await,
            // Who follows writes nothing; the log's last entry is noted when it leads.
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the audit log was not written to the end"),
        }
        if leads {
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
