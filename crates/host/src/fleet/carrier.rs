//! The thread that forwards: from the event log, over one connection after the other.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    time::{Duration, Instant},
};

use bodkin_nats::{
    client::Options,
    forwarder::{Forwarder, Told},
    jetstream::{Storage, StreamInfo},
    lane,
    servers::{Pause, Servers},
};

use super::{
    backlog::LaneBacklog,
    checkpoint::Checkpoint,
    config::{FleetConfig, FleetServer},
    connection::Connection,
    follower::Follower,
    state::{FleetState, StreamTold},
};
use crate::{seldom::SeldomOf, trace::now_ns};

/// How often a lane's place is noted on disk.
const NOTE_PERIOD: Duration = Duration::from_secs(5);
/// The longest time between two looks at the event log.
const LOOK_MAX: Duration = Duration::from_millis(20);
/// From a connection to the end of the greetings.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// Without a byte for so long a server is asked whether it is there, and after as long again given up.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Reads of a turn, so that the log is looked at beside a server that answers much.
const READS_OF_TURN: usize = 16;

/// What the thread has.
pub(super) struct Carrier {
    pub config: Arc<FleetConfig>,
    pub follower: Follower,
    pub lanes: Vec<LaneBacklog>,
    /// Where each lane's place is noted.
    pub paths: Vec<PathBuf>,
    pub forwarder: Forwarder,
    pub servers: Servers,
    pub state: Arc<FleetState>,
    pub stops: Arc<AtomicBool>,
    pub clock: Instant,
    pub connection: Option<(FleetServer, Connection)>,
    /// When the next server is tried.
    pub dial_at: Instant,
    pub noted: (Instant, Vec<Checkpoint>),
    pub seldom: SeldomOf,
    pub random: RandomState,
    pub dials: u64,
}

impl Carrier {
    pub(super) fn new(
        config: Arc<FleetConfig>,
        follower: Follower,
        lanes: Vec<LaneBacklog>,
        paths: Vec<PathBuf>,
        state: Arc<FleetState>,
        stops: Arc<AtomicBool>,
    ) -> Self {
        let terms = (0..config.lanes.len()).map(|lane| config.terms(lane)).collect();
        let forwarder = Forwarder::new(config.setup(), terms).expect("the configuration was checked");
        let servers = Servers::new(config.servers.len(), Pause::default());
        let noted = (Instant::now(), lanes.iter().map(|lane| lane.checkpoint).collect());
        let (clock, seldom, random) = (Instant::now(), SeldomOf::default(), RandomState::new());
        let connection = None;
        Self {
            config,
            follower,
            lanes,
            paths,
            forwarder,
            servers,
            state,
            stops,
            clock,
            connection,
            dial_at: clock,
            noted,
            seldom,
            random,
            dials: 0,
        }
    }

    /// Runs until it is told to stop.
    pub(super) fn run(mut self) {
        while !self.stops.load(Acquire) {
            let is_behind = self.follow();
            let next = self.converse();
            self.tell_numbers();
            if self.noted.0.elapsed() >= NOTE_PERIOD {
                self.note();
            }
            let look = (self.config.batch_wait_max / 2).clamp(Duration::from_millis(1), LOOK_MAX);
            let longest = if is_behind { Duration::ZERO } else { next.min(look) };
            match &mut self.connection {
                Some((_, connection)) => {
                    if let Err(error) = connection.wait(longest) {
                        self.ends(&error);
                    }
                }
                None => std::thread::sleep(longest),
            }
        }
        self.note();
    }

