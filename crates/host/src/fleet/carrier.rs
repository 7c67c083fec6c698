//! The thread that forwards: from the event log, over one connection after the other.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use bodkin_nats::{
    client::{Fault, Options},
    forwarder::{Forwarder, Told},
    jetstream::{Storage, StreamConfig, StreamInfo},
    lane,
    servers::Pause,
};

use super::{
    Bell, Purpose,
    backlog::{LaneBacklog, Refilled},
    checkpoint::Checkpoint,
    config::FleetConfig,
    follower::Follower,
    pace::{Come, Pace},
    state::{FleetState, StreamTold},
};
use crate::{
    inbox::Inbox,
    nats::{Line, LineEnd, Speaker, Stop},
    pair::Leadership,
    seldom::SeldomOf,
    trace::now_ns,
};

/// How often a lane's place is noted on disk.
const NOTE_PERIOD: Duration = Duration::from_secs(5);
/// How often is looked whether a topic has been marked, while nothing is forwarded.
const MARKED_PERIOD: Duration = Duration::from_millis(500);
/// The longest time between two looks at the event log.
const LOOK_MAX: Duration = Duration::from_millis(20);
/// The shortest.
const LOOK_SOON: Duration = Duration::from_millis(1);
/// How long a node that stops waits until the others have what it accepted last.
const LINGER: Duration = Duration::from_secs(1);
/// The longest wait of a thread that is told when there is something.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What is said over the line: lanes, and what waits in them.
struct Forwarding {
    forwarder: Forwarder,
    lanes: Vec<LaneBacklog>,
    told: Vec<Told>,
}

impl Speaker for Forwarding {
    fn connected(&mut self, options: Options, now: Duration) {
        self.forwarder.connected(options, now);
    }

    fn disconnected(&mut self) {
        self.forwarder.disconnected();
    }

    fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<(), Fault> {
        self.forwarder.receive(bytes, now, &mut self.lanes, &mut self.told)
    }

    fn step(&mut self, now: Duration, _has_room: bool) -> Result<Duration, Fault> {
        self.forwarder.step(now, &mut self.lanes, &mut self.told)
    }

    fn take_out(&mut self, out: &mut Vec<u8>) {
        self.forwarder.take_out(out);
    }

    fn leaves(&mut self) -> bool {
        self.told.contains(&Told::Leaving)
    }
}

/// What the thread has.
pub(super) struct Carrier {
    purpose: Purpose,
    bell: Bell,
    config: Arc<FleetConfig>,
    follower: Follower,
    pace: Pace,
    /// When the event log was looked at last, in the line's time.
    looked: Duration,
    forwarding: Forwarding,
    /// Where each lane's place is noted.
    paths: Vec<PathBuf>,
    line: Line,
    state: Arc<FleetState>,
    /// Whether this node of a pair leads; `None` of a cloud by itself.
    leadership: Option<Arc<Leadership>>,
    /// What the server is called that is connected to.
    server: String,
    noted: (Instant, Vec<Checkpoint>),
    /// What the stream is set up as, once it has said so.
    stream: Option<StreamConfig>,
    /// When it acknowledged each lane last, in the line's time.
    stored: Vec<Option<Duration>>,
    /// When was looked for a topic that is marked.
    marks_asked: Option<Instant>,
    seldom: SeldomOf,
}

impl Carrier {
    pub(super) fn new(
        purpose: Purpose,
        config: Arc<FleetConfig>,
        follower: Follower,
        lanes: Vec<LaneBacklog>,
        paths: Vec<PathBuf>,
        state: Arc<FleetState>,
        leadership: Option<Arc<Leadership>>,
    ) -> io::Result<Self> {
        state.connecting.begin();
        let terms = (0..config.lanes.len()).map(|lane| config.terms(lane)).collect();
        let forwarder = Forwarder::new(config.setup(), terms).expect("the configuration was checked");
        let line = Line::new(format!("bodkin {}", config.edge), config.place.clone(), Pause::default())?;
        let bell = Arc::new(Inbox::new(line.waker()?));
        let noted = (Instant::now(), lanes.iter().map(|lane| lane.checkpoint).collect());
        let stored = vec![None; lanes.len()];
        let forwarding = Forwarding { forwarder, lanes, told: Vec::new() };
        let pace = Pace::new(config.drain_events_per_s);
        Ok(Self {
            purpose,
            bell,
            config,
            follower,
            pace,
            looked: Duration::ZERO,
            forwarding,
            paths,
            line,
            state,
            leadership,
            server: String::new(),
            noted,
            stream: None,
            stored,
            marks_asked: None,
            seldom: SeldomOf::default(),
        })
    }

