//! The way of an event from its publishers through the broker's shard to its subscribers, as a net.
//!
//! Three threads share the processors: that of all publishers, the shard, that of all subscribers. A thread that sleeps is woken by what comes to
//! it: where a processor is idle, that has to wake up first; where none is, the thread waits for the next free one. Either way it is held up now and
//! then by other work of the machine. It keeps its processor until it has nothing to do. The shard works in turns: it reads all requests that are there, serves them, writes once to each subscriber whatever the number
//! of events, writes the event log, and then answers the publishers. A subscriber's read brings all events that its stream has.

use serde::{Deserialize, Serialize};

use super::{
    costs::{Costs, Wake, Work},
    draft::{Around, Draft},
};
use crate::{
    distribution::{Distribution, DistributionError},
    net::{Net, Servers},
    simulate::{Tag, TagStart},
};

/// Most subscribers of a net: each has three places of its own.
pub const EVENT_PATH_SUBSCRIBERS_MAX: u32 = 256;

/// Priorities of immediate transitions, the most urgent first: work is taken in, phases end, threads are woken, threads sleep, threads get
/// processors. Who is woken is so before the one who woke it sleeps.
const TAKE_IN: u32 = 9;
const PHASE_ENDS: u32 = 7;
const WAKE: u32 = 6;
const SLEEP: u32 = 5;
const PLACE: u32 = 3;
/// The kernel puts behind who has worked most, and that is the broker.
const PLACE_BROKER: u32 = 2;

/// What is to be predicted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// Processors that all share; 1 or more.
    pub cores: u32,
    /// Publishers; 1 or more.
    pub publishers: u32,
    /// Subscribers, each of which hears everything; 1 to [`EVENT_PATH_SUBSCRIBERS_MAX`].
    pub subscribers: u32,
    /// Events a second of each publisher; none: the next goes when the last is answered.
    pub rate_per_s: Option<f64>,
}

/// How a thread comes to run.
struct Scheduling {
    /// Until an idle processor has it.
    wake: Wake,
    /// What it works before it goes on.
    switch: Work,
    /// Of those that wait for a processor the highest gets the next.
    priority: u32,
}

/// A thread that sleeps while it has nothing to do.
struct Thread {
    name: &'static str,
    asleep: usize,
    running: usize,
}

impl Thread {
    /// A thread that runs while `work` holds something.
    fn new(draft: &mut Draft, name: &'static str, cores: usize, work: usize, how: Scheduling) -> Result<Self, DistributionError> {
        let Scheduling { wake, switch, priority } = how;
        let [asleep, waking, ready, switching, running] = ["asleep", "waking", "ready", "switching", "running"]
            .map(|state| draft.place(format!("{name} {state}"), u32::from(state == "asleep")));
        draft.immediate(format!("{name} is woken"), WAKE, Around::from(&[asleep]).to(&[waking]).while_in(&[work, cores]));
        // Where none is idle it waits for the next free one, or, now and then, for other work as well.
        let queued = |place: usize| Around::from(&[asleep]).to(&[place]).while_in(&[work]).without(&[cores]);
        if wake.held_up_busy > 0.0 {
            let held_up = draft.place(format!("{name} held up"), 0);
            draft.chance(format!("{name} is held up"), WAKE, wake.held_up_busy, queued(held_up));
            let law = Distribution::Erlang(wake.held_up_law()?);
            draft.timed(format!("{name} is let go"), &law, Servers::SINGLE, Around::from(&[held_up]).to(&[ready]));
        }
        draft.chance(format!("{name} is queued"), WAKE, 1.0 - wake.held_up_busy, queued(ready));
        draft.timed(format!("{name} wakes up"), &wake.law()?, Servers::SINGLE, Around::from(&[waking]).to(&[ready]));
        draft.immediate(format!("{name} gets a core"), priority, Around::from(&[ready, cores]).to(&[switching]));
        draft.timed(format!("{name} comes to run"), &switch.law()?, Servers::SINGLE, Around::from(&[switching]).to(&[running]));
        Ok(Self { name, asleep, running })
    }

    /// It sleeps while it is in `phase` and none of `work` holds anything.
    fn sleeps(&self, draft: &mut Draft, cores: usize, phase: Option<usize>, work: &[usize]) {
        let around = Around::from(&[self.running]).to(&[self.asleep, cores]).while_in(phase.as_slice()).without(work);
        draft.immediate(format!("{} sleeps", self.name), SLEEP, around);
    }
}

