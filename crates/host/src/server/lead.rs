//! What a local cloud does because it leads: a cloud by itself from its start on, a node of a pair from its promotion on.

use std::{io, net::SocketAddr, sync::Arc};

use bodkin_arrowhead::{cloud::OwnCloud, core_service::CoreSystem, dns_sd::place, record::SubscriptionId};
use bodkin_store::{
    Draft, Store, StoreError,
    delivery::{DeliveriesAtStart, DeliveryRow, Place, Present},
    event_log::{EventLogReader, RecordName},
    identity::DatabaseId,
    leader::LeaderPlace,
};
use tokio::{
    sync::{OnceCell, oneshot},
    task::JoinHandle as Task,
};

use super::{Port, Server, StartError, open, parts::Parts};
use crate::{
    config::HostConfig,
    control::{self, Control},
    disk::DataDisk,
    dns_sd,
    fleet::{Exclusion, Fleet, WayBack, Writers},
    gatekeeper::{self, Gatekeeper},
    gateway::{self, Gateway},
    graph::{self, Gone, Lateness},
    inbox::Message,
    job,
    log_book::LogBook,
    own_services,
    pair::Leadership,
    push::{
        checkpoint::Checkpoint,
        delivery::{Deliveries, translate_to},
    },
    quality::QualityMonitor,
    security::{Security, SecurityConfig, Trust},
    token::TokenIssuer,
    topics::{self, Declarer},
};

/// What is needed for it.
pub(super) struct Lead {
    pub parts: Parts,
    pub control: Arc<Control>,
    /// Set when the shard has the graphs. A later attempt to lead does not deploy them again.
    pub graphs: OnceCell<()>,
}

/// What runs as long as it leads.
pub(super) struct Leading {
    /// Remove reservations that are over; probe and remove, where the operator chose that.
    jobs: Vec<Task<()>>,
    /// Writes the log.
    log_keeper: Task<()>,
    /// Writes down where deliveries are, a last time when it is told to end; `None` where there is no event log.
    checkpoint: Option<(oneshot::Sender<()>, Task<()>)>,
    /// Notes where the audit log ends.
    audit_checkpoint: Task<()>,
    /// Copies it for the other nodes.
    audit_copies: Task<()>,
    /// Forwards events to the fleet's stream.
    fleet: Option<Fleet>,
    /// Takes events of the fleet.
    way_back: Option<WayBack>,
}

impl Server {
    /// This node of a pair leads: the core systems are registered anew, and deliveries by push go on. Events of real-time topics do not wait for that.
    /// What fails may be tried again.
    pub async fn lead(&mut self) -> Result<(), StartError> {
        if self.leading.is_none() {
            self.leading = Some(self.lead.begin().await?);
        }
        Ok(())
    }
}

