//! Fleets whose numbers are known.

use super::*;

const MS: u64 = 1_000_000;

/// One edge of a topic an millisecond: batches of ten events, each ten milliseconds, to one server.
fn small() -> Fleet {
    let line = Line { bytes_per_s: 1 << 30, delay_ns: 0 };
    let edge = EdgeTerms {
        topics: 10,
        period_ns: 10 * MS,
        event_bytes: 100,
        batch_bytes_max: 64 << 10,
        batch_delay_ns: 10 * MS - 1,
        window: 64,
        event_ns: 0,
        batch_ns: 0,
        uplink: line,
    };
    let cluster =
        ClusterTerms { servers: 1, streams: 1, replicas: 1, cores: 1, batch_ns: 0, kib_ns: 0, sync_ns: 0, site: line, between_ns: 0 };
    Fleet { edges: 1, edge, cluster }
}

fn run(fleet: &Fleet) -> FleetReport {
    fleet.run(7, 4_000 * MS).expect("it is a fleet")
}

fn load(report: &FleetReport, station: &str) -> f64 {
    report.loads.iter().find(|load| load.station == station).expect("there is such a station").load
}

#[test]
fn a_batch_waits_for_its_delay_and_for_each_station() {
    let mut fleet = small();
    fleet.cluster.sync_ns = 2 * MS;
    fleet.cluster.site.delay_ns = 3 * MS;
    let report = run(&fleet);
    assert!((report.made_per_s - 1_000.0).abs() < 10.0 && (report.acknowledged_per_s - 1_000.0).abs() < 10.0, "{report:?}");
    // Ten milliseconds to close, three there, two for the disk, three back; a KiB on a line of a GiB a second is a microsecond.
    assert!(report.latency.max_ns.abs_diff(18 * MS) < 10_000 && report.latency.p50_ns.abs_diff(18 * MS) < 10_000, "{report:?}");
    assert!((load(&report, "disk of a server") - 0.2).abs() < 0.01, "{report:?}");
    assert_eq!(report.edges_max(1), 5, "five times as much is what the disk can do");
    assert!(report.growth.abs() < 20, "{report:?}");
}

#[test]
fn what_is_full_falls_behind_by_what_is_too_much() {
    let mut fleet = small();
    fleet.edges = 10;
    fleet.cluster.sync_ns = 2 * MS;
    fleet.edge.window = 4;
    let report = run(&fleet);
    // 500 syncs a second for 1,000 batches: half of the events.
    assert_eq!(report.loads[0].station, "disk of a server");
    assert!((report.loads[0].load - 2.0).abs() < 0.05, "{report:?}");
    assert!((report.acknowledged_per_s - 5_000.0).abs() < 100.0, "{report:?}");
    assert!((report.growth - 15_000).abs() < 500, "three seconds of 5,000 events: {report:?}");
    assert_eq!(report.edges_max(10), 5);
}

#[test]
fn a_window_that_is_too_small_for_the_way_is_a_limit() {
    let mut fleet = small();
    fleet.edge.window = 2;
    fleet.edge.uplink.delay_ns = 20 * MS;
    let report = run(&fleet);
    // Two batches each 40 ms, and four are made.
    assert_eq!(report.loads[0].station, "window of the edges", "{report:?}");
    assert!((report.acknowledged_per_s - 500.0).abs() < 15.0, "{report:?}");
}

#[test]
fn an_acknowledgement_waits_for_the_majority_and_all_replicas_work() {
    let mut fleet = small();
    fleet.cluster = ClusterTerms { servers: 3, replicas: 3, sync_ns: MS, between_ns: 5 * MS, ..fleet.cluster };
    let report = run(&fleet);
    // The second of three: over to it, its disk, and back.
    assert!(report.latency.p50_ns.abs_diff((10 + 5 + 1 + 5) * MS) < 10_000, "{report:?}");
    assert!((load(&report, "disk of a server") - 0.1).abs() < 0.01, "{report:?}");
    let spread = run(&Fleet { edges: 3, cluster: ClusterTerms { streams: 3, ..fleet.cluster }, ..fleet });
    assert!((load(&spread, "disk of a server") - 0.3).abs() < 0.02, "each server has each stream: {spread:?}");
    let single = run(&Fleet { edges: 3, cluster: ClusterTerms { streams: 3, replicas: 1, ..fleet.cluster }, ..fleet });
    assert!((load(&single, "disk of a server") - 0.1).abs() < 0.01, "each has one: {single:?}");
}

#[test]
fn a_batch_is_closed_by_its_bytes() {
    let mut fleet = small();
    fleet.edge.batch_bytes_max = 250;
    fleet.cluster.sync_ns = MS;
    let report = run(&fleet);
    assert!((load(&report, "disk of a server") - 0.5).abs() < 0.02, "two events a batch, 500 batches a second: {report:?}");
}

#[test]
fn a_seed_repeats_a_run_and_a_number_that_cannot_be_is_told() {
    let fleet = Fleet { edges: 20, ..small() };
    assert_eq!(run(&fleet), run(&fleet));
    let none = Fleet { edges: 0, ..small() }.run(1, MS).expect_err("there are no edges");
    assert_eq!(none.to_string(), "edges must be from 1 to 100000, and 0 came");
    let replicas =
        Fleet { cluster: ClusterTerms { replicas: 2, ..small().cluster }, ..small() }.run(1, MS).expect_err("there is one server");
    assert_eq!(replicas.to_string(), "replicas must be from 1 to 1, and 2 came");
}
