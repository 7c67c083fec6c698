//! A graph at work: its machine, what its workers share, and how its topics write events.

mod checkpoint;
mod held;
mod inherit;
mod moving;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use bodkin_arrowhead::{name::SystemName, publication::JsonText, record::SystemId, snapshot::Snapshot, trace::Cause};
use bodkin_broker::{
    EventId, PublisherId,
    graph::{
        Carried, Graph, OperatorId, SupplierId, Taken,
        handover::Handover,
        machine::{Action, Arrival, EventSlot, JobId, Machine, Outcome, Policy, Record},
        placement::origin::origin,
    },
    timing::Span,
};
use bodkin_operators::{
    Keys,
    file::{GraphFile, Recipe},
    text::Forms,
};
use tokio::sync::oneshot;

use self::{checkpoint::Saved, held::Held};
pub use self::{
    held::HeldEvent,
    inherit::{Inheritance, hears, links},
};
use super::{
    causes::{Causes, Made},
    counts::{GraphCounts, Suspension},
    crew::Crew,
    link::{CarriedEvent, Carriers, EdgeLink, LinkTopic},
    plant::{Ended, Plant},
    table::GraphTable,
    workers::Processors,
};
use crate::{inbox::Inbox, realtime::Realtime, seldom::SeldomOf};

/// Between two looks for steps that do not end: the shard's sweep.
const LOOK_S: u64 = 1;
/// Looks that see the same step before it counts as endless, and as many more as its declared cost times [`COST_TIMES`] lasts. A process that was stopped does not look either.
const LOOKS_MAX: u32 = 3;
/// A step that takes so many times its declared cost does not end.
const COST_TIMES: u64 = 10;

/// Log rate limits besides those of topics and operators, whose names have no line end.
const REPLACED: &str = "\nreplaced";
const RESTARTED: &str = "\nrestarted ";

/// A graph that runs.
pub struct Deployment {
    machine: Machine,
    plant: Arc<Plant>,
    crew: Crew,
    forms: Forms,
    recipes: Vec<Recipe>,
    /// Whether each level has workers of its own.
    is_preemptive: bool,
    /// Whether it is not decided yet that these are real-time threads.
    waits_to_preempt: bool,
    realtime: Arc<Realtime>,
    counts: Arc<GraphCounts>,
    table: Arc<GraphTable>,
    seldom: SeldomOf,
    /// By operator: the restarts that the log has.
    restarts_logged: Vec<u64>,
    /// A payload on its way in.
    payload: Vec<u8>,
    /// A text whose escapes had to be resolved.
    text: String,
    /// What an arrival brings.
    actions: Vec<Action>,
    /// Which traces its events are of.
    causes: Causes,
    saved: Saved,
    /// Of the graph's file.
    digest: u64,
    /// What it fetches from other edges, and how far it has taken that.
    links: Vec<Arc<EdgeLink>>,
    carriers: Carriers,
    carried: Carried,
    /// What has come over links with a bound on losses, and waits until it replaces nothing that waits: [`CARRIED_MAX`](super::CARRIED_MAX) of each link at the most.
    waiting: VecDeque<(Arc<EdgeLink>, Box<CarriedEvent>)>,
    /// What was published here while it was held up.
    held: Held,
    /// By supplier: what its events are in the whole graph, a topic or the results of an operator.
    sources: Vec<String>,
    /// What has come with an operator from another host.
    brought: Option<Handover>,
    /// Told when nothing of what was before is needed any more.
    at_work: Option<oneshot::Sender<()>>,
    /// Its edges as systems that are registered here: publishers of other edges count as those.
    edges: Vec<Option<SystemName>>,
    own_edge: usize,
    /// What this host is called among them; empty of a graph on one host.
    own_edge_name: String,
}

impl std::fmt::Debug for Deployment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployment").field("graph", &self.graph().name).finish_non_exhaustive()
    }
}

