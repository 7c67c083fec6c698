//! Deploying graphs in the shard: those of the configuration and of the database when the cloud begins to lead, others while it runs.

use std::{io, sync::Arc};

use bodkin_broker::ShardError;
use bodkin_operators::{Keys, file::GraphFile};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use super::{
    Carriers, DeclaredGraph, DeclaredGraphs, DeployedGraph, Deployment, EdgeLink, GraphCounts, GraphError, GraphTable,
    declared::check_beside,
};
use crate::{
    control,
    inbox::{Inbox, Message},
    pair::PairHandle,
    realtime::Realtime,
    topics::Declarer,
};

/// Why a graph that was checked does not run.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Its threads could not be made.
    #[error("the system refuses its threads: {0}")]
    Threads(#[from] io::Error),
    /// Its topics have no room.
    #[error(transparent)]
    Topics(#[from] ShardError),
    /// The shard has ended.
    #[error("the local cloud is shutting down")]
    Ended,
}

/// A graph that was handed to the shard, and what it will say of it.
type Started = (Arc<DeployedGraph>, oneshot::Receiver<Result<(), ShardError>>);

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
    table: Arc<GraphTable>,
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
        Self { keys, edge, event_bytes_max, realtime, inbox, pair, carriers, table: Arc::default(), turn: Mutex::new(()) }
    }

    /// What this host would run of a file.
    pub fn declared(&self, file: GraphFile) -> Result<DeclaredGraph, GraphError> {
        let declared = DeclaredGraph::new(format!("graph {}", file.graph.name), file, &self.edge)?;
        declared.check_reach(&self.carriers)?;
        Ok(declared)
    }

    /// What is deployed.
    pub fn table(&self) -> &GraphTable {
        &self.table
    }

    /// The right to change what is deployed.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Whether a graph could run beside those that are deployed under other names.
    pub fn check(&self, declared: &DeclaredGraph) -> Result<(), GraphError> {
        declared.check(&self.keys, self.event_bytes_max)?;
        let name = &declared.file.graph.name;
        let others = self.table.all();
        others.iter().filter(|(other, _)| *other != name).try_for_each(|(_, other)| check_beside(declared, &other.file.graph))
    }

    /// The same of a graph whose name is not taken.
    pub fn check_new(&self, declared: &DeclaredGraph) -> Result<(), GraphError> {
        declared.check(&self.keys, self.event_bytes_max)?;
        self.table.all().values().try_for_each(|other| check_beside(declared, &other.file.graph))
    }

    /// Starts a graph that was checked; the shard has it run when it comes to it, and says whether it has room.
    pub fn start(&self, declared: DeclaredGraph, declarer: Declarer) -> Result<Started, DeployError> {
        let epoch = self.pair.as_ref().map_or(0, |pair| pair.leadership().epoch().0);
        // No two deployments of an epoch begin at the same time.
        let keys = self.keys.for_deployment(epoch, control::now().unix_nanos());
        let counts = Arc::new(GraphCounts::of(declared.file.graph.operators().len()));
        let links = EdgeLink::of(&declared.file, &self.inbox);
        let graph = Arc::new(DeployedGraph { declarer, file: declared.file, counts, links: links.clone() });
        let deployment = Deployment::start(
            &graph.file,
            &keys,
            graph.counts.clone(),
            (links, self.carriers.clone()),
            &self.realtime,
            &self.inbox,
            &self.table,
        )?;
        let (done, told) = oneshot::channel();
        self.inbox.post(Message::Deploy { deployment: Box::new(deployment), done });
        self.table.insert(graph.clone());
        Ok((graph, told))
    }

    /// Has a graph that was checked run, in the place of the one of its name.
    pub async fn deploy(&self, declared: DeclaredGraph, declarer: Declarer) -> Result<Arc<DeployedGraph>, DeployError> {
        let before = self.table.get(&declared.file.graph.name);
        let (graph, told) = self.start(declared, declarer)?;
        match told.await {
            Ok(Ok(())) => Ok(graph),
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

    /// Has a graph run no more.
    pub async fn withdraw(&self, name: &str) {
        let (done, told) = oneshot::channel();
        self.inbox.post(Message::Withdraw { graph: name.to_owned(), done });
        // A shard that has ended runs none.
        let _ = told.await;
        self.table.remove(name);
    }
}
