//! Another server takes over: a standby that is promoted, at another address of the same URL.

use std::{
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

use super::{faults::Writers, network::Wire, *};

/// A server, a standby that has followed it, and two nodes that know both.
fn began(settings: &[&str]) -> Option<(Server, Server, [Node; 2])> {
    let mut server = Server::start()?;
    let standby = server.standby();
    if !settings.is_empty() {
        server.restart_with(&settings.iter().map(|setting| (*setting).to_owned()).collect::<Vec<_>>());
    }
    let url = server.url_with(&standby);
    Some((server, standby, [Node::at(&url), Node::at(&url)]))
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_standby_that_takes_over_has_all_that_was_answered_where_commits_wait_for_it() {
    let Some((mut server, standby, nodes)) = began(&["synchronous_standby_names=*"]) else {
        return skip("a_standby_that_takes_over_has_all_that_was_answered_where_commits_wait_for_it");
    };
    let writers = Writers::start(&nodes);
    writers.wait_for_more("at first");
    server.crash();
    for node in &nodes {
        eventually(|| node.store().standing().unwrap().away.is_some(), || "the loss is noticed".into());
    }
    // One that follows is not taken for the database.
    let told = Store::share(TempDir::new().unwrap().path(), &DatabasePlace::parse(&standby.url()).unwrap()).err().unwrap().to_string();
    assert!(told.contains("does not allow writes"), "{told}");
    standby.promote();
    writers.wait_for_more("behind the fail-over");
    let unavailable = writers.end(|| Node::start(&standby));
    nodes[0].follows(&nodes[1]);
    assert_eq!(Node::start(&standby).snapshot(), nodes[0].snapshot());
    assert!(unavailable > 0);
    assert_eq!(nodes.each_ref().map(|node| node.store().standing().unwrap().setbacks), [0, 0]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_standby_that_was_behind_is_followed_whole_and_what_it_lacks_is_told() {
    let Some(mut server) = Server::start() else {
        return skip("a_standby_that_was_behind_is_followed_whole_and_what_it_lacks_is_told");
    };
    let mut standby = server.standby();
    // The nodes do not find it before others have written there.
    let wire = Wire::to(standby.socket());
    wire.holds.store(true, SeqCst);
    let url = server.url().replace("/cloud", &format!(",{}/cloud", wire.address));
    let nodes = [Node::at(&url), Node::at(&url)];
    let register = |node: &Node, number: usize| {
        let system = system(number);
        node.runtime.block_on(node.store().write(move |draft| draft.register_system(&system), |_, id| id.0))
    };
    let names = |node: &Node| node.snapshot().systems().map(|system| system.system_name.to_string()).collect::<Vec<_>>();
    register(&nodes[0], 1).unwrap();
    let commits = |server: &Server| server.sql("cloud", "SELECT number FROM bodkin.shared");
    // Whether it has the table already: without it nothing can be asked of it.
    let has_tables = || standby.sql("cloud", "SELECT to_regclass('bodkin.shared') IS NOT NULL") == "t";
    eventually(has_tables, || "the standby follows".into());
    eventually(|| commits(&standby) == "1", || "the standby follows".into());
    standby.crash();
    register(&nodes[1], 2).unwrap();
    nodes[0].follows(&nodes[1]);
    server.crash();
    standby.begin();
    standby.promote();
    // The commit of it has the number of the lost one, which both nodes have shown.
    let third = Node::start(&standby);
    register(&third, 3).unwrap();
    assert_eq!((commits(&standby), nodes[0].store().standing().unwrap().number), ("2".to_owned(), 2));
    wire.holds.store(false, SeqCst);
    for node in &nodes {
        eventually(|| names(node) == ["racer-1", "racer-3"], || format!("{:?}: {:?}", names(node), node.store().standing()));
        eventually(|| node.store().standing().unwrap().setbacks == 1, || format!("{:?}", node.store().standing()));
    }
    eventually(|| register(&nodes[1], 4).is_ok(), || format!("{:?}", nodes[1].store().standing()));
    assert_eq!(names(&nodes[1]), ["racer-1", "racer-3", "racer-4"], "who has written reads it at once");
    nodes[0].follows(&nodes[1]);
    third.follows(&nodes[1]);
}

/// Longest time from the promotion of a standby until every node uses it.
const CHANGE_OVER_MAX: Duration = Duration::from_secs(1);

#[test]
#[ignore = "peer: ./x test --all"]
fn nodes_change_over_within_a_second_of_the_promotion() {
    let Some((mut server, standby, nodes)) = began(&["synchronous_standby_names=*"]) else {
        return skip("nodes_change_over_within_a_second_of_the_promotion");
    };
    let is_away = |node: &Node| node.store().standing().unwrap().away.is_some();
    server.crash();
    for node in &nodes {
        eventually(|| is_away(node), || "the loss is noticed".into());
    }
    standby.promote();
    let promoted = Instant::now();
    eventually(|| !nodes.iter().any(is_away), || "the standby is used".into());
    assert!(promoted.elapsed() < CHANGE_OVER_MAX, "{:?}", promoted.elapsed());
}
