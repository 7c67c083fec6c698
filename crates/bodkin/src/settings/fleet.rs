//! What the table `[fleet]` says: which events go on to a stream of NATS JetStream, and where that is.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use bodkin_arrowhead::name::EventType;
use bodkin_host::{
    fleet::{Credentials, FleetConfig, FleetForm, FleetLane, FromFleetConfig},
    nats::{CertificateSettings, NatsPlace, NatsTls, parse_server},
};
use serde::{Deserialize, Serialize};

use super::{
    Settings,
    nats::{Names, TlsFiles, key_credentials, secret},
};

/// Settings of the table that TLS to its servers needs.
const NAMES: Names = Names {
    servers: "servers",
    trust: "trust_file",
    certificate: CertificateSettings { certificate: "certificate_file", key: "certificate_key_file" },
};

/// The lane of topics that are marked and in no other one, where no lane is named.
const FIRST_LANE: &str = "events";

/// The table; a table of the file only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetTable {
    /// Servers: `nats://HOST:PORT` or `tls://HOST:PORT`.
    servers: Vec<String>,
    /// Certificates (PEM) of the authorities that servers in TLS are believed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust_file: Option<PathBuf>,
    /// Client certificate (PEM) for servers in TLS; with `certificate_key_file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_file: Option<PathBuf>,
    /// File with its private key (PEM), readable to its owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_key_file: Option<PathBuf>,
    /// Who connects; with `password_file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// File with the password, readable to its owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    password_file: Option<PathBuf>,
    /// File with a token instead, readable to its owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<PathBuf>,
    /// File with the seed of a key (an nkey) instead, readable to its owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_file: Option<PathBuf>,
    /// The stream.
    stream: String,
    /// JetStream's domain, behind a leaf node.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// What all edges' subjects begin with.
    prefix: String,
    /// This edge's name; `None`: the option `edge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<String>,
    /// Servers that the stream is made on where it is not there; 0: somebody else makes it.
    create_replicas: u8,
    /// Bytes that it may have then; 0: as many as there is room for.
    create_bytes_max: u64,
    /// What is forwarded of an event: `payload`, or `event`, its JSON.
    form: String,
    /// Bytes of a batch.
    batch_bytes_max: usize,
    /// The longest time that an event waits for its batch to become full.
    batch_wait_ms: u64,
    /// How long an answer is waited for.
    answer_wait_ms: u64,
    /// Events a second by which a backlog becomes smaller while live events come.
    drain_events_per_s: u64,
    /// Event types by their lanes.
    lanes: BTreeMap<String, Vec<String>>,
    /// Event types that come from the fleet: commands to this edge, and what is sent to all.
    from_fleet: Vec<String>,
    /// The stream that they come by.
    from_stream: String,
    /// What its subjects begin with.
    from_prefix: String,
}

impl Default for FleetTable {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            trust_file: None,
            certificate_file: None,
            certificate_key_file: None,
            user: None,
            password_file: None,
            token_file: None,
            key_file: None,
            stream: "FLEET".to_owned(),
            domain: None,
            prefix: "fleet".to_owned(),
            edge: None,
            create_replicas: 0,
            create_bytes_max: 0,
            form: "payload".to_owned(),
            batch_bytes_max: 65_536,
            batch_wait_ms: 10,
            answer_wait_ms: 10_000,
            drain_events_per_s: 30_000,
            lanes: BTreeMap::new(),
            from_fleet: Vec::new(),
            from_stream: "COMMANDS".to_owned(),
            from_prefix: "commands".to_owned(),
        }
    }
}

impl Settings {
    /// What complete settings say; `None`: nothing is forwarded.
    pub fn fleet(&self) -> anyhow::Result<Option<Arc<FleetConfig>>> {
        let Some(table) = &self.fleet else { return Ok(None) };
        if self.event_log == Some(false) {
            bail!("[fleet] needs the event log, in which events wait until they are forwarded: event_log = true");
        }
        let config = table.config(self.edge.as_deref().unwrap_or_default()).context("[fleet]")?;
        Ok(Some(Arc::new(config)))
    }

