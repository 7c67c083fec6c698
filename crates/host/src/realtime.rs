//! Which threads the system runs first, on which cores, and whether memory stays in memory.
//!
//! Whether real-time scheduling (`SCHED_FIFO`) wakes threads sooner depends on the machine. So it is measured in the background, at the start, and where the
//! configuration leaves the choice, the better one is taken. Threads say that they belong to the data plane ([`Realtime::enlist`]) whenever they begin; what
//! was chosen holds for those that are there and those that come. Everything else stays an ordinary thread.

mod code_pages;
mod decision;
mod kernel;
mod wakeup;

use std::{
    io,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use bodkin_broker::topic::Level;
use serde::{Deserialize, Serialize, Serializer};

pub use self::{
    code_pages::map_code_by_page,
    kernel::{Rights, ThreadId, TimeOfDay, free_memory_bytes, keep_large_tables_apart, real_time_percent, release_free_memory},
    wakeup::{Comparison, Figures, WakeUps},
};
use self::{
    decision::{Decision, beforehand, measured},
    kernel::Policy,
};

/// Has the calling thread, which works for nobody who waits, run behind the others of its machine.
///
/// # Errors
/// The system refuses.
pub fn stand_behind() -> io::Result<()> {
    ThreadId::current().schedule(Policy::Behind)
}

/// How long wake-ups are measured.
pub const MEASURE: Duration = Duration::from_millis(1_500);

/// What to do where real-time threads are denied.
const REMEDY: &str = "grant CAP_SYS_NICE or RLIMIT_RTPRIO of 20 (systemd: LimitRTPRIO=20), keep platform.load_max_percent at or below what kernel.sched_rt_runtime_us \
    leaves, or say scheduling = \"default\" if ordinary threads will do";

/// What the configuration says of scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// Real-time threads where they are allowed and measured to be woken sooner; shards are ordinary ones in front of all others then, where that is allowed.
    Auto,
    /// Real-time threads wherever they are allowed.
    Fifo,
    /// Ordinary threads; nothing is measured.
    #[default]
    Default,
}

impl FromStr for Scheduling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "fifo" => Ok(Self::Fifo),
            "default" => Ok(Self::Default),
            other => Err(format!("expected auto, fifo or default, and got {other:?}")),
        }
    }
}

/// What the configuration says of threads and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealtimeConfig {
    /// Who runs first.
    pub scheduling: Scheduling,
    /// Cores for the threads of the data plane; none: any.
    pub pin_cores: Vec<usize>,
    /// Keep all memory in memory, where that is allowed without a limit.
    pub lock_memory: bool,
    /// Per cent of a core that admitted topics may ask for, and of each that workers of graphs may use; 0: as much as the kernel lets real-time threads have.
    pub load_max_percent: u32,
}

/// A core that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pin_cores has {asked}, and this process may run on the cores {allowed:?} only")]
pub struct NoCore {
    asked: usize,
    allowed: Vec<usize>,
}

/// What a thread of the data plane does. Detectors go in front of shards, these in front of operators, which go by their level, and all in front of ordinary threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Runs operators of a level of a graph, of which more urgent ones stop less urgent ones.
    Operator(Level),
    /// Takes and hands over events.
    Shard,
    /// Sees whether others still run, and keeps the right to lead.
    Detector,
}

impl Rank {
    /// The highest priority of a real-time thread of ours.
    pub const HIGHEST: u8 = 20;

    /// Its priority as a real-time thread. Those of the kernel's own threads for interrupts begin at 50.
    fn priority(self) -> u8 {
        match self {
            Self::Operator(level) => 9 - level.get(),
            Self::Shard => 10,
            Self::Detector => Self::HIGHEST,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Operator(_) => "operator",
            Self::Shard => "shard",
            Self::Detector => "detector",
        }
    }
}

