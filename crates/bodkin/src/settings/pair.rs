//! The options of the reliable pair, and what they mean.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, bail};
use bodkin_broker::{Node, member::Mode};
use bodkin_host::pair::PairConfig;

use super::Settings;

/// Where a pair's node listens by default: on loopback, as all of insecure mode.
pub const PAIR_LISTEN: &str = "127.0.0.1:5571";

/// How long the right to lead lasts, and what it depends on; the same on all three nodes.
#[derive(Clone, Copy, Debug)]
pub struct PairTimes {
    /// The lease.
    pub lease: Duration,
    /// Between two renewals.
    pub heartbeat: Duration,
    /// How wrong clocks may run, in millionths.
    pub drift_ppm: u32,
}

impl Settings {
    /// The node that complete settings name; `None` of a cloud by itself.
    pub fn pair(&self) -> anyhow::Result<Option<PairConfig>> {
        let all = "complete settings have every option";
        let role = self.role.as_deref().expect(all);
        let is_insecure = self.insecure.expect(all);
        let (peer, witness) = (self.peer.as_deref().expect(all), self.witness.as_deref().expect(all));
        let node = match role {
            "" if peer.is_empty() && witness.is_empty() => return Ok(None),
            "primary" => Node::First,
            "backup" => Node::Second,
            other => bail!("--role is primary or backup, not {other:?}; --peer and --witness need one of them"),
        };
        if !is_insecure {
            bail!("--role {role} needs --insecure: the replica link has no TLS yet");
        }
        let mut others = Vec::new();
        if node == Node::First {
            others.push((Node::Second, address(peer, "--peer")?));
        }
        let mode = match witness {
            "" => Mode::Pair { winner: Node::First },
            witness => {
                others.push((Node::Witness, address(witness, "--witness")?));
                Mode::Majority
            }
        };
        let times = PairTimes {
            lease: Duration::from_millis(self.lease_ms.expect(all)),
            heartbeat: Duration::from_millis(self.lease_heartbeat_ms.expect(all)),
            drift_ppm: self.clock_drift_ppm.expect(all),
        };
        let listen = (node == Node::Second).then(|| address(self.pair_listen.as_deref().expect(all), "--pair-listen")).transpose()?;
        Ok(Some(config(node, self.data.clone().expect(all), listen, others, mode, times)))
    }
}

/// The node's configuration.
pub fn config(
    node: Node,
    data: PathBuf,
    listen: Option<SocketAddr>,
    others: Vec<(Node, SocketAddr)>,
    mode: Mode,
    times: PairTimes,
) -> PairConfig {
    let PairTimes { lease, heartbeat, drift_ppm } = times;
    PairConfig { node, data, listen, others, mode, lease, heartbeat, drift_ppm, is_forced: false }
}

/// An address as an option has it; a name is looked up once.
pub fn address(text: &str, option: &str) -> anyhow::Result<SocketAddr> {
    let found = text.trim().to_socket_addrs().with_context(|| format!("{option} {text:?} is no HOST:PORT"))?.next();
    found.with_context(|| format!("{option} {text:?} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_knows_whom_it_connects_to_and_a_mistake_is_told() {
        let settings = |role: &str, peer: &str, witness: &str, insecure| Settings {
            role: Some(role.into()),
            peer: Some(peer.into()),
            witness: Some(witness.into()),
            insecure: Some(insecure),
            ..Settings::defaults()
        };
        let nodes = |settings: Settings| {
            let pair = settings.pair().unwrap()?;
            Some((pair.node, pair.listen.is_some(), pair.others.into_iter().map(|(node, _)| node).collect::<Vec<_>>()))
        };
        assert_eq!(nodes(settings("", "", "", false)), None);
        let (peer, witness) = ("127.0.0.1:1", "127.0.0.1:2");
        assert_eq!(nodes(settings("primary", peer, witness, true)), Some((Node::First, false, vec![Node::Second, Node::Witness])));
        assert_eq!(nodes(settings("backup", "", witness, true)), Some((Node::Second, true, vec![Node::Witness])));
        assert_eq!(settings("primary", peer, "", true).pair().unwrap().unwrap().mode, Mode::Pair { winner: Node::First });
        let cases = [
            (("other", "", "", true), "--role is primary or backup"),
            (("", peer, "", true), "--role is primary or backup"),
            (("backup", "", witness, false), "needs --insecure"),
            (("primary", "", witness, true), "--peer \"\" is no HOST:PORT"),
            (("backup", "", "nowhere", true), "--witness \"nowhere\" is no HOST:PORT"),
        ];
        for ((role, peer, witness, insecure), expected) in cases {
            let refused = format!("{:#}", settings(role, peer, witness, insecure).pair().unwrap_err());
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
