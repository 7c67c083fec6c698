//! Lets the strikes of one fault happen, each with its begin and its end.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::json;

use super::fault::Fault;
use super::ledger::Excuse;
use super::load::command_line;
use super::member::EVENT_HANDLER_PORT;
use super::plan::{NODES, Strike};
use super::stand::{EVENT_TYPE, PUBLISHER, PUBLISHER_PORT, Stand};
use crate::crash::disk::Filler;
use crate::crash::ledger::Breach;
use crate::link::Link;
use crate::request;

/// Longest wait until a clone is refused, or the lane of one of two edges stops.
const CLONE_MAX: Duration = Duration::from_secs(40);
/// Longest wait until a node writes its log again after its disk was full.
const RESUMED_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What one fault has done.
#[derive(Default)]
pub struct Struck {
    /// What it explains.
    pub excuse: Excuse,
    /// Edges whose lane may stop, by index of the member.
    pub may_stop: BTreeSet<usize>,
    /// True if a node's start may be refused, for the database was away.
    pub hides_database: bool,
    /// What was broken while it struck.
    pub breaches: Vec<Breach>,
}

/// Lets the strikes begin and end, each at its time.
pub fn strike(stand: &mut Stand, strikes: &[Strike]) -> Struck {
    let mut struck = Struck::default();
    let mut steps: Vec<(Duration, &Strike, bool)> = Vec::new();
    for strike in strikes {
        explain(&mut struck, strike);
        steps.extend([(strike.after, strike, true), (strike.after + strike.lasts, strike, false)]);
    }
    // Of one strike with no duration the begin comes first.
    steps.sort_by_key(|(at, _, is_begin)| (*at, !is_begin));
    let (start, mut filler) = (Instant::now(), None);
    for (at, strike, is_begin) in steps {
        thread::sleep(at.saturating_sub(start.elapsed()));
        let done = if is_begin { begin(stand, strike, &mut filler) } else { end(stand, strike, &mut filler) };
        if let Err(error) = done {
            struck.breaches.push(Breach { expected: format!("{} passes", strike.fault.name()), came: format!("{error:#}") });
        }
    }
    struck
}

fn explain(struck: &mut Struck, Strike { fault, member, .. }: &Strike) {
    struck.hides_database |= fault.hides_database();
    match fault {
        Fault::RestoreNode | Fault::FullNode => drop(struck.excuse.may_lose.insert(*member)),
        Fault::RestoreEdge => {
            struck.excuse.may_lose.insert(*member);
            // The restored log lacks what was taken after the copy, and a batch without an answer may be there twice.
            struck.excuse.may_repeat.extend([*member, command_line(*member - NODES)]);
            struck.may_stop.insert(*member);
        }
        Fault::CloneEdge => {
            struck.excuse.may_repeat.insert(*member);
            struck.may_stop.insert(*member);
        }
        _ => {}
    }
}

fn begin(stand: &mut Stand, strike: &Strike, filler: &mut Option<Filler>) -> anyhow::Result<()> {
    let member = &mut stand.members[strike.member];
    match strike.fault {
        Fault::KillNode | Fault::KillEdge => member.kill(),
        Fault::StopNode | Fault::StopEdge => member.signal(Signal::SIGSTOP)?,
        Fault::RestartNode | Fault::RestartEdge => {
            member.stop()?;
            member.keep_copy()?;
        }
        Fault::RestoreNode | Fault::RestoreEdge => {
            member.stop()?;
            member.restore()?;
        }
        Fault::CutDatabase => database(stand, strike)?.cut(),
        Fault::StallDatabase => database(stand, strike)?.stall(),
        Fault::CutNode | Fault::CutEdge => member.nats.iter().for_each(Link::cut),
        Fault::StallNode | Fault::StallEdge => member.nats.iter().for_each(Link::stall),
        Fault::CrashDatabase => stand.postgres.crash()?,
        Fault::CrashNats => (0..stand.nats.addresses().len()).try_for_each(|server| stand.nats.kill(server))?,
        Fault::CloneNode => clone_node(stand, strike.member)?,
        Fault::CloneEdge => clone_edge(stand, strike.member)?,
        Fault::FullNode => *filler = Some(member.fill()?),
    }
    Ok(())
}

fn end(stand: &mut Stand, strike: &Strike, filler: &mut Option<Filler>) -> anyhow::Result<()> {
    let member = &mut stand.members[strike.member];
    match strike.fault {
        Fault::KillNode | Fault::KillEdge | Fault::RestartNode | Fault::RestartEdge | Fault::RestoreNode | Fault::RestoreEdge => {
            member.start()?;
        }
        Fault::StopNode | Fault::StopEdge => member.signal(Signal::SIGCONT)?,
        Fault::CutDatabase | Fault::StallDatabase => database(stand, strike)?.mend(),
        Fault::CutNode | Fault::CutEdge | Fault::StallNode | Fault::StallEdge => member.nats.iter().for_each(Link::mend),
        Fault::CrashDatabase => stand.postgres.begin()?,
        Fault::CrashNats => (0..stand.nats.addresses().len()).try_for_each(|server| stand.nats.revive(server))?,
        Fault::CloneNode => {}
        // Commands come to the copy until it ends, and to the original from its next start on.
        Fault::CloneEdge => {
            member.stop()?;
            member.start()?;
        }
        Fault::FullNode => {
            *filler = None;
            // Until its log is written again, a node answers for events that the log does not keep.
            let begin = Instant::now();
            while member.metrics().is_none_or(|metrics| !metrics.lines().any(|line| line == "bodkin_event_log_suspended 0")) {
                ensure!(begin.elapsed() < RESUMED_MAX, "{} does not write its log again within {} s", member.name, RESUMED_MAX.as_secs());
                thread::sleep(LOOK_EVERY);
            }
        }
    }
    Ok(())
}

fn database<'s>(stand: &'s Stand, strike: &Strike) -> anyhow::Result<&'s Link> {
    stand.members[strike.member].database.as_ref().context("an edge has no link to the database")
}

/// Starts a copy of a running node, which has to be refused with both incarnations.
fn clone_node(stand: &Stand, index: usize) -> anyhow::Result<()> {
    let mut clone = stand.clone_of(&stand.members[index])?;
    clone.start()?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = clone.ended() {
            break status;
        }
        ensure!(begin.elapsed() < CLONE_MAX, "a copy of {} runs for {} s", stand.members[index].name, CLONE_MAX.as_secs());
        thread::sleep(LOOK_EVERY);
    };
    let words = clone.last_words();
    ensure!(status.code() == Some(1) && words.contains("identity"), "a copy of a node ended with {status} and said:\n  {words}");
    Ok(())
}

/// Starts a copy of a running edge, at which events are published: the lane of one of the two has to stop.
fn clone_edge(stand: &Stand, index: usize) -> anyhow::Result<()> {
    let member = &stand.members[index];
    let mut clone = stand.clone_of(member)?;
    clone.start()?;
    let source = request::system(PUBLISHER, "127.0.0.1", PUBLISHER_PORT);
    let event = json!({"eventType": EVENT_TYPE, "source": source, "payload": "published at a copy"}).to_string();
    let begin = Instant::now();
    while clone.stopped_lanes().is_empty() && member.stopped_lanes().is_empty() {
        ensure!(begin.elapsed() < CLONE_MAX, "{} and its copy both forward for {} s", member.name, CLONE_MAX.as_secs());
        // Without an event a copy forwards nothing; before it is ready it accepts none.
        let _ = clone.call("POST", EVENT_HANDLER_PORT, "/eventhandler/publish", &event);
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