impl Serialize for Rank {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How the threads of the data plane are scheduled, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingView {
    asked: Scheduling,
    /// `fifo`, `default`, or `pending` while it is being measured.
    policy: &'static str,
    why: String,
    wake_ups: Option<Comparison>,
    real_time_percent: u32,
    threads: Vec<ThreadView>,
    memory_locked: bool,
    memory: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadView {
    name: String,
    rank: Rank,
    /// 0 of an ordinary thread.
    priority: u8,
    cores: Vec<usize>,
    /// Whether it goes in front of other ordinary threads.
    preferred: bool,
    /// What the system has refused.
    refused: Option<String>,
}

impl ThreadView {
    fn policy(&self) -> Policy {
        match self.priority {
            0 if self.preferred => Policy::Preferred,
            0 => Policy::Default,
            priority => Policy::Fifo(priority),
        }
    }
}

#[derive(Debug)]
struct Enlisted {
    id: ThreadId,
    view: ThreadView,
}

#[derive(Debug, Default)]
struct State {
    /// `None` while it is being measured.
    decision: Option<Decision>,
    /// Whether it is: then nothing forbids real-time threads.
    is_measured: bool,
    threads: Vec<Enlisted>,
    memory_locked: bool,
    memory: String,
}

/// The threads of the data plane, and how they are scheduled.
#[derive(Debug, Default)]
pub struct Realtime {
    config: RealtimeConfig,
    state: Mutex<State>,
}

/// A thread that was enlisted; it is no more when this is dropped, which the thread does at its end.
#[derive(Debug)]
pub struct Membership {
    realtime: Arc<Realtime>,
    id: ThreadId,
}

impl Realtime {
    /// Ordinary threads, on any core: nothing is asked of the system.
    pub fn ordinary() -> Arc<Self> {
        let decision =
            Some(Decision { is_fifo: false, prefers: false, why: "nobody has asked for real-time threads".to_owned(), measured: None });
        Arc::new(Self { config: RealtimeConfig::default(), state: Mutex::new(State { decision, ..State::default() }) })
    }

    /// Real-time threads of which the more urgent ones stop the others, wherever the system lets them be.
    #[cfg(test)]
    pub(crate) fn preempting() -> Arc<Self> {
        let decision = Some(Decision { is_fifo: true, prefers: false, why: "a test needs them".to_owned(), measured: None });
        Arc::new(Self { config: RealtimeConfig::default(), state: Mutex::new(State { decision, ..State::default() }) })
    }

    /// Carries out what is configured; what has to be measured is, on a thread of its own, while the process goes on.
    pub fn start(config: RealtimeConfig) -> Result<Arc<Self>, NoCore> {
        let allowed = kernel::cores().unwrap_or_default();
        if let Some(asked) = config.pin_cores.iter().find(|core| !allowed.contains(core)) {
            return Err(NoCore { asked: *asked, allowed });
        }
        let rights = Rights::of_this_process();
        let (memory_locked, memory) = if config.lock_memory { lock_memory(rights) } else { (false, "lock_memory is false".to_owned()) };
        tracing::info!(memory_locked, memory, "locked memory");
        let decision = beforehand(&config, rights, real_time_percent());
        let (is_open, scheduling) = (decision.is_none(), config.scheduling);
        let realtime = Arc::new(Self {
            config,
            state: Mutex::new(State { memory_locked, memory, is_measured: decision.is_none(), ..State::default() }),
        });
        if let Some(decision) = decision {
            realtime.decide(decision);
        }
        if is_open {
            let deciding = realtime.clone();
            let decide = move || deciding.decide(measured(scheduling, measure(MEASURE)));
            if let Err(error) = thread::Builder::new().name("scheduling".into()).spawn(decide) {
                let why = format!("wake-ups could not be measured: {error}");
                realtime.decide(Decision { is_fifo: false, prefers: false, why, measured: None });
            }
        }
        Ok(realtime)
    }

    /// Whether it is known how threads are scheduled.
    pub fn is_decided(&self) -> bool {
        self.lock().decision.is_some()
    }