/// The net of a deployment, and whose times in it are measured.
#[derive(Clone, Debug)]
pub struct EventPath {
    /// The net.
    pub net: Net,
    /// From a publisher's send to a subscriber that has it.
    pub delivered: Tag,
    /// From a publisher's send to its answer.
    pub answered: Tag,
}

/// The net of a deployment.
///
/// # Errors
/// A cost that is none.
pub fn event_path(costs: &Costs, deployment: &Deployment) -> Result<EventPath, DistributionError> {
    let mut draft = Draft::default();
    let cores = draft.place("cores", deployment.cores);
    let inbox = draft.place("inbox", 0);
    let answers = draft.place("answers", if deployment.rate_per_s.is_some() { 0 } else { deployment.publishers });
    let (from, answered) = publishers(&mut draft, costs, deployment, cores, inbox, answers)?;
    let streams = streams(&mut draft, deployment.subscribers);
    broker(&mut draft, costs, cores, inbox, answers, &streams)?;
    let heard = subscribers(&mut draft, costs, cores, &streams)?;
    let name = format!("{} publishers, {} subscribers, {} cores", deployment.publishers, deployment.subscribers, deployment.cores);
    let net = draft.net(name).expect("the parts of the net are right whatever their number");
    Ok(EventPath { net, delivered: Tag::new(from, heard), answered: Tag::new(from, answered) })
}

/// The thread of the publishers; gives where latencies begin, and the place where an answer has been taken.
fn publishers(
    draft: &mut Draft,
    costs: &Costs,
    deployment: &Deployment,
    cores: usize,
    inbox: usize,
    answers: usize,
) -> Result<(TagStart, usize), DistributionError> {
    let due = draft.place("due", 0);
    let work = if deployment.rate_per_s.is_some() { due } else { answers };
    let how = Scheduling { wake: costs.wake, switch: costs.publisher_switch, priority: PLACE };
    let thread = Thread::new(draft, "publishers", cores, work, how)?;
    let stamped = draft.place("stamped", 0);
    let take = Around::from(&[work]).to(&[stamped]).while_in(&[thread.running]).without(&[stamped]);
    draft.timed("take", &costs.take.law()?, Servers::SINGLE, take);
    let publish = Around::from(&[stamped]).to(&[inbox]).while_in(&[thread.running]);
    let publish = draft.timed("publish", &costs.publish.law()?, Servers::SINGLE, publish);
    thread.sleeps(draft, cores, None, &[work, stamped]);
    let Some(rate_per_s) = deployment.rate_per_s else { return Ok((TagStart::Service(publish), stamped)) };
    let period_us = 1e6 / (rate_per_s * f64::from(deployment.publishers));
    draft.timed(
        "publisher's clock",
        &Work { mean_us: period_us, squared_variation: 0.0 }.law()?,
        Servers::SINGLE,
        Around::default().to(&[due]),
    );
    draft.immediate("answer is read", TAKE_IN, Around::from(&[answers]));
    Ok((TagStart::Arrival(due), answers))
}

/// What the broker and the subscribers share: of each subscriber what is in its queue and what is in its stream, and what is in all streams.
struct Streams {
    queued: Vec<usize>,
    written: Vec<usize>,
    unread: usize,
}

fn streams(draft: &mut Draft, subscribers: u32) -> Streams {
    let mut places = |what: &str| (1..=subscribers).map(|number| draft.place(format!("{what} {number}"), 0)).collect();
    let (queued, written) = (places("queue"), places("stream"));
    Streams { queued, written, unread: draft.place("unread", 0) }
}

