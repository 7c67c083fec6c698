//! `/api/v1/platform`: what deadlines and leases count on, and what this machine shows of it.

use std::net::SocketAddr;

use bodkin_broker::topic::LeaseTimes;
use serde::Serialize;

use super::Api;
use crate::{
    answer::Answer,
    realtime::{SchedulingView, TimeOfDay},
    stall::Notice,
};

/// Where ZMTP is spoken; `None`: it is not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ZmtpPlaces {
    /// The port.
    pub address: Option<SocketAddr>,
    /// The path of this machine.
    pub ipc: Option<String>,
}

/// The platform as it is told. Times are whole microseconds, rounded up.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlatformView {
    #[serde(flatten)]
    notice: Notice,
    /// In words, with what to do.
    why: Option<String>,
    /// `null` while they are measured.
    machine_stall_us: Option<u64>,
    longest_turn_us: Option<u64>,
    scheduling: SchedulingView,
    failover_us: i64,
    lease: LeaseView,
    load_max_percent: u32,
    clocks: u64,
    /// `null` where the system does not tell.
    time_of_day: Option<TimeOfDay>,
    zmtp: ZmtpPlaces,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaseView {
    lease_us: i64,
    heartbeat_us: i64,
    drift_ppm: u32,
    detect_jitter_us: i64,
    redirect_us: i64,
}

impl Api {
    pub(super) fn platform(&self) -> Answer {
        let (stalls, platform) = (&self.stalls, self.topics.platform());
        let LeaseTimes { lease, heartbeat, drift_ppm, detect_jitter, redirect } = platform.lease;
        let notice = stalls.notice();
        let view = PlatformView {
            notice,
            why: notice.why(),
            machine_stall_us: stalls.machine_ns().map(|ns| ns.div_ceil(1_000)),
            longest_turn_us: stalls.shard_ns().map(|ns| ns.div_ceil(1_000)),
            scheduling: self.realtime.view(),
            failover_us: platform.failover().micros_up(),
            lease: LeaseView {
                lease_us: lease.micros_up(),
                heartbeat_us: heartbeat.micros_up(),
                drift_ppm,
                detect_jitter_us: detect_jitter.micros_up(),
                redirect_us: redirect.micros_up(),
            },
            load_max_percent: platform.load_max_percent,
            clocks: stalls.clocks(),
            time_of_day: TimeOfDay::read().ok(),
            zmtp: self.zmtp.clone(),
        };
        Answer::json(200, &view)
    }
}