    /// The calling thread belongs to the data plane.
    pub fn enlist(self: &Arc<Self>, rank: Rank) -> Membership {
        let id = ThreadId::current();
        let name = thread::current().name().unwrap_or_default().to_owned();
        let mut state = self.lock();
        let number = state.threads.iter().filter(|enlisted| enlisted.view.rank == rank).count();
        let cores = match (rank, &self.config.pin_cores[..]) {
            (_, []) => Vec::new(),
            (Rank::Shard, cores) => vec![cores[number % cores.len()]],
            (Rank::Detector | Rank::Operator(_), cores) => cores.to_vec(),
        };
        let pinned = if cores.is_empty() { Ok(()) } else { id.pin(&cores) };
        let refused = pinned.err().map(|error| refusal(&name, &error));
        state.threads.push(Enlisted { id, view: ThreadView { name, rank, priority: 0, preferred: false, cores, refused } });
        state.schedule();
        drop(state);
        Membership { realtime: self.clone(), id }
    }

    /// Whether operators of different levels are real-time threads, of which the more urgent ones stop the others.
    pub fn stops_less_urgent(&self) -> bool {
        self.lock().decision.as_ref().is_some_and(|decision| decision.is_fifo && !decision.prefers)
    }

    /// Per cent of each core that real-time threads of this process may use: what the kernel allows all of them together, or less where the configuration leaves some to others.
    pub fn share_percent(&self) -> u32 {
        match self.config.load_max_percent {
            0 => real_time_percent(),
            percent => percent.min(real_time_percent()),
        }
    }

    /// Has a thread run only when nobody else wants to; it does not belong to the data plane any more.
    pub fn demote(&self, thread: ThreadId) {
        self.lock().threads.retain(|enlisted| enlisted.id != thread);
        if let Err(error) = thread.schedule(Policy::Idle) {
            tracing::warn!(%error, "the system refuses to let a thread that does not end run behind all others");
        }
    }

    /// What is told of it.
    pub fn view(&self) -> SchedulingView {
        let state = self.lock();
        let decision = state.decision.clone();
        SchedulingView {
            asked: self.config.scheduling,
            policy: decision.as_ref().map_or("pending", |decision| if decision.is_fifo { "fifo" } else { "default" }),
            why: decision.as_ref().map_or_else(|| "wake-ups are being measured".to_owned(), |decision| decision.why.clone()),
            wake_ups: decision.and_then(|decision| decision.measured),
            real_time_percent: real_time_percent(),
            threads: state.threads.iter().map(|enlisted| enlisted.view.clone()).collect(),
            memory_locked: state.memory_locked,
            memory: state.memory.clone(),
        }
    }