impl Deployment {
    /// Makes the operators of a graph, with keys that have everything it names, and starts its workers.
    pub fn start(
        file: &GraphFile,
        keys: &Keys,
        counts: Arc<GraphCounts>,
        (links, carriers): (Vec<Arc<EdgeLink>>, Carriers),
        realtime: &Arc<Realtime>,
        inbox: &Arc<Inbox>,
        table: &Arc<GraphTable>,
    ) -> io::Result<Self> {
        let workers = file.workers;
        let cores = Processors::available().cores(&workers);
        let policy = Policy { cores, is_preemptive: false, replaces_queued: file.replaces_queued };
        let machine = Machine::new(file.graph.clone(), policy);
        let operators =
            file.recipes.iter().map(|recipe| recipe.make(Some(keys)).expect("it was made when the graph was declared").operator);
        let plant = Arc::new(Plant::new(&machine, &file.forms, operators));
        let crew = Crew::start(&file.graph, (&workers, cores), &plant, &counts, realtime, inbox)?;
        Ok(Self {
            machine,
            plant,
            crew,
            forms: file.forms.clone(),
            recipes: file.recipes.clone(),
            is_preemptive: workers.is_preemptive,
            waits_to_preempt: workers.is_preemptive,
            realtime: realtime.clone(),
            counts,
            table: table.clone(),
            seldom: SeldomOf::default(),
            restarts_logged: vec![0; file.graph.operators().len()],
            payload: Vec::new(),
            text: String::new(),
            actions: Vec::new(),
            causes: Causes::default(),
            saved: Saved::default(),
            digest: file.digest,
            links,
            carriers,
            carried: Carried::default(),
            waiting: VecDeque::new(),
            held: Held::default(),
            sources: sources(file),
            brought: None,
            at_work: None,
            edges: file.fetched.edges.iter().map(|name| SystemName::parse(name).ok()).collect(),
            own_edge: file.fetched.own,
            own_edge_name: file.fetched.edges.get(file.fetched.own).cloned().unwrap_or_default(),
        })
    }