    /// Whether a topic of the file is marked, so that its events go on to the fleet.
    pub fn marks_any(&self) -> bool {
        let declared = self.declared.as_ref().and_then(|file| file.each().ok());
        declared.is_some_and(|topics| topics.iter().any(|topic| topic.spec.fleet))
    }
}

impl FleetTable {
    fn config(&self, edge: &str) -> anyhow::Result<FleetConfig> {
        let servers = self.servers.iter().map(|text| parse_server(text)).collect::<Result<Vec<_>, _>>().context("servers")?;
        let tls = self.tls(servers.iter().any(|server| server.is_tls))?;
        let form = match self.form.as_str() {
            "payload" => FleetForm::Payload,
            "event" => FleetForm::Event,
            other => bail!("form is {other:?}: payload, or event for all of it as JSON, is expected"),
        };
        let edge = self.edge.as_deref().unwrap_or(edge);
        if edge.is_empty() {
            bail!("edge is missing: this edge's name, which no other one has");
        }
        let config = FleetConfig {
            place: NatsPlace { servers, tls, credentials: self.credentials()? },
            from: self.from()?,
            prefix: self.prefix.clone(),
            edge: edge.to_owned(),
            stream: self.stream.clone(),
            domain: self.domain.clone().filter(|domain| !domain.is_empty()),
            create: (self.create_replicas > 0)
                .then(|| (self.create_replicas, Some(self.create_bytes_max).filter(|bytes_max| *bytes_max > 0))),
            keeps_for: None,
            lanes: self.lanes()?,
            form,
            batch_bytes_max: self.batch_bytes_max,
            batch_wait_max: Duration::from_millis(self.batch_wait_ms),
            answer_wait_max: Duration::from_millis(self.answer_wait_ms),
            drain_events_per_s: self.drain_events_per_s,
        };
        config.check()?;
        Ok(config)
    }

    fn tls(&self, has_tls: bool) -> anyhow::Result<Option<Arc<NatsTls>>> {
        let files = TlsFiles { trust: &self.trust_file, certificate: &self.certificate_file, key: &self.certificate_key_file };
        files.read(NAMES, has_tls)
    }

    fn credentials(&self) -> anyhow::Result<Credentials> {
        let (password, token) = (secret(&self.password_file, "password_file")?, secret(&self.token_file, "token_file")?);
        let key = key_credentials(&self.key_file, "key_file")?;
        match (self.user.clone().filter(|user| !user.is_empty()), password, token, key) {
            (None, None, None, None) => Ok(Credentials::None),
            (Some(user), Some(password), None, None) => Ok(Credentials::User { user, password }),
            (None, None, Some(token), None) => Ok(Credentials::Token(token)),
            (None, None, None, Some(key)) => Ok(key),
            _ => bail!("user and password_file go together, token_file or key_file without them and each other"),
        }
    }

    fn from(&self) -> anyhow::Result<Option<FromFleetConfig>> {
        if self.from_fleet.is_empty() {
            return Ok(None);
        }
        let event_types = self.from_fleet.iter().map(|name| event_type(name, "from_fleet")).collect::<anyhow::Result<_>>()?;
        Ok(Some(FromFleetConfig { stream: self.from_stream.clone(), prefix: self.from_prefix.clone(), event_types }))
    }

    /// Event types that come from the fleet, which are durable ones.
    pub(super) fn durable(&self) -> &[String] {
        &self.from_fleet
    }

    fn lanes(&self) -> anyhow::Result<Vec<FleetLane>> {
        let mut lanes = Vec::new();
        // Marked topics have their lane, whatever the others are called.
        if !self.lanes.contains_key(FIRST_LANE) {
            lanes.push(FleetLane { name: FIRST_LANE.to_owned(), event_types: Vec::new() });
        }
        for (name, event_types) in &self.lanes {
            let lane = FleetLane {
                name: name.clone(),
                event_types: event_types.iter().map(|name| event_type(name, "lanes")).collect::<anyhow::Result<_>>()?,
            };
            let at = if name == FIRST_LANE { 0 } else { lanes.len() };
            lanes.insert(at, lane);
        }
        Ok(lanes)
    }
}

