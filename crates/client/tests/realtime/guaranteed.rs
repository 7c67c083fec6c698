//! What brokers say that they guarantee.

use std::time::Duration;

use bodkin_broker::wire::ClientFrame;
use bodkin_client::realtime::*;
use bodkin_zmtp::ServerSecurity;

use super::{
    attached, blocking, both,
    broker::{Order, TestBroker},
    bytes,
};

#[test]
fn what_is_guaranteed_is_told_to_whoever_publishes_or_subscribes() {
    let (first, second) = (TestBroker::leading(1), TestBroker::start(ServerSecurity::Null));
    let (mut sends, mut hears) = attached(&first, &second, blocking());
    let suspended = ClientFrame::Guaranteed {
        epoch: Epoch(1),
        deadlines: Guarantee::Held,
        losses: Guarantee::Suspended,
        worst_stall_ns: 7_000,
        blocking_ns: 9_000,
        clock_difference_ns: 0,
        clock_error_ns: 50,
        publisher_excess_ns: 1,
        broker_backup_ns: 2,
        broker_backup_stated_ns: 3,
    };
    first.order(Order::Say(vec![bytes(&suspended)]));
    let told = |reports: &[SessionReport]| {
        let guaranteed = |report: &SessionReport| match report {
            SessionReport::Guaranteed(session, guaranteed) => Some((*session, *guaranteed)),
            _ => None,
        };
        reports.iter().rev().find_map(guaranteed)
    };
    let unstated = Guaranteed {
        deadlines: Guarantee::Unstated,
        losses: Guarantee::Unstated,
        worst_stall: Duration::ZERO,
        blocking: Duration::ZERO,
        clock_difference: Duration::ZERO,
        clock_error: Duration::ZERO,
        publisher_excess: Duration::ZERO,
        broker_backup: Duration::ZERO,
        broker_backup_stated: Duration::ZERO,
    };
    let ours = Guaranteed {
        deadlines: Guarantee::Held,
        losses: Guarantee::Suspended,
        worst_stall: Duration::from_nanos(7_000),
        blocking: Duration::from_nanos(9_000),
        clock_error: Duration::from_nanos(50),
        publisher_excess: Duration::from_nanos(1),
        broker_backup: Duration::from_nanos(2),
        broker_backup_stated: Duration::from_nanos(3),
        ..unstated
    };
    for sessions in [&sends.sessions, &hears.sessions] {
        let first = sessions.iter().any(|report| matches!(report, SessionReport::Guaranteed(Session::One, told) if *told == unstated));
        assert!(first, "it is asked for on each session: {sessions:?}");
    }
    both(&mut sends, &mut hears, "both are told", |sends, hears| {
        [&sends.sessions, &hears.sessions].iter().all(|sessions| told(sessions) == Some((Session::One, ours)))
    });
}
