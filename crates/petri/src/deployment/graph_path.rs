//! The way of events through a graph of operators, as a net: suppliers, the broker's shard, workers by level, consumers.
//!
//! Two kinds of tokens never meet in a firing, so that a time goes with its event alone: events, and the states of threads. A thread that sleeps is woken by what comes to it, needs a processor, and keeps
//! it until it has nothing to do. A row of operators is a thread while it has a worker: of these there are as many as the deployment says, of each level where the more urgent ones stop the others. Which thread gets a processor
//! first is then decided by its rank: the shard, the levels, suppliers and consumers; and a less urgent one that runs is set back and goes on later where it was.
//! Where none stops another they are equal.

use super::{
    costs::Work,
    draft::{Around, Draft},
    graph::{Graph, GraphCosts, GraphDeployment, GraphSource},
};
use crate::{
    distribution::{Deterministic, Distribution, DistributionError, Uniform},
    net::{Net, Servers},
    simulate::{Joins, Tag, TagStart},
};

/// Most operators of a net.
pub const GRAPH_OPERATORS_MAX: usize = 256;

/// Priorities of immediate transitions, the most urgent first: events go on, somebody takes them up, threads are woken, threads sleep, threads get processors, threads lose them. The last two are by rank.
const GO_ON: u32 = 500;
const TAKE_UP: u32 = 490;
/// Rounds that are over go before events that have come.
const TAKE_UP_FIRST: u32 = 491;
const WAKE: u32 = 480;
const SLEEP: u32 = 200;
const PLACE: u32 = 190;
const SET_BACK: u32 = 10;

/// The net of a graph, and whose times in it are measured.
#[derive(Clone, Debug)]
pub struct GraphPath {
    /// The net.
    pub net: Net,
    /// From the push of the newest event that a result of a level is made of until it is read, by level.
    pub levels: Vec<(u8, Tag)>,
}

/// The net of a deployment.
///
/// # Errors
/// A cost that is none.
///
/// # Panics
/// The graph has a [mistake](Graph::mistake).
pub fn graph_path(graph: &Graph, costs: &GraphCosts, deployment: &GraphDeployment) -> Result<GraphPath, DistributionError> {
    assert_eq!(graph.mistake(), None, "a graph without a mistake");
    let mut path = Drawing::new(graph, costs, deployment);
    path.suppliers()?;
    path.rows()?;
    path.shard()?;
    path.consumers()?;
    let Drawing { draft, pushing, heard, .. } = path;
    let GraphDeployment { cores, workers, rate } = *deployment;
    let net = draft.net(format!("graph {}, {workers} workers, {cores} cores, {} % of its rate", graph.name, 100.0 * rate));
    let tag = |(level, to): (u8, usize)| (level, Tag { joins: Joins::Newest, ..Tag::new(TagStart::Arrival(pushing), to) });
    Ok(GraphPath { net: net.expect("the parts of the net are right whatever their number"), levels: heard.into_iter().map(tag).collect() })
}

/// A net while it is being drawn.
struct Drawing<'a> {
    graph: &'a Graph,
    costs: &'a GraphCosts,
    deployment: &'a GraphDeployment,
    draft: Draft,
    cores: usize,
    /// Threads of each rank that are ready.
    ready: Vec<usize>,
    pushing: usize,
    /// Events of each supplier in front of the shard.
    inboxes: Vec<usize>,
    /// Events in front of each input of each operator.
    inputs: Vec<Vec<usize>>,
    /// What each row has made, and rows that have made nothing, both in front of the shard.
    made: Vec<usize>,
    void: Vec<usize>,
    /// Results in front of each consumer.
    results: Vec<usize>,
    /// Results of each level that have been read.
    heard: Vec<(u8, usize)>,
}

/// A thread that is there as long as it has something to do.
struct Thread {
    asleep: usize,
    running: usize,
    /// A worker that it needs.
    pool: Option<usize>,
}

/// The shard's rank; the levels' are behind it.
const FIRST_RANK: usize = 0;