/// The shard and its turns.
fn broker(
    draft: &mut Draft,
    costs: &Costs,
    cores: usize,
    inbox: usize,
    answers: usize,
    streams: &Streams,
) -> Result<(), DistributionError> {
    // What its thread works to come to run is in every turn.
    let how = Scheduling { wake: costs.wake, switch: Work::default(), priority: PLACE_BROKER };
    let thread = Thread::new(draft, "broker", cores, inbox, how)?;
    let phase = |draft: &mut Draft, name: &str| draft.place(format!("broker {name}"), u32::from(name == "between turns"));
    let between = phase(draft, "between turns");
    let [polling, gathering, receiving, executing, logging, answering] =
        ["polls", "gathers", "receives", "executes", "logs", "answers"].map(|name| phase(draft, name));
    let [batch, requests, served] = ["batch", "requests", "served"].map(|name| draft.place(name, 0));

    draft.immediate("turn begins", PHASE_ENDS, Around::from(&[between]).to(&[polling]).while_in(&[thread.running, inbox]));
    draft.timed("poll", &costs.turn.law()?, Servers::SINGLE, Around::from(&[polling]).to(&[gathering]));
    draft.immediate("gather", TAKE_IN, Around::from(&[inbox]).to(&[batch]).while_in(&[gathering]));
    draft.immediate("all gathered", PHASE_ENDS, Around::from(&[gathering]).to(&[receiving]));
    draft.timed("receive", &costs.receive.law()?, Servers::SINGLE, Around::from(&[batch]).to(&[requests]).while_in(&[receiving]));
    draft.immediate("all received", PHASE_ENDS, Around::from(&[receiving]).to(&[executing]).without(&[batch]));

    let each_us = costs.execute_each_us * streams.queued.len() as f64;
    let execute = Work { mean_us: costs.execute.mean_us + each_us, ..costs.execute };
    let around = Around::from(&[requests]).to(&[served]).to(&streams.queued).while_in(&[executing]);
    draft.timed("execute", &execute.law()?, Servers::SINGLE, around);

    let write = costs.write.law()?;
    let mut writing = draft.place("broker writes 1", 0);
    draft.immediate("all executed", PHASE_ENDS, Around::from(&[executing]).to(&[writing]).without(&[requests]));
    for (index, (queued, written)) in streams.queued.iter().zip(&streams.written).enumerate() {
        let number = index + 1;
        let handing = draft.place(format!("broker hands over {number}"), 0);
        draft.timed(format!("write {number}"), &write, Servers::SINGLE, Around::from(&[writing]).to(&[handing]));
        let over = Around::from(&[*queued]).to(&[*written, streams.unread]).while_in(&[handing]);
        draft.immediate(format!("hand over {number}"), TAKE_IN, over);
        let is_last = number == streams.queued.len();
        writing = if is_last { logging } else { draft.place(format!("broker writes {}", number + 1), 0) };
        draft.immediate(format!("written {number}"), PHASE_ENDS, Around::from(&[handing]).to(&[writing]).without(&[*queued]));
    }
    draft.timed("log", &costs.log.law()?, Servers::SINGLE, Around::from(&[logging]).to(&[answering]));
    draft.timed("answer", &costs.answer.law()?, Servers::SINGLE, Around::from(&[served]).to(&[answers]).while_in(&[answering]));
    draft.immediate("all answered", PHASE_ENDS, Around::from(&[answering]).to(&[between]).without(&[served]));
    thread.sleeps(draft, cores, Some(between), &[inbox]);
    Ok(())
}

/// The thread of the subscribers; gives the place where events have been heard.
fn subscribers(draft: &mut Draft, costs: &Costs, cores: usize, streams: &Streams) -> Result<usize, DistributionError> {
    let how = Scheduling { wake: costs.subscriber_wake, switch: costs.subscriber_switch, priority: PLACE };
    let thread = Thread::new(draft, "subscribers", cores, streams.unread, how)?;
    let looking = draft.place("subscribers look", 1);
    let noting = draft.place("subscribers note", 0);
    let heard = draft.place("heard", 0);
    let read = costs.read.law()?;
    for (index, written) in streams.written.iter().enumerate() {
        let number = index + 1;
        let [reading, emptying] = ["reads", "empties"].map(|what| draft.place(format!("subscriber {number} {what} its stream"), 0));
        let begins = Around::from(&[looking]).to(&[reading]).while_in(&[thread.running, *written]);
        draft.immediate(format!("stream {number} is ready"), PHASE_ENDS, begins);
        draft.timed(format!("read {number}"), &read, Servers::SINGLE, Around::from(&[reading]).to(&[emptying]));
        let hear = Around::from(&[*written, streams.unread]).to(&[heard]).while_in(&[emptying]);
        draft.immediate(format!("hear {number}"), TAKE_IN, hear);
        draft.immediate(format!("stream {number} is empty"), PHASE_ENDS, Around::from(&[emptying]).to(&[noting]).without(&[*written]));
    }
    draft.timed("note", &costs.note.law()?, Servers::SINGLE, Around::from(&[heard]).while_in(&[noting]));
    draft.immediate("all noted", PHASE_ENDS, Around::from(&[noting]).to(&[looking]).without(&[heard]));
    thread.sleeps(draft, cores, Some(looking), &[streams.unread]);
    Ok(heard)
}
