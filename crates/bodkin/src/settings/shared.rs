//! The database that several nodes share, and what does not go with it.

use std::path::Path;

use anyhow::{Context, bail};
use bodkin_host::{DatabasePlace, NatsPlace};
use bodkin_trust::{
    file::read_anchors,
    tls::{ServerCheck, client},
};

use super::Settings;

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

/// By what best-effort events go from node to node.
pub fn node_events(url: &str, trust_file: Option<&Path>, is_shared: bool) -> anyhow::Result<Option<NatsPlace>> {
    match url.trim() {
        "" => Ok(None),
        _ if !is_shared => {
            bail!("--node-events is for nodes that share a database: events of a cloud by itself have no other node to go to")
        }
        url => {
            let anchors = trust_file.map(|path| read_anchors(path, None)).transpose().context("--node-events-trust-file")?;
            let tls =
                anchors.map(|anchors| client(None, &anchors, ServerCheck::HostName)).transpose().context("--node-events-trust-file")?;
            Ok(Some(NatsPlace::parse(url, tls).context("--node-events")?))
        }
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

    #[test]
    fn events_go_from_node_to_node_only_where_there_are_several() {
        assert!(node_events(" ", None, false).unwrap().is_none());
        assert_eq!(node_events("nats://a:b@one", None, true).unwrap().unwrap().to_string(), "nats://one:4222");
        assert!(node_events("nats://one", None, false).unwrap_err().to_string().contains("share a database"));
        assert!(format!("{:#}", node_events("http://one", None, true).unwrap_err()).contains("nats://USER"));
        assert!(format!("{:#}", node_events("tls://one", None, true).unwrap_err()).contains("authority's certificate"));
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
