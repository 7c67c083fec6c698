//! The account after each fault: waits until everything serves and has arrived, then compares both ends of every path.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bodkin_nats::jetstream::last_message;
use bodkin_nats::lane::Record;
use bodkin_nats::protocol::{Headers, Subject};
use serde_json::{Value, json};

use super::fault::Kind;
use super::ledger::Account;
use super::load::{NUMBER_HEADER, Registration, STREAM, Scene, command_line, numbered};
use super::member::REGISTRY_PORT;
use super::plan::NODES;
use super::stand::{COMMANDS_STREAM, FLEET_STREAM, LANE, Stand};
use super::strike::Struck;
use crate::crash::ledger::Breach;
use crate::http::Http;
use crate::realtime::fleet::bare::Bare;
use crate::realtime::fleet::stored::LaneReader;
use crate::request;

/// Wait for events that the fault may have lost: those that were not arrive meanwhile.
const EXCUSED_MAX: Duration = Duration::from_secs(15);
/// After everything has arrived, what arrives again arrives within this time.
const QUIET: Duration = Duration::from_millis(500);
/// A lane that stays stopped is adopted again after this time.
const ADOPT_EVERY: Duration = Duration::from_secs(20);
const ANSWER_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Metrics of nodes and of edges that count losses.
const LOSSES: [(Kind, &str); 5] = [
    (Kind::Node, "bodkin_node_events_missing_total"),
    (Kind::Edge, "bodkin_fleet_lost_total"),
    (Kind::Edge, "bodkin_fleet_lost_by_stream_total"),
    (Kind::Edge, "bodkin_fleet_emptied_total"),
    (Kind::Edge, "bodkin_from_fleet_lost_total"),
];

/// The result of an account.
pub struct Settled {
    /// From the end of the fault until everything had arrived.
    pub after: Duration,
    /// Breaches and what is excused.
    pub account: Account,
    /// Losses that the metrics report and the fault explains.
    pub counted_losses: u64,
    /// Commands that the stream acknowledged and does not have.
    pub lost_by_servers: u64,
    /// True if everything serves: the next fault can strike.
    pub is_whole: bool,
}

/// Keeps what was read from the stream and of the registrations.
pub struct Checker {
    scene: Arc<Scene>,
    lanes: Vec<LaneReader>,
    /// Registrations that were compared.
    checked: usize,
    /// Losses that metrics report, by member and metric.
    losses: BTreeMap<(usize, &'static str), u64>,
    /// When a lane of a member was adopted last.
    adopted: BTreeMap<usize, Instant>,
    /// Lost records of the stream since the last account.
    lost_records: u64,
}

impl Checker {
    /// Returns a checker of this scene.
    ///
    /// # Errors
    /// Returns an error if an edge's name is no part of a subject.
    pub fn new(scene: &Arc<Scene>, stand: &Stand) -> anyhow::Result<Self> {
        let edges = stand.members[NODES..].iter();
        let lanes = edges.map(|edge| LaneReader::new(FLEET_STREAM, &format!("fleet.{}.{LANE}", edge.name)));
        let lanes = lanes.collect::<anyhow::Result<_>>()?;
        Ok(Self { scene: Arc::clone(scene), lanes, checked: 0, losses: BTreeMap::new(), adopted: BTreeMap::new(), lost_records: 0 })
    }

