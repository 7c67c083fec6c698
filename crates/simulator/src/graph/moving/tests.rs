use super::*;

/// Runs these seeds; gives what they have seen together.
fn run_all(seeds: std::ops::Range<u64>, steps: u32) -> MoveTally {
    let mut all = MoveTally::default();
    for seed in seeds {
        let tally = run(seed, steps).unwrap_or_else(|violation| panic!("{violation}"));
        all.published += tally.published;
        all.moves += tally.moves;
        all.died_committed += tally.died_committed;
        all.died_before += tally.died_before;
        all.cuts += tally.cuts;
        all.kills += tally.kills;
        all.kills_with_handover += tally.kills_with_handover;
        all.passed_over += tally.passed_over;
    }
    all
}

#[test]
fn an_operator_that_moves_takes_every_event_once_and_in_order_whoever_dies_when() {
    let tally = run_all(0..400, 2_000);
    assert!(tally.moves > 1_000 && tally.published > 10_000, "{tally:?}");
    assert!(tally.died_committed > 30 && tally.died_before > 100 && tally.cuts > 400, "{tally:?}");
    assert!(tally.kills > 400 && tally.kills_with_handover > 30 && tally.passed_over > 100, "{tally:?}");
}

#[test]
fn a_seed_repeats_its_run() {
    assert_eq!(run(5, 300), run(5, 300));
    assert_ne!(run(5, 300), run(6, 300));
}

#[test]
fn what_edges_do_wrong_is_found() {
    let found =
        |flaw| (0..200).filter_map(|seed| run_with(seed, 1_000, Some(flaw)).err()).map(|violation| violation.what).collect::<Vec<_>>();
    for (flaw, told) in [
        (MoveFlaw::ForgetsTaken, "is processed twice"),
        (MoveFlaw::SubscribesLate, "the mean at event"),
        (MoveFlaw::HoldsNothing, "the mean at event"),
        (MoveFlaw::KeepsNothing, "the mean at event"),
    ] {
        let found = found(flaw);
        assert!(found.iter().any(|what| what.contains(told)), "{flaw:?} is not found as such: {found:?}");
    }
}