    /// Rung where the event log has grown.
    pub(super) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Runs until it is told to stop.
    pub(super) fn run(mut self, stop: &Stop) {
        let mut stops_since = None;
        loop {
            // In front of the look at the log: what is written from now on rings again.
            self.bell.take(&mut Vec::new());
            // What an answer lets go is on its way while the batches behind it are read.
            if self.leads() && self.forwarding.forwarder.awaits_answer() {
                self.converse();
            }
            let is_behind = self.follow();
            for (lane, state) in self.forwarding.lanes.iter_mut().zip(&self.state.lanes) {
                if state.take_adopted() {
                    tracing::warn!(lane = state.name, "the operator has the lane continue behind another process's batch");
                    lane.adopt();
                }
            }
            let next = if self.leads() && self.forwards() { self.converse() } else { LOOK_MAX };
            self.tell_numbers();
            if self.noted.0.elapsed() >= NOTE_PERIOD {
                self.note();
            }
            let look = match self.purpose {
                Purpose::Fleet => (self.config.batch_wait_max / 2).clamp(LOOK_SOON, LOOK_MAX),
                // It is told by the bell.
                Purpose::Nodes => WAIT_MAX,
            };
            let wants_log = self.forwarding.lanes.iter().any(LaneBacklog::wants_log);
            if stop.is_told() {
                let since = stops_since.get_or_insert_with(Instant::now).elapsed();
                if since >= LINGER || !self.lingers(is_behind || wants_log) {
                    break;
                }
            }
            let look = if stops_since.is_some() { LOOK_MAX } else { look };
            // What the stream has said has made room, or shown the place to go on from; a log that cannot be read is not tried without a pause.
            let look = if wants_log { LOOK_SOON } else { look };
            let longest = if is_behind { Duration::ZERO } else { next.min(look) };
            if let Err(error) = self.line.wait(longest) {
                self.warn("poll", &format!("the thread cannot wait for its connection: {error}"));
                std::thread::sleep(LOOK_MAX);
            }
        }
        self.note();
    }

    /// Whether a thread that is to stop goes on for a moment: what a node has accepted last waits for nobody else.
    fn lingers(&self, is_behind: bool) -> bool {
        let waits = is_behind || self.forwarding.lanes.iter().any(|lane| lane.len() > 0);
        self.purpose == Purpose::Nodes && waits && self.state.is_connected.load(Relaxed)
    }

    /// Whether this node may forward. Once its lease is over, the next leader has its events, and what it has not answered may come to that one again.
    fn leads(&self) -> bool {
        Leadership::may_act(self.leadership.as_deref())
    }

    /// Whether anything is to be forwarded. Until something is, nobody is spoken with: an edge may only take. Once it was, what is left of it goes on.
    fn forwards(&mut self) -> bool {
        if !self.state.forwards.load(Relaxed) && self.marks_asked.is_none_or(|asked| asked.elapsed() >= MARKED_PERIOD) {
            self.marks_asked = Some(Instant::now());
            self.state.forwards.store(self.follower.selection().marks_any(), Relaxed);
        }
        self.state.forwards.load(Relaxed)
    }

    /// Looks at the event log, and reads what waits; true: there is more to look at, and room for it.
    fn follow(&mut self) -> bool {
        let now = self.line.now();
        // What is found may have come just behind the last look.
        let since = std::mem::replace(&mut self.looked, now);
        let Forwarding { forwarder, lanes, .. } = &mut self.forwarding;
        let followed = self.follower.follow(lanes, |lane, bytes| forwarder.grown(lane, bytes, since));
        let refilled = self.refill(now);
        let has_room = self.forwarding.lanes.iter().any(LaneBacklog::takes_offers);
        match refilled.and(followed) {
            Ok(is_more) => is_more && has_room,
            Err(error) => {
                self.warn("log", &format!("the event log cannot be read: {error}"));
                false
            }
        }
    }

