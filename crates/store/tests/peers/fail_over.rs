//! Another server takes over: a standby that is promoted, at another address of the same URL.

use super::{faults::Writers, *};

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
    let Some((mut server, mut standby, nodes)) = began(&[]) else {
        return skip("a_standby_that_was_behind_is_followed_whole_and_what_it_lacks_is_told");
    };
    let register = |node: &Node, number: usize| {
        let system = system(number);
        node.runtime.block_on(node.store().write(move |draft| draft.register_system(&system), |_, id| id.0))
    };
    let names = |node: &Node| node.snapshot().systems().map(|system| system.system_name.to_string()).collect::<Vec<_>>();
    register(&nodes[0], 1).unwrap();
    let commits = || standby.sql("cloud", "SELECT number FROM bodkin.shared");
    eventually(|| commits() == "1", || "the standby follows".into());
    standby.crash();
    register(&nodes[1], 2).unwrap();
    nodes[0].follows(&nodes[1]);
    server.crash();
    standby.begin();
    standby.promote();
    // It takes the number of the one that is lost, at a node that has shown that.
    eventually(|| register(&nodes[0], 3).is_ok(), || format!("{:?}", nodes[0].store().standing()));
    assert_eq!(names(&nodes[0]), ["racer-1", "racer-3"], "who has written reads it at once, and no more what is lost");
    eventually(|| names(&nodes[1]) == ["racer-1", "racer-3"], || format!("{:?}", nodes[1].store().standing()));
    for node in &nodes {
        eventually(|| node.store().standing().unwrap().setbacks == 1, || format!("{:?}", node.store().standing()));
        assert_eq!(node.store().standing().unwrap().number, 2);
    }
    register(&nodes[1], 4).unwrap();
    nodes[0].follows(&nodes[1]);
    assert_eq!(Node::start(&standby).snapshot(), nodes[0].snapshot());
}
