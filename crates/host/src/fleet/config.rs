//! What is forwarded where.

use std::time::Duration;

use bodkin_nats::{
    forwarder::{LANES_MAX, Setup, lane_subject},
    intake::IntakeSetup,
    jetstream::{Api, Discard, StreamConfig},
    lane::{BATCH_BYTES_MIN, Terms},
    protocol::{Subject, is_token},
    servers::SERVERS_MAX,
};

use super::backlog::FleetForm;
use crate::nats::NatsPlace;

/// Bytes of a batch at the most: what a server as it comes takes is 1 MiB.
pub const BATCH_BYTES_MAX: usize = 8 << 20;
/// How long is waited behind a refusal at first, and at the most.
const REST_LEAST: Duration = Duration::from_millis(100);
const REST_MOST: Duration = Duration::from_secs(5);
/// How long is waited until a stream that is not there is looked for again.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Events a second that a backlog can be drained with beside live ones.
const DRAIN_EVENTS_PER_S_LEAST: u64 = 100;
const DRAIN_EVENTS_PER_S_MOST: u64 = 100_000_000;

/// A lane, and the event types that are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLane {
    /// Its name, a token of its subject.
    pub name: String,
    /// Its event types, as stored.
    pub event_types: Vec<Box<str>>,
}

/// Instead of an edge in a subject: all of them.
pub const ALL_EDGES: &str = "all";
/// Messages from the fleet that may be on their way into the event log.
pub(crate) const TAKEN_MAX: usize = 256;

/// What comes from the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromFleetConfig {
    /// The stream.
    pub stream: String,
    /// What its subjects begin with.
    pub prefix: String,
    /// Event types that are taken, as stored.
    pub event_types: Vec<Box<str>>,
}

/// What a fleet's configuration says that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetConfigError {
    /// Too few or too many.
    #[error("servers are 1 to {SERVERS_MAX}, and not {0}")]
    Servers(usize),
    /// A name that is no token.
    #[error("{key}: {name:?} is no name here: no dots, spaces, * and > are expected, and at least one letter")]
    Name {
        /// The key.
        key: &'static str,
        /// What it says.
        name: String,
    },
    /// The lanes make no subjects.
    #[error("prefix, edge and lanes make no subject: {0}")]
    Subject(String),
    /// Too many.
    #[error("an edge has at most {LANES_MAX} lanes, and not {0}")]
    Lanes(usize),
    /// In two lanes.
    #[error("event type {0} is in two lanes, and an event goes into one")]
    Twice(String),
    /// The name that stands for all.
    #[error("edge: {ALL_EDGES} stands for all edges in subjects that events of the fleet come by: give another name")]
    All,
    /// Outside its bounds.
    #[error("{key} is {value}, and {from} to {to} is expected")]
    Range {
        /// The key.
        key: &'static str,
        /// What it says.
        value: u64,
        /// At the least.
        from: u64,
        /// At the most.
        to: u64,
    },
}

/// What is forwarded where.
#[derive(Clone, Debug)]
pub struct FleetConfig {
    /// Servers, and who we are.
    pub place: NatsPlace,
    /// What is taken from there; `None`: nothing.
    pub from: Option<FromFleetConfig>,
    /// What all edges' subjects begin with.
    pub prefix: String,
    /// This edge's name.
    pub edge: String,
    /// The stream.
    pub stream: String,
    /// JetStream's domain, behind a leaf node.
    pub domain: Option<String>,
    /// On how many servers the stream is made where it is not there, and how many bytes it may have (`None`: as many as there is room for); `None`: somebody else makes it.
    pub create: Option<(u8, Option<u64>)>,
    /// Where it is made: its oldest messages go behind this age, and where there is no room; `None`: what has no room is refused.
    pub keeps_for: Option<Duration>,
    /// In the order of the file; topics that are marked and in no other one are in the first.
    pub lanes: Vec<FleetLane>,
    /// What is forwarded of an event.
    pub form: FleetForm,
    /// Bytes of a batch.
    pub batch_bytes_max: usize,
    /// The longest time that an event waits for its batch to become full.
    pub batch_wait_max: Duration,
    /// How long the answer to a batch is waited for.
    pub answer_wait_max: Duration,
    /// Events a second by which a backlog becomes smaller while live events come.
    pub drain_events_per_s: u64,
}

