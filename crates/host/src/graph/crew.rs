//! The threads that run a graph's operators: as many for each level as the graph has cores, where the more urgent ones stop the others, and else as many in all.
//!
//! A worker has a desk with one word on it: nothing, the operator whose round it is to run, or that it is done. Who hands work over writes the word and wakes the thread; nothing is locked
//! or allocated. Behind that round it goes on with those that follow it in a row, and is done when all of them are over.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    thread::{self, Thread},
    time::Instant,
};

use bodkin_broker::{
    graph::{
        Graph, OperatorId,
        machine::{CHAIN_MAX, JobId},
        response::Workers,
    },
    topic::Level,
};

use super::{
    GraphCounts,
    plant::{Ended, Following, Plant, Ran, Row},
    workers,
};
use crate::{
    inbox::Inbox,
    realtime::{Rank, Realtime, ThreadId},
};

/// Words on a desk; any other is the number of an operator, from 1 on.
const NOTHING: u32 = 0;
const DONE: u32 = u32::MAX;
const END: u32 = u32::MAX - 1;

/// What a worker and the shard tell each other.
struct Desk {
    word: AtomicU32,
    /// The operator whose step it is at.
    at: AtomicU32,
    /// What became of the rounds, once it is done. Only one of the two looks at a time.
    ended: Mutex<[Option<Ended>; CHAIN_MAX]>,
    thread: OnceLock<ThreadId>,
}

/// A worker as the shard sees it.
struct Worker {
    desk: Arc<Desk>,
    thread: Thread,
    set: usize,
    running: Option<Row>,
    /// How often the shard has looked since it is at the step of this operator.
    looks: (u32, u32),
}

/// The workers of a graph. They end when this is dropped, each behind its step.
pub struct Crew {
    workers: Vec<Worker>,
    /// Those of each set that have nothing to do.
    idle: Vec<Vec<usize>>,
    /// Rounds that are over, of a worker that is done, in their order.
    over: VecDeque<(JobId, Ended)>,
    /// The set of each level.
    sets: [usize; Level::COUNT as usize],
    realtime: Arc<Realtime>,
}

impl Crew {
    /// Starts the threads, so many in each set, which wake the shard by its inbox.
    pub fn start(
        graph: &Graph,
        (workers, cores): (&Workers, usize),
        plant: &Arc<Plant>,
        counts: &Arc<GraphCounts>,
        realtime: &Arc<Realtime>,
        inbox: &Arc<Inbox>,
    ) -> io::Result<Self> {
        let levels = workers::sets(graph, workers);
        let mut sets = [0; Level::COUNT as usize];
        for (set, level) in levels.iter().enumerate() {
            sets[usize::from(level.get())] = set;
        }
        let mut crew = Self {
            workers: Vec::new(),
            idle: vec![Vec::new(); levels.len()],
            over: VecDeque::with_capacity(CHAIN_MAX),
            sets,
            realtime: realtime.clone(),
        };
        for (set, level) in levels.iter().enumerate() {
            let rank = workers.is_preemptive.then_some(Rank::Operator(*level));
            for number in 0..cores {
                let desk = Arc::new(Desk {
                    word: AtomicU32::new(NOTHING),
                    at: AtomicU32::new(NOTHING),
                    ended: Mutex::default(),
                    thread: OnceLock::new(),
                });
                let (own, plant, counts, realtime, inbox) = (desk.clone(), plant.clone(), counts.clone(), realtime.clone(), inbox.clone());
                let run = move || {
                    // Whoever gives it up finds it here.
                    let _ = own.thread.set(ThreadId::current());
                    let _membership = rank.map(|rank| realtime.enlist(rank));
                    work(&own, &plant, &counts, &inbox);
                };
                let spawned = thread::Builder::new().name(format!("operator-{}-{number}", level.get())).spawn(run)?;
                crew.idle[set].push(crew.workers.len());
                crew.workers.push(Worker { desk, thread: spawned.thread().clone(), set, running: None, looks: (0, NOTHING) });
            }
        }
        Ok(crew)
    }

    /// Lets a worker of a level run rounds in a row, which are prepared.
    pub fn run(&mut self, level: Level, row: Row) {
        let set = self.sets[usize::from(level.get())];
        let at = self.idle[set].pop().expect("a round begins only where a worker is free");
        let worker = &mut self.workers[at];
        let word = word_of(first(&row).operator);
        (worker.running, worker.looks) = (Some(row), (0, word));
        worker.desk.at.store(word, Relaxed);
        worker.desk.word.store(word, Release);
        worker.thread.unpark();
    }