impl Lead {
    pub async fn begin(&self) -> Result<Leading, StartError> {
        let Parts { config, store, inbox, audit, security, addresses, .. } = &self.parts;
        open::refuse_other_mode(store, config)?;
        let database = open::bind_parts(config, store).await?;
        let trust = security.as_ref().map(|security| security.trust());
        // Events wait for the graphs of the leader before.
        for (topic, terms) in topics::restore(&self.parts.topics, store).await? {
            let (done, _) = oneshot::channel();
            inbox.post(Message::Admit { topic, terms, done });
        }
        self.graphs.get_or_try_init(|| self.deploy_graphs()).await?;
        ensure_own_cloud(store, trust.as_deref()).await?;
        own_services::register(store, config, addresses, trust.as_deref()).await?;
        own_services::register_realtime(store, &config.realtime_at, trust.is_some()).await?;
        if config.pair.is_some() {
            note_place(store, config, addresses).await?;
            // A question that the shard answers behind what the pair has told it: its log begins where it has to.
            let (asked, answered) = oneshot::channel();
            inbox.post(Message::Topics(asked));
            answered.await.map_err(|_| io::Error::other("the shard has ended"))?;
        }
        let leadership = config.pair.as_ref().map(|pair| pair.leadership().clone());
        let checkpoint = restore_deliveries(store, self.parts.log.as_ref(), &self.parts.push.deliveries, leadership).await?;
        inbox.post(Message::Serve);
        let interval = config.orchestrator.reservation_check_interval;
        let mut jobs = job::start(&config.jobs, store, &self.parts.probes, config.ping_timeout, &self.parts.destinations);
        let disk = DataDisk::of(config, store);
        jobs.push(tokio::spawn(disk.watch(self.parts.log.clone(), audit.clone(), self.parts.push.leadership.clone())));
        jobs.push(tokio::spawn(control::expire_reservations(store.clone(), interval)));
        jobs.push(tokio::spawn(gatekeeper::answer_calls(self.control.clone())));
        jobs.push(tokio::spawn(gateway::keep_links(self.control.clone())));
        jobs.extend(config.dns_sd.map(|which| {
            let node = store.shared_names().map(|(node, _)| node);
            let place = place(&config.domain_name, addresses[0].port(), node);
            tokio::spawn(dns_sd::announce(store.clone(), which, place, config.listen, self.parts.counts.announced.clone()))
        }));
        jobs.extend(self.quality_monitor().map(|monitor| tokio::spawn(monitor.run())));
        if let Some(security) = security {
            let (security, gatekeeper, gateway) = (security.clone(), self.control.gatekeeper.clone(), self.control.gateway.clone());
            jobs.extend(self.parts.tokens.clone().map(|tokens| {
                let signers = Signers { tokens, gatekeeper, gateway };
                tokio::spawn(follow_identities(security, signers, store.clone(), config.clone(), addresses.clone()))
            }));
        }
        // A node of a pair exchanges lines while it follows, too.
        if let (Some(account), Some(security), None) = (&self.parts.account, security, &config.pair) {
            jobs.push(tokio::spawn(account.clone().follow(security.clone(), audit.clone())));
        }
        let authority = config.security.as_ref().and_then(SecurityConfig::own_authority);
        let ledger = authority.map(|directory| audit.clone().follow_certificates(directory, store.clone()));
        jobs.extend(ledger.map(tokio::spawn));
        let (fleet, way_back) = self.forward(&database)?.unzip();
        Ok(Leading {
            fleet,
            way_back: way_back.flatten(),
            jobs,
            log_keeper: tokio::spawn(keep_log(config.log_book.clone(), store.clone(), config.log_entries_max)),
            checkpoint,
            audit_checkpoint: tokio::spawn(audit.clone().keep_checkpoint(store.clone())),
            audit_copies: tokio::spawn(audit.clone().copy(store.clone())),
        })
    }
}

impl Lead {
    /// Has the configured graphs run, and those that were deployed while the cloud ran; what does not fit beside the others any more stays in the database, and is told.
    async fn deploy_graphs(&self) -> Result<(), StartError> {
        for declared in self.parts.config.graphs.graphs() {
            // The shard answers when it runs.
            let _ = self.parts.graphs.start(declared.clone(), None, Declarer::Configuration, None).map_err(StartError::Graph)?;
        }
        for text in self.parts.store.read(|draft| draft.deployed_graphs()).await? {
            if let Err(error) = self.deploy_again(&text).await? {
                tracing::error!(error, "a graph that was deployed while the cloud ran does not run");
            }
        }
        self.parts.graphs.begins();
        Ok(())
    }

