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
