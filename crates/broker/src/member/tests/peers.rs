//! Which process counts as a node: each rule by name.

use super::*;

/// What a greeting of this process is refused for, at this time.
fn refusal(trial: &mut Trial, now: u64, peer: Peer) -> Option<GreetingRefusal> {
    trial.now = now;
    trial.member.greet(Instant::from_nanos(now), peer, None, &mut Vec::new()).err()
}

#[test]
fn second_process_is_refused_while_first_is_heard() {
    let mut witness = Trial::old(Node::Witness);
    let (first, other) = (peer(Node::First), Peer { node: Node::First, incarnation: Incarnation(99) });
    let retry = |nanos| Some(GreetingRefusal::Predecessor { retry_after: Duration::from_nanos(nanos) });
    assert_eq!(refusal(&mut witness, 1, other), retry(SILENCE_NS - 1), "the first one may have ended a moment ago");
    witness.take(Input::Heard(Node::First));
    assert_eq!(refusal(&mut witness, SILENCE_NS, other), retry(1));
    witness.now = SILENCE_NS + 1;
    witness.take(Input::Heard(Node::First));
    let duplicate = Some(GreetingRefusal::Duplicate { holder: first.incarnation });
    assert_eq!(refusal(&mut witness, SILENCE_NS + 2, other), duplicate, "it was heard long after the other one had begun");
    assert_eq!(witness.member.connected(Node::First), Some(first));
    assert_eq!(refusal(&mut witness, 2 * SILENCE_NS + 1, other), None, "an open connection proves nothing: frames do");
    assert_eq!(witness.member.connected(Node::First), Some(other));
}

#[test]
fn clone_of_a_dead_process_waits_for_its_promises() {
    let mut second = Trial::old(Node::Second);
    let clone = Peer { node: Node::Witness, incarnation: Incarnation(99) };
    assert!(refusal(&mut second, 5, clone).is_some());
    second.now = 10;
    second.take(Input::Heard(Node::Witness));
    second.take(Input::Gone(Node::Witness));
    let retry_after = Duration::from_nanos(5);
    assert_eq!(refusal(&mut second, SILENCE_NS + 5, clone), Some(GreetingRefusal::Predecessor { retry_after }));
    let restarted = Peer { incarnation: Incarnation(100), ..clone };
    assert_eq!(refusal(&mut second, SILENCE_NS + 5, restarted), None, "a process that started later is silent itself");
    second.take(Input::Gone(Node::Witness));
    assert_eq!(refusal(&mut second, 2 * SILENCE_NS + 5, clone), None);
}

#[test]
fn promise_outlives_the_connection_it_was_given_on() {
    let mut witness = Trial::old(Node::Witness);
    let other = Peer { node: Node::First, incarnation: Incarnation(99) };
    witness.now = SILENCE_NS;
    witness.renewed_by(Node::First, 1);
    witness.take(Input::Gone(Node::First));
    let retry_after = Duration::from_nanos(LEASE_NS - 5);
    assert_eq!(refusal(&mut witness, SILENCE_NS + 5, other), Some(GreetingRefusal::Predecessor { retry_after }));
    assert_eq!(refusal(&mut witness, SILENCE_NS + LEASE_NS, other), None, "a restarted node is back after a lease");
    witness.take(Input::Heard(Node::Second));
    let asked = witness.receive(Node::First, request(3));
    assert_eq!(refusals(&asked), [(BallotRefusal::Unconfirmed, 0)], "the Backup was not asked yet");
    witness.confirm(other);
    let mut voted = witness.receive(Node::First, request(3));
    voted.extend(witness.settle());
    assert_eq!(votes(&voted).len(), 1);
}

#[test]
fn voter_alone_decides_after_the_other_is_silent() {
    let mut witness = Trial::old(Node::Witness);
    let other = Peer { node: Node::First, incarnation: Incarnation(99) };
    witness.take(Input::Gone(Node::First));
    witness.now = SILENCE_NS;
    witness.take(Input::Heard(Node::Second));
    assert_eq!(refusal(&mut witness, SILENCE_NS, other), None);
    let asked = |witness: &mut Trial, now| {
        witness.now = now;
        refusals(&witness.receive(Node::First, request(3))).first().map(|(reason, _)| *reason)
    };
    assert_eq!(asked(&mut witness, 2 * SILENCE_NS - 1), Some(BallotRefusal::Unconfirmed));
    assert_eq!(asked(&mut witness, 2 * SILENCE_NS), None, "what the Backup may have promised has expired");
}