    /// Has a graph of the database run, with an operator that has come from another host and was not at work yet; says why if it does not.
    async fn deploy_again(&self, text: &str) -> Result<Result<(), String>, StartError> {
        let file = match graph::parse(text) {
            Ok(file) => file,
            Err(mistakes) => return Ok(Err(mistakes.iter().map(|mistake| mistake.what.clone()).collect::<Vec<_>>().join("; "))),
        };
        let (name, asked) = (file.graph.name.clone(), file.graph.name.clone());
        let moves = self.parts.store.read(move |draft| draft.graph_moves(&asked)).await?;
        let declared = self.parts.graphs.declared(file, Lateness::Told);
        let checked = declared.and_then(|declared| self.parts.graphs.check_new(&declared, Lateness::Told).map(|()| declared));
        let declared = match checked {
            Ok(declared) => declared,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Some(given) = moves.given.as_deref().and_then(graph::handover_of) {
            let placed = &declared.file.fetched;
            let to = placed.placed.iter().find(|(operator, _)| *operator == given.operator);
            let to = to.map(|(_, edge)| placed.edges[edge.index()].clone()).unwrap_or_default();
            self.parts.graphs.moves().note_gone(&name, Some(Gone { operator: given.operator, to }));
        }
        let taken = moves.taken.as_deref().and_then(graph::handover_of);
        let is_pending = moves.taken.is_some() || moves.previous.is_some();
        // Only a Backup has had checkpoints; one of a version that does not fit any more is of no use.
        let before = moves.previous.filter(|_| self.parts.config.pair.is_some()).and_then(|text| graph::parse(&text).ok());
        let before = before.and_then(|file| self.parts.graphs.declared(file, Lateness::Told).ok());
        let (graph, at_work) = match self.parts.graphs.start(declared, before, Declarer::Operator, taken) {
            Ok((graph, _, at_work)) => (graph, at_work),
            Err(error) => return Ok(Err(error.to_string())),
        };
        if is_pending {
            tokio::spawn(graph::note_at_work(self.parts.store.clone(), graph, at_work));
        }
        Ok(Ok(()))
    }

    /// Has events go on to the fleet's stream, and come from there, where there is one.
    fn forward(&self, database: &DatabaseId) -> Result<Option<(Fleet, Option<WayBack>)>, StartError> {
        let (Some(config), Some(log), Some(state)) = (&self.parts.config.fleet, &self.parts.log, &self.parts.fleet) else {
            return Ok(None);
        };
        let own = own_services::event_handler(&self.parts.store.snapshot()).expect("the core systems were registered");
        let data = &self.parts.config.data;
        let (topics, leadership) = (self.parts.topics.clone(), self.parts.push.leadership.clone());
        let is_alone = leadership.is_none();
        let exclusion = leadership.as_ref().map_or(Exclusion::None, |leadership| Exclusion::Epoch(leadership.epoch()));
        let writers = Writers::new(database, self.parts.store.identity().clone(), exclusion);
        let taker = (is_alone, writers.own());
        let fleet =
            Fleet::start(config.clone(), data, log, topics, state.clone(), own, (leadership, writers)).map_err(StartError::Fleet)?;
        let shard = self.parts.inbox.clone();
        let way_back = state.back.clone().map(|back| WayBack::start(config, data, log.clone(), (shard, own), back, taker));
        Ok(Some((fleet, way_back.transpose().map_err(StartError::Fleet)?)))
    }

    /// Measures providers, where quality of service is managed.
    fn quality_monitor(&self) -> Option<QualityMonitor> {
        Some(QualityMonitor {
            store: self.parts.store.clone(),
            qualities: self.parts.qualities.clone(),
            interval: self.parts.config.orchestrator.quality_interval?,
            patience: self.parts.config.ping_timeout,
            forecast: self.parts.config.forecast,
            destinations: self.parts.destinations.clone(),
            security: self.parts.security.clone(),
        })
    }
}

impl Leading {
    /// Nothing more is begun.
    pub fn stop_jobs(&self) {
        self.jobs.iter().for_each(Task::abort);
    }