    /// Waits until everything that was answered has arrived, and closes the account.
    pub fn settle(&mut self, stand: &mut Stand, struck: &Struck, settle_max: Duration) -> Settled {
        let begin = Instant::now();
        let (at_begin, registered) = (self.scene.ledger().published(), self.scene.registrations(self.checked));
        // What a restarted edge answers arrives only after it has looked at the stream, where it may find that its lane has to
        // stop. So the account includes an answer of every publisher after the fault.
        let mut published: Option<Vec<u64>> = None;
        let (mut broken, mut lost_by_servers) = (Vec::new(), 0);
        let (after, open) = loop {
            let mut open = self.recover(stand, struck, &mut broken);
            if open.is_empty() {
                open.extend(self.read_stream(stand, &mut broken).err().map(|error| breach("the stream is read", format!("{error:#}"))));
                open.extend(self.scene.ledger().silent(begin));
                open.extend(self.compare(stand, &registered).err().map(|came| breach("all nodes have each registration", came)));
            }
            if open.is_empty() {
                let published = published.get_or_insert_with(|| self.scene.ledger().published());
                let is_late = begin.elapsed() > EXCUSED_MAX;
                if is_late {
                    let lost = self.withdraw_lost(stand, published);
                    let unread = lost.map(|lost| lost_by_servers += lost).err();
                    open.extend(unread.map(|error| breach("commands are read", format!("{error:#}"))));
                }
                if open.is_empty() && !self.scene.ledger().is_missing(published, is_late, &struck.excuse) {
                    break (begin.elapsed(), open);
                }
            }
            if begin.elapsed() > settle_max {
                break (begin.elapsed(), open);
            }
            thread::sleep(LOOK_EVERY);
        };
        let published = published.unwrap_or(at_begin);
        thread::sleep(QUIET);
        let is_whole = open.is_empty();
        self.checked += registered.len();
        let mut account = self.scene.ledger().settle(&published, &struck.excuse);
        account.breaches.splice(0..0, broken.into_iter().chain(open));
        let counted_losses = self.counted_losses(stand) + std::mem::take(&mut self.lost_records);
        if counted_losses > 0 && struck.excuse.may_lose.is_empty() {
            account
                .breaches
                .push(breach("no loss is reported, for nothing can be lost", format!("metrics and records count {counted_losses}")));
        }
        self.scene.stored().retain(|(line, sequence), _| *sequence > published[*line]);
        Settled { after, account, counted_losses, lost_by_servers, is_whole }
    }

    /// Compares every registration of the campaign with all nodes.
    pub fn registrations(&self, stand: &Stand) -> Option<Breach> {
        self.compare(stand, &self.scene.registrations(0)[..self.checked])
            .err()
            .map(|came| breach("all nodes have each registration at the end", came))
    }

    /// Starts what has ended, has stopped lanes adopted, and returns what does not serve yet.
    fn recover(&mut self, stand: &mut Stand, struck: &Struck, broken: &mut Vec<Breach>) -> Vec<Breach> {
        let mut open = Vec::new();
        if struck.hides_database && !stand.postgres.answers() {
            let revived = stand.postgres.revive().map_err(|error| format!("{error:#}"));
            return vec![breach("PostgreSQL answers", revived.err().unwrap_or_default())];
        }
        for (index, member) in stand.members.iter_mut().enumerate() {
            if let Some(status) = member.ended() {
                if member.was_ready || !struck.hides_database {
                    broken.push(breach("no node or edge ends by itself", format!("{}: {status}\n  {}", member.name, member.last_words())));
                }
                open.extend(member.start().err().map(|error| breach("a member starts", format!("{error:#}"))));
            }
            if member.kind == Kind::Edge {
                for (lane, trouble) in member.stopped_lanes() {
                    let stopped = breach("no lane stops", format!("lane {lane} of {}: {trouble}", member.name));
                    if !struck.may_stop.contains(&index) && !broken.contains(&stopped) {
                        broken.push(stopped);
                    }
                    // The lane continues when it has looked at the stream again.
                    open.push(breach("a lane that was adopted continues", format!("lane {lane} of {} is stopped", member.name)));
                    if self.adopted.get(&index).is_none_or(|at| at.elapsed() > ADOPT_EVERY) {
                        self.adopted.insert(index, Instant::now());
                        open.extend(member.adopt(&lane).err().map(|error| breach("a stopped lane is adopted", format!("{error:#}"))));
                    }
                }
            }
            match member.lacks() {
                None => member.was_ready = true,
                Some(why) => open.push(breach(&format!("{} serves", member.name), why)),
            }
        }
        open
    }

