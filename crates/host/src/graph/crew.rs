//! The threads that run a graph's operators: as many for each level as the graph has cores, where the more urgent ones stop the others, and else as many in all.
//!
//! A worker has a desk with one word on it: nothing, the operator whose round it is to run, or that it is done. Who hands work over writes the word and wakes the thread; nothing is locked
//! or allocated.

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    thread::{self, Thread},
};

use bodkin_broker::{
    graph::{Graph, OperatorId, machine::JobId, response::Workers},
    topic::Level,
};

use super::plant::{Ended, Plant};
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
    /// What became of the round, once it is done. Only one of the two looks at a time.
    ended: Mutex<Option<Ended>>,
    thread: OnceLock<ThreadId>,
}

/// A worker as the shard sees it.
struct Worker {
    desk: Arc<Desk>,
    thread: Thread,
    set: usize,
    running: Option<JobId>,
    /// How often the shard has looked since it runs.
    looks: u32,
}

/// The workers of a graph. They end when this is dropped, each behind its step.
pub struct Crew {
    workers: Vec<Worker>,
    /// Those of each set that have nothing to do.
    idle: Vec<Vec<usize>>,
    /// The set of each level.
    sets: [usize; Level::COUNT as usize],
    realtime: Arc<Realtime>,
}

impl Crew {
    /// Starts the threads, which wake the shard by its inbox.
    pub fn start(graph: &Graph, workers: &Workers, plant: &Arc<Plant>, realtime: &Arc<Realtime>, inbox: &Arc<Inbox>) -> io::Result<Self> {
        let mut levels: Vec<Level> = graph.order().iter().map(|operator| graph.level(*operator)).collect();
        levels.sort_unstable();
        levels.dedup();
        if !workers.is_preemptive {
            levels.truncate(1);
        }
        let mut sets = [0; Level::COUNT as usize];
        for (set, level) in levels.iter().enumerate() {
            sets[usize::from(level.get())] = set;
        }
        let mut crew = Self { workers: Vec::new(), idle: vec![Vec::new(); levels.len()], sets, realtime: realtime.clone() };
        for (set, level) in levels.iter().enumerate() {
            let rank = workers.is_preemptive.then_some(Rank::Operator(*level));
            for number in 0..workers.cores.get() {
                let desk = Arc::new(Desk { word: AtomicU32::new(NOTHING), ended: Mutex::new(None), thread: OnceLock::new() });
                let (own, plant, realtime, inbox) = (desk.clone(), plant.clone(), realtime.clone(), inbox.clone());
                let run = move || {
                    // Whoever gives it up finds it here.
                    let _ = own.thread.set(ThreadId::current());
                    let _membership = rank.map(|rank| realtime.enlist(rank));
                    work(&own, &plant, &inbox);
                };
                let spawned = thread::Builder::new().name(format!("operator-{}-{number}", level.get())).spawn(run)?;
                crew.idle[set].push(crew.workers.len());
                crew.workers.push(Worker { desk, thread: spawned.thread().clone(), set, running: None, looks: 0 });
            }
        }
        Ok(crew)
    }

    /// Lets a worker of the operator's level run its round, which is prepared.
    pub fn run(&mut self, level: Level, job: JobId) {
        let set = self.sets[usize::from(level.get())];
        let at = self.idle[set].pop().expect("a round begins only where a worker is free");
        let worker = &mut self.workers[at];
        (worker.running, worker.looks) = (Some(job), 0);
        worker.desk.word.store(word_of(job.operator), Release);
        worker.thread.unpark();
    }

    /// Whether no round runs.
    pub fn is_at_rest(&self) -> bool {
        self.workers.iter().all(|worker| worker.running.is_none())
    }

    /// A round that is over, if there is one.
    pub fn take_ended(&mut self) -> Option<(JobId, Ended)> {
        let is_done = |worker: &Worker| worker.running.is_some() && worker.desk.word.load(Acquire) == DONE;
        let at = self.workers.iter().position(is_done)?;
        let worker = &mut self.workers[at];
        let ended = worker.desk.ended.try_lock().expect("a worker that is done does not look at its desk").take();
        worker.desk.word.store(NOTHING, Relaxed);
        self.idle[worker.set].push(at);
        Some((worker.running.take().expect("it was just seen"), ended.expect("who is done has said what became of it")))
    }

    /// Looks once more whose steps are not over; gives a round that was seen more often than `looks_max` says, if there is one, and gives its worker up: it runs when nobody else
    /// wants to, and ends behind its step. Another one is given by the next look.
    pub fn give_up_endless(&mut self, looks_max: impl Fn(OperatorId) -> u32) -> Option<JobId> {
        for worker in &mut self.workers {
            let Some(job) = worker.running else { continue };
            worker.looks += 1;
            let is_over = || worker.desk.word.compare_exchange(word_of(job.operator), END, AcqRel, Acquire).is_err();
            if worker.looks > looks_max(job.operator) && !is_over() {
                worker.running = None;
                if let Some(thread) = worker.desk.thread.get() {
                    self.realtime.demote(*thread);
                }
                return Some(job);
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

/// What a worker does until it is told to end.
fn work(desk: &Desk, plant: &Plant, shard: &Inbox) {
    loop {
        match desk.word.load(Acquire) {
            END => return,
            NOTHING | DONE => thread::park(),
            word => {
                let ended = plant.run(OperatorId::of(word as usize - 1));
                *desk.ended.try_lock().expect("the shard waits for the word") = Some(ended);
                // That it is to end may have been said meanwhile, and stays.
                if desk.word.compare_exchange(word, DONE, AcqRel, Acquire).is_ok() {
                    shard.wake();
                }
            }
        }
    }
}
