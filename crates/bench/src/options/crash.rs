//! Options of the crashes.

use std::path::PathBuf;
use std::time::Duration;

use bodkin_broker::topic::LeaseTimes;
use clap::Args;

use super::value::positive;
use crate::crash::Fault;

/// Faults of a real pair in network namespaces, which need root's rights and the program `ip`.
#[derive(Debug, Clone, Args)]
pub struct CrashOptions {
    /// What goes wrong, one after the other [default: everything]
    #[arg(long, value_enum, value_name = "FAULT", value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// How often each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub times: u32,
    /// Seconds without a fault in front of each, and behind it
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    pub seconds: f64,
    /// How long `none` lasts, in which nobody else may lead
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    pub undisturbed_seconds: f64,
    /// Streams of each kind: nothing may be lost, three in a row may, anything may
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub streams: u32,
    /// Between two events of a stream
    #[arg(long, value_name = "MS", default_value = "10", value_parser = positive)]
    pub period_ms: f64,
    /// How long the right to lead lasts
    #[arg(long, value_name = "MS", default_value_t = milliseconds(LeaseTimes::SHIPPED.lease))]
    pub lease_ms: f64,
    /// Between two renewals of it
    #[arg(long, value_name = "MS", default_value_t = milliseconds(LeaseTimes::SHIPPED.heartbeat))]
    pub heartbeat_ms: f64,
    /// How late the failure detector may look
    #[arg(long, value_name = "MS", default_value_t = milliseconds(LeaseTimes::SHIPPED.detect_jitter))]
    pub detect_jitter_ms: f64,
    /// From the promotion until publishers send to the new leader
    #[arg(long, value_name = "MS", default_value_t = milliseconds(LeaseTimes::SHIPPED.redirect))]
    pub redirect_ms: f64,
    /// Where the nodes' temporary data directories are made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

fn milliseconds(nanos: bodkin_broker::timing::Nanos) -> f64 {
    nanos.get() as f64 / 1e6
}

impl CrashOptions {
    /// The lease that they say.
    pub fn lease(&self) -> LeaseTimes {
        let nanos = |milliseconds: f64| bodkin_broker::timing::Nanos::new((milliseconds * 1e6) as i64);
        LeaseTimes {
            lease: nanos(self.lease_ms),
            heartbeat: nanos(self.heartbeat_ms),
            detect_jitter: nanos(self.detect_jitter_ms),
            redirect: nanos(self.redirect_ms),
            drift_ppm: LeaseTimes::SHIPPED.drift_ppm,
        }
    }

    /// x: what the lease implies.
    pub fn failover(&self) -> Duration {
        Duration::from_nanos(self.lease().failover().get().unsigned_abs())
    }
}
