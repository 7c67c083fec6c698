//! The numbers of forwarding to a fleet's stream: of all lanes together. `GET /api/v1/fleet` has them one by one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Monitor, Number, label, push, push_histogram};
use crate::fleet::{BackState, FleetState, LaneState};

fn sum(fleet: &FleetState, number: fn(&LaneState) -> &AtomicU64) -> u64 {
    fleet.lanes.iter().map(|lane| number(lane).load(Relaxed)).sum()
}

impl Monitor {
    /// How old events were when the fleet's stream acknowledged them, with coarse bounds; the whole histograms are at `/api/v1/fleet`.
    pub(super) fn push_fleet_ages(&self, text: &mut String) {
        const NAME: &str = "bodkin_fleet_age_seconds";
        for (at, lane) in self.forwarding().flat_map(|fleet| &fleet.lanes).enumerate() {
            if at == 0 {
                const HELP: &str = "How old events were when the fleet's stream acknowledged them.";
                push(text, format_args!("# HELP {NAME} {HELP}\n# TYPE {NAME} histogram\n"));
            }
            push_histogram(text, NAME, &format!("lane=\"{}\"", label(&lane.name)), &lane.ages);
        }
    }
}

/// How it is now.
pub(super) fn gauges(fleet: &FleetState) -> [Number; 5] {
    let lag_ns = fleet.lanes.iter().map(|lane| lane.lag_ns.load(Relaxed)).max().unwrap_or_default();
    let count = |is: fn(&LaneState) -> bool| fleet.lanes.iter().filter(|lane| is(lane)).count() as u64;
    [
        ("bodkin_fleet_connected", "1 while the fleet's stream is there and takes events.", u64::from(fleet.is_connected.load(Relaxed))),
        (
            "bodkin_fleet_waiting_events",
            "Events in the event log that are not in the fleet's stream yet.",
            sum(fleet, |lane| &lane.waiting),
        ),
        ("bodkin_fleet_lag_seconds", "Age of the oldest event that is not in the fleet's stream yet.", lag_ns),
        (
            "bodkin_fleet_stopped_lanes",
            "Lanes to the fleet's stream that stand until somebody does something.",
            count(LaneState::is_stopped),
        ),
        (
            "bodkin_fleet_refused_lanes",
            "Lanes whose last request the fleet's stream refused or did not answer, and which retry.",
            count(LaneState::is_refused),
        ),
    ]
}

/// What has happened since the start.
pub(super) fn counters(fleet: &FleetState) -> [Number; 7] {
    [
        ("bodkin_fleet_stored_total", "Events that the fleet's stream has acknowledged.", sum(fleet, |lane| &lane.stored)),
        ("bodkin_fleet_batches_total", "Batches of them.", sum(fleet, |lane| &lane.batches)),
        ("bodkin_fleet_repeated_total", "Batches that the stream had already.", sum(fleet, |lane| &lane.repeated)),
        ("bodkin_fleet_lost_total", "Events that were lost in front of the fleet's stream, which is told.", sum(fleet, |lane| &lane.lost)),
        (
            "bodkin_fleet_lost_by_stream_total",
            "Events that the fleet's stream has acknowledged and does not have any more.",
            sum(fleet, |lane| &lane.lost_by_stream),
        ),
        (
            "bodkin_fleet_emptied_total",
            "Times that the fleet's stream was found purged or deleted: it had nothing of a lane any more, by none of its limits.",
            sum(fleet, |lane| &lane.emptied_times),
        ),
        ("bodkin_fleet_connections_total", "Connections that servers of the fleet have greeted.", fleet.connections.load(Relaxed)),
    ]
}

/// How what comes from the fleet is now.
pub(super) fn back_gauges(back: &BackState) -> [Number; 3] {
    [
        ("bodkin_from_fleet_connected", "1 while events of the fleet come here.", u64::from(back.is_connected.load(Relaxed))),
        (
            "bodkin_from_fleet_under_way_events",
            "Events of the fleet that have come and are not in the event log yet.",
            back.under_way.load(Relaxed),
        ),
        (
            "bodkin_from_fleet_waiting_events",
            "Messages in the fleet's stream for this edge that have not come, as was heard last.",
            back.waiting.load(Relaxed),
        ),
    ]
}

/// What has come since the start.
pub(super) fn back_counters(back: &BackState) -> [Number; 6] {
    [
        ("bodkin_from_fleet_taken_total", "Events of the fleet that were published here.", back.taken.load(Relaxed)),
        ("bodkin_from_fleet_repeated_total", "Messages of the fleet that came again and were known.", back.repeated.load(Relaxed)),
        (
            "bodkin_from_fleet_passed_over_total",
            "Messages for all edges that were none of this one's: of other event types, or made here.",
            back.passed.load(Relaxed),
        ),
        ("bodkin_from_fleet_refused_total", "Messages of the fleet that can never be published here.", back.refused.load(Relaxed)),
        (
            "bodkin_from_fleet_lost_total",
            "Messages that the fleet's stream has let go of before they came, at the most.",
            back.lost.load(Relaxed),
        ),
        (
            "bodkin_from_fleet_connections_total",
            "Connections for them that servers of the fleet have greeted.",
            back.connections.load(Relaxed),
        ),
    ]
}