impl<'a> Drawing<'a> {
    fn new(graph: &'a Graph, costs: &'a GraphCosts, deployment: &'a GraphDeployment) -> Self {
        let mut draft = Draft::default();
        let cores = draft.place("cores", deployment.cores);
        let mut places = |what: &str, names: Vec<&str>| -> Vec<usize> {
            names.into_iter().map(|name| draft.place(format!("{what} {name}"), 0)).collect()
        };
        let topics = graph.suppliers.iter().map(|supplier| supplier.topic.as_str()).collect();
        let ends: Vec<&str> = graph.rows.iter().map(|row| graph.operators[row[row.len() - 1]].name.as_str()).collect();
        let inboxes = places("inbox", topics);
        let (made, void) = (places("made by", ends.clone()), places("nothing of", ends));
        let results = places("result", graph.outputs.iter().map(|output| output.topic.as_str()).collect());
        let input = |operator: &super::graph::GraphOperator, draft: &mut Draft| -> Vec<usize> {
            (1..=operator.inputs.len()).map(|number| draft.place(format!("{} input {number}", operator.name), 0)).collect()
        };
        let inputs = graph.operators.iter().map(|operator| input(operator, &mut draft)).collect();
        let heard = graph.levels().into_iter().map(|level| (level, draft.place(format!("heard of level {level}"), 0))).collect();
        let ranks = if graph.is_preemptive { Self::last_rank_of(graph) + 1 } else { 1 };
        let ready = (0..ranks).map(|rank| draft.place(format!("ready of rank {rank}"), 0)).collect();
        let pushing = draft.place("pushing", 0);
        Self { graph, costs, deployment, draft, cores, ready, pushing, inboxes, inputs, made, void, results, heard }
    }