fn event_type(name: &str, key: &str) -> anyhow::Result<Box<str>> {
    let parsed = EventType::parse(name).with_context(|| format!("'{name}' of {key} is no event type"))?;
    Ok(parsed.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> anyhow::Result<Option<Arc<FleetConfig>>> {
        let settings: Settings = toml::from_str(text)?;
        settings.or(Settings::defaults()).fleet()
    }

    #[test]
    fn lanes_have_their_event_types_and_marked_topics_the_first_one() {
        let told = config("[fleet]\nservers = ['nats://a', 'nats://b:5']\nedge = 'edge-7'\nlanes.alarms = ['Alarm']\n").unwrap().unwrap();
        let lanes: Vec<_> = told.lanes.iter().map(|lane| (lane.name.as_str(), lane.event_types.len())).collect();
        assert_eq!(lanes, [("events", 0), ("alarms", 1)]);
        assert_eq!((&*told.lanes[1].event_types[0], told.place.servers.len(), told.create), ("ALARM", 2, None));
        let told = config("[fleet]\nservers = ['nats://a']\nedge = 'e'\nlanes = { alarms = ['a'], events = ['b'] }\n").unwrap().unwrap();
        assert_eq!(told.lanes[0].name, "events");
        assert!(config("").unwrap().is_none() && told.from.is_none());
        let told = config("[fleet]\nservers = ['nats://a']\nedge = 'e'\nfrom_fleet = ['Setpoint']\n").unwrap().unwrap();
        let from = told.from.as_ref().unwrap();
        assert_eq!((from.stream.as_str(), from.prefix.as_str(), &*from.event_types[0]), ("COMMANDS", "commands", "SETPOINT"));
        assert_eq!(config("edge = 'west'\n[fleet]\nservers = ['nats://a']\n").unwrap().unwrap().edge, "west");
    }

    #[test]
    fn what_cannot_be_meant_is_told_by_its_key() {
        let with = |lines: &str| {
            let edge = if lines.contains("edge = ") { "" } else { "edge = 'e'\n" };
            config(&format!("[fleet]\nservers = ['nats://a']\n{edge}{lines}\n"))
        };
        for (lines, told) in [
            ("sever = 1", "sever"),
            ("lanes.a = ['x']\nlanes.b = ['X']", "event type X is in two lanes"),
            ("lanes.'a.b' = []", "lanes: \"a.b\" is no name"),
            ("user = 'u'", "user and password_file go together"),
            ("from_fleet = ['setpoint']\nfrom_stream = 'a.b'", "from_stream: \"a.b\" is no name"),
            ("from_fleet = [' ']", "of from_fleet is no event type"),
            ("from_fleet = ['setpoint']\nedge = 'all'", "all stands for all edges"),
            ("form = 'xml'", "form is \"xml\""),
            ("batch_bytes_max = 10", "batch_bytes_max is 10, and 4096 to"),
            ("drain_events_per_s = 0", "drain_events_per_s is 0, and 100 to"),
            ("create_replicas = 6", "create_replicas is 6"),
            ("prefix = 'a b'", "make no subject"),
        ] {
            let error = format!("{:#}", with(lines).expect_err(lines));
            assert!(error.contains(told), "{lines}: {error}");
        }
        for (text, told) in [
            ("[fleet]\nedge = 'e'\n", "servers are 1 to 32, and not 0"),
            ("[fleet]\nservers = ['nats://a']\n", "edge is missing"),
            ("[fleet]\nservers = ['hub']\nedge = 'e'\n", "\"hub\" is no server"),
            ("[fleet]\nservers = ['tls://hub']\nedge = 'e'\n", "trust_file is missing"),
            ("event_log = false\n[fleet]\nservers = ['nats://a']\nedge = 'e'\n", "needs the event log"),
        ] {
            let error = format!("{:#}", config(text).expect_err(text));
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
