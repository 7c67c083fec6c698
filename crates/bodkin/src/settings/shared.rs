//! The database that several nodes share, and what does not go with it.

use std::time::Duration;

use anyhow::{Context, bail};
use bodkin_host::{DatabasePlace, NatsPlace, NodeStreamLimits, NodeStreamTerms, fleet::Credentials, nats::CertificateSettings};

use super::{
    Settings, given,
    nats::{Names, TlsFiles, key_credentials},
};

/// Options that TLS to the servers of node events needs.
const NAMES: Names = Names {
    servers: "--node-events",
    trust: "--node-events-trust-file",
    certificate: CertificateSettings { certificate: "--node-events-certificate-file", key: "--node-events-certificate-key-file" },
};

impl Settings {
    /// Where the shared database of complete settings is; `None`: this node has one of its own.
    pub fn shared_database(&self) -> anyhow::Result<Option<DatabasePlace>> {
        let url = self.database.as_deref().unwrap_or_default().trim();
        if url.is_empty() {
            return Ok(None);
        }
        let place = DatabasePlace::parse(url).context("--database")?;
        if self.role.as_deref().is_some_and(|role| !role.is_empty()) {
            bail!(
                "--database is for nodes that are alike, and --role for a reliable pair, which keeps its own database: leave one of them away"
            );
        }
        if self.topic.is_some() || self.graphs.as_ref().is_some_and(|graphs| !graphs.is_empty()) {
            bail!(
                "real-time topics and graphs are served by one node, a cloud by itself or a reliable pair: they do not go with --database"
            );
        }
        Ok(Some(place))
    }
}

impl Settings {
    /// Whether this node shares a database with others.
    pub fn is_shared(&self) -> bool {
        self.database.as_deref().is_some_and(|database| !database.trim().is_empty())
    }

    /// By what best-effort events of complete settings go from node to node; `None`: they do not.
    pub fn node_events(&self) -> anyhow::Result<Option<NatsPlace>> {
        let url = self.node_events.as_deref().unwrap_or_default().trim();
        match url {
            "" => Ok(None),
            _ if !self.is_shared() => {
                bail!("--node-events is for nodes that share a database: events of a cloud by itself have no other node to go to")
            }
            url => {
                let files = TlsFiles {
                    trust: &self.node_events_trust_file,
                    certificate: &self.node_events_certificate_file,
                    key: &self.node_events_certificate_key_file,
                };
                let tls = files.read(NAMES, url.starts_with("tls://"))?;
                let place = NatsPlace::parse(url, tls).context("--node-events")?;
                if given(&self.node_events_key_file).is_some() && !matches!(place.credentials, Credentials::None) {
                    bail!("--node-events-key-file goes without a user or token in --node-events");
                }
                match key_credentials(&self.node_events_key_file, "--node-events-key-file")? {
                    Some(credentials) => Ok(Some(NatsPlace { credentials, ..place })),
                    None => Ok(Some(place)),
                }
            }
        }
    }

    /// The stream that keeps them, in complete settings; `None`: there is none.
    pub fn node_stream(&self) -> anyhow::Result<Option<NodeStreamTerms>> {
        let stream = self.node_events_stream.as_deref().unwrap_or_default().trim();
        if stream.is_empty() {
            return Ok(None);
        }
        if self.node_events()?.is_none() {
            bail!("--node-events-stream is a stream of the NATS servers that --node-events names, and it names none");
        }
        if self.event_log == Some(false) {
            bail!("--node-events-stream needs the event log, in which events wait until they are handed on: --event-log true");
        }
        let all = "complete settings have every option";
        let limits = |replicas: u8| NodeStreamLimits {
            replicas,
            bytes_max: self.node_events_bytes_max.expect(all),
            age_max: Duration::from_secs(self.node_events_age_max_s.expect(all)),
        };
        let create = Some(self.node_events_replicas.expect(all)).filter(|replicas| *replicas > 0).map(limits);
        let terms = NodeStreamTerms { stream: stream.to_owned(), create };
        terms.check().context("--node-events-stream")?;
        Ok(Some(terms))
    }
}

/// Addresses of at most this many registries are told: a reliable pair has two.
const REALTIME_PLACES_MAX: usize = 8;