    /// Levels that operators have, the most urgent first.
    fn levels_of(graph: &Graph) -> Vec<u8> {
        let mut levels: Vec<u8> = graph.operators.iter().map(|operator| operator.level).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// That of suppliers and consumers.
    fn last_rank_of(graph: &Graph) -> usize {
        Self::levels_of(graph).len() + 1
    }

    fn last_rank(&self) -> usize {
        self.ready.len() - 1
    }

    /// A thread of a rank that runs while one of `work` holds something, and comes to run in so long.
    fn thread(&mut self, name: &str, work: &[usize], rank: usize, pool: Option<usize>, begin_us: f64) -> Result<Thread, DistributionError> {
        let rank = rank.min(self.last_rank());
        let wake = self.costs.wake;
        let (cores, of_rank) = (self.cores, self.ready[rank]);
        let [asleep, waking, ready, beginning, running] = ["asleep", "waking", "ready", "beginning", "running"]
            .map(|state| self.draft.place(format!("{name} {state}"), u32::from(state == "asleep")));
        let draft = &mut self.draft;
        let needs: Vec<usize> = std::iter::once(asleep).chain(pool).collect();
        // The most urgent ones have the first pick of workers that all levels share.
        let woken = WAKE - rank as u32;
        let held_up = (wake.held_up_busy > 0.0).then(|| draft.place(format!("{name} held up"), 0));
        for (index, place) in work.iter().enumerate() {
            let around = || Around::from(&needs).while_in(&[*place]);
            draft.immediate(format!("{name} is woken {index}"), woken, around().to(&[waking]).while_in(&[cores]));
            // Where no processor is idle it waits for the next free one, or, now and then, for other work as well.
            let queued = |places: &[usize]| around().to(places).without(&[cores]);
            if let Some(held_up) = held_up {
                draft.chance(format!("{name} is held up {index}"), woken, wake.held_up_busy, queued(&[held_up]));
            }
            draft.chance(format!("{name} is queued {index}"), woken, 1.0 - wake.held_up_busy, queued(&[ready, of_rank]));
        }
        if let Some(held_up) = held_up {
            let law = Distribution::Erlang(wake.held_up_law()?);
            draft.timed(format!("{name} is let go"), &law, Servers::SINGLE, Around::from(&[held_up]).to(&[ready, of_rank]));
        }
        draft.timed(format!("{name} wakes up"), &wake.law()?, Servers::SINGLE, Around::from(&[waking]).to(&[ready, of_rank]));
        let begin = fixed(begin_us)?;
        let placed = PLACE - rank as u32;
        draft.immediate(format!("{name} gets a core"), placed, Around::from(&[ready, of_rank, cores]).to(&[beginning]));
        draft.timed(format!("{name} begins"), &begin, Servers::SINGLE, Around::from(&[beginning]).to(&[running]));
        for more_urgent in &self.ready[..rank] {
            let around = Around::from(&[running]).to(&[ready, of_rank, cores]).while_in(&[*more_urgent]).without(&[cores]);
            draft.immediate(format!("{name} is set back for {more_urgent}"), SET_BACK + rank as u32, around);
        }
        Ok(Thread { asleep, running, pool })
    }

    /// A thread sleeps when none of `work` holds anything.
    fn sleeps(&mut self, name: &str, thread: &Thread, work: &[usize]) {
        let gives: Vec<usize> = [thread.asleep, self.cores].into_iter().chain(thread.pool).collect();
        self.draft.immediate(format!("{name} sleeps"), SLEEP, Around::from(&[thread.running]).to(&gives).without(work));
    }

    /// What a thread does with one thing after the other: `from`, how long that takes, and what becomes of it.
    fn one_by_one(&mut self, name: &str, thread: &Thread, at: usize, works: Vec<Step>) -> Result<(), DistributionError> {
        for Step { what, from, priority, us, to } in works {
            let which = self.draft.place(format!("{name} {what}"), 0);
            let begins = Around::from(&[from]).to(&[at, which]).while_in(&[thread.running]).without(&[at]);
            self.draft.immediate(format!("{name} begins to {what}"), priority, begins);
            let around = Around::from(&[at, which]).to(&to).while_in(&[thread.running]);
            self.draft.interrupted(format!("{name} has come to {what}"), &fixed(us)?, around);
        }
        Ok(())
    }

    /// Suppliers push by their clocks, each with a phase of its own.
    fn suppliers(&mut self) -> Result<(), DistributionError> {
        let mut due = Vec::new();
        for supplier in &self.graph.suppliers {
            let topic = &supplier.topic;
            let period_us = supplier.period_us / self.deployment.rate;
            let [first, ticking, at] = ["first of", "clock of", "due of"].map(|what| (what, u32::from(what == "first of")));
            let [first, ticking, at] = [first, ticking, at].map(|(what, tokens)| self.draft.place(format!("{what} {topic}"), tokens));
            let phase = Distribution::Uniform(Uniform::new(0.0, period_us)?);
            let begins = Around::from(&[first]).to(&[ticking, at]);
            self.draft.timed(format!("clock of {topic} begins"), &phase, Servers::SINGLE, begins);
            let tick = Around::default().to(&[at]).while_in(&[ticking]);
            self.draft.timed(format!("tick of {topic}"), &fixed(period_us)?, Servers::SINGLE, tick);
            due.push(at);
        }
        let thread = self.thread("suppliers", &due, usize::MAX, None, 0.0)?;
        let step = |(index, from): (usize, &usize)| Step {
            what: format!("push {}", self.graph.suppliers[index].topic),
            from: *from,
            priority: TAKE_UP,
            us: self.costs.push_us,
            to: vec![self.inboxes[index]],
        };
        let works = due.iter().enumerate().map(step).collect();
        self.one_by_one("suppliers", &thread, self.pushing, works)?;
        due.push(self.pushing);
        self.sleeps("suppliers", &thread, &due);
        Ok(())
    }

    /// Operators in rows, on the workers of their levels.
    fn rows(&mut self) -> Result<(), DistributionError> {
        let levels = Self::levels_of(self.graph);
        let pools = if self.graph.is_preemptive { levels.len() } else { 1 };
        let pools: Vec<usize> = (0..pools).map(|number| self.draft.place(format!("workers {number}"), self.deployment.workers)).collect();
        for (number, row) in self.graph.rows.iter().enumerate() {
            let first = &self.graph.operators[row[0]];
            let level = levels.binary_search(&first.level).expect("it is one of the levels");
            // In front of each operator, and behind the last one.
            let mut at: Vec<usize> = row.iter().map(|operator| self.draft.place(format!("event of {}", self.name(*operator)), 0)).collect();
            self.starts(row[0], at[0], &[&at[..], &[self.made[number], self.void[number]]].concat());
            let thread = self.thread(
                &format!("row of {}", first.name),
                &at[..1],
                1 + level,
                Some(pools[level.min(pools.len() - 1)]),
                self.costs.begin_us,
            )?;
            let work = at.clone();
            at.push(self.made[number]);
            for (place, operator) in row.iter().enumerate() {
                let cost = self.costs.operators[*operator];
                let name = self.name(*operator).to_owned();
                let run = |to: usize| Around::from(&[at[place]]).to(&[to]).while_in(&[thread.running]);
                if cost.emits >= 1.0 {
                    self.draft.interrupted(name, &cost.work.law()?, run(at[place + 1]));
                } else {
                    let over = self.draft.place(format!("{name} is over"), 0);
                    self.draft.interrupted(name.clone(), &cost.work.law()?, run(over));
                    let ends = |to: usize| Around::from(&[over]).to(&[to]);
                    if cost.emits > 0.0 {
                        self.draft.chance(format!("{name} has a result"), GO_ON, cost.emits, ends(at[place + 1]));
                    }
                    self.draft.chance(format!("{name} has none"), GO_ON, 1.0 - cost.emits, ends(self.void[number]));
                }
            }
            self.sleeps(&format!("row of {}", first.name), &thread, &work);
        }
        Ok(())
    }

    fn name(&self, operator: usize) -> &'a str {
        &self.graph.operators[operator].name
    }

