//! Options of the crashes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
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
    /// Number of faults to draw at random, with a new configuration every five faults; without it each fault strikes as --times says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub faults: Option<u32>,
    /// Seed that repeats the drawn configurations and faults [default: a new one]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// File with the seed and the results so far; a rerun with the same options continues behind the last finished fault
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Directory for the nodes' logs of each fault that breaks a promise [default: bodkin-crash-SEED in this folder]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Run the pair and its clients in secure mode
    #[arg(long)]
    pub secure: bool,
    /// Program of the nodes [default: this program]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Run no publishers and subscribers but DEALERs, so that nothing else loads the machine
    #[arg(long)]
    pub dealer_only: bool,
    /// Start the Primary before the standby
    #[arg(long, conflicts_with = "faults")]
    pub primary_first: bool,
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

    /// Returns the program of the nodes.
    ///
    /// # Errors
    /// Returns an error if the system does not tell the path of this program.
    pub fn program(&self) -> anyhow::Result<PathBuf> {
        self.program.clone().map_or_else(std::env::current_exe, Ok).context("cannot tell the path of this program")
    }

    /// Returns the options that the plan comes from, as text: a state file is of one such text.
    pub fn plan_text(&self) -> String {
        let Self { faults, times, secure, dealer_only, primary_first, streams, period_ms, .. } = self;
        let names: Vec<String> = self.fault.iter().map(|fault| fault.name()).collect();
        let lease = [self.lease_ms, self.heartbeat_ms, self.detect_jitter_ms, self.redirect_ms];
        let count = faults.map_or_else(|| format!("--times {times}"), |faults| format!("--faults {faults}"));
        format!(
            "{count} --fault {} --streams {streams} --period-ms {period_ms} secure {secure} dealer-only {dealer_only} primary-first {primary_first} \
            lease {lease:?}",
            names.join(",")
        )
    }

    /// Returns true if nodes get disks of their own.
    pub fn mounts_disks(&self) -> bool {
        self.fault.is_empty() || self.fault.iter().any(|fault| fault.needs_disks())
    }

    /// x: what the lease implies.
    pub fn failover(&self) -> Duration {
        Duration::from_nanos(self.lease().failover().get().unsigned_abs())
    }
}