    /// Whether no round runs, and none is over that was not taken.
    pub fn is_at_rest(&self) -> bool {
        self.over.is_empty() && self.workers.iter().all(|worker| worker.running.is_none())
    }

    /// A round that is over, if there is one; those of a row in their order.
    pub fn take_ended(&mut self) -> Option<(JobId, Ended)> {
        if self.over.is_empty() {
            self.take_done();
        }
        self.over.pop_front()
    }

    /// Takes the rounds of a worker that is done, if there is one.
    fn take_done(&mut self) {
        let is_done = |worker: &Worker| worker.running.is_some() && worker.desk.word.load(Acquire) == DONE;
        let Some(at) = self.workers.iter().position(is_done) else { return };
        let worker = &mut self.workers[at];
        let row = worker.running.take().into_iter().flatten().flatten();
        let mut ended = worker.desk.ended.try_lock().expect("a worker that is done does not look at its desk");
        // Of a row those rounds that were come to.
        self.over.extend(row.zip(&mut *ended).filter_map(|(job, ended)| Some((job, ended.take()?))));
        worker.desk.word.store(NOTHING, Relaxed);
        self.idle[worker.set].push(at);
    }

    /// Looks once more whose steps are not over; gives a round that was seen more often than `looks_max` says, if there is one, and gives its worker up: it runs when nobody else
    /// wants to, and ends behind its step. Another one is given by the next look.
    pub fn give_up_endless(&mut self, looks_max: impl Fn(OperatorId) -> u32) -> Option<JobId> {
        for worker in &mut self.workers {
            let Some(row) = worker.running else { continue };
            let at = worker.desk.at.load(Relaxed);
            worker.looks = if worker.looks.1 == at { (worker.looks.0 + 1, at) } else { (1, at) };
            let step = row.into_iter().flatten().find(|job| word_of(job.operator) == at).unwrap_or_else(|| first(&row));
            let is_over = || worker.desk.word.compare_exchange(word_of(first(&row).operator), END, AcqRel, Acquire).is_err();
            if worker.looks.0 > looks_max(step.operator) && !is_over() {
                worker.running = None;
                if let Some(thread) = worker.desk.thread.get() {
                    self.realtime.demote(*thread);
                }
                return Some(step);
            }
        }
        None
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.desk.word.store(END, Release);
            worker.thread.unpark();
        }
    }
}

fn word_of(operator: OperatorId) -> u32 {
    operator.index() as u32 + 1
}

/// The round that a row begins with.
fn first(row: &Row) -> JobId {
    row[0].expect("a row has a first round")
}

/// What a worker does until it is told to end.
fn work(desk: &Desk, plant: &Plant, counts: &GraphCounts, shard: &Inbox) {
    loop {
        match desk.word.load(Acquire) {
            END => return,
            NOTHING | DONE => thread::park(),
            word => {
                *desk.ended.try_lock().expect("the shard waits for the word") =
                    run_row(desk, plant, counts, OperatorId::of(word as usize - 1));
                // That it is to end may have been said meanwhile, and stays.
                if desk.word.compare_exchange(word, DONE, AcqRel, Acquire).is_ok() {
                    shard.wake();
                }
            }
        }
    }
}