    /// What starts a round of an operator, while none of `busy` holds anything; an event that waits for others is replaced by a newer one.
    fn starts(&mut self, operator: usize, to: usize, busy: &[usize]) {
        let described = &self.graph.operators[operator];
        let inputs = &self.inputs[operator];
        let mut all = Around::default().to(&[to]).without(busy);
        for (number, (input, place)) in described.inputs.iter().zip(inputs).enumerate() {
            let name = |what: &str| format!("{} {what} {}", described.name, number + 1);
            if input.step == 0 {
                self.draft.immediate(name("knows its input"), GO_ON, Around::from(&[*place]));
            } else if described.is_started_by_any {
                let starts = Around::default().several(*place, input.step).to(&[to]).without(busy);
                self.draft.immediate(name("starts by input"), GO_ON, starts);
            } else {
                all = all.several(*place, input.step);
            }
            if input.step == 1 {
                self.draft.immediate(name("has a newer event of input"), GO_ON - 1, Around::from(&[*place]).while_two_in(*place));
            }
        }
        if !described.is_started_by_any {
            self.draft.immediate(format!("{} starts", described.name), GO_ON, all);
        }
    }

    /// The shard takes events and rounds, and publishes.
    fn shard(&mut self) -> Result<(), DistributionError> {
        let work: Vec<usize> = [&self.made[..], &self.void, &self.inboxes].concat();
        let thread = self.thread("shard", &work, FIRST_RANK, None, 0.0)?;
        let at = self.draft.place("shard at work", 0);
        let places = |from: GraphSource| self.graph.readers(from).map(|(operator, input)| self.inputs[operator][input]).collect::<Vec<_>>();
        let mut works = Vec::new();
        for (index, from) in self.inboxes.iter().enumerate() {
            let what = format!("take {}", self.graph.suppliers[index].topic);
            works.push(Step { what, from: *from, priority: TAKE_UP, us: self.costs.take_us, to: places(GraphSource::Supplier(index)) });
        }
        for (index, row) in self.graph.rows.iter().enumerate() {
            let last = row[row.len() - 1];
            let outputs = self.graph.outputs.iter().zip(&self.results).filter(|(output, _)| output.from == last);
            let outputs: Vec<usize> = outputs.map(|(_, result)| *result).collect();
            let us = self.costs.finish_us + self.costs.publish_us * outputs.len() as f64;
            let to = [places(GraphSource::Operator(last)), outputs].concat();
            let what = format!("finish {}", self.name(last));
            works.push(Step { what, from: self.made[index], priority: TAKE_UP_FIRST, us, to });
            let what = format!("finish {} without a result", self.name(last));
            works.push(Step { what, from: self.void[index], priority: TAKE_UP_FIRST, us: self.costs.finish_us, to: Vec::new() });
        }
        self.one_by_one("shard", &thread, at, works)?;
        self.sleeps("shard", &thread, &[&work[..], &[at]].concat());
        Ok(())
    }

    /// Consumers, all in one thread.
    fn consumers(&mut self) -> Result<(), DistributionError> {
        let work = self.results.clone();
        let thread = self.thread("consumers", &work, usize::MAX, None, 0.0)?;
        let at = self.draft.place("reading", 0);
        let heard = |level: u8| self.heard.iter().find(|(other, _)| *other == level).expect("every output's level is one").1;
        let step = |(output, from): (&super::graph::GraphOutput, &usize)| Step {
            what: format!("read {}", output.topic),
            from: *from,
            priority: TAKE_UP,
            us: self.costs.read_us,
            to: vec![heard(output.level)],
        };
        let works = self.graph.outputs.iter().zip(&work).map(step).collect();
        self.one_by_one("consumers", &thread, at, works)?;
        for (level, place) in self.heard.clone() {
            self.draft.immediate(format!("results of level {level} are over"), GO_ON, Around::from(&[place]));
        }
        self.sleeps("consumers", &thread, &[&work[..], &[at]].concat());
        Ok(())
    }
}

/// Something that a thread does.
struct Step {
    what: String,
    from: usize,
    priority: u32,
    us: f64,
    to: Vec<usize>,
}

/// A time that does not vary.
fn fixed(us: f64) -> Result<Distribution, DistributionError> {
    if us > 0.0 { Ok(Distribution::Deterministic(Deterministic::new(us)?)) } else { Work { mean_us: 0.0, squared_variation: 0.0 }.law() }
}