    /// Reads of what waits as much as the pace allows, an equal share for each lane.
    fn refill(&mut self, now: Duration) -> io::Result<()> {
        let Forwarding { forwarder, lanes, .. } = &mut self.forwarding;
        let mut behind = lanes.iter().filter(|lane| lane.is_behind()).count();
        let come = Come { end: self.follower.log_end(), offered: self.follower.offered() };
        let mut left = self.pace.allows(now, come);
        let mut refilled = Ok(());
        for (at, lane) in lanes.iter_mut().enumerate() {
            if lane.is_behind() {
                match lane.refill(left / behind) {
                    Ok(Refilled { bytes, places }) => {
                        self.pace.read(places);
                        left = left.saturating_sub(places);
                        if bytes > 0 {
                            forwarder.grown(at, bytes, now);
                        }
                    }
                    Err(error) => refilled = Err(error),
                }
                behind -= 1;
            }
            refilled = refilled.and(lane.error.take().map_or(Ok(()), Err));
        }
        refilled
    }

    /// Does what is due on the line; gives how long there is nothing to do.
    fn converse(&mut self) -> Duration {
        let turned = self.line.turn(&mut self.forwarding);
        for told in std::mem::take(&mut self.forwarding.told) {
            self.tell(told);
        }
        turned.unwrap_or_else(|end| {
            self.fails(&end);
            Duration::ZERO
        })
    }

    fn fails(&mut self, end: &LineEnd) {
        self.state.reaches(None);
        let told = end.to_string();
        self.warn(&told, &told);
        self.state.fails(told);
    }

    fn warn(&self, thing: &str, told: &str) {
        if let Some(times) = self.seldom.due(thing) {
            let stream = self.purpose.stream();
            tracing::warn!(edge = self.config.edge, times, "events do not reach {stream}, and wait in the event log: {told}");
        }
    }

    fn tell(&mut self, told: Told) {
        match told {
            Told::Open(server) => {
                self.server.clone_from(&server);
                self.state.reaches(Some(server));
            }
            Told::Stream(info) => self.has_stream(&info),
            Told::NoStream(why) => {
                let told = format!("stream {}: {why}", self.config.stream);
                self.warn(&told, &told);
                self.state.fails(told);
            }
            Told::Refused(words) => {
                self.warn(&words, &words);
                self.state.refused(format!("the server refuses: {words}"));
            }
            Told::Leaving => {}
            Told::Lane(lane, told) => self.tell_lane(lane, told),
        }
    }

    fn has_stream(&mut self, info: &StreamInfo) {
        self.line.reached();
        // Another server would hand every batch on to the one that leads the stream: half the time of a batch again.
        let leader = info.cluster.as_ref().and_then(|cluster| cluster.leader.as_deref());
        if leader.is_some_and(|leader| self.line.seek(&mut self.forwarding, &self.server, leader)) {
            return;
        }
        let on_disk = info.config.storage == Storage::File;
        let told = StreamTold { replicas: info.config.num_replicas, on_disk, messages: info.state.messages, bytes: info.state.bytes };
        if (!on_disk || told.replicas < 2)
            && let Some(times) = self.seldom.due("replicas")
        {
            tracing::warn!(
                stream = self.config.stream,
                replicas = told.replicas,
                on_disk,
                times,
                "{} is on one server or in memory: what it acknowledges is lost with that server",
                self.purpose.stream()
            );
        }
        self.state.has_stream(told);
        self.stream = Some(info.config.clone());
    }