impl FleetConfig {
    /// Looks whether all of it can be meant.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self) -> Result<(), FleetConfigError> {
        if !(1..=SERVERS_MAX).contains(&self.place.servers.len()) {
            return Err(FleetConfigError::Servers(self.place.servers.len()));
        }
        if !(1..=LANES_MAX).contains(&self.lanes.len()) {
            return Err(FleetConfigError::Lanes(self.lanes.len()));
        }
        let names = [("edge", Some(&self.edge)), ("stream", Some(&self.stream)), ("domain", self.domain.as_ref())];
        let lanes = self.lanes.iter().map(|lane| ("lanes", Some(&lane.name)));
        if let Some((key, name)) = names.into_iter().chain(lanes).find_map(|(key, name)| Some((key, name.filter(|name| !is_token(name))?)))
        {
            return Err(FleetConfigError::Name { key, name: name.clone() });
        }
        for at in 0..self.lanes.len() {
            self.subject(at)?;
        }
        self.check_from()?;
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = self.lanes.iter().flat_map(|lane| &lane.event_types).find(|event_type| !seen.insert(&**event_type)) {
            return Err(FleetConfigError::Twice(twice.to_string()));
        }
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let ranges = [
            ("batch_bytes_max", self.batch_bytes_max as u64, BATCH_BYTES_MIN as u64, BATCH_BYTES_MAX as u64),
            ("batch_wait_ms", ms(self.batch_wait_max), 1, 60_000),
            ("answer_wait_ms", ms(self.answer_wait_max), 100, 600_000),
            ("drain_events_per_s", self.drain_events_per_s, DRAIN_EVENTS_PER_S_LEAST, DRAIN_EVENTS_PER_S_MOST),
            ("create_replicas", self.create.map_or(1, |(replicas, _)| u64::from(replicas)), 1, 5),
        ];
        match ranges.into_iter().find(|(_, value, from, to)| !(from..=to).contains(&value)) {
            Some((key, value, from, to)) => Err(FleetConfigError::Range { key, value, from, to }),
            None => Ok(()),
        }
    }

    fn check_from(&self) -> Result<(), FleetConfigError> {
        let Some(from) = &self.from else { return Ok(()) };
        if !is_token(&from.stream) {
            return Err(FleetConfigError::Name { key: "from_stream", name: from.stream.clone() });
        }
        if self.edge == ALL_EDGES {
            return Err(FleetConfigError::All);
        }
        let subject = Subject::new(&format!("{}.{}", from.prefix, self.edge));
        subject.map(drop).map_err(|error| FleetConfigError::Subject(error.to_string()))
    }

    /// Whether events come from the fleet and no lane names an event type: nothing is forwarded until a topic is marked.
    pub fn only_takes(&self) -> bool {
        self.from.is_some() && self.lanes.iter().all(|lane| lane.event_types.is_empty())
    }

    /// What is taken from the fleet; `None`: nothing.
    pub fn intake(&self) -> Option<IntakeSetup> {
        let FromFleetConfig { stream, prefix, .. } = self.from.as_ref()?;
        let subjects = [&*self.edge, ALL_EDGES].map(|to| format!("{prefix}.{to}.*"));
        Some(IntakeSetup {
            api: self.api(),
            stream: stream.clone(),
            consumer: IntakeSetup::consumer(&self.edge, subjects.into()),
            creates: true,
            rewinds: false,
            process: None,
            taken_max: TAKEN_MAX,
            look_every: LOOK_EVERY,
        })
    }

    /// The subject of a lane.
    fn subject(&self, lane: usize) -> Result<Subject, FleetConfigError> {
        lane_subject(&self.prefix, &self.edge, &self.lanes[lane].name).map_err(|error| FleetConfigError::Subject(error.to_string()))
    }

    /// What the stream keeps that is made: what every edge below the prefix publishes.
    pub fn subjects(&self) -> String {
        format!("{}.*.*", self.prefix)
    }

    /// Where JetStream is asked.
    pub fn api(&self) -> Api {
        Api::new(self.domain.as_deref()).expect("it was checked")
    }

    /// What the forwarder is set up as.
    pub fn setup(&self) -> Setup {
        let stream = |(replicas, bytes_max): (u8, Option<u64>)| StreamConfig {
            num_replicas: replicas,
            max_bytes: bytes_max.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            discard: if self.keeps_for.is_some() { Discard::Old } else { Discard::New },
            max_age: self.keeps_for.map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
            ..StreamConfig::new(&self.stream, &[&self.subjects()])
        };
        Setup {
            api: self.api(),
            stream: self.stream.clone(),
            create: self.create.map(stream),
            answer_wait_max: self.answer_wait_max,
            look_every: LOOK_EVERY,
        }
    }

    /// What a lane is set up as; its epoch is the backlog's to say.
    pub fn terms(&self, lane: usize) -> Terms {
        Terms {
            stream: self.stream.clone(),
            subject: self.subject(lane).expect("it was checked"),
            epoch: 1,
            batch_bytes_max: self.batch_bytes_max,
            batch_wait_max: self.batch_wait_max,
            rest_least: REST_LEAST,
            rest_most: REST_MOST,
        }
    }
}
