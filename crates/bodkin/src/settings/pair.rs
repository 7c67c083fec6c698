//! The options of the reliable pair, and what they mean.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    num::NonZeroU64,
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, bail};
use bodkin_broker::{
    Node, ReplicationPace,
    member::Mode,
    timing::Nanos,
    topic::{LeaseTimes, Platform},
};
use bodkin_host::{
    pair::{EVENT_BYTES_MAX, PROTOCOL, PairConfig},
    realtime::Realtime,
};

use super::Settings;

/// Where a pair's node listens by default: on loopback, until the operator names another address.
pub const PAIR_LISTEN: &str = "127.0.0.1:5571";

/// Events go to the Backup as late as their topics allow.
pub const LAZY: &str = "lazy";

/// When events go to the Backup; the period is that of `periodic`.
pub fn replication_pace(replication: &str, period_ms: u64) -> anyhow::Result<ReplicationPace> {
    Ok(match replication {
        LAZY => ReplicationPace::Lazy,
        "eager" => ReplicationPace::Eager,
        "periodic" => {
            let period_ns = period_ms.checked_mul(1_000_000).and_then(NonZeroU64::new);
            ReplicationPace::Periodic {
                period_ns: period_ns.context("--replication-period-ms must be at least 1, and no longer than a clock counts")?,
            }
        }
        other => bail!("--replication is lazy, eager or periodic, not {other:?}"),
    })
}

impl Settings {
    /// The node that complete settings name; `None` of a cloud by itself.
    pub fn pair(&self) -> anyhow::Result<Option<PairConfig>> {
        let all = "complete settings have every option";
        let role = self.role.as_deref().expect(all);
        let (peer, witness) = (self.peer.as_deref().expect(all), self.witness.as_deref().expect(all));
        let node = match role {
            "" if peer.is_empty() && witness.is_empty() => return Ok(None),
            "primary" => Node::First,
            "backup" => Node::Second,
            other => bail!("--role is primary or backup, not {other:?}; --peer and --witness need one of them"),
        };
        let event_bytes_max = self.event_bytes_max.expect(all);
        if event_bytes_max > EVENT_BYTES_MAX {
            bail!(
                "event_bytes_max is {event_bytes_max}: a node of a pair replicates events of at most {EVENT_BYTES_MAX} bytes; state that or less"
            );
        }
        let mut others = Vec::new();
        if node == Node::First {
            if peer.is_empty() {
                bail!(
                    "--role primary needs --peer, where the Backup listens for it (its --pair-listen, {PAIR_LISTEN} unless that says otherwise), and best a --witness, too"
                );
            }
            others.push((Node::Second, address(peer, "--peer")?));
        }
        let mode = match witness {
            "" => Mode::Pair { winner: Node::First },
            witness => {
                others.push((Node::Witness, address(witness, "--witness")?));
                Mode::Majority
            }
        };
        let lease = lease(&self.platform())?;
        let listen = (node == Node::Second).then(|| address(self.pair_listen.as_deref().expect(all), "--pair-listen")).transpose()?;
        Ok(Some(config(node, self.data.clone().expect(all), listen, others, mode, lease)))
    }
}

/// The node's configuration, without what only the whole of the settings says.
pub fn config(
    node: Node,
    data: PathBuf,
    listen: Option<SocketAddr>,
    others: Vec<(Node, SocketAddr)>,
    mode: Mode,
    lease_times: LeaseTimes,
) -> PairConfig {
    let duration = |time: Nanos| Duration::from_nanos(time.get().unsigned_abs());
    let (lease, heartbeat, drift_ppm) = (duration(lease_times.lease), duration(lease_times.heartbeat), lease_times.drift_ppm);
    let realtime = Realtime::ordinary();
    PairConfig {
        node,
        data,
        listen,
        others,
        security: None,
        mode,
        lease,
        heartbeat,
        drift_ppm,
        detect_jitter: duration(lease_times.detect_jitter),
        redirect: duration(lease_times.redirect),
        topics: None,
        protocol: PROTOCOL,
        is_forced: false,
        realtime,
    }
}

