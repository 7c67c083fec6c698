//! From an event's acceptance to its discard the machine allocates nothing, once its tables have grown; nor does a graph that it is processed by.

mod counting;
#[path = "../examples/work_per_hop/workload.rs"]
mod graph;
#[path = "../examples/work_per_message/workload.rs"]
mod workload;

use counting::allocations;
use workload::Workload;

const TOPICS: usize = 300;
/// Turns of few and of many events.
const BURSTS: [usize; 3] = [1, 17, TOPICS];

#[test]
fn accepting_dispatching_replicating_and_covering_allocate_nothing() {
    assert_ne!(allocations(|| drop(std::hint::black_box(vec![1]))), 0, "allocations are counted");
    for is_eager in [false, true] {
        let mut workload = Workload::new(TOPICS, is_eager);
        let mut rounds = |times| (0..times).for_each(|_| BURSTS.iter().for_each(|burst| workload.round(*burst)));
        rounds(1);
        assert_eq!(allocations(|| rounds(20)), 0, "{} events, eager: {is_eager}", 20 * BURSTS.len() * TOPICS);
        workload.check(is_eager);
    }
}

#[test]
fn processing_in_a_graph_allocates_nothing() {
    let mut graph = graph::Workload::new(5);
    let mut rounds = |times| (0..times).for_each(|_| graph.round());
    rounds(1);
    assert_eq!(allocations(|| rounds(100)), 0, "{} hops", 100 * 5 * 7);
    graph.check();
}
