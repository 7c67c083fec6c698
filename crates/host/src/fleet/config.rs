//! What is forwarded where.

use std::{fmt, sync::Arc, time::Duration};

use bodkin_nats::{
    forwarder::{LANES_MAX, Setup, lane_subject},
    jetstream::{Api, StreamConfig},
    lane::{BATCH_BYTES_MIN, Terms},
    protocol::{Credentials, Subject, is_token},
    servers::SERVERS_MAX,
};
use rustls::ClientConfig;

use super::backlog::FleetForm;

/// Where servers listen by default.
const PORT: u16 = 4222;
/// Bytes of a batch at the most: what a server as it comes takes is 1 MiB.
pub const BATCH_BYTES_MAX: usize = 8 << 20;
/// How long is waited behind a refusal at first, and at the most.
const REST_LEAST: Duration = Duration::from_millis(100);
const REST_MOST: Duration = Duration::from_secs(5);
/// How long is waited until a stream that is not there is looked for again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A server that is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Is it spoken to in TLS?
    pub is_tls: bool,
}

impl fmt::Display for FleetServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, (open, close)) =
            (if self.is_tls { "tls" } else { "nats" }, if self.host.contains(':') { ("[", "]") } else { ("", "") });
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

/// A lane, and the event types that are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLane {
    /// Its name, a token of its subject.
    pub name: String,
    /// Its event types, as stored.
    pub event_types: Vec<Box<str>>,
}

/// What a fleet's configuration says that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetConfigError {
    /// No place of a server.
    #[error("servers: {0:?} is no server: nats://HOST:PORT, or tls://HOST:PORT, is expected")]
    Server(String),
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

/// Reads the place of a server.
///
/// # Errors
/// It is none.
pub fn parse_server(text: &str) -> Result<FleetServer, FleetConfigError> {
    let wrong = || FleetConfigError::Server(text.to_owned());
    let (is_tls, place) = match text.trim().split_once("://") {
        Some(("nats", place)) => (false, place),
        Some(("tls", place)) => (true, place),
        _ => return Err(wrong()),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or_else(wrong)?)
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| wrong())? };
    let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']) && (place.starts_with('[') || !host.contains(':'));
    if is_host && port > 0 { Ok(FleetServer { host: host.to_owned(), port, is_tls }) } else { Err(wrong()) }
}

/// What is forwarded where.
#[derive(Clone, Debug)]
pub struct FleetConfig {
    /// Servers that are tried one after the other.
    pub servers: Vec<FleetServer>,
    /// What those in TLS are believed by.
    pub tls: Option<Arc<ClientConfig>>,
    /// Who we are.
    pub credentials: Credentials,
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
    /// In the order of the file; topics that are marked and in no other one are in the first.
    pub lanes: Vec<FleetLane>,
    /// What is forwarded of an event.
    pub form: FleetForm,
    /// Bytes of a batch.
    pub batch_bytes_max: usize,
    /// The longest time that an event waits for its batch to become full.
    pub batch_wait_max: Duration,
    /// How long an answer is waited for.
    pub answer_wait_max: Duration,
}

impl FleetConfig {
    /// Looks whether all of it can be meant.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self) -> Result<(), FleetConfigError> {
        if !(1..=SERVERS_MAX).contains(&self.servers.len()) {
            return Err(FleetConfigError::Servers(self.servers.len()));
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
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = self.lanes.iter().flat_map(|lane| &lane.event_types).find(|event_type| !seen.insert(&**event_type)) {
            return Err(FleetConfigError::Twice(twice.to_string()));
        }
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let ranges = [
            ("batch_bytes_max", self.batch_bytes_max as u64, BATCH_BYTES_MIN as u64, BATCH_BYTES_MAX as u64),
            ("batch_wait_ms", ms(self.batch_wait_max), 1, 60_000),
            ("answer_wait_ms", ms(self.answer_wait_max), 100, 600_000),
            ("create_replicas", self.create.map_or(1, |(replicas, _)| u64::from(replicas)), 1, 5),
        ];
        match ranges.into_iter().find(|(_, value, from, to)| !(from..=to).contains(&value)) {
            Some((key, value, from, to)) => Err(FleetConfigError::Range { key, value, from, to }),
            None => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_scheme_a_host_and_a_port() {
        for (text, told) in [
            ("nats://10.0.0.1:4223", "nats://10.0.0.1:4223"),
            (" tls://hub.example ", "tls://hub.example:4222"),
            ("nats://[::1]:5", "nats://[::1]:5"),
            ("nats://[::1]", "nats://[::1]:4222"),
        ] {
            assert_eq!(parse_server(text).expect(text).to_string(), told);
        }
        for text in
            ["", "hub:4222", "http://hub", "nats://", "nats://u:p@hub:4222", "nats://hub:0", "nats://hub:x", "nats://::1:5", "nats://[::1"]
        {
            assert_eq!(parse_server(text), Err(FleetConfigError::Server(text.to_owned())), "{text}");
        }
    }
}
