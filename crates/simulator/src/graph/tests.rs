use super::*;

/// Runs pairs of these seeds; gives what they have seen together.
fn run_all(seeds: std::ops::Range<u64>, steps: u32) -> GraphTally {
    let mut all = GraphTally::default();
    for seed in seeds {
        let tally = run(seed, steps).unwrap_or_else(|violation| panic!("{violation}"));
        all.published += tally.published;
        all.crashes += tally.crashes;
        all.crashes_in_a_round += tally.crashes_in_a_round;
        all.restored += tally.restored;
        all.checkpoints += tally.checkpoints;
        all.duplicates += tally.duplicates;
    }
    all
}

#[test]
fn a_graph_goes_on_through_crashes_without_a_gap_and_with_one_result_for_each_name() {
    let tally = run_all(0..400, 400);
    assert!(tally.crashes > 200 && tally.crashes_in_a_round > 50 && tally.restored == tally.crashes, "{tally:?}");
    assert!(tally.checkpoints > 1_000 && tally.duplicates > 20, "{tally:?}");
}

#[test]
fn a_seed_repeats_its_run() {
    assert_eq!(run(5, 300), run(5, 300));
    assert_ne!(run(5, 300), run(6, 300));
}

/// What is found of pairs whose nodes do something wrong.
fn found(flaw: Flaw) -> Vec<String> {
    (0..100).filter_map(|seed| run_with(seed, 400, Some(flaw)).err()).map(|violation| violation.what).collect()
}

#[test]
fn what_nodes_do_wrong_is_found() {
    for (flaw, told) in [
        (Flaw::TakesAgain, "has other bytes than"),
        (Flaw::CheckpointFirst, "results, without a gap"),
        (Flaw::AcknowledgesMore, "has other bytes than"),
    ] {
        let found = found(flaw);
        assert!(found.iter().any(|what| what.contains(told)), "{flaw:?} is not found as such: {found:?}");
    }
}

#[test]
fn what_the_checkpoint_has_is_passed_over_by_the_broker_and_by_the_graph() {
    for flaw in [Flaw::NoWatermarks, Flaw::NoCover] {
        assert_eq!(found(flaw), [""; 0], "{flaw:?}: the other one does");
    }
}
