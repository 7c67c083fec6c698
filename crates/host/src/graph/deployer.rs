//! Deploying graphs in the shard: those of the configuration and of the database when the cloud begins to lead, others while it runs.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use bodkin_broker::{ShardError, graph::handover::Handover};
use bodkin_operators::{Keys, file::GraphFile};
use tokio::sync::{Mutex, MutexGuard, SetOnce, oneshot};

use super::{
    Carriers, DeclaredGraph, DeclaredGraphs, DeployedGraph, Deployment, EdgeLink, GraphCounts, GraphError, GraphTable, Inheritance,
    Processors,
    declared::{Lateness, check_beside},
    deployment::links,
    moving::Moves,
};
use crate::{
    control,
    inbox::{Inbox, Message},
    pair::PairHandle,
    realtime::Realtime,
    topics::Declarer,
};

/// How long an operator that is to go waits until nothing is under way and other edges have all that it has made.
const GIVING_MAX: Duration = Duration::from_secs(3);

/// How long whoever asks about graphs waits for those of a cloud that has just begun to lead.
const BEGIN_MAX: Duration = Duration::from_secs(3);

/// Why a graph that was checked does not run.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Its threads could not be made.
    #[error("the system refuses its threads: {0}")]
    Threads(#[from] io::Error),
    /// Its topics have no room.
    #[error(transparent)]
    Topics(#[from] ShardError),
    /// What an operator has made is not where it is needed.
    #[error("other edges have not taken what the operator has made within {} s: are they there?", GIVING_MAX.as_secs())]
    Owed,
    /// The shard has ended.
    #[error("the local cloud is shutting down")]
    Ended,
}

/// Told when a graph is at work, so that nothing of what was before is needed any more ([`Deployment::tell_at_work`]).
pub type AtWork = oneshot::Receiver<()>;

/// A graph that was handed to the shard, what it will say of it, and when it is at work.
type Started = (Arc<DeployedGraph>, oneshot::Receiver<Result<(), ShardError>>, AtWork);

/// Deploys graphs.
pub struct Deployer {
    keys: Keys,
    /// What this host is called in graphs over several.
    edge: String,
    event_bytes_max: usize,
    realtime: Arc<Realtime>,
    inbox: Arc<Inbox>,
    pair: Option<PairHandle>,
    carriers: Carriers,
    pub(super) moves: Moves,
    table: Arc<GraphTable>,
    /// The graphs that were deployed before this node led are handed to the shard.
    has_begun: SetOnce<()>,
    turn: Mutex<()>,
}

impl Deployer {
    /// Of operators with the keys of these graphs, on a host that is called as they say, whose results are events of at most so many bytes.
    pub fn new(
        graphs: &DeclaredGraphs,
        event_bytes_max: usize,
        realtime: Arc<Realtime>,
        inbox: Arc<Inbox>,
        pair: Option<PairHandle>,
        carriers: Carriers,
    ) -> Self {
        let (keys, edge) = (graphs.keys().clone(), graphs.edge().to_owned());
        Self {
            keys,
            edge,
            event_bytes_max,
            realtime,
            inbox,
            pair,
            carriers,
            moves: Moves::default(),
            table: Arc::default(),
            has_begun: SetOnce::new(),
            turn: Mutex::new(()),
        }
    }

    /// What this host would run of a file. What was late when it was deployed, and was so by the operator's will, is so behind a start too.
    pub fn declared(&self, file: GraphFile, lateness: Lateness) -> Result<DeclaredGraph, GraphError> {
        let declared = DeclaredGraph::judged(format!("graph {}", file.graph.name), file, &self.edge, lateness)?;
        declared.check_reach(&self.carriers)?;
        Ok(declared)
    }

    /// What this host is called in graphs over several.
    pub fn edge(&self) -> &str {
        &self.edge
    }

    pub(super) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    pub(super) fn carriers(&self) -> &Carriers {
        &self.carriers
    }

    /// What is deployed.
    pub fn table(&self) -> &GraphTable {
        &self.table
    }

    /// The graphs that were deployed before are there: they may be asked about, and changed.
    pub fn begins(&self) {
        // A beginning that failed behind this comes again.
        let _ = self.has_begun.set(());
    }

    /// Whether the graphs that were deployed before are there; waits for them, as requests come as soon as a node leads.
    pub async fn has_begun(&self) -> bool {
        tokio::time::timeout(BEGIN_MAX, self.has_begun.wait()).await.is_ok()
    }

    /// Whether the other node of a pair goes on with what runs here.
    pub fn has_pair(&self) -> bool {
        self.pair.is_some()
    }

    /// The right to change what is deployed.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Whether a graph could run beside those that are deployed under other names.
    pub fn check(&self, declared: &DeclaredGraph, lateness: Lateness) -> Result<(), GraphError> {
        declared.check(&self.keys, self.event_bytes_max, lateness)?;
        let name = &declared.file.graph.name;
        let mut others = self.table.all();
        others.remove(name);
        self.check_others(declared, &others, lateness)
    }

    fn check_others(
        &self,
        declared: &DeclaredGraph,
        others: &BTreeMap<String, Arc<DeployedGraph>>,
        lateness: Lateness,
    ) -> Result<(), GraphError> {
        let processors = Processors::available();
        let workers = others.values().map(|other| processors.workers(&other.file)).sum();
        processors.check(&declared.place, &declared.file, workers, lateness)?;
        others.values().try_for_each(|other| self.check_other(declared, other))
    }

    fn check_other(&self, declared: &DeclaredGraph, other: &DeployedGraph) -> Result<(), GraphError> {
        check_beside(declared, &other.file.graph)?;
        declared.check_kept(&other.file, &self.carriers)
    }

    /// The same of a graph whose name is not taken.
    pub fn check_new(&self, declared: &DeclaredGraph, lateness: Lateness) -> Result<(), GraphError> {
        declared.check(&self.keys, self.event_bytes_max, lateness)?;
        self.check_others(declared, &self.table.all(), lateness)
    }

    /// Starts a graph that was checked, with what has come with an operator from another host; the shard has it run when it comes to it, and says whether it has room. Where the leader before has left a
    /// checkpoint of the version `before`, that one goes on from there, and this one takes its place.
    pub fn start(
        &self,
        declared: DeclaredGraph,
        before: Option<DeclaredGraph>,
        declarer: Declarer,
        brought: Option<Handover>,
    ) -> Result<Started, DeployError> {
        let before = before.map(|before| self.make(before, declarer)).transpose()?;
        let before = before.map(|(graph, deployment, _)| {
            // So that the links which both have are the same.
            self.table.insert(graph);
            Box::new(deployment)
        });
        let (graph, mut deployment, at_work) = self.make(declared, declarer)?;
        brought.into_iter().for_each(|handover| deployment.bring(handover));
        let (done, told) = oneshot::channel();
        self.inbox.post(Message::Deploy { deployment: Box::new(deployment), before, done });
        self.table.insert(graph.clone());
        Ok((graph, told, at_work))
    }

    /// Makes a graph that was checked, with its threads.
    fn make(&self, declared: DeclaredGraph, declarer: Declarer) -> Result<(Arc<DeployedGraph>, Deployment, AtWork), DeployError> {
        let epoch = self.pair.as_ref().map_or(0, |pair| pair.leadership().epoch().0);
        // No two deployments of an epoch begin at the same time.
        let keys = self.keys.for_deployment(epoch, control::now().unix_nanos());
        let counts = Arc::new(GraphCounts::of(declared.file.graph.operators().len()));
        let before = self.table.get(&declared.file.graph.name);
        let states = before.as_ref().map(|before| Inheritance::of(&declared.file, &before.file));
        let links = links(EdgeLink::of(&declared.file, &self.inbox), before.as_ref().map_or(&[], |before| &before.links));
        let graph = Arc::new(DeployedGraph { declarer, file: declared.file, counts, links: links.clone(), states });
        let mut deployment = Deployment::start(
            &graph.file,
            &keys,
            graph.counts.clone(),
            (links, self.carriers.clone()),
            &self.realtime,
            &self.inbox,
            &self.table,
        )?;
        let (tells, at_work) = oneshot::channel();
        deployment.tell_at_work(tells);
        Ok((graph, deployment, at_work))
    }

    /// Has a graph that was checked run, in the place of the one of its name, with what has come with an operator from another host.
    pub async fn deploy(
        &self,
        declared: DeclaredGraph,
        declarer: Declarer,
        brought: Option<Handover>,
    ) -> Result<(Arc<DeployedGraph>, AtWork), DeployError> {
        let before = self.table.get(&declared.file.graph.name);
        let (graph, told, at_work) = self.start(declared, None, declarer, brought)?;
        match told.await {
            Ok(Ok(())) => Ok((graph, at_work)),
            Ok(Err(error)) => {
                match before {
                    Some(before) => self.table.insert(before),
                    None => self.table.remove(&graph.file.graph.name),
                }
                Err(error.into())
            }
            Err(_) => Err(DeployError::Ended),
        }
    }

    /// Has a graph without an operator be ready in the place of the one with it; gives what goes with the operator, when nothing is under way any more. Nothing has changed before
    /// [`Self::given`] says so.
    pub async fn give(&self, declared: DeclaredGraph, operator: &str) -> Result<(Arc<DeployedGraph>, Handover, AtWork), DeployError> {
        let (graph, deployment, at_work) = self.make(declared, Declarer::Operator)?;
        let ((done, told), (given, awaited)) = (oneshot::channel(), oneshot::channel());
        self.inbox.post(Message::Give { deployment: Box::new(deployment), operator: operator.to_owned(), given, done });
        told.await.map_err(|_| DeployError::Ended)??;
        match tokio::time::timeout(GIVING_MAX, awaited).await {
            Ok(Ok(handover)) => Ok((graph, handover, at_work)),
            Ok(Err(_)) => Err(DeployError::Ended),
            Err(_) => {
                self.given(&graph, false).await;
                Err(DeployError::Owed)
            }
        }
    }

    /// Whether what was given is kept: the graph without the operator runs from now on, or the one with it goes on.
    pub async fn given(&self, graph: &Arc<DeployedGraph>, is_kept: bool) {
        let (done, told) = oneshot::channel();
        self.inbox.post(Message::Given { graph: graph.file.graph.name.clone(), is_kept, done });
        // A shard that has ended runs neither.
        let _ = told.await;
        if is_kept {
            self.table.insert(graph.clone());
        }
    }

    /// Has a graph take nothing in until [`Self::go_on`], when what it has made is where it is needed; false if that takes too long, and the graph goes on.
    pub async fn hold_up(&self, graph: &str) -> bool {
        let (held, told) = oneshot::channel();
        self.inbox.post(Message::HoldUp { graph: graph.to_owned(), held: Some(held) });
        let is_held = matches!(tokio::time::timeout(GIVING_MAX, told).await, Ok(Ok(())));
        if !is_held {
            self.go_on(graph);
        }
        is_held
    }

    /// Has a graph that was held up go on.
    pub fn go_on(&self, graph: &str) {
        self.inbox.post(Message::HoldUp { graph: graph.to_owned(), held: None });
    }

    /// Has a graph run no more.
    pub async fn withdraw(&self, name: &str) {
        let (done, told) = oneshot::channel();
        self.inbox.post(Message::Withdraw { graph: name.to_owned(), done });
        // A shard that has ended runs none.
        let _ = told.await;
        self.table.remove(name);
    }
}
