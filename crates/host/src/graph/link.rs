//! Links between edges: a graph that runs here has suppliers whose events are made on other edges ([`Fetched`](bodkin_operators::file::Fetched)), and fetches them there.
//!
//! ```text
//! other edge ══ ZMTP, DEALER ══> carrier (a thread of whoever starts the host) ── EdgeLink::bring ──> inbox ──> shard::graph::carried ──> the graph
//!                 <══ acknowledgements ══ carrier <── EdgeLink::take_acknowledged ── shard, when the event is safe here
//! ```
//!
//! What connects is a client, and the host has none: it is given one ([`Carriers`]).

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use bodkin_arrowhead::trace::Cause;
use bodkin_broker::{
    Incarnation, PublisherId, Sequence,
    graph::{
        SupplierId,
        placement::{EdgeId, origin},
    },
    wire::EventHeader,
};
use bodkin_operators::file::GraphFile;

use crate::inbox::{Inbox, Message};

/// Events of a link that may be on their way from its carrier to the shard; the carrier reads no more until there are fewer.
pub const CARRIED_MAX: u64 = 1_024;
/// Publishers of a topic whose events are told apart on a link; those of one more are refused.
pub const PUBLISHERS_MAX: usize = 1_024;

/// Has a link carried, on a thread of its own, until [`EdgeLink::is_ended`].
pub type Carry = dyn Fn(Arc<EdgeLink>) -> io::Result<()> + Send + Sync;

/// An edge that can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedEdge {
    /// What it is called.
    pub name: String,
    /// Whether it knows this host by a key, so that all graphs of this host are one subscriber there; otherwise each graph has a name.
    pub knows_by_key: bool,
}

/// What carries links.
#[derive(Clone)]
pub struct Carriers {
    edges: Arc<[ReachedEdge]>,
    carry: Arc<Carry>,
}

impl Carriers {
    /// Carriers from these edges.
    pub fn new(edges: impl IntoIterator<Item = ReachedEdge>, carry: Arc<Carry>) -> Self {
        Self { edges: edges.into_iter().collect(), carry }
    }

    /// Whether an edge can be reached.
    pub fn reach(&self, edge: &str) -> bool {
        self.edges.iter().any(|known| known.name == edge)
    }

    /// Whether an edge knows this host by a key.
    pub fn is_known_by_key(&self, edge: &str) -> bool {
        self.edges.iter().any(|known| known.name == edge && known.knows_by_key)
    }

    /// Has a link carried; one that cannot be is told as down.
    pub fn carry(&self, link: &Arc<EdgeLink>) {
        if let Err(error) = (self.carry)(link.clone()) {
            link.is_down(format!("the system refuses its thread: {error}"));
        }
    }
}

impl Default for Carriers {
    /// From no edge.
    fn default() -> Self {
        Self { edges: [].into(), carry: Arc::new(|_| Ok(())) }
    }
}

impl fmt::Debug for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carriers").field("edges", &self.edges).finish_non_exhaustive()
    }
}

/// A topic that comes over a link.
#[derive(Debug)]
pub struct LinkTopic {
    /// Its name.
    pub topic: String,
    /// Which supplier of the part it is.
    pub supplier: SupplierId,
    /// Events in a row that may be missing; none: nothing is kept for this edge.
    pub loss_tolerance: Option<u32>,
    /// Events that have come.
    pub received: AtomicU64,
    /// Events that are missing.
    pub lost: AtomicU64,
    /// Rows of missing events that were longer than the tolerance.
    pub exceeded: AtomicU64,
    /// Events that cannot be taken: their payload is no text, or nobody knows whose they are.
    pub refused: AtomicU64,
    /// What the other edge calls a publisher, by what it is called here.
    publishers: Mutex<BTreeMap<PublisherId, PublisherId>>,
}

/// How a link stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// All of its topics are subscribed to at the edge that leads there.
    Up,
    /// They are not, and why.
    Down(String),
}

/// Up to where nothing of a publisher's run is needed any more, as the other edge names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Which topic of the link.
    pub topic: usize,
    /// Whose.
    pub publisher: PublisherId,
    /// In which numbering.
    pub incarnation: Incarnation,
    /// The last event.
    pub through: Sequence,
}

/// An event on its way to the shard.
#[derive(Debug)]
pub struct CarriedEvent {
    /// Which topic of the link.
    pub topic: usize,
    /// Whose it is, as publishers of other edges are called here.
    pub publisher: PublisherId,
    /// As it came.
    pub header: EventHeader,
    /// What was published.
    pub payload: String,
    /// What it is caused by.
    pub cause: Option<Cause>,
}