    /// Writes down where deliveries are.
    pub async fn end(self) {
        if let Some(way_back) = self.way_back {
            // What was taken and not acknowledged comes again.
            let _ = tokio::task::spawn_blocking(|| way_back.stop()).await;
        }
        if let Some(fleet) = self.fleet {
            // It has written what it had to, or is left.
            let _ = tokio::task::spawn_blocking(|| fleet.stop()).await;
        }
        if let Some((end, checkpoint)) = self.checkpoint {
            drop(end);
            if let Err(error) = checkpoint.await {
                tracing::error!(%error, "where deliveries are was not written at the end");
            }
        }
        self.audit_checkpoint.abort();
        self.audit_copies.abort();
        self.log_keeper.abort();
    }
}

async fn keep_log(book: Arc<LogBook>, store: Store, entries_max: u64) {
    book.keep(&store, entries_max).await;
}

/// Notes where this node is, which leads, so that the one that follows can say it.
async fn note_place(store: &Store, config: &HostConfig, addresses: &[SocketAddr]) -> Result<(), StoreError> {
    let at = Port::ALL.iter().position(|port| *port == Port::Monitor).expect("it is a port");
    let place = LeaderPlace { host: config.domain_name.clone(), monitor_port: addresses[at].port(), secure: config.security.is_some() };
    store.write(move |draft| draft.note_leader(&place), |_, ()| ()).await
}

/// Notes which cloud this is.
async fn ensure_own_cloud(store: &Store, trust: Option<&Trust>) -> Result<(), StoreError> {
    let secure = |trust: &Trust| OwnCloud { operator: trust.cloud.operator.clone(), name: trust.cloud.cloud.clone(), secure: true };
    let own = trust.map_or_else(OwnCloud::insecure, secure);
    store.write(move |draft| draft.ensure_own_cloud(&own), |_, ()| ()).await
}

/// What is signed with core systems' keys.
struct Signers {
    tokens: Arc<TokenIssuer>,
    gatekeeper: Option<Arc<Gatekeeper>>,
    gateway: Option<Arc<Gateway>>,
}

/// Takes new identities over where more than connections depends on them: tokens, messages to other clouds, and the core systems' registered keys.
async fn follow_identities(security: Arc<Security>, signers: Signers, store: Store, config: HostConfig, addresses: Vec<SocketAddr>) {
    let mut changes = security.changes();
    let mut known = security.trust();
    // A node of a pair may have got a new key while it followed.
    signers.sign_by(&known);
    while changes.changed().await.is_ok() {
        let trust = security.trust();
        signers.sign_by(&trust);
        let key_is_new = |system: &CoreSystem| trust.authentication_info(*system) != known.authentication_info(*system);
        if trust.systems().iter().any(key_is_new)
            && let Err(error) = own_services::register(&store, &config, &addresses, Some(&trust)).await
        {
            tracing::error!(%error, "the core systems' new keys are not in the registry");
        }
        known = trust;
    }
}

impl Signers {
    fn sign_by(&self, trust: &Trust) {
        if let Err(error) = self.tokens.replace_identity(trust.identity(CoreSystem::Authorization)) {
            tracing::error!(%error, "Authorization's new key signs no tokens; the old one goes on");
        }
        if let Some(gatekeeper) = &self.gatekeeper
            && let Err(error) = gatekeeper.replace_identity(trust.identity(CoreSystem::Gatekeeper))
        {
            tracing::error!(%error, "the Gatekeeper's new key seals nothing; the old one goes on");
        }
        if let Some(gateway) = &self.gateway
            && let Err(error) = gateway.replace_identity(trust.identity(CoreSystem::Gateway))
        {
            tracing::error!(%error, "the Gateway's new key seals nothing; the old one goes on");
        }
    }
}

/// Finds the deliveries where the last run left them, and starts to write down where they are.
async fn restore_deliveries(
    store: &Store,
    log: Option<&EventLogReader>,
    deliveries: &Arc<Deliveries>,
    leadership: Option<Arc<Leadership>>,
) -> Result<Option<(oneshot::Sender<()>, Task<()>)>, StartError> {
    let mut start = store.write(|draft| draft.deliveries_at_start(), |_, start| start).await?;
    // A cloud that has accepted no durable event yet, and one of an earlier release, begins here.
    let after = start.after.unwrap_or_else(|| RecordName::of_none_at(control::now().unix_nanos()));
    if let Some(log) = log {
        if start.log.is_some_and(|of| of != log.identity()) {
            tracing::info!(
                "another event log was read before, that of the former leader: deliveries by push go on with the durable events that both logs have. \
                 Events of other types that were not delivered are lost"
            );
            let log = log.clone();
            start = tokio::task::spawn_blocking(move || translate_to(&log, start)).await.map_err(io::Error::other)??;
        }
        // Who is killed before the first checkpoint must not lose what was not delivered yet.
        let log_of_pair = leadership.as_ref().map(|_| log.identity());
        let present = Present { log: log_of_pair, position: start.present.unwrap_or_else(|| log.end()), after };
        let places: Vec<_> = places(&start, after).map(|(id, place)| (id, Some(place))).collect();
        let note = move |draft: &mut Draft<'_>| {
            log_of_pair.map_or(Ok(()), |log| draft.name_log_of_dead_letters(log))?;
            draft.note_deliveries(present, &places)
        };
        store.write(note, |_, ()| ()).await?;
    }
    let known = places(&start, after).collect();
    let (snapshot, reader) = (Arc::clone(&store.snapshot()), log.cloned());
    let restored = tokio::task::spawn_blocking(move || Deliveries::restore(&start, &snapshot, reader.as_ref()));
    deliveries.take_over(&restored.await.map_err(io::Error::other)??);
    let checkpoint = log.map(|log| {
        let (end, ending) = oneshot::channel();
        let checkpoint = Checkpoint::new(store.clone(), log.clone(), deliveries.clone(), after, known).led_by(leadership);
        (end, tokio::spawn(checkpoint.run(ending)))
    });
    Ok(checkpoint)
}

/// Where those are that have a place of their own.
fn places(start: &DeliveriesAtStart, after: RecordName) -> impl Iterator<Item = (SubscriptionId, Place)> {
    let place = move |row: &DeliveryRow| Some((row.subscription, Place { cursor: row.cursor?, after: row.after.unwrap_or(after) }));
    start.rows.iter().filter_map(place)
}
