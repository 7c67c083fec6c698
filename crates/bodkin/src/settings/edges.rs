//! Where other edges are, from which parts of graphs are fetched: the options `edges` and `edge_curve`.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use bodkin_client::realtime::{BrokerAddress, Brokers, ClientSecurity, PublicKey};
use bodkin_host::graph::Carriers;
use bodkin_trust::curve;

use super::{Settings, given};
use crate::carrier::carriers;

impl Settings {
    /// What fetches events from the edges that complete settings name.
    pub(super) fn carriers(&self) -> anyhow::Result<Carriers> {
        let own = given(&self.edge_curve).map(|file| curve::read_pair(&file).map(Into::into)).transpose().context("--edge-curve")?;
        let mut edges = BTreeMap::new();
        for text in self.edges.iter().flatten().filter(|text| !text.trim().is_empty()) {
            let (name, brokers, key) = edge(text).with_context(|| format!("--edges: {text:?}"))?;
            let security = match (key, &own) {
                (None, _) => ClientSecurity::Null,
                (Some(server), Some(own)) => ClientSecurity::Curve { own: std::sync::Arc::clone(own), server },
                (Some(_), None) => bail!("--edges: {name} is named with its key, and --edge-curve names no file with an own one"),
            };
            if edges.insert(name.clone(), Brokers { security, ..brokers }).is_some() {
                bail!("--edges names {name} twice");
            }
        }
        Ok(carriers(edges))
    }
}

/// `NAME=ADDRESS:PORT`, of a pair `NAME=ADDRESS:PORT+ADDRESS:PORT`, in secure mode with the ZMTP port's public key behind a space.
fn edge(text: &str) -> anyhow::Result<(String, Brokers, Option<PublicKey>)> {
    let (name, rest) = text.trim().split_once('=').context("expected NAME=ADDRESS:PORT")?;
    let (addresses, key) = match rest.trim().split_once(' ') {
        None => (rest.trim(), None),
        Some((addresses, key)) => (addresses, Some(key.trim().parse().map_err(|error| anyhow!("the public key: {error}"))?)),
    };
    let addresses = addresses.split('+').map(str::parse).collect::<Result<Vec<BrokerAddress>, _>>()?;
    let brokers = match &addresses[..] {
        [one] => Brokers::one(name, one.clone()),
        [first, second] => Brokers::pair(name, first.clone(), second.clone()),
        _ => bail!("an edge is one broker, or both of a pair"),
    };
    match name.trim() {
        "" => bail!("expected a name in front of ="),
        name => Ok((name.to_owned(), brokers, key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(edges: &[&str]) -> Settings {
        Settings {
            edges: Some(edges.iter().map(|text| (*text).to_owned()).collect()),
            edge_curve: Some(Default::default()),
            ..Settings::default()
        }
    }

    #[test]
    fn an_edge_is_a_broker_or_a_pair_with_a_key_in_secure_mode() {
        let (name, brokers, key) =
            edge(" press = 127.0.0.1:5570+127.0.0.1:5580 rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7").expect("an edge");
        assert_eq!((name.as_str(), brokers.addresses.1.map(|address| address.to_string())), ("press", Some("127.0.0.1:5580".to_owned())));
        assert!(key.is_some());
        let found = settings(&["press=127.0.0.1:5570", "office=127.0.0.1:5580"]).carriers().expect("two edges");
        assert!(found.reach("press") && found.reach("office") && !found.reach("yard"));
    }

    #[test]
    fn what_names_no_edge_is_told() {
        let told = |edges: &[&str]| format!("{:#}", settings(edges).carriers().expect_err("a mistake"));
        for (text, part) in [
            ("press", "expected NAME=ADDRESS:PORT"),
            ("=127.0.0.1:5570", "expected a name"),
            ("press=localhost", "expected ADDRESS:PORT in digits"),
            ("press=1.1.1.1:1+1.1.1.1:2+1.1.1.1:3", "one broker, or both of a pair"),
            ("press=127.0.0.1:5570 short", "the public key"),
            ("press=127.0.0.1:5570 rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", "--edge-curve names no file"),
        ] {
            assert!(told(&[text]).contains(part), "{part} in {}", told(&[text]));
        }
        assert!(told(&["a=127.0.0.1:1", "a=127.0.0.1:2"]).contains("names a twice"));
    }
}