#[test]
fn refused_process_neither_leads_nor_votes() {
    let mut first = Trial::old(Node::First);
    first.take(Input::Rejected { by: Node::Witness, until: Instant::from_nanos(3 * SILENCE_NS) });
    first.at(2 * SILENCE_NS);
    assert_eq!(first.member.campaign, None);
    assert_eq!(refusals(&first.receive(Node::Second, request(2))), [(BallotRefusal::Unconfirmed, 0)]);
    first.take(Input::Heard(Node::Witness));
    assert!(first.member.campaign.is_some(), "the witness takes it for the first candidate again");
    let mut winner = Trial::new(Node::First, Mode::Pair { winner: Node::First }, Record::NEW);
    winner.at(SILENCE_NS);
    assert!(winner.member.leading().is_some());
    winner.take(Input::Rejected { by: Node::Second, until: Instant::from_nanos(9 * SILENCE_NS) });
    winner.at(SILENCE_NS + HEARTBEAT_NS);
    winner.at(SILENCE_NS + LEASE_NS);
    assert_eq!(winner.member.leading(), None, "without a witness, too");
}

#[test]
fn node_of_another_pair_is_refused() {
    let (ours, theirs) = (PairId(5), PairId(6));
    let record = Record { epoch: Epoch(1), reserved: Epoch(0), standing: IN_SYNC, pair: Some(ours), ..GRANTED };
    let mut witness = Trial::new(Node::Witness, Mode::Majority, record);
    witness.take(Input::Gone(Node::First));
    let greeted = |trial: &mut Trial, pair| {
        let now = Instant::from_nanos(trial.now);
        trial.member.greet(now, Peer { node: Node::First, incarnation: Incarnation(99) }, pair, &mut Vec::new())
    };
    assert_eq!(greeted(&mut witness, Some(theirs)), Err(GreetingRefusal::OtherPair { ours, theirs }));
    // The Backup's report of the former process has expired.
    witness.now = SILENCE_NS;
    assert_eq!(greeted(&mut witness, Some(ours)), Ok(()));
}

#[test]
fn first_leader_names_the_pair_when_a_voter_knows_it() {
    let mut first = leader();
    assert_eq!((first.member.pair(), first.member.durable.pair), (Some(PairId(1)), None), "it may die before anybody knows");
    let grant = Ballot::Grant { epoch: Epoch(1), sent_at_ns: first.now, standing: Standing::default() };
    first.receive(Node::Witness, grant);
    first.settle();
    assert_eq!(first.member.durable.pair, Some(PairId(1)));
}

#[test]
fn candidate_learns_the_pair_before_the_vote() {
    let record = Record { epoch: Epoch(1), reserved: Epoch(0), standing: IN_SYNC, pair: Some(PairId(5)), ..GRANTED };
    let mut witness = Trial::new(Node::Witness, Mode::Majority, record);
    witness.now = 2 * SILENCE_NS;
    let asked = witness.receive(Node::Second, request(2));
    let knows = |ballot: &Ballot| matches!(ballot, Ballot::Sighting { pair: Some(PairId(5)), .. });
    let sighting = sent(&asked).iter().position(knows).expect("the witness tells the pair");
    assert!(sent(&asked)[..sighting].iter().all(|ballot| !matches!(ballot, Ballot::Vote { .. })), "{asked:?}");
}

#[test]
fn stronger_claim_keeps_the_name() {
    let other = Peer { node: Node::First, incarnation: Incarnation(99) };
    let seen = |claim| {
        let Ballot::Sighting { epoch, pair, node, incarnation, number, answers, .. } = sighting(other) else { unreachable!() };
        Ballot::Sighting { epoch, pair, node, incarnation, claim, number, answers }
    };
    let disconnects = |outputs: &[Output]| outputs.iter().any(|output| matches!(output, Output::Disconnect { node: Node::First, .. }));
    for (claim, keeps) in [(Claim::Remembered, true), (Claim::Heard, true), (Claim::Agreed, true), (Claim::Promised, false)] {
        let mut witness = Trial::old(Node::Witness);
        let outputs = witness.receive(Node::Second, seen(claim));
        assert_eq!(!disconnects(&outputs), keeps, "{claim:?}");
        assert_eq!(witness.member.connected(Node::First).is_some(), keeps, "{claim:?}");
    }
}
