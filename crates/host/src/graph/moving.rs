//! Moves of operators between hosts, as far as this one has to do with them: what it has prepared for a version of a graph in which an operator is elsewhere, and what has gone from here and is not
//! known to be there.
//!
//! What is prepared is links: whatever the new version needs of another edge is subscribed to there before anything is made for it, so that it is kept. Nothing of it is taken or acknowledged before the
//! new version runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bodkin_broker::graph::{handover::Handover, placement::KEPT_MAX};
use bodkin_operators::{base64, file::GraphFile};
use bodkin_store::Store;

use super::{AtWork, DeclaredGraph, DeployedGraph, Deployer, EdgeLink, LinkState, deployment::hears};

/// How long links may take until they are up.
const LINKS_UP_MAX: Duration = Duration::from_secs(3);
const LINKS_LOOK: Duration = Duration::from_millis(5);

/// Why nothing is prepared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// An edge is not heard.
    #[error("{topic} is not heard from {edge}: {why}")]
    Link {
        /// What is needed.
        topic: String,
        /// Where it is made.
        edge: String,
        /// What is the matter.
        why: String,
    },
    /// What was made here is not where it is needed.
    #[error("other edges have not taken what this one has made for them: are they there?")]
    Owed,
}

/// A version of a graph that is to run here.
#[derive(Debug)]
pub struct Prepared {
    /// Which operator is elsewhere in it.
    pub operator: String,
    /// Where.
    pub to: String,
    /// What this host runs of it.
    pub declared: DeclaredGraph,
    links: Vec<Arc<EdgeLink>>,
    is_held_up: bool,
}

/// An operator that has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub operator: String,
    /// Where to.
    pub to: String,
}

/// By graph.
#[derive(Debug, Default)]
pub struct Moves {
    prepared: Mutex<BTreeMap<String, Arc<Prepared>>>,
    gone: Mutex<BTreeMap<String, Gone>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A change leaves a map whole wherever it is interrupted.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Moves {
    /// What is prepared of a graph.
    pub fn prepared(&self, graph: &str) -> Option<Arc<Prepared>> {
        locked(&self.prepared).get(graph).cloned()
    }

    /// The operator of a graph that has gone from here and is not known to be there.
    pub fn gone(&self, graph: &str) -> Option<Gone> {
        locked(&self.gone).get(graph).cloned()
    }

    /// An operator has gone, or is there.
    pub fn note_gone(&self, graph: &str, gone: Option<Gone>) {
        let mut all = locked(&self.gone);
        match gone {
            Some(gone) => drop(all.insert(graph.to_owned(), gone)),
            None => drop(all.remove(graph)),
        }
    }
}

impl Deployer {
    /// Moves that this host has to do with.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Prepares a version of a graph in which an operator is on the edge `to`: hears what it needs of other edges besides, and, where the operator is to come here, has the graph that runs take nothing in.
    pub async fn prepare(self: &Arc<Self>, declared: DeclaredGraph, operator: &str, to: &str) -> Result<(), PrepareError> {
        let graph = declared.file.graph.name.clone();
        self.let_go(&graph, None);
        let running = self.table().get(&graph);
        let links = self.new_links(&declared.file, running.as_ref().map_or(&[], |running| &running.links)).await?;
        let is_held_up = to == self.edge();
        if is_held_up && !self.hold_up(&graph).await {
            return Err(PrepareError::Owed);
        }
        let prepared = Arc::new(Prepared { operator: operator.to_owned(), to: to.to_owned(), declared, links: links.keep(), is_held_up });
        locked(&self.moves.prepared).insert(graph.clone(), prepared.clone());
        let own = self.clone();
        tokio::spawn(async move {
            // As long as every other edge keeps what waits: if the operator has gone, none of that is missing where it comes.
            tokio::time::sleep(KEPT_MAX).await;
            own.let_go(&graph, Some(&prepared));
        });
        Ok(())
    }

    /// Begins to hear what a version of a graph needs of other edges and the one that runs does not.
    async fn new_links(&self, file: &GraphFile, running: &[Arc<EdgeLink>]) -> Result<Links, PrepareError> {
        let is_new = |edge: &str, topic: &str| !hears(running, edge, topic);
        let prepared = Links(EdgeLink::held(file, self.inbox(), is_new));
        prepared.0.iter().for_each(|link| self.carriers().carry(link));
        let until = tokio::time::Instant::now() + LINKS_UP_MAX;
        loop {
            let down = prepared.0.iter().find_map(|link| match link.state() {
                LinkState::Up => None,
                LinkState::Down(why) => Some(PrepareError::Link { topic: link.topics[0].topic.clone(), edge: link.edge.clone(), why }),
            });
            match down {
                None => return Ok(prepared),
                Some(down) if tokio::time::Instant::now() >= until => return Err(down),
                Some(_) => tokio::time::sleep(LINKS_LOOK).await,
            }
        }
    }

    /// Lets go what is prepared of a graph, if it is still this, or whatever it is; the graph that runs goes on.
    pub fn let_go(&self, graph: &str, prepared: Option<&Arc<Prepared>>) {
        let mut all = locked(&self.moves.prepared);
        let is_it = all.get(graph).is_some_and(|known| prepared.is_none_or(|prepared| Arc::ptr_eq(known, prepared)));
        let gone = if is_it { all.remove(graph) } else { None };
        drop(all);
        if let Some(gone) = gone {
            // Whoever waits for its end still has it.
            let running = self.table().get(graph);
            let links = running.as_ref().map_or(&[][..], |running| &running.links);
            for link in &gone.links {
                link.leave(|topic| hears(links, &link.edge, topic));
                link.end();
            }
            if gone.is_held_up {
                self.go_on(graph);
            }
        }
    }
}

/// Links that end where they are not kept.
struct Links(Vec<Arc<EdgeLink>>);

impl Links {
    fn keep(mut self) -> Vec<Arc<EdgeLink>> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.0.iter().for_each(|link| link.end());
    }
}

/// Notes in the database that a version is at work, when it is: what was kept for it there is not needed any more.
pub async fn note_at_work(store: Store, graph: Arc<DeployedGraph>, at_work: AtWork) {
    // A graph that has ended before is not.
    if at_work.await.is_err() {
        return;
    }
    let (name, file) = (graph.file.graph.name.clone(), graph.file.text.clone());
    let noted = store.write(move |draft| draft.is_at_work(&name, &file), |_, ()| ()).await;
    noted.unwrap_or_else(|error| tracing::error!(%error, "it is not noted that a graph is at work"));
}

/// What goes with an operator as a text, for JSON and the database.
pub fn handover_text(handover: &Handover) -> String {
    let mut text = String::new();
    base64::write(&handover.encode(), &mut text);
    text
}

/// What a text says that goes with an operator; none if it says nothing of that kind.
pub fn handover_of(text: &str) -> Option<Handover> {
    let mut bytes = Vec::new();
    base64::read(text, &mut bytes).then(|| Handover::decode(&bytes).ok())?
}
