//! What a leader counts on.

use std::time::Duration;

use bodkin_broker::ReplicationPolicy;

use crate::config::HostConfig;

/// What a leader counts on.
#[derive(Clone, Copy, Debug)]
pub struct PairTerms {
    /// x: how long publishers may be without a broker that takes their events, when the leader has stopped.
    pub failover: Duration,
    /// How long publishers may take to come back behind a promotion.
    pub redirect: Duration,
    /// When replicas go out.
    pub replication: ReplicationPolicy,
}

impl PairTerms {
    /// As the configuration has them.
    pub fn of(config: &HostConfig) -> Self {
        let [failover, redirect] =
            [config.platform.failover(), config.platform.lease.redirect].map(|time| Duration::from_nanos(time.get().unsigned_abs()));
        let (pace, backup_keeps) = (config.replication_pace, config.backup_keeps);
        Self { failover, redirect, replication: ReplicationPolicy { pace, backup_keeps, ..ReplicationPolicy::of(&config.platform) } }
    }
}