    /// Reads what the edges have forwarded since the last call.
    fn read_stream(&mut self, stand: &Stand, broken: &mut Vec<Breach>) -> anyhow::Result<()> {
        let mut bare = Bare::connect_as(stand.nats.address, stand.caller())?;
        for (edge, lane) in self.lanes.iter_mut().enumerate() {
            let line = NODES + edge;
            loop {
                let (scene, mut lost) = (&self.scene, 0);
                let read = lane.next(&mut bare, |record| match record {
                    Record::Event { payload, .. } => {
                        let payload = std::str::from_utf8(payload).unwrap_or_default();
                        if let Some((_, sequence)) = numbered(payload).filter(|(of, _)| *of == line) {
                            scene.ledger().receive(STREAM, line, sequence);
                        }
                    }
                    Record::Lost { count, .. } => lost += count,
                });
                self.lost_records += lost;
                match read {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) if format!("{error:#}").contains("does not follow") => {
                        broken.push(breach("batches of a lane follow each other", format!("{}: {error:#}", stand.members[line].name)));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Withdraws missing commands that the stream acknowledged and does not have; returns how many. No edge can receive them.
    fn withdraw_lost(&self, stand: &Stand, published: &[u64]) -> anyhow::Result<u64> {
        let mut lost = 0;
        for line in (0..stand.members.len() - NODES).map(command_line) {
            let missing = self.scene.ledger().missing_of(line, published[line]);
            for sequence in missing {
                let Some(stored) = self.scene.stored().get(&(line, sequence)).copied() else { continue };
                let mut bare = Bare::connect_as(stand.nats.address, stand.caller())?;
                let subject = Subject::new(&format!("$JS.API.STREAM.MSG.GET.{COMMANDS_STREAM}"))?;
                let answer = bare.ask(&subject, &Headers::default(), json!({"seq": stored}).to_string().as_bytes())?;
                let found = last_message(&answer.payload)?;
                let number = found.as_ref().and_then(|found| found.headers.get(NUMBER_HEADER));
                if number != Some(&format!("{line} {sequence}")) {
                    eprintln!("the stream acknowledged command {line} {sequence} as {stored}, and has {number:?} there");
                    self.scene.ledger().withdraw(line, sequence);
                    lost += 1;
                }
            }
        }
        Ok(lost)
    }

    /// Returns the first registration that a node does not have with its id, and with this id alone.
    fn compare(&self, stand: &Stand, registrations: &[Registration]) -> Result<(), String> {
        for node in &stand.members[..NODES] {
            let mut http = Http::plain(node.address(REGISTRY_PORT), ANSWER_MAX).map_err(|error| format!("{}: {error}", node.name))?;
            for Registration { definition, id } in registrations {
                let query = request::query(definition).to_string();
                let answer = http.exchange("POST", "/serviceregistry/query", "", &query);
                let answer = answer.map_err(|error| format!("{}: {error}", node.name))?;
                let found: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let found: Vec<i64> =
                    found["serviceQueryData"].as_array().into_iter().flatten().filter_map(|entry| entry["id"].as_i64()).collect();
                if found != [*id] {
                    return Err(format!("{definition} was registered with id {id}, and {} has {found:?}", node.name));
                }
            }
        }
        Ok(())
    }

    /// Returns the losses that members have counted since the last call.
    fn counted_losses(&mut self, stand: &Stand) -> u64 {
        let mut sum = 0;
        for (index, member) in stand.members.iter().enumerate() {
            let metrics = member.metrics().unwrap_or_default();
            for (_, name) in LOSSES.iter().filter(|(kind, _)| *kind == member.kind) {
                let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                let counted = line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or_default();
                let before = self.losses.insert((index, *name), counted).unwrap_or_default();
                // A member that started again counts from 0.
                let new = if counted < before { counted } else { counted - before };
                if new > 0 {
                    eprintln!("{} counts {new} of {name}", member.name);
                }
                sum += new;
            }
        }
        sum
    }
}

fn breach(expected: &str, came: String) -> Breach {
    Breach { expected: expected.to_owned(), came }
}