/// Runs a round and those that follow it, as long as there are results and it is not too late.
fn run_row(desk: &Desk, plant: &Plant, counts: &GraphCounts, first: OperatorId) -> [Option<Ended>; CHAIN_MAX] {
    let mut row = [const { None }; CHAIN_MAX];
    let mut next = Some(Following { operator: first, too_late: None });
    for place in &mut row {
        let Some(Following { operator, too_late }) = next.take() else { break };
        if desk.word.load(Relaxed) == END {
            break;
        }
        if too_late.is_some_and(|too_late| Instant::now() >= too_late) {
            *place = Some(Ended::TooLate);
            break;
        }
        desk.at.store(word_of(operator), Relaxed);
        let begun = Instant::now();
        let Ran { ended, following, restarts } = plant.run(operator);
        counts.operator(operator).lasted(begun.elapsed());
        counts.operator(operator).restarts.fetch_add(restarts, Relaxed);
        (*place, next) = (Some(ended), following);
    }
    row
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bodkin_broker::{
        Incarnation, PublisherId, Sequence,
        graph::{
            Emission, SupplierId,
            machine::{Action, Arrival, Machine, Policy},
        },
    };
    use bodkin_operators::Keys;

    use super::*;
    use crate::{graph::parse, shard::Shard};

    /// Far longer than a busy machine keeps a thread waiting.
    const VALID_NS: u64 = 100_000_000_000;
    const OPERATORS: usize = 3;

    /// What becomes of an event's rounds on a graph of three means in a row, if it is taken at this time behind its creation.
    fn ended(late_ns: u64) -> Vec<(usize, Ended)> {
        let mut text =
            "[graph]\nname = \"row\"\npreemption = true\n[[supplier]]\ntopic = \"in\"\nshape = \"f64\"\nperiod_s = 10\nvalidity_s = 100\n"
                .to_owned();
        for (at, from) in ["in", "o0", "o1"].into_iter().enumerate() {
            text +=
                &format!("[[operator]]\nname = \"o{at}\"\nkind = \"moving_average\"\ninputs = [\"{from}\"]\nwindow = 1\ncost_ms = 100\n");
        }
        text += "[[output]]\ntopic = \"out\"\nfrom = \"o2\"\n";
        let file = parse(&text).expect("it is a graph");
        let mut machine = Machine::new(file.graph.clone(), Policy { cores: 1, is_preemptive: true, replaces_queued: true });
        let operators = file.recipes.iter().map(|recipe| recipe.make(Some(&Keys::default())).expect("it needs no key").operator);
        let plant = Arc::new(Plant::new(&machine, &file.forms, operators));
        let (_, inbox) = Shard::inbox().expect("there is an inbox");
        let counts = Arc::new(GraphCounts::of(OPERATORS));
        let mut crew =
            Crew::start(&file.graph, (&file.workers, 1), &plant, &counts, &Realtime::preempting(), &inbox).expect("threads start");
        let (supplier, publisher, incarnation, sequence) = (SupplierId::of(0), PublisherId(1), Incarnation(1), Sequence(1));
        let arrival = Arrival { supplier, publisher, incarnation, sequence, created_ns: VALID_NS, bytes: 8 };
        let mut actions = Vec::new();
        let slot = machine.arrive(VALID_NS, arrival, &mut actions).expect("it is taken");
        plant.fill(slot, &7.0_f64.to_le_bytes());
        let [Action::Run(job)] = *actions else { panic!("one row begins: {actions:?}") };
        let row = plant.prepare(&machine, job, VALID_NS + late_ns);
        assert_eq!(row.iter().flatten().count(), OPERATORS);
        crew.run(Level::new(0).expect("there is one"), row);
        let until = Instant::now() + Duration::from_secs(60);
        while crew.workers.iter().any(|worker| worker.desk.word.load(Acquire) != DONE) {
            assert!(Instant::now() < until, "the worker is not done");
            thread::yield_now();
        }
        let mut ended = Vec::new();
        while let Some((job, outcome)) = crew.take_ended() {
            assert_eq!(crew.is_at_rest(), crew.over.is_empty());
            ended.push((job.operator.index(), outcome));
        }
        assert!(crew.is_at_rest());
        for (operator, outcome) in &ended {
            let lasted = counts.operators[*operator].busy_ns.load(Relaxed);
            assert_eq!(lasted > 0, !matches!(outcome, Ended::TooLate), "what a round has lasted is noted: {operator}");
        }
        ended
    }

    #[test]
    fn a_worker_runs_a_row_and_tells_of_each_round() {
        let ended = ended(0);
        let all: Vec<usize> = ended.iter().map(|(operator, _)| *operator).collect();
        assert_eq!(all, [0, 1, 2]);
        assert!(ended.iter().all(|(_, ended)| matches!(ended, Ended::Done(Emission::Emit, 8))), "{ended:?}");
    }

    #[test]
    fn a_worker_does_not_go_on_with_what_is_too_late() {
        // o1 and o2 take the last 0.2 s of its validity.
        let ended = ended(VALID_NS - 200_000_000);
        assert!(matches!(*ended, [(0, Ended::Done(Emission::Emit, 8)), (1, Ended::TooLate)]), "{ended:?}");
    }
}