/// What a graph that runs here fetches from one other edge.
pub struct EdgeLink {
    /// What this host is called.
    pub own: String,
    /// The graph.
    pub graph: String,
    /// The other edge.
    pub edge: String,
    /// What comes from there.
    pub topics: Box<[LinkTopic]>,
    from: EdgeId,
    edges: usize,
    state: Mutex<LinkState>,
    acknowledged: Mutex<Vec<Acknowledged>>,
    /// Topics that nobody here will need again.
    left: Mutex<Vec<usize>>,
    under_way: AtomicU64,
    /// What it brings is left where it is made.
    is_held: bool,
    is_begun: AtomicBool,
    is_ended: AtomicBool,
    inbox: Arc<Inbox>,
}

impl fmt::Debug for EdgeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeLink").field("graph", &self.graph).field("edge", &self.edge).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole wherever a change is interrupted.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EdgeLink {
    /// The links that a part of a graph needs, one for each edge.
    pub fn of(file: &GraphFile, inbox: &Arc<Inbox>) -> Vec<Arc<Self>> {
        Self::make(file, inbox, false, |_, _| true)
    }

    /// Those of them that `is_new` names by edge and topic, for a part that does not run yet: what they bring is kept where it is made, and comes again to the part when it does.
    pub fn held(file: &GraphFile, inbox: &Arc<Inbox>, is_new: impl Fn(&str, &str) -> bool) -> Vec<Arc<Self>> {
        Self::make(file, inbox, true, is_new)
    }

    fn make(file: &GraphFile, inbox: &Arc<Inbox>, is_held: bool, is_needed: impl Fn(&str, &str) -> bool) -> Vec<Arc<Self>> {
        let fetched = &file.fetched;
        let mut by_edge: BTreeMap<EdgeId, Vec<LinkTopic>> = BTreeMap::new();
        for supplier in &fetched.suppliers {
            let topic = file.graph.suppliers()[supplier.supplier.index()].topic.clone();
            if !is_needed(&fetched.edges[supplier.from.index()], &topic) {
                continue;
            }
            by_edge.entry(supplier.from).or_default().push(LinkTopic::new(topic, supplier.supplier, supplier.loss_tolerance));
        }
        let link = |(from, topics): (EdgeId, Vec<LinkTopic>)| Self {
            own: fetched.edges[fetched.own].clone(),
            graph: file.graph.name.clone(),
            edge: fetched.edges[from.index()].clone(),
            topics: topics.into(),
            from,
            edges: fetched.edges.len(),
            state: Mutex::new(LinkState::Down("nobody was asked yet".to_owned())),
            acknowledged: Mutex::default(),
            left: Mutex::default(),
            under_way: AtomicU64::default(),
            is_held,
            is_begun: AtomicBool::default(),
            is_ended: AtomicBool::default(),
            inbox: inbox.clone(),
        };
        by_edge.into_iter().map(link).map(Arc::new).collect()
    }

    /// Brings an event to the shard. One that cannot be taken is counted and acknowledged: it would be no other one when it comes again.
    pub fn bring(self: &Arc<Self>, topic: usize, header: EventHeader, payload: &[u8], metadata: Option<&str>) {
        if self.is_held {
            return;
        }
        let of = &self.topics[topic];
        of.received.fetch_add(1, Relaxed);
        match (self.known(of, header.publisher), std::str::from_utf8(payload)) {
            (Some(publisher), Ok(payload)) => {
                let (payload, cause) = (payload.to_owned(), metadata.and_then(Cause::of_metadata));
                self.under_way.fetch_add(1, Relaxed);
                let event = Box::new(CarriedEvent { topic, publisher, header, payload, cause });
                self.inbox.post(Message::Carried { link: self.clone(), event });
            }
            _ => {
                of.refused.fetch_add(1, Relaxed);
                let EventHeader { publisher, incarnation, sequence: through, .. } = header;
                locked(&self.acknowledged).push(Acknowledged { topic, publisher, incarnation, through });
            }
        }
    }

    /// What a publisher is called here.
    fn known(&self, topic: &LinkTopic, publisher: PublisherId) -> Option<PublisherId> {
        let here = origin::arrived(self.from, self.edges, publisher).inspect_err(|error| {
            tracing::warn!(graph = self.graph, edge = self.edge, topic = topic.topic, %error, "an event of a link is refused");
        });
        let here = here.ok()?;
        let mut publishers = locked(&topic.publishers);
        if publishers.len() >= PUBLISHERS_MAX && !publishers.contains_key(&here) {
            return None;
        }
        publishers.insert(here, publisher);
        Some(here)
    }

    /// Whether more may be brought now.
    pub fn has_room(&self) -> bool {
        self.under_way.load(Relaxed) < CARRIED_MAX
    }

    /// The shard has an event, whatever becomes of it.
    pub(crate) fn arrived(&self) {
        self.under_way.fetch_sub(1, Relaxed);
    }

    /// Nothing of a supplier's run is needed any more up to here.
    pub(crate) fn acknowledge(&self, supplier: SupplierId, publisher: PublisherId, incarnation: Incarnation, through: Sequence) {
        let topic = self.topics.iter().position(|topic| topic.supplier == supplier).expect("it is a supplier of the link");
        let known = locked(&self.topics[topic].publishers).get(&publisher).copied();
        // One that has sent nothing on this connection has nothing to be told.
        let Some(publisher) = known else { return };
        let mut acknowledged = locked(&self.acknowledged);
        let same = |told: &&mut Acknowledged| (told.topic, told.publisher, told.incarnation) == (topic, publisher, incarnation);
        match acknowledged.iter_mut().find(same) {
            Some(told) => told.through = told.through.max(through),
            None => acknowledged.push(Acknowledged { topic, publisher, incarnation, through }),
        }
    }

    /// What is to be acknowledged since the last call.
    pub fn take_acknowledged(&self, into: &mut Vec<Acknowledged>) {
        into.append(&mut locked(&self.acknowledged));
    }

    /// Events of a topic are missing in a row.
    pub fn lost(&self, topic: usize, run: u64) {
        if self.is_held {
            return;
        }
        let of = &self.topics[topic];
        of.lost.fetch_add(run, Relaxed);
        if of.loss_tolerance.is_some_and(|tolerance| run > u64::from(tolerance)) {
            of.exceeded.fetch_add(1, Relaxed);
            tracing::error!(
                graph = self.graph,
                edge = self.edge,
                topic = of.topic,
                run,
                tolerance = of.loss_tolerance,
                "more events of a link are lost in a row than it tolerates"
            );
        }
    }

    /// All of its topics are subscribed to.
    pub fn is_up(&self) {
        if std::mem::replace(&mut *locked(&self.state), LinkState::Up) != LinkState::Up {
            tracing::info!(graph = self.graph, edge = self.edge, "a link of a graph is up");
        }
    }

    /// They are not; told once for each reason.
    pub fn is_down(&self, why: String) {
        let mut state = locked(&self.state);
        let down = LinkState::Down(why);
        if *state != down {
            tracing::warn!(graph = self.graph, edge = self.edge, ?down, "a link of a graph is down: what comes over it is late");
            *state = down;
        }
    }

    /// How it stands.
    pub fn state(&self) -> LinkState {
        locked(&self.state).clone()
    }

    /// Whether it is carried from now on, and was not before.
    pub(super) fn begins(&self) -> bool {
        !self.is_begun.swap(true, Relaxed)
    }

    /// Whether it brings the same as another one, to the same suppliers.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let said =
            |link: &Self| link.topics.iter().map(|topic| (topic.topic.clone(), topic.supplier, topic.loss_tolerance)).collect::<Vec<_>>();
        (&self.own, &self.graph, &self.edge, self.from, self.edges) == (&other.own, &other.graph, &other.edge, other.from, other.edges)
            && said(self) == said(other)
    }

    /// Those of its topics that are not needed by what runs behind its end are let go at the other edge: otherwise they would be kept for this one.
    pub(super) fn leave(&self, is_needed: impl Fn(&str) -> bool) {
        let left = self.topics.iter().enumerate().filter(|(_, topic)| !is_needed(&topic.topic)).map(|(at, _)| at);
        *locked(&self.left) = left.collect();
    }

    /// Topics that are to be let go at its end.
    pub fn left(&self) -> Vec<usize> {
        locked(&self.left).clone()
    }

    /// Nobody needs it any more.
    pub fn end(&self) {
        self.is_ended.store(true, Relaxed);
    }

    /// Whether nobody needs it any more: its carrier ends.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Relaxed)
    }
}

impl LinkTopic {
    fn new(topic: String, supplier: SupplierId, loss_tolerance: Option<u32>) -> Self {
        let zero = AtomicU64::default;
        let (received, lost, exceeded, refused) = (zero(), zero(), zero(), zero());
        Self { topic, supplier, loss_tolerance, received, lost, exceeded, refused, publishers: Mutex::default() }
    }
}