    /// Whether all that it has taken is processed, as far as it can be before another event comes: no round runs, and none is to begin. A graph that stands still has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.crew.is_at_rest() && (self.counts.suspension().is_some() || self.machine.is_idle())
    }

    /// Whether more urgent rounds are to stop less urgent ones.
    pub fn is_preemptive(&self) -> bool {
        self.is_preemptive
    }

    /// Begins to fetch what it needs of other edges, as far as the deployment before does not do so already.
    pub fn fetch(&self) {
        self.links.iter().filter(|link| link.begins()).for_each(|link| self.carriers.carry(link));
    }

    /// Whether this is one of its links.
    pub fn fetches(&self, link: &Arc<EdgeLink>) -> bool {
        self.links.iter().any(|own| Arc::ptr_eq(own, link))
    }

    /// The link that a supplier's events come over; none for one of this edge.
    pub fn link_of(&self, supplier: SupplierId) -> Option<&Arc<EdgeLink>> {
        self.links.iter().find(|link| link.topics.iter().any(|topic| topic.supplier == supplier))
    }

    /// How far what comes over links was taken.
    pub fn carried(&mut self) -> &mut Carried {
        &mut self.carried
    }

    /// Lets an event that has come over a link wait, behind those that do.
    pub fn let_wait(&mut self, link: Arc<EdgeLink>, event: Box<CarriedEvent>) {
        self.waiting.push_back((link, event));
    }

    /// The next event of a link that may be taken; none while it would take the place of one that waits in front of the graph. One of a link without a bound on losses may do so.
    pub fn next_carried(&mut self) -> Option<(Arc<EdgeLink>, Box<CarriedEvent>)> {
        let machine = &self.machine;
        self.waiting.pop_front_if(|(link, event)| {
            let LinkTopic { supplier, loss_tolerance, .. } = &link.topics[event.topic];
            loss_tolerance.is_none() || machine.has_room(*supplier)
        })
    }

    /// Returns true if an event of a supplier would replace none that waits.
    pub fn has_room(&self, supplier: SupplierId) -> bool {
        self.machine.has_room(supplier)
    }

    /// Whose a result counts as: its publisher's, if that is of this edge, else the system's that is called as the edge on which it was published. A number that no system has where there is none.
    pub fn source(&self, publisher: PublisherId, snapshot: &Snapshot) -> SystemId {
        let Some(origin) = origin(publisher) else { return SystemId(publisher.0.cast_signed()) };
        if origin.edge.index() == self.own_edge {
            return SystemId(origin.publisher.0.cast_signed());
        }
        let edge = self.edges.get(origin.edge.index()).and_then(Option::as_ref);
        let system = edge.and_then(|edge| snapshot.systems_with(edge).next());
        system.map_or(SystemId(publisher.0.cast_signed()), |system| system.id)
    }

    /// Tells whoever waits for it when the graph is at work: without a pair when it runs, in one when the Backup goes on from where it is, or will not.
    pub fn tell_at_work(&mut self, at_work: oneshot::Sender<()>) {
        self.at_work = Some(at_work);
    }

    /// It is.
    pub fn is_at_work(&mut self) {
        if let Some(at_work) = self.at_work.take() {
            // Who has been given up waits no more.
            let _ = at_work.send(());
        }
    }

    /// What it runs.
    pub fn graph(&self) -> &Graph {
        self.machine.graph()
    }

    /// Of its file.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// What is counted.
    pub fn counts(&self) -> &GraphCounts {
        &self.counts
    }

    /// Takes an event of a supplier's topic, made at `created_ns` (UTC), and what that is caused by. Rounds that it starts are handed to workers.
    pub fn take_in(
        &mut self,
        now_ns: u64,
        supplier: SupplierId,
        (event, created_ns): (EventId, u64),
        payload: JsonText<'_>,
        cause: Option<&Cause>,
    ) {
        let shape = self.graph().suppliers()[supplier.index()].shape;
        let text = payload.plain().unwrap_or_else(|| {
            self.text.clear();
            payload.push_to(&mut self.text);
            &self.text
        });
        self.payload.clear();
        if let Err(error) = self.forms.suppliers[supplier.index()].read(shape, text, &mut self.payload) {
            return self.refuse(supplier, &error);
        }
        let EventId { publisher, incarnation, sequence, .. } = event;
        let arrival = Arrival { supplier, publisher, incarnation, sequence, created_ns: created_ns.min(now_ns), bytes: self.payload.len() };
        let mut actions = std::mem::take(&mut self.actions);
        match self.machine.arrive(now_ns, arrival, &mut actions) {
            Ok(slot) => {
                self.plant.fill(slot, &self.payload);
                self.note_taken(Taken { supplier, publisher, incarnation, through: sequence });
                self.causes.arrive(now_ns, slot, event, cause.cloned());
                GraphCounts::one(&self.counts.taken);
            }
            Err(refused) => self.refuse(supplier, &refused),
        }
        // Nothing is published before a round is over.
        actions.drain(..).for_each(|action| self.carry_out(now_ns, action));
        self.actions = actions;
        self.note_replaced();
    }

    /// Copies what the machine counts of events that were replaced or arrived too fast.
    pub(super) fn note_replaced(&self) {
        let (replaced, excess) = (self.machine.replaced(), self.machine.excess());
        self.counts.excess.store(excess, Relaxed);
        if self.counts.replaced.swap(replaced, Relaxed) < replaced
            && let Some(times) = self.seldom.due(REPLACED)
        {
            tracing::warn!(graph = self.graph().name, replaced, times, "events replaced by newer ones before an operator used them");
        }
    }

    /// Logs that an operator has restarted, if it has since the last round.
    fn note_restarts(&mut self, operator: OperatorId) {
        let restarts = self.counts.operator(operator).restarts.load(Relaxed);
        if self.restarts_logged[operator.index()] == restarts {
            return;
        }
        self.restarts_logged[operator.index()] = restarts;
        let name = &self.graph().operator(operator).name;
        if let Some(times) = self.seldom.due(&format!("{RESTARTED}{name}")) {
            tracing::warn!(
                graph = self.graph().name,
                operator = name,
                restarts,
                times,
                "operator restarted: its state was no longer finite"
            );
        }
    }

    fn refuse(&self, supplier: SupplierId, error: &dyn std::error::Error) {
        GraphCounts::one(&self.counts.refused);
        let topic = &self.graph().suppliers()[supplier.index()].topic;
        if let Some(times) = self.seldom.due(topic) {
            tracing::warn!(graph = self.graph().name, topic, %error, times, "a graph has not taken an event");
        }
    }

    /// A round that is over, if there is one.
    pub fn take_ended(&mut self) -> Option<(JobId, Ended)> {
        self.crew.take_ended()
    }

    /// Takes what became of a round; what is to be done about it is appended to `actions`.
    pub fn finish(&mut self, now_ns: u64, job: JobId, ended: Ended, actions: &mut Vec<Action>) {
        if !matches!(ended, Ended::TooLate) {
            GraphCounts::one(&self.counts.rounds);
            GraphCounts::one(&self.counts.operator(job.operator).rounds);
        }
        if !matches!(ended, Ended::Panicked(_) | Ended::TooLate) {
            self.note_state(job.operator);
        }
        let outcome = match ended {
            Ended::TooLate => Outcome::TooLate,
            Ended::Done(emission, bytes) => Outcome::Done(emission, bytes),
            Ended::Refused(fault) => {
                let operator = &self.graph().operator(job.operator).name;
                if let Some(times) = self.seldom.due(operator) {
                    tracing::warn!(graph = self.graph().name, operator, %fault, times, "an operator has refused its events");
                }
                Outcome::Failed
            }
            Ended::Panicked(told) => {
                let operator = self.graph().operator(job.operator).name.clone();
                self.suspend(Suspension::Panic { operator, told });
                Outcome::Failed
            }
        };
        let before = self.machine.counters(job.operator);
        let (failed_before, marked_before) = (before.failed, before.marked);
        self.machine.finish(now_ns, job, outcome, actions);
        self.note_replaced();
        self.note_restarts(job.operator);
        let (now, counts) = (self.machine.counters(job.operator), self.counts.operator(job.operator));
        self.counts.failed.fetch_add(now.failed - failed_before, Relaxed);
        counts.failed.fetch_add(now.failed - failed_before, Relaxed);
        counts.marked.fetch_add(now.marked - marked_before, Relaxed);
    }

    /// Carries out what is not publishing. `now_ns` is now in nanoseconds of UTC.
    pub fn carry_out(&mut self, now_ns: u64, action: Action) {
        match action {
            Action::Run(job) => {
                self.causes.begin(&self.machine, job);
                let row = self.plant.prepare(&self.machine, job, now_ns);
                self.crew.run(self.machine.graph().level(job.operator), row);
            }
            Action::Shed { operator, .. } => {
                GraphCounts::one(&self.counts.shed);
                GraphCounts::one(&self.counts.operator(operator).shed);
            }
            Action::Deliver { .. } => unreachable!("the shard publishes"),
        }
    }

    /// Appends the text of the last result of an output's operator, which is at rest since.
    pub fn push_text(&self, output: usize, text: &mut String) {
        self.plant.push_text(self.graph().outputs()[output].from, self.forms.outputs[output], text);
    }

    /// What the result in a slot is made of.
    pub fn made(&self, slot: EventSlot, record: &Record) -> Made {
        self.causes.of(slot, record.lead)
    }

    /// Counts a result that was published, or could not be.
    pub fn count_result(&self, now_ns: u64, output: usize, record: &Record, is_published: bool) {
        if !is_published {
            return GraphCounts::one(&self.counts.lost);
        }
        GraphCounts::one(&self.counts.published);
        self.counts.marked.fetch_add(u64::from(record.is_marked), Relaxed);
        let lasted_ns = now_ns.saturating_sub(record.begin_ns);
        let is_late = matches!(self.graph().outputs()[output].deadline, Span::Finite(deadline) if u128::from(lasted_ns) > deadline.get().unsigned_abs().into());
        self.counts.late.fetch_add(u64::from(is_late), Relaxed);
    }

    /// Whether more urgent rounds stop less urgent ones: workers are real-time threads.
    pub fn preempts(&self) -> bool {
        self.is_preemptive && !self.waits_to_preempt
    }

    /// Whether less urgent levels wait.
    pub fn is_held(&self) -> bool {
        self.machine.is_held()
    }

    /// Lets less urgent levels of real-time workers wait, or go on.
    pub fn hold(&mut self, now_ns: u64, is_held: bool) {
        if is_held {
            return self.machine.hold();
        }
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.release(now_ns, &mut actions);
        // No round is over.
        actions.drain(..).for_each(|action| self.carry_out(now_ns, action));
        self.actions = actions;
        self.note_replaced();
    }

    /// Looks, once a second, whether steps end, and whether real-time threads may stop less urgent ones.
    pub fn look(&mut self) {
        if self.waits_to_preempt && self.realtime.stops_less_urgent() {
            self.waits_to_preempt = false;
            self.machine.preempt();
        }
        let graph = self.machine.graph();
        let cost_us = |operator: OperatorId| graph.operator(operator).cost.micros_up();
        let looks_max = |operator| {
            LOOKS_MAX + u32::try_from(cost_us(operator).unsigned_abs() * COST_TIMES / (LOOK_S * 1_000_000)).unwrap_or(u32::MAX / 2)
        };
        if let Some(job) = self.crew.give_up_endless(looks_max) {
            let seconds = u64::from(looks_max(job.operator)) * LOOK_S;
            let (operator, cost_us) = (graph.operator(job.operator).name.clone(), cost_us(job.operator));
            self.table.one_is_endless();
            self.suspend(Suspension::Endless { operator, seconds, cost_us });
        }
    }

    fn suspend(&mut self, why: Suspension) {
        tracing::error!(graph = self.graph().name, %why, "a graph stands still until it is deployed anew");
        self.counts.suspend(why);
        self.machine.suspend();
    }
}

/// By supplier: what its events are in the whole graph.
fn sources(file: &GraphFile) -> Vec<String> {
    let mut sources: Vec<String> = file.graph.suppliers().iter().map(|supplier| supplier.topic.clone()).collect();
    file.fetched.suppliers.iter().for_each(|fetched| sources[fetched.supplier.index()].clone_from(&fetched.source));
    sources
}

impl Drop for Deployment {
    fn drop(&mut self) {
        self.links.iter().for_each(|link| link.end());
    }
}