    fn tell_lane(&mut self, lane: usize, told: lane::Told) {
        let (state, name) = (&self.state.lanes[lane], self.config.lanes[lane].name.clone());
        match told {
            lane::Told::Resumed(position) => {
                state.resumed(self.forwarding.lanes[lane].len() > 0);
                let epoch = self.forwarding.lanes[lane].epoch();
                tracing::info!(lane = name, epoch, position, "events go on to {}", self.purpose.stream());
            }
            lane::Told::Stored { records, is_duplicate, .. } => {
                state.stored(records, is_duplicate);
                self.stored[lane] = Some(self.line.now());
            }
            lane::Told::StreamLost(first, last) => {
                state.lost_by_stream.fetch_add(last - first + 1, Relaxed);
                tracing::error!(
                    lane = name,
                    first,
                    last,
                    "{} has lost positions of this lane that it had acknowledged",
                    self.purpose.stream()
                );
            }
            lane::Told::Emptied(last) => {
                // Its answer came behind the message: by so much at the most.
                let had_for = self.stored[lane].map(|stored| self.line.now().saturating_sub(stored) + self.config.answer_wait_max);
                let is_its_way = self.stream.as_ref().is_some_and(|stream| stream.may_let_go(had_for));
                state.found_empty(last, now_ns() / 1_000_000, is_its_way);
                let stream = self.purpose.stream();
                if is_its_way {
                    tracing::info!(
                        lane = name,
                        last,
                        "{stream} has let go of everything of this lane, as its limits say; it goes on behind that"
                    );
                } else {
                    tracing::warn!(
                        lane = name,
                        last,
                        "{stream} was purged or deleted: it has nothing of this lane any more, which goes on behind what was acknowledged"
                    );
                }
            }
            lane::Told::TooLong { events, bytes_max, is_servers } => {
                state.lost.fetch_add(events, Relaxed);
                let remedy = if is_servers { "raise max_payload of the NATS server" } else { "raise batch_bytes_max" };
                let stream = self.purpose.stream();
                tracing::error!(lane = name, events, bytes_max, "events lost for {stream}: longer than a batch; {remedy}");
            }
            lane::Told::Refused(why) => {
                let why = match &self.stream {
                    // Not for others of its refusals: an account's mapping may have a stream take more than its subjects say.
                    Some(stream) if why == lane::Refusal::NobodyListens && !stream.takes(&state.subject) => format!(
                        "stream {} takes {}, and not {}: name another stream, or have it take this subject too",
                        stream.name,
                        stream.subjects.join(", "),
                        state.subject
                    ),
                    _ => why.to_string(),
                };
                let told = format!("lane {name}: {why}");
                state.refused(why);
                self.warn(&told, &told);
            }
            lane::Told::Stopped(why) => {
                state.stopped(why.to_string());
                if let Some(times) = self.seldom.due(&name) {
                    tracing::error!(lane = name, times, "a lane to {} stands still: {why}", self.purpose.stream());
                }
            }
        }
    }

    fn tell_numbers(&mut self) {
        let now_ns = now_ns();
        self.state.paced_per_s.store(self.pace.per_s().unwrap_or_default(), Relaxed);
        for (lane, state) in self.forwarding.lanes.iter_mut().zip(&self.state.lanes) {
            let lost = std::mem::take(&mut lane.lost);
            if lost > 0 {
                state.lost.fetch_add(lost, Relaxed);
                tracing::error!(
                    lane = state.name,
                    lost,
                    "the event log did not keep events until they were forwarded: they are lost for {}",
                    self.purpose.stream()
                );
            }
            for accepted_ns in lane.acknowledged_ns.drain(..) {
                state.ages.record(Duration::from_nanos(now_ns.saturating_sub(accepted_ns)));
            }
            state.waiting.store(lane.len() as u64, Relaxed);
            state.lag_ns.store(lane.oldest_ns().map_or(0, |oldest| now_ns.saturating_sub(oldest)), Relaxed);
            state.epoch.store(lane.checkpoint.epoch, Relaxed);
            state.position.store(lane.checkpoint.position, Relaxed);
        }
    }

    /// Notes on disk where lanes are, that have moved.
    fn note(&mut self) {
        self.noted.0 = Instant::now();
        for at in 0..self.forwarding.lanes.len() {
            let place = self.forwarding.lanes[at].checkpoint;
            if self.noted.1[at] == place {
                continue;
            }
            match place.write(&self.paths[at], self.follower.log_id()) {
                Ok(()) => self.noted.1[at] = place,
                Err(error) => self.warn("checkpoint", &format!("{}: {error}", self.paths[at].display())),
            }
        }
    }
}