/// The times that the nodes of a pair run with: those of `[platform]`, which states all of them or none, and no fail-over that is shorter.
pub fn lease(platform: &Platform) -> anyhow::Result<LeaseTimes> {
    let LeaseTimes { lease, heartbeat, drift_ppm, detect_jitter, redirect } = platform.lease;
    let times = [("lease", lease), ("heartbeat", heartbeat), ("detect_jitter", detect_jitter), ("redirect", redirect)];
    let missing = times.iter().find(|(_, time)| *time == Nanos::ZERO).map(|(key, _)| *key).or((drift_ppm == 0).then_some("drift_ppm"));
    match missing {
        None => {}
        Some(_) if platform.lease == LeaseTimes::default() => return self::lease(&Platform { lease: LeaseTimes::SHIPPED, ..*platform }),
        Some(key) => bail!(
            "[platform] states some of the lease's times and no {key}: a pair needs lease, heartbeat, drift_ppm, detect_jitter and redirect, or \
            none of them"
        ),
    }
    if let Some(implied) = platform.failover_shortfall() {
        bail!("[platform] failover is shorter than the {implied} that the lease implies");
    }
    Ok(platform.lease)
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
    fn a_pair_has_all_of_the_shipped_lease_or_none_of_it() {
        let ms = Nanos::from_millis;
        let stated = LeaseTimes { lease: ms(20), heartbeat: ms(5), drift_ppm: 200, detect_jitter: ms(6), redirect: ms(4) };
        let of = |failover, lease| self::lease(&Platform { failover, lease, ..Platform::default() }).map_err(|error| error.to_string());
        assert_eq!(of(None, LeaseTimes::default()), Ok(LeaseTimes::SHIPPED));
        assert_eq!(of(Some(LeaseTimes::SHIPPED.failover()), LeaseTimes::default()), Ok(LeaseTimes::SHIPPED));
        assert_eq!(of(Some(ms(36)), stated), Ok(stated));
        let cases = [
            (None, LeaseTimes { heartbeat: Nanos::ZERO, ..stated }, "no heartbeat"),
            (None, LeaseTimes { drift_ppm: 0, ..stated }, "no drift_ppm"),
            (None, LeaseTimes { redirect: Nanos::ZERO, ..stated }, "no redirect"),
            (Some(ms(35)), stated, "shorter than the 35.004 ms"),
            (Some(LeaseTimes::SHIPPED.failover() - Nanos::new(1)), LeaseTimes::default(), "that the lease implies"),
        ];
        for (failover, lease, expected) in cases {
            let refused = of(failover, lease).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn pair_with_too_long_events_is_refused() {
        let of = |role: &str, event_bytes_max| {
            let settings = Settings {
                role: Some(role.to_owned()),
                peer: Some(if role.is_empty() { String::new() } else { "127.0.0.1:1".to_owned() }),
                event_bytes_max: Some(event_bytes_max),
                ..Settings::defaults()
            };
            settings.pair().map(|pair| pair.is_some()).map_err(|error| error.to_string())
        };
        assert_eq!(of("primary", EVENT_BYTES_MAX), Ok(true));
        assert_eq!(of("", EVENT_BYTES_MAX + 1), Ok(false), "a cloud by itself replicates nothing");
        let refused = of("primary", EVENT_BYTES_MAX + 1).unwrap_err();
        assert!(refused.contains("event_bytes_max is 131073") && refused.contains("at most 131072"), "{refused}");
    }

    #[test]
    fn replication_has_three_paces_and_one_of_them_a_period() {
        let pace = |text, period_ms| replication_pace(text, period_ms).map_err(|error| error.to_string());
        let period_ns = NonZeroU64::new(25_000_000).unwrap();
        assert_eq!(pace(LAZY, 25), Ok(ReplicationPace::Lazy));
        assert_eq!(pace("eager", 0), Ok(ReplicationPace::Eager));
        assert_eq!(pace("periodic", 25), Ok(ReplicationPace::Periodic { period_ns }));
        assert!(pace("periodic", 0).unwrap_err().contains("at least 1") && pace("periodic", u64::MAX).is_err());
        assert!(pace("often", 1).unwrap_err().contains("lazy, eager or periodic"));
    }

    #[test]
    fn a_node_knows_whom_it_connects_to_and_a_mistake_is_told() {
        let settings = |role: &str, peer: &str, witness: &str| Settings {
            role: Some(role.into()),
            peer: Some(peer.into()),
            witness: Some(witness.into()),
            ..Settings::defaults()
        };
        let nodes = |settings: Settings| {
            let pair = settings.pair().unwrap()?;
            Some((pair.node, pair.listen.is_some(), pair.others.into_iter().map(|(node, _)| node).collect::<Vec<_>>()))
        };
        assert_eq!(nodes(settings("", "", "")), None);
        let (peer, witness) = ("127.0.0.1:1", "127.0.0.1:2");
        assert_eq!(nodes(settings("primary", peer, witness)), Some((Node::First, false, vec![Node::Second, Node::Witness])));
        assert_eq!(nodes(settings("backup", "", witness)), Some((Node::Second, true, vec![Node::Witness])));
        assert_eq!(settings("primary", peer, "").pair().unwrap().unwrap().mode, Mode::Pair { winner: Node::First });
        let cases = [
            (("other", "", ""), "--role is primary or backup"),
            (("", peer, ""), "--role is primary or backup"),
            (("primary", "", witness), "--role primary needs --peer"),
            (("primary", "nowhere", witness), "--peer \"nowhere\" is no HOST:PORT"),
            (("backup", "", "nowhere"), "--witness \"nowhere\" is no HOST:PORT"),
        ];
        for ((role, peer, witness), expected) in cases {
            let refused = format!("{:#}", settings(role, peer, witness).pair().unwrap_err());
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