    fn decide(&self, decision: Decision) {
        let Decision { is_fifo, why, measured, .. } = &decision;
        if decision.denies(self.config.scheduling) {
            tracing::warn!(why, "the data plane has ordinary threads, which others can hold up: {REMEDY}");
        } else {
            tracing::info!(is_fifo, why, ?measured, "scheduling of the data plane");
        }
        let mut state = self.lock();
        state.decision = Some(decision);
        state.schedule();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A list and a decision, each whole wherever it is interrupted.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives the threads the policies that were decided.
    fn schedule(&mut self) {
        for Enlisted { id, view } in &mut self.threads {
            let policy = match &self.decision {
                Some(Decision { is_fifo: true, prefers: true, .. }) if view.rank == Rank::Shard => Policy::Preferred,
                // As real-time threads they would stop the shards.
                Some(Decision { is_fifo: true, prefers: true, .. }) if matches!(view.rank, Rank::Operator(_)) => Policy::Default,
                Some(Decision { is_fifo: true, .. }) => Policy::Fifo(view.rank.priority()),
                // A start is the busiest time of all, and a lease has to outlast it.
                None if self.is_measured && view.rank == Rank::Detector => Policy::Fifo(view.rank.priority()),
                Some(_) | None => Policy::Default,
            };
            if policy == view.policy() {
                continue;
            }
            match id.schedule(policy) {
                Ok(()) => (view.priority, view.preferred) = (policy.priority(), policy == Policy::Preferred),
                Err(error) => view.refused = Some(refusal(&view.name, &error)),
            }
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.realtime.lock().threads.retain(|enlisted| enlisted.id != self.id);
    }
}

fn refusal(name: &str, error: &io::Error) -> String {
    tracing::warn!(thread = name, %error, "the system refuses how a thread is to be scheduled");
    error.to_string()
}

/// Measures how late this machine wakes threads, for so long, under each policy that this process may use.
pub fn measure(window: Duration) -> io::Result<Comparison> {
    let priority = Rank::HIGHEST;
    Comparison::measure(window, Rights::of_this_process().may_schedule(priority).then_some(Policy::Fifo(priority)))
}

/// Whether memory is locked, and why.
fn lock_memory(rights: Rights) -> (bool, String) {
    if !rights.may_lock_memory() {
        return (false, "neither CAP_IPC_LOCK nor an unlimited RLIMIT_MEMLOCK is granted".to_owned());
    }
    match kernel::lock_memory() {
        Ok(()) => (true, "every page stays in memory once it is used".to_owned()),
        Err(error) => (false, format!("the system refuses: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(p99_us: u64) -> WakeUps {
        let figures = Figures { wake_ups: 1, p50_us: 0, p99_us, worst_us: p99_us };
        WakeUps { timer: figures, hand_over: figures }
    }

    #[test]
    fn threads_are_scheduled_when_it_is_decided_or_when_they_come_and_forgotten_when_they_end() {
        let config = RealtimeConfig { scheduling: Scheduling::Fifo, pin_cores: kernel::cores().unwrap(), ..RealtimeConfig::default() };
        let (core, count) = (config.pin_cores[0], config.pin_cores.len());
        let realtime = Arc::new(Realtime { config, ..Realtime::default() });
        let run = {
            let realtime = realtime.clone();
            move || {
                let _early = realtime.enlist(Rank::Detector);
                assert_eq!((realtime.view().policy, realtime.view().threads[0].priority), ("pending", 0));
                realtime.decide(measured(Scheduling::Fifo, Ok(Comparison { default: figures(1), fifo: Some(figures(2)) })));
                realtime.view()
            }
        };
        let view = thread::Builder::new().name("detector".into()).spawn(run).unwrap().join().unwrap();
        let detector = &view.threads[0];
        assert_eq!((view.policy, detector.name.as_str(), detector.cores.len()), ("fifo", "detector", count));
        match Rights::of_this_process().may_schedule(20) {
            true => assert_eq!((detector.priority, &detector.refused), (20, &None)),
            false => assert!(detector.priority == 0 && detector.refused.is_some()),
        }
        assert_eq!(realtime.view().threads, []);
        let late = realtime.clone();
        let view = thread::spawn(move || {
            let _late = late.enlist(Rank::Shard);
            late.view()
        });
        let view = view.join().unwrap();
        assert_eq!((view.threads[0].cores.clone(), view.threads[0].priority > 0), (vec![core], Rights::of_this_process().may_schedule(10)));
    }

    #[test]
    fn detectors_go_first_while_it_is_measured_and_a_decision_takes_that_back() {
        let may = Rights::of_this_process().may_schedule(Rank::HIGHEST);
        let state = Mutex::new(State { is_measured: true, ..State::default() });
        let realtime = Arc::new(Realtime { config: RealtimeConfig::default(), state });
        let priorities = thread::spawn(move || {
            let _members = [Rank::Detector, Rank::Shard].map(|rank| realtime.enlist(rank));
            let priorities = || realtime.view().threads.iter().map(|thread| thread.priority).collect::<Vec<_>>();
            let pending = priorities();
            realtime.decide(Decision { is_fifo: false, prefers: false, why: String::new(), measured: None });
            (pending, priorities())
        });
        let highest = if may { Rank::HIGHEST } else { 0 };
        assert_eq!(priorities.join().unwrap(), (vec![highest, 0], vec![0, 0]));
    }

    #[test]
    fn a_core_that_is_not_there_is_told() {
        let config = RealtimeConfig { pin_cores: vec![usize::MAX], ..RealtimeConfig::default() };
        let refused = Realtime::start(config).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("pin_cores has {}, and this process may run on", usize::MAX)), "{refused}");
    }
}
