//! A pair without a leader: each broker that runs reports it, and what is missing.

use std::{
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::nodes::{Node, Pair, Relay};
use crate::support::arrowhead::system;
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;

/// Returns the text that `bodkin status` shows of a node that does not lead.
fn status(node: &Node) -> String {
    node.call(System::Monitor, "GET", "/api/v1/overview", None).expect("an answer").expect_status(503).text()
}

#[track_caller]
fn reports(node: &Node, causes: &[&str]) {
    assert!(eventually(|| node.gauge("bodkin_pair_without_leader") == 1), "{}", status(node));
    let is_shown = || {
        let shown = status(node);
        shown.contains("No leader of the pair is found.") && causes.iter().all(|cause| shown.contains(cause))
    };
    assert!(eventually(is_shown), "{causes:?} are not in {}", status(node));
    let refused = node.call(System::EventHandler, "POST", "/eventhandler/publish", None).expect("an answer").expect_status(503);
    assert!(refused.text().contains("No leader of the pair is found."), "{}", refused.text());
    let page = node.call(System::Monitor, "GET", "/", None).expect("an answer").expect_status(503);
    assert!(page.text().contains("No leader of the pair is found"), "{}", page.text());
    assert!(eventually(|| node.said().contains("this node finds no leader of the pair, and cannot lead")), "{}", node.said());
}

/// No leader is missed for longer than it takes to report that.
#[track_caller]
fn reports_nothing(node: &Node, leader: &Node) {
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        assert_eq!((node.gauge("bodkin_pair_without_leader"), leader.gauge("bodkin_pair_leads")), (0, 1), "{}", status(node));
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn standby_without_primary_reports_no_leader() {
    let mut pair = Pair::new();
    let _witness = pair.witness();
    let backup = pair.backup();
    reports(&backup, &["the first candidate (--role primary) is not reached (start it"]);
    assert_shown(backup.address(System::Monitor), "BodkinNobodyLeads");
    let mut primary = pair.primary();
    primary.served();
    primary.protected(true);
    assert!(eventually(|| backup.gauge("bodkin_pair_without_leader") == 0), "{}", backup.said());
    assert!(eventually(|| backup.said().contains("this node finds a leader of the pair again")), "{}", backup.said());
    assert!(status(&backup).contains("Another node of the pair leads"), "{}", status(&backup));
}

#[test]
fn last_node_reports_that_others_are_not_reached() {
    let (_pair, witness, backup, primary) = Pair::protected();
    assert_eq!(primary.gauge("bodkin_pair_without_leader"), 0);
    drop((witness, backup));
    let causes = ["the second candidate (standby) is not reached (start it", "the witness is not reached (start it"];
    reports(&primary, &causes);
}

#[test]
fn standby_that_lacks_changes_reports_it() {
    let (mut pair, _witness, backup, primary) = Pair::protected();
    drop(backup);
    primary.protected(false);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("late", 1))).unwrap().expect_status(201);
    primary.signal(Signal::SIGKILL);
    let backup = pair.backup();
    reports(&backup, &["the witness gives no vote, because this node lacks answered changes (start the node that led last)"]);
}

#[test]
fn standby_cut_off_from_leader_reports_no_missing_leader() {
    let mut pair = Pair::new();
    let _witness = pair.witness();
    let backup = pair.backup();
    let link = Relay::to(backup.pair_address());
    // At first the standby has never been in sync, and asks for no votes.
    link.cut(true);
    let mut primary = pair.primary_by(link.address);
    primary.served();
    reports_nothing(&backup, &primary);
    link.cut(false);
    primary.protected(true);
    link.cut(true);
    assert!(eventually(|| backup.gauge("bodkin_pair_unreached") == 1), "{}", backup.said());
    reports_nothing(&backup, &primary);
}

#[test]
fn stopped_standby_that_continues_reports_no_missing_leader() {
    let (_pair, _witness, backup, primary) = Pair::protected();
    backup.signal(Signal::SIGSTOP);
    thread::sleep(Duration::from_secs(6));
    backup.signal(Signal::SIGCONT);
    primary.protected(true);
    assert!(!backup.said().contains("finds no leader"), "{}", backup.said());
}

#[test]
fn refused_second_standby_reports_no_missing_leader() {
    let (pair, _witness, backup, primary) = Pair::protected();
    let second = pair.second(&["backup", "--pair-listen", "127.0.0.1:0"], "second");
    assert!(eventually(|| second.gauge("bodkin_pair_rejected") > 0), "{}", second.said());
    reports_nothing(&second, &primary);
    drop(backup);
}