/// Where real-time topics are served, for nodes that do not.
pub fn realtime_at(places: Vec<String>, is_shared: bool) -> anyhow::Result<Vec<String>> {
    let places: Vec<String> = places.into_iter().map(|place| place.trim().to_owned()).filter(|place| !place.is_empty()).collect();
    if !places.is_empty() && !is_shared {
        bail!("--realtime-at is for nodes that share a database: this one serves real-time topics itself");
    }
    if places.len() > REALTIME_PLACES_MAX {
        bail!("--realtime-at takes {REALTIME_PLACES_MAX} places at the most, and {} are given", places.len());
    }
    for place in &places {
        let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none_or(|port| port == 0) {
            bail!("--realtime-at: {place:?} is no HOST:PORT of a Service Registry");
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &str) -> Settings {
        toml::from_str::<Settings>(settings).expect("settings").or(Settings::defaults())
    }

    fn shared(settings: &str) -> Settings {
        with(&format!("database = 'postgres://bodkin@db/cloud'\n{settings}"))
    }

    #[test]
    fn events_go_from_node_to_node_only_where_there_are_several() {
        assert!(with("node_events = ' '").node_events().unwrap().is_none());
        let place = shared("node_events = 'nats://a:b@one'").node_events().unwrap().unwrap();
        assert_eq!(place.to_string(), "nats://one:4222");
        for (settings, told) in [
            (with("node_events = 'nats://one'"), "share a database"),
            (shared("node_events = 'http://one'"), "nats://USER"),
            (shared("node_events = 'tls://one'"), "--node-events-trust-file is missing"),
            (shared("node_events = 'nats://a:b@one'\nnode_events_key_file = 'key'"), "without a user"),
            (shared("node_events = 'nats://one'\nnode_events_key_file = 'not/there'"), "--node-events-key-file"),
        ] {
            let error = format!("{:#}", settings.node_events().unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_stream_keeps_events_between_nodes_where_it_can() {
        assert_eq!(shared("node_events = 'nats://one'").node_stream().unwrap(), None);
        let made = shared("node_events = 'nats://one'\nnode_events_stream = 'NODES'\nnode_events_replicas = 3\nnode_events_age_max_s = 60");
        let terms = made.node_stream().unwrap().unwrap();
        assert_eq!(terms.stream, "NODES");
        assert_eq!(terms.create.map(|limits| (limits.replicas, limits.age_max)), Some((3, Duration::from_secs(60))));
        let others = shared("node_events = 'nats://one'\nnode_events_stream = 'NODES'").node_stream().unwrap().unwrap();
        assert_eq!(others.create, None, "somebody else makes it");
        for (lines, told) in [
            ("node_events_stream = 'NODES'", "names none"),
            ("node_events = 'nats://one'\nnode_events_stream = 'a.b'", "no name of a stream"),
            ("node_events = 'nats://one'\nnode_events_stream = 'N'\nnode_events_replicas = 6", "1 to 5 servers"),
            ("node_events = 'nats://one'\nnode_events_stream = 'N'\nevent_log = false", "needs the event log"),
        ] {
            let error = format!("{:#}", shared(lines).node_stream().unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn where_real_time_topics_are_served_is_a_list_of_places() {
        let read = |places: &[&str]| realtime_at(places.iter().map(|place| (*place).to_owned()).collect(), true);
        assert_eq!(read(&["first:8443", " second:8443"]).unwrap(), ["first:8443", "second:8443"]);
        for wrong in ["first", ":8443", "first:0", "first:x"] {
            assert!(read(&[wrong]).unwrap_err().to_string().contains("HOST:PORT"), "{wrong}");
        }
        assert!(realtime_at(vec!["first:8443".into()], false).is_err());
    }

    #[test]
    fn what_a_shared_database_does_not_go_with_is_refused() {
        let with = |settings: Settings| Settings { database: Some("postgres://bodkin@db/cloud".into()), ..settings }.shared_database();
        assert!(Settings::defaults().shared_database().unwrap().is_none());
        assert_eq!(with(Settings::defaults()).unwrap().unwrap().to_string(), "postgres://bodkin@db:5432/cloud");
        let error = with(Settings { topic: Some(toml::Value::Array(Vec::new())), ..Settings::defaults() }).unwrap_err();
        assert!(error.to_string().contains("one node"), "{error}");
        let unreadable = Settings { database: Some("sqlite://x".into()), ..Settings::defaults() }.shared_database().unwrap_err();
        assert!(format!("{unreadable:#}").contains("postgres://USER"), "{unreadable:#}");
    }
}