    /// Looks at the event log; true: there is more to look at, and room for it.
    fn follow(&mut self) -> bool {
        let now = self.clock.elapsed();
        let forwarder = &mut self.forwarder;
        let followed = self.follower.follow(&mut self.lanes, |lane, bytes| forwarder.grown(lane, bytes, now));
        let mut refilled = Ok(());
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            match lane.refill() {
                Ok(0) => {}
                Ok(bytes) => forwarder.grown(at, bytes, now),
                Err(error) => refilled = Err(error),
            }
            refilled = refilled.and(lane.error.take().map_or(Ok(()), Err));
        }
        let has_room = self.lanes.iter().all(LaneBacklog::has_room);
        match refilled.and(followed) {
            Ok(is_more) => is_more && has_room,
            Err(error) => {
                self.warn("log", &format!("the event log cannot be read: {error}"));
                false
            }
        }
    }

    /// Does what is due on the connection; gives how long there is nothing to do.
    fn converse(&mut self) -> Duration {
        if self.connection.is_none() {
            let left = self.dial_at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return left;
            }
            self.dial();
        }
        let mut told = Vec::new();
        let turned = self.turn(&mut told);
        let is_leaving = told.contains(&Told::Leaving);
        told.into_iter().for_each(|told| self.tell(told));
        match turned {
            Ok(_) if is_leaving => self.ends(&io::Error::other("the server is about to go")),
            Ok(next) => return next,
            Err(error) => self.ends(&error),
        }
        Duration::ZERO
    }

    fn turn(&mut self, told: &mut Vec<Told>) -> io::Result<Duration> {
        let Some((_, connection)) = &mut self.connection else { return Ok(Duration::ZERO) };
        let fault = |fault: bodkin_nats::client::Fault| io::Error::other(fault);
        for _ in 0..READS_OF_TURN {
            let Some(bytes) = connection.read()? else { break };
            self.forwarder.receive(bytes, self.clock.elapsed(), &mut self.lanes, told).map_err(fault)?;
        }
        loop {
            let now = self.clock.elapsed();
            let next = self.forwarder.step(now, &mut self.lanes, told).map_err(fault)?;
            self.forwarder.take_out(connection.out());
            connection.write()?;
            if next > now {
                return Ok(next - now);
            }
        }
    }

    fn dial(&mut self) {
        self.dials += 1;
        let draw = self.random.hash_one(self.dials);
        let (at, pause) = self.servers.next(draw as u32);
        let server = self.config.servers[at].clone();
        // The pause is in front of this try: what comes meanwhile is looked at.
        if !pause.is_zero() && !self.is_due(pause) {
            return;
        }
        match Connection::open(&server, self.config.tls.as_ref()) {
            Ok(connection) => {
                let options = Options {
                    name: format!("bodkin {}", self.config.edge),
                    credentials: self.config.credentials.clone(),
                    inbox: super::inbox(),
                    is_encrypted: server.is_tls,
                    greeting_wait_max: GREETING_MAX,
                    silence_max: SILENCE_MAX,
                };
                self.forwarder.connected(options, self.clock.elapsed());
                self.connection = Some((server, connection));
            }
            Err(error) => self.fails(&server, &error),
        }
    }

    /// Waits, and looks at the log meanwhile; false: it is told to stop.
    fn is_due(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !self.stops.load(Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            if !self.follow() {
                std::thread::sleep(left.min(LOOK_MAX));
            }
            self.tell_numbers();
        }
        false
    }

    fn ends(&mut self, error: &io::Error) {
        let Some((server, _)) = self.connection.take() else { return };
        self.forwarder.disconnected();
        self.fails(&server, error);
    }

    fn fails(&mut self, server: &FleetServer, error: &io::Error) {
        self.state.reaches(None);
        let told = format!("{server}: {error}");
        self.warn(&told, &told);
        self.state.fails(told);
        self.dial_at = Instant::now();
    }

    fn warn(&self, thing: &str, told: &str) {
        if let Some(times) = self.seldom.due(thing) {
            tracing::warn!(edge = self.config.edge, times, "events do not reach the fleet's stream, and wait in the event log: {told}");
        }
    }

    fn tell(&mut self, told: Told) {
        match told {
            Told::Open(server) => self.state.reaches(Some(server)),
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
        self.servers.reached();
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
                "the fleet's stream is on one server or in memory: what it acknowledges is lost with that server"
            );
        }
        self.state.has_stream(told);
    }

    fn tell_lane(&mut self, lane: usize, told: lane::Told) {
        let (state, name) = (&self.state.lanes[lane], self.config.lanes[lane].name.clone());
        match told {
            lane::Told::Resumed(position) => {
                state.stands(None, false);
                let epoch = self.lanes[lane].epoch();
                tracing::info!(lane = name, epoch, position, "events go on to the fleet's stream");
            }
            lane::Told::Stored { records, is_duplicate, .. } => {
                state.stands(None, false);
                state.stored.fetch_add(records, Relaxed);
                state.batches.fetch_add(1, Relaxed);
                state.repeated.fetch_add(u64::from(is_duplicate), Relaxed);
            }
            lane::Told::StreamLost(first, last) => {
                state.lost_by_stream.fetch_add(last - first + 1, Relaxed);
                tracing::error!(lane = name, first, last, "the fleet's stream has lost positions of this lane that it had acknowledged");
            }
            lane::Told::Emptied(last) => {
                tracing::warn!(
                    lane = name,
                    last,
                    "the fleet's stream has nothing of this lane any more; it goes on behind what was acknowledged"
                );
            }
            lane::Told::TooLong(events) => {
                state.lost.fetch_add(events, Relaxed);
                tracing::error!(
                    lane = name,
                    events,
                    "events are longer than a batch may be, and lost for the fleet: give a larger batch_bytes_max"
                );
            }
            lane::Told::Refused(why) => {
                let told = format!("lane {name}: {why}");
                state.stands(Some(why.to_string()), false);
                self.warn(&told, &told);
            }
            lane::Told::Stopped(why) => {
                state.stands(Some(why.to_string()), true);
                if let Some(times) = self.seldom.due(&name) {
                    tracing::error!(lane = name, times, "a lane to the fleet's stream stands still: {why}");
                }
            }
        }
    }

    fn tell_numbers(&mut self) {
        let now_ns = now_ns();
        for (lane, state) in self.lanes.iter_mut().zip(&self.state.lanes) {
            let lost = std::mem::take(&mut lane.lost);
            if lost > 0 {
                state.lost.fetch_add(lost, Relaxed);
                tracing::error!(
                    lane = state.name,
                    lost,
                    "the event log did not keep events until they were forwarded: they are lost for the fleet"
                );
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
        for at in 0..self.lanes.len() {
            let place = self.lanes[at].checkpoint;
            if self.noted.1[at] == place {
                continue;
            }
            match place.write(&self.paths[at]) {
                Ok(()) => self.noted.1[at] = place,
                Err(error) => self.warn("checkpoint", &format!("{}: {error}", self.paths[at].display())),
            }
        }
    }
}
