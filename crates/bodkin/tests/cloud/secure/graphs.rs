//! Graphs in secure mode: the operator deploys them, and their results are heard by whoever may hear the systems that they are made of the events of.

use serde_json::json;

use super::{allow, register, register_publisher};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::secure::{Client, SecureCloud};
use crate::support::sse::EventStream;

/// Means of the last two levels.
const MEANS: &str = "[graph]\nname = \"secure-means\"\n[[supplier]]\ntopic = \"graph-level\"\nshape = \"f64\"\nperiod_ms = 1\n\
    [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"graph-level\"]\nwindow = 2\n\
    [[output]]\ntopic = \"graph-mean\"\nfrom = \"mean\"\n";

#[test]
fn the_operator_deploys_a_graph_and_its_results_are_heard_by_the_rules_about_its_suppliers() {
    let secure = SecureCloud::shared();
    let [sysop, sensor, display, stranger] = ["sysop", "graph-sensor", "graph-display", "graph-stranger"].map(Client::system);
    let source = register_publisher(&secure.cloud, &sensor, "graph-sensor");
    let [display_id, stranger_id] = [(&display, "graph-display"), (&stranger, "graph-stranger")]
        .map(|(client, name)| register(&secure.cloud, client, &system(name, 1)));
    let file = json!({ "file": MEANS });
    for other in [&sensor, &display] {
        other.expect(&secure.cloud, "POST", "/api/v1/graphs", Some(&file), 403);
    }
    sysop.expect(&secure.cloud, "POST", "/api/v1/graphs", Some(&file), 201);
    display.expect(&secure.cloud, "DELETE", "/api/v1/graphs?name=secure-means", None, 403);

    let target = |name: &str| format!("/eventhandler/subscription?eventtype=graph-mean&system_name={name}&address=127.0.0.1&port=1");
    stranger.expect(&secure.cloud, "GET", &target("graph-display"), None, 401);
    let open = |client: &Client, name: &str| {
        EventStream::open_on(client.connect(secure.cloud.address(System::EventHandler)).expect("a connection"), &target(name), &[])
    };
    let (hears, waits) = (open(&display, "graph-display"), open(&stranger, "graph-stranger"));
    allow(&secure.cloud, display_id, source);
    let publish = |level: &str| {
        let body = event("graph-level", system("graph-sensor", 1), level);
        sensor.expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&body), 200);
    };
    publish("1");
    publish("3");
    assert_eq!(hears.wait_for(2)[1].data, "2.0");
    allow(&secure.cloud, stranger_id, source);
    publish("5");
    assert_eq!(hears.wait_for(3)[2].data, "4.0");
    assert_eq!(waits.wait_for(1)[0].data, "4.0", "it has not heard what came before its rule");
    sysop.expect(&secure.cloud, "DELETE", "/api/v1/graphs?name=secure-means", None, 200);
}
