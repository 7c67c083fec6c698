use super::*;

/// Runs these seeds; gives what they have seen together.
fn run_all(seeds: std::ops::Range<u64>, steps: u32, fetching: Fetching) -> MoveTally {
    let mut all = MoveTally::default();
    for seed in seeds {
        let tally = run(seed, steps, fetching).unwrap_or_else(|violation| panic!("{violation}"));
        all.published += tally.published;
        all.moves += tally.moves;
        all.died_committed += tally.died_committed;
        all.died_before += tally.died_before;
        all.cuts += tally.cuts;
        all.kills += tally.kills;
        all.kills_with_handover += tally.kills_with_handover;
        all.passed_over += tally.passed_over;
        all.crashes += tally.crashes;
        all.crashes_before += tally.crashes_before;
        all.crashes_between += tally.crashes_between;
        all.crashes_behind += tally.crashes_behind;
    }
    all
}

#[test]
fn an_operator_that_moves_takes_every_event_once_and_in_order_whoever_dies_when() {
    let tally = run_all(0..400, 2_000, Fetching::Alone);
    assert!(tally.moves > 1_000 && tally.published > 10_000, "{tally:?}");
    assert!(tally.died_committed > 30 && tally.died_before > 100 && tally.cuts > 400, "{tally:?}");
    assert!(tally.kills > 400 && tally.kills_with_handover > 30 && tally.passed_over > 100, "{tally:?}");
}

#[test]
fn an_operator_that_moves_to_a_pair_and_back_keeps_its_state_whenever_a_leader_of_that_dies() {
    let tally = run_all(0..400, 3_000, Fetching::Pair);
    assert!(tally.moves > 800 && tally.published > 10_000 && tally.cuts > 400 && tally.crashes > 1_500, "{tally:?}");
    assert!(tally.crashes_before > 30 && tally.crashes_between > 30 && tally.crashes_behind > 100, "{tally:?}");
}

#[test]
fn a_seed_repeats_its_run() {
    assert_eq!(run(5, 300, Fetching::Pair), run(5, 300, Fetching::Pair));
    assert_ne!(run(5, 300, Fetching::Alone), run(6, 300, Fetching::Alone));
}

#[test]
fn what_edges_do_wrong_is_found() {
    for (fetching, flaw, told) in [
        (Fetching::Alone, MoveFlaw::ForgetsTaken, "is processed twice"),
        (Fetching::Alone, MoveFlaw::SubscribesLate, "the mean at event"),
        (Fetching::Alone, MoveFlaw::HoldsNothing, "the mean at event"),
        (Fetching::Alone, MoveFlaw::KeepsNothing, "the mean at event"),
        (Fetching::Pair, MoveFlaw::ForgetsTheVersionBefore, "is taken behind"),
        (Fetching::Pair, MoveFlaw::DoesNotWait, "is taken behind"),
        (Fetching::Pair, MoveFlaw::CountsTooEarly, "results of"),
        (Fetching::Pair, MoveFlaw::LeavesOutTaken, "the mean at event"),
    ] {
        let run = |seed| run_with(seed, 2_000, fetching, Some(flaw));
        let found: Vec<String> = (0..200).filter_map(|seed| run(seed).err()).map(|violation| violation.what).collect();
        assert!(found.iter().any(|what| what.contains(told)), "{flaw:?} is not found as such: {found:?}");
    }
}
