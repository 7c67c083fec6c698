//! Which level is next.

use super::*;

/// o0 (high, from A) is read by o1 (low); o2 (high, from B) stands alone; o3 (low, from C) stands alone.
fn two_levels() -> Graph {
    let on = |number: usize| Source::Operator(OperatorId::of(number));
    let operators = vec![
        operator("o0", Shape::NUMBER, &[source(0)]),
        operator("o1", Shape::NUMBER, &[on(0)]),
        operator("o2", Shape::NUMBER, &[source(1)]),
        operator("o3", Shape::NUMBER, &[source(2)]),
    ];
    let outputs = vec![output("X0", 0, 0), output("X1", 1, 5), output("X2", 2, 0), output("X3", 3, 5)];
    let suppliers = ["A", "B", "C"].map(|topic| supplier(topic, Shape::NUMBER, 10)).to_vec();
    Graph::new("g".to_owned(), suppliers, operators, outputs).expect("it is a graph")
}

fn rig(cores: usize, is_preemptive: bool) -> Rig {
    Rig::with(two_levels(), Policy { cores, is_preemptive, replaces_queued: false })
}

#[test]
fn work_of_a_level_goes_before_sharing_from_it_and_sharing_before_work_below() {
    let mut rig = rig(1, false);
    rig.arrive(0, 1);
    rig.arrive(2, 1);
    rig.arrive(1, 1);
    assert_eq!(rig.running(), [0]);
    // The result of o0 is to be shared with o1. o2 is ready at the high level, o3 waits at the low level since before.
    rig.finish(0);
    assert_eq!(rig.running(), [2], "work of the level goes before sharing from it");
    assert!(rig.machine.levels[0].waits(), "the shared result waits");
    rig.finish(2);
    assert!(!rig.machine.levels[0].waits(), "sharing goes before work below: it is handed over");
    let ready: Vec<usize> = rig.machine.levels[1].ready.iter().map(|operator| operator.index()).collect();
    assert_eq!(
        (rig.running(), ready),
        (vec![1], vec![]),
        "what was shared is handed over before the low level takes its own supplier's event"
    );
    rig.finish(1);
    assert_eq!(rig.running(), [3]);
}

#[test]
fn without_preemption_no_less_urgent_round_begins_while_more_urgent_work_waits() {
    let mut rig = rig(1, false);
    rig.arrive(2, 1);
    assert_eq!(rig.running(), [3], "nothing else is there");
    rig.arrive(2, 2);
    rig.arrive(0, 1);
    assert_eq!(rig.running(), [3], "it is not stopped");
    rig.finish(3);
    assert_eq!(rig.running(), [0], "by one round at the most");
}

#[test]
fn preemption_may_begin_while_rounds_run() {
    let mut rig = rig(1, false);
    rig.arrive(2, 1);
    rig.arrive(0, 1);
    assert_eq!(rig.running(), [3], "it is not stopped yet");
    rig.machine.preempt();
    rig.arrive(1, 1);
    assert_eq!(rig.running(), [0, 3], "the high level has a worker of its own");
    rig.finish_all();
    assert_eq!(rig.machine.slots_held(), 0);
}

#[test]
fn with_preemption_each_level_has_its_own_workers() {
    let mut rig = rig(1, true);
    rig.arrive(2, 1);
    rig.arrive(0, 1);
    assert_eq!(rig.running(), [0, 3], "the operating system stops the less urgent one");
    rig.arrive(1, 1);
    assert_eq!(rig.running(), [0, 3]);
    rig.finish(0);
    assert_eq!(rig.running(), [2, 3]);
    rig.finish(2);
    rig.finish(3);
    assert_eq!(rig.running(), [1]);
}

#[test]
fn less_urgent_levels_wait_while_they_are_held() {
    let mut rig = rig(2, true);
    rig.machine.hold();
    rig.arrive(2, 1);
    rig.arrive(0, 1);
    assert_eq!(rig.running(), [0], "the most urgent level goes on");
    rig.finish(0);
    assert_eq!(rig.running(), [0; 0], "what it shares waits too");
    let mut out = Vec::new();
    rig.machine.release(0, &mut out);
    let begun: Vec<_> =
        out.iter().filter_map(|action| if let Action::Run(job) = action { Some(job.operator.index()) } else { None }).collect();
    assert_eq!(begun, [1, 3]);
}

#[test]
fn independent_operators_of_a_level_run_at_once() {
    let mut rig = rig(2, false);
    rig.arrive(0, 1);
    rig.arrive(1, 1);
    rig.arrive(2, 1);
    assert_eq!(rig.running(), [0, 2], "both cores work for the high level");
}

#[test]
fn shared_events_are_handed_over_in_their_order_and_replaced_in_their_places() {
    // o0 and o1 (high) are read by o2 and o3 (low).
    let on = |number: usize| Source::Operator(OperatorId::of(number));
    let operators = vec![
        operator("o0", Shape::NUMBER, &[source(0)]),
        operator("o1", Shape::NUMBER, &[source(1)]),
        operator("o2", Shape::NUMBER, &[on(0)]),
        operator("o3", Shape::NUMBER, &[on(1)]),
    ];
    let outputs = vec![output("X0", 0, 0), output("X1", 1, 0), output("X2", 2, 3), output("X3", 3, 3)];
    let suppliers = ["A", "B"].map(|topic| supplier(topic, Shape::NUMBER, 10)).to_vec();
    let mut rig = Rig::new(Graph::new("g".to_owned(), suppliers, operators, outputs).expect("it is a graph"), 1);
    for (supplier, sequence) in [(0, 1), (1, 1), (0, 2)] {
        rig.arrive(supplier, sequence);
    }
    for _ in 0..3 {
        assert!(rig.running()[0] < 2, "the high level is first");
        rig.finish(rig.running()[0]);
    }
    assert_eq!(rig.running(), [2], "its event came first");
    assert_eq!(rig.machine.counters(OperatorId::of(2)).replaced, 1, "and a newer one has taken its place");
    rig.finish(2);
    assert_eq!(rig.running(), [3]);
    rig.finish(3);
    assert_eq!((rig.sequences(), rig.machine.slots_held()), (vec![1, 1, 2, 2, 1], 0));
}

#[test]
fn an_event_that_waits_to_be_taken_is_replaced_if_that_is_chosen() {
    for (replaces_queued, expected) in [(true, vec![1, 3]), (false, vec![1, 2, 3])] {
        let mut rig = Rig::with(chain(&[1], &[(0, 0)]), Policy { cores: 1, is_preemptive: false, replaces_queued });
        (1..=3).for_each(|sequence| rig.arrive(0, sequence));
        rig.finish_all();
        assert_eq!((rig.sequences(), rig.machine.arrivals_lost().1), (expected.clone(), 3 - expected.len() as u64));
    }
}
