//! One member at a time: each rule by name.

mod hostile;
mod peers;

use std::time::Duration;

use super::*;
use crate::{
    epoch::PairId,
    event::Incarnation,
    wire::{Claim, Standing},
};

const LEASE_NS: u64 = 12_000;
const HEARTBEAT_NS: u64 = 3_000;
/// Twice a lease: what a restarted voter waits.
const SILENCE_NS: u64 = 24_000;
const COLD_NS: u64 = 48_000;
const IN_SYNC: Standing = Standing { epoch: Epoch(1), number: 1, out: None };
/// The record of a member that has these times.
const GRANTED: Record = Record { lease_max: Duration::from_nanos(SILENCE_NS), ..Record::NEW };

struct Trial {
    member: Member,
    now: u64,
}

impl Trial {
    fn new(node: Node, mode: Mode, record: Record) -> Self {
        let (lease, heartbeat) = (Duration::from_nanos(LEASE_NS), Duration::from_nanos(HEARTBEAT_NS));
        let config = MemberConfig::new(node, mode, lease, heartbeat, 0).expect("good times");
        let mut trial = Self { member: Member::new(config, record, Instant::default()), now: 0 };
        trial.take(Input::Tick);
        for other in config.others() {
            trial.connect(peer(other));
        }
        trial.settle();
        trial
    }

    /// Another node's process greets, and the third node takes it for the node, too.
    fn connect(&mut self, peer: Peer) {
        let mut outputs = Vec::new();
        let greeted = self.member.greet(Instant::from_nanos(self.now), peer, None, &mut outputs);
        assert_eq!(greeted, Ok(()), "{peer:?}");
        self.confirm(peer);
    }

    fn confirm(&mut self, peer: Peer) {
        let third = self.member.config.others().find(|other| *other != peer.node && self.member.connected(*other).is_some());
        if let Some(third) = third {
            self.receive(third, sighting(peer));
            self.receive(peer.node, sighting(self::peer(third)));
        }
    }

    /// A member of a pair that has led in epoch 1 and is in sync.
    fn old(node: Node) -> Self {
        Self::new(node, Mode::Majority, Record { epoch: Epoch(1), reserved: Epoch(0), standing: IN_SYNC, ..GRANTED })
    }

    fn take(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.member.step(Instant::from_nanos(self.now), input, &mut outputs);
        outputs
    }

    fn receive(&mut self, from: Node, ballot: Ballot) -> Vec<Output> {
        self.take(Input::Received { from, ballot })
    }

    /// Everything that is being written reaches the disk.
    fn settle(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        while self.member.writing.is_some() {
            outputs.extend(self.take(Input::Persisted));
        }
        outputs
    }

    fn at(&mut self, now: u64) -> Vec<Output> {
        self.now = now;
        self.take(Input::Tick)
    }

    fn renewed_by(&mut self, from: Node, epoch: u64) -> Vec<Output> {
        let ballot = Ballot::RenewRequest { epoch: Epoch(epoch), sent_at_ns: 7, lease_ns: LEASE_NS, standing: IN_SYNC };
        let mut outputs = self.receive(from, ballot);
        outputs.extend(self.settle());
        outputs
    }

    /// Is voted for by the witness, in the epoch that it asks for.
    fn voted(&mut self) -> Vec<Output> {
        let epoch = self.member.campaign.expect("it asks for votes").epoch;
        self.receive(Node::Witness, Ballot::Vote { epoch, sent_at_ns: self.now })
    }
}

/// A new pair's first candidate, which leads in epoch 1 from [`SILENCE_NS`] on.
fn leader() -> Trial {
    let mut first = Trial::new(Node::First, Mode::Majority, Record::NEW);
    first.at(SILENCE_NS);
    first.voted();
    first.settle();
    assert_eq!(first.member.leading(), Some((Epoch(1), Instant::from_nanos(SILENCE_NS + LEASE_NS))));
    first
}

/// The process that each node has at the beginning.
fn peer(node: Node) -> Peer {
    Peer { node, incarnation: Incarnation(node as u64 + 10) }
}

/// A report that this process is connected to the sender, which takes it for the node.
fn sighting(peer: Peer) -> Ballot {
    let Peer { node, incarnation } = peer;
    Ballot::Sighting {
        epoch: Epoch(0),
        pair: None,
        node,
        incarnation: Some(incarnation),
        claim: Claim::Agreed,
        number: 1,
        answers: u64::MAX,
    }
}

fn request(epoch: u64) -> Ballot {
    Ballot::VoteRequest { epoch: Epoch(epoch), sent_at_ns: 5, lease_ns: LEASE_NS, standing: IN_SYNC, warm: true, forced: false }
}

fn sent(outputs: &[Output]) -> Vec<Ballot> {
    let sent = outputs.iter().filter_map(|output| if let Output::Send { ballot, .. } = output { Some(*ballot) } else { None });
    sent.collect()
}

fn refusals(outputs: &[Output]) -> Vec<(BallotRefusal, u64)> {
    let refusal = |ballot| if let Ballot::Refused { reason, retry_after_ns, .. } = ballot { Some((reason, retry_after_ns)) } else { None };
    sent(outputs).into_iter().filter_map(refusal).collect()
}

fn votes(outputs: &[Output]) -> Vec<Ballot> {
    sent(outputs).into_iter().filter(|ballot| matches!(ballot, Ballot::Vote { .. })).collect()
}

fn tells(outputs: &[Output]) -> Vec<Tell> {
    outputs.iter().filter_map(|output| if let Output::Tell(tell) = output { Some(*tell) } else { None }).collect()
}

#[test]
fn the_first_candidate_of_a_new_pair_leads_when_the_witness_votes() {
    let mut first = Trial::new(Node::First, Mode::Majority, Record::NEW);
    assert_eq!(first.member.next_timer(), Some(Instant::from_nanos(SILENCE_NS)));
    assert_eq!(first.at(SILENCE_NS - 1), []);
    let asked = first.at(SILENCE_NS);
    assert_eq!(sent(&asked).len(), 2, "both others are asked: {asked:?}");
    let led = first.voted();
    let until = Instant::from_nanos(SILENCE_NS + LEASE_NS);
    assert!(led.contains(&Output::Lead { epoch: Epoch(1), until }), "{led:?}");
    let is_expected = |ballot: &Ballot| {
        let is_renewal = matches!(ballot, Ballot::RenewRequest { epoch: Epoch(1), .. });
        is_renewal || matches!(ballot, Ballot::Sighting { pair: Some(_), .. })
    };
    assert!(sent(&led).iter().all(is_expected), "{led:?}");
    let second = Trial::new(Node::Second, Mode::Majority, Record::NEW);
    assert_eq!(second.member.next_timer(), None, "who has nothing does not want to lead");
}

#[test]
fn a_vote_is_sent_when_it_is_on_the_disk_and_again_when_it_is_asked_again() {
    let mut witness = Trial::old(Node::Witness);
    witness.now = SILENCE_NS;
    let asked = witness.receive(Node::Second, request(2));
    let voted = Record { epoch: Epoch(2), reserved: Epoch(0), standing: IN_SYNC, ..GRANTED };
    assert_eq!(asked, [Output::Persist(voted)]);
    let vote = Output::Send { to: Node::Second, ballot: Ballot::Vote { epoch: Epoch(2), sent_at_ns: 5 } };
    assert_eq!(witness.take(Input::Persisted), [vote]);
    assert_eq!(witness.receive(Node::Second, request(2)), [vote]);
}

/// Before the restart, its lease was three times as long.
#[test]
fn a_restarted_voter_is_silent_for_what_it_may_have_promised_with_a_longer_lease() {
    let long = Record { lease_max: Duration::from_nanos(3 * SILENCE_NS), ..GRANTED };
    let mut witness = Trial::new(Node::Witness, Mode::Majority, long);
    witness.now = 3 * SILENCE_NS - 1;
    assert_eq!(refusals(&witness.receive(Node::Second, request(2))), [(BallotRefusal::Restarted, 1)]);
    assert_eq!(refusals(&witness.renewed_by(Node::First, 1)), [(BallotRefusal::Restarted, 1)]);
    witness.at(3 * SILENCE_NS);
    witness.settle();
    assert_eq!(witness.member.durable.lease_max, Duration::from_nanos(SILENCE_NS), "the promises before are over");
    let outputs = [witness.receive(Node::Second, request(2)), witness.settle()].concat();
    assert_eq!(votes(&outputs).len(), 1);
}

/// A restarted process reads from the disk how long it has to be silent.
#[test]
fn a_voter_grants_no_lease_that_is_longer_than_its_disk_says() {
    let short = Record { lease_max: Duration::from_nanos(LEASE_NS - 1), ..GRANTED };
    let config = Trial::old(Node::Witness).member.config;
    let mut witness = Trial { member: Member::new(config, short, Instant::default()), now: 0 };
    [Node::First, Node::Second].into_iter().for_each(|node| witness.connect(peer(node)));
    assert_eq!(witness.member.writing.map(|record| record.lease_max), Some(Duration::from_nanos(SILENCE_NS)));
    witness.now = SILENCE_NS;
    assert_eq!(refusals(&witness.receive(Node::Second, request(2))), [(BallotRefusal::Restarted, 0)]);
    let asked = Ballot::RenewRequest { epoch: Epoch(1), sent_at_ns: 7, lease_ns: LEASE_NS, standing: IN_SYNC };
    assert_eq!(refusals(&witness.receive(Node::First, asked)), [(BallotRefusal::Restarted, 0)]);
    witness.settle();
    assert!(refusals(&witness.renewed_by(Node::First, 1)).is_empty());
}

#[test]
fn a_vote_that_a_higher_epoch_overtakes_on_its_way_to_the_disk_is_not_sent() {
    let mut witness = Trial::old(Node::Witness);
    witness.now = SILENCE_NS;
    witness.receive(Node::Second, request(2));
    witness.receive(Node::First, Ballot::RenewRequest { epoch: Epoch(3), sent_at_ns: 1, lease_ns: 1, standing: IN_SYNC });
    assert_eq!(votes(&witness.settle()), []);
}

#[test]
fn a_voter_says_why_not() {
    use BallotRefusal::*;
    let second_out = Standing { number: 2, out: Some(Node::Second), ..IN_SYNC };
    let cold = |epoch, standing| Ballot::VoteRequest {
        epoch: Epoch(epoch),
        sent_at_ns: 5,
        lease_ns: LEASE_NS,
        standing,
        warm: false,
        forced: false,
    };
    let Ballot::VoteRequest { epoch, sent_at_ns, standing, warm, .. } = request(2) else { unreachable!() };
    let long = Ballot::VoteRequest { epoch, sent_at_ns, lease_ns: 2 * LEASE_NS + 1, standing, warm, forced: true };
    // When, what it had granted before (node, epoch), the request, the refusal with its wait.
    type Case = (u64, Option<(Node, u64)>, Node, Ballot, Option<(BallotRefusal, u64)>);
    let cases: [Case; 11] = [
        (SILENCE_NS - 1, None, Node::Second, request(2), Some((Restarted, 1))),
        (SILENCE_NS, None, Node::Second, request(2), None),
        (SILENCE_NS, Some((Node::First, 3)), Node::Second, request(2), Some((Stale, 0))),
        (SILENCE_NS, Some((Node::First, 3)), Node::Second, request(4), Some((Granted, LEASE_NS))),
        (SILENCE_NS, Some((Node::First, 3)), Node::First, request(5), None),
        (SILENCE_NS, None, Node::Second, long, Some((LeaseTooLong, 0))),
        (SILENCE_NS, None, Node::Second, cold(2, IN_SYNC), Some((Cold, COLD_NS - SILENCE_NS))),
        (COLD_NS - 1, None, Node::Second, cold(2, IN_SYNC), Some((Cold, 1))),
        (COLD_NS, None, Node::Second, cold(2, IN_SYNC), None),
        (COLD_NS, None, Node::Second, cold(2, second_out), Some((OutOfSync, 0))),
        (SILENCE_NS, None, Node::First, cold(3, second_out), None),
    ];
    for (row, (now, granted, from, ballot, refusal)) in cases.into_iter().enumerate() {
        let mut witness = Trial::old(Node::Witness);
        witness.now = now;
        if let Some((leader, epoch)) = granted {
            witness.renewed_by(leader, epoch);
        }
        let mut outputs = witness.receive(from, ballot);
        outputs.extend(witness.settle());
        assert_eq!(refusals(&outputs), Vec::from_iter(refusal), "row {row}");
        assert_eq!(votes(&outputs).len(), usize::from(refusal.is_none()), "row {row}");
    }
}

#[test]
fn of_two_candidates_the_one_with_the_higher_epoch_goes_on() {
    let mut first = Trial::old(Node::First);
    first.at(SILENCE_NS);
    assert_eq!(first.member.campaign.map(|campaign| campaign.epoch), Some(Epoch(3)));
    let refused = first.receive(Node::Second, request(2));
    assert!(
        matches!(sent(&refused)[..], [Ballot::Refused { epoch: Epoch(3), reason: BallotRefusal::Campaigning, .. }]),
        "the other one learns which epoch it has to exceed: {refused:?}"
    );
    let mut voted = first.receive(Node::Second, request(4));
    voted.extend(first.settle());
    assert_eq!(votes(&voted).len(), 1);
    assert_eq!(first.member.campaign, None);
    first.receive(Node::Witness, Ballot::Vote { epoch: Epoch(3), sent_at_ns: first.now });
    assert_eq!(first.member.leading(), None, "what was promised to the other one counts");
}

#[test]
fn a_lease_ends_at_its_time_and_a_late_grant_does_not_bring_it_back() {
    let mut first = leader();
    let grant = |sent_at_ns| Ballot::Grant { epoch: Epoch(1), sent_at_ns, standing: IN_SYNC };
    first.at(SILENCE_NS + HEARTBEAT_NS);
    let longer = first.receive(Node::Second, grant(SILENCE_NS + HEARTBEAT_NS));
    let until = SILENCE_NS + HEARTBEAT_NS + LEASE_NS;
    assert!(longer.contains(&Output::Lead { epoch: Epoch(1), until: Instant::from_nanos(until) }), "{longer:?}");
    assert_eq!(first.receive(Node::Witness, grant(SILENCE_NS + HEARTBEAT_NS + 1)), [], "nobody asked for that");
    first.at(until - 1);
    assert!(first.member.leading().is_some());
    first.now = until;
    let late = first.receive(Node::Witness, grant(until - 1));
    assert_eq!(late[0], Output::Fenced { epoch: Epoch(1) });
    assert_eq!(first.member.leading(), None);
    assert!(sent(&late).iter().all(|ballot| matches!(ballot, Ballot::VoteRequest { epoch: Epoch(3), warm: true, .. })), "{late:?}");
}

#[test]
fn what_is_stated_of_the_backup_counts_when_two_disks_have_it_or_its_own() {
    use Protection::*;
    let mut first = leader();
    let recorded_by = |first: &mut Trial, node| {
        let standing = first.member.durable.standing;
        first.receive(node, Ballot::Grant { epoch: Epoch(1), sent_at_ns: SILENCE_NS, standing })
    };
    let recorded = |first: &mut Trial| recorded_by(first, Node::Witness);
    let protections = |outputs: &[Output]| {
        let of = |output: &Output| if let Output::Protection(protection) = output { Some(*protection) } else { None };
        outputs.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(first.member.protection(), Unsettled);
    assert_eq!(protections(&recorded(&mut first)), [Alone], "a new pair's Backup has nothing yet");
    assert_eq!(protections(&first.take(Input::BackupInSync)), [Unsettled], "from now on its acknowledgement is waited for");
    assert_eq!(protections(&recorded(&mut first)), [], "the other disk has the old statement");
    first.settle();
    assert_eq!(protections(&recorded(&mut first)), [], "a Backup that does not know it would ask for no votes");
    assert_eq!(protections(&recorded_by(&mut first, Node::Second)), [Protected]);
    let stated = first.take(Input::BackupOut);
    assert_eq!(protections(&stated), [Unsettled]);
    let asks = |ballot: &Ballot| matches!(ballot, Ballot::RenewRequest { standing: Standing { out: Some(Node::Second), .. }, .. });
    assert!(sent(&stated).iter().all(asks), "the others are told at once: {stated:?}");
    let standing = first.member.wanted.standing;
    let early = first.receive(Node::Witness, Ballot::Grant { epoch: Epoch(1), sent_at_ns: SILENCE_NS, standing });
    assert_eq!(protections(&early), [], "the own disk does not have it yet");
    assert_eq!(protections(&first.settle()), [Alone]);
}

#[test]
fn a_leader_of_a_new_epoch_counts_on_its_backup_only_when_it_has_joined() {
    let mut first = Trial::old(Node::First);
    first.at(SILENCE_NS);
    first.voted();
    first.settle();
    let standing = first.member.durable.standing;
    assert_eq!(standing, Standing { epoch: Epoch(3), number: 0, out: None });
    first.receive(Node::Second, Ballot::Grant { epoch: Epoch(3), sent_at_ns: SILENCE_NS, standing });
    assert_eq!(first.member.protection(), Protection::Unsettled, "in sync, but with the last epoch");
    first.take(Input::BackupInSync);
    assert_eq!(first.member.protection(), Protection::Protected, "nothing new has to be recorded");
}

#[test]
fn a_grant_says_what_is_on_the_disk_and_comes_again_when_more_is() {
    let mut witness = Trial::old(Node::Witness);
    witness.now = SILENCE_NS;
    let standing = Standing { number: 2, ..IN_SYNC };
    let renewal = Ballot::RenewRequest { epoch: Epoch(1), sent_at_ns: 9, lease_ns: LEASE_NS, standing };
    let grant = |standing| Ballot::Grant { epoch: Epoch(1), sent_at_ns: 9, standing };
    assert_eq!(sent(&witness.receive(Node::First, renewal)), [grant(IN_SYNC)], "a lease does not wait for the disk");
    assert_eq!(sent(&witness.take(Input::Persisted)), [grant(standing)]);
}

#[test]
fn a_leader_that_a_voter_is_ahead_of_takes_a_higher_epoch_without_a_pause() {
    let mut first = leader();
    let stale = Ballot::Refused { epoch: Epoch(2), asked: Epoch(1), reason: BallotRefusal::Stale, retry_after_ns: 0 };
    let asked = first.receive(Node::Second, stale);
    assert!(matches!(sent(&asked)[..], [Ballot::VoteRequest { epoch: Epoch(3), .. }, _]), "{asked:?}");
    assert!(first.member.leading().is_some());
    let mut led = first.voted();
    led.extend(first.settle());
    assert_eq!(first.member.leading().map(|(epoch, _)| epoch), Some(Epoch(3)), "when the epoch is on the disk");
    assert!(!led.iter().any(|output| matches!(output, Output::Fenced { .. })), "{led:?}");
}

#[test]
fn a_candidate_leads_in_an_epoch_that_its_disk_has_reserved_and_never_twice_in_one() {
    let mut second = Trial::old(Node::Second);
    let reserved = second.member.durable.reserved;
    let mut restarted = Trial::new(Node::Second, Mode::Majority, second.member.durable);
    second.at(SILENCE_NS);
    assert_eq!(second.member.campaign.map(|campaign| campaign.epoch), Some(reserved));
    restarted.member.durable.reserved = reserved;
    restarted.at(SILENCE_NS);
    let epoch = restarted.member.campaign.expect("it asks for votes").epoch;
    assert!(epoch > reserved);
    restarted.voted();
    assert_eq!(restarted.member.leading(), None, "it is not on the disk");
    restarted.member.durable.reserved = epoch;
    restarted.take(Input::Tick);
    assert_eq!(restarted.member.leading().map(|(epoch, _)| epoch), Some(epoch));
}

#[test]
fn who_has_restarted_leads_after_the_others_had_their_time_and_says_so() {
    let mut first = Trial::old(Node::First);
    first.at(SILENCE_NS);
    assert!(tells(&first.voted()).contains(&Tell::Cold(Epoch(3))));
    let mut second = Trial::old(Node::Second);
    second.now = SILENCE_NS;
    second.renewed_by(Node::First, 1);
    second.take(Input::Warm { epoch: Epoch(1) });
    let cold = Ballot::VoteRequest { epoch: Epoch(3), sent_at_ns: 5, lease_ns: LEASE_NS, standing: IN_SYNC, warm: false, forced: false };
    assert_eq!(refusals(&second.receive(Node::First, cold)).first().map(|(reason, _)| *reason), Some(BallotRefusal::Cold));
    second.at(SILENCE_NS + LEASE_NS);
    assert_eq!(tells(&second.voted()), [], "it has the messages");
}

#[test]
fn restarted_candidate_votes_in_no_epoch_below_one_that_it_may_have_led() {
    let led = Record { epoch: Epoch(1), reserved: Epoch(5), standing: IN_SYNC, ..GRANTED };
    let mut first = Trial::new(Node::First, Mode::Majority, led);
    first.at(SILENCE_NS);
    let mut refused = first.receive(Node::Second, request(4));
    refused.extend(first.settle());
    let told = sent(&refused).into_iter().find(|ballot| matches!(ballot, Ballot::Refused { .. }));
    assert!(matches!(told, Some(Ballot::Refused { epoch, reason: BallotRefusal::Stale, .. }) if epoch >= Epoch(5)), "{refused:?}");
    let mut voted = first.receive(Node::Second, request(8));
    voted.extend(first.settle());
    assert_eq!(votes(&voted).len(), 1, "{voted:?}");
}

#[test]
fn first_leader_of_a_pair_lacks_nothing() {
    let mut first = Trial::new(Node::First, Mode::Majority, Record::NEW);
    first.at(SILENCE_NS);
    assert_eq!(tells(&first.voted()), []);
}

#[test]
fn who_follows_another_leader_has_not_its_messages() {
    let mut first = leader();
    let fenced = first.renewed_by(Node::Second, 2);
    assert_eq!(fenced[..2], [Output::Fenced { epoch: Epoch(1) }, Output::Follow { leader: Node::Second, epoch: Epoch(2) }]);
    assert!(!first.member.is_warm());
    first.take(Input::Warm { epoch: Epoch(2) });
    first.renewed_by(Node::Second, 4);
    assert!(first.member.is_warm(), "the same node leads on");
}

#[test]
fn two_nodes_alone_have_a_winner_and_the_danger_is_told() {
    let pair = Mode::Pair { winner: Node::First };
    let old = Record { epoch: Epoch(1), reserved: Epoch(0), standing: Standing { out: Some(Node::Second), ..IN_SYNC }, ..GRANTED };
    let mut winner = Trial::new(Node::First, pair, old);
    assert!(tells(&winner.at(SILENCE_NS)).contains(&Tell::NoMajority));
    assert_eq!(winner.member.leading(), Some((Epoch(3), Instant::from_nanos(SILENCE_NS + LEASE_NS))));
    winner.at(SILENCE_NS + HEARTBEAT_NS);
    assert_eq!(winner.member.leading(), Some((Epoch(3), Instant::from_nanos(SILENCE_NS + HEARTBEAT_NS + LEASE_NS))));
    let mut other = Trial::new(Node::Second, pair, old);
    other.at(100 * SILENCE_NS);
    assert_eq!((other.member.leading(), other.member.next_timer()), (None, None));
    assert_eq!(refusals(&other.receive(Node::First, request(3))), [(BallotRefusal::NoVotes, 0)]);
    other.settle();
    let forced = other.take(Input::Force);
    assert_eq!(tells(&forced), [Tell::NoMajority, Tell::Forced(Epoch(4)), Tell::Cold(Epoch(4))]);
    assert_eq!(other.member.wanted.standing.out, Some(Node::First), "what the forced leader has is the measure");
    assert_eq!(winner.renewed_by(Node::Second, 4)[0], Output::Fenced { epoch: Epoch(3) }, "when they meet the higher epoch goes on");
}

#[test]
fn force_overrules_the_record_but_no_running_grant() {
    let out =
        Record { epoch: Epoch(1), reserved: Epoch(0), standing: Standing { number: 2, out: Some(Node::Second), ..IN_SYNC }, ..GRANTED };
    let mut second = Trial::new(Node::Second, Mode::Majority, out);
    second.at(SILENCE_NS);
    second.renewed_by(Node::First, 1);
    assert_eq!(sent(&second.take(Input::Force)), [], "the leader may live");
    let asked = second.at(SILENCE_NS + LEASE_NS);
    let [ballot @ Ballot::VoteRequest { forced: true, .. }, _] = sent(&asked)[..] else { panic!("{asked:?}") };
    for (granted, expected) in [(true, 0), (false, 1)] {
        let mut witness = Trial::new(Node::Witness, Mode::Majority, out);
        witness.now = SILENCE_NS;
        if granted {
            witness.renewed_by(Node::First, 1);
        }
        let mut outputs = witness.receive(Node::Second, ballot);
        outputs.extend(witness.settle());
        assert_eq!(votes(&outputs).len(), expected, "granted: {granted}");
    }
    assert!(tells(&second.voted()).contains(&Tell::Forced(Epoch(2))));
}

#[test]
fn epochs_of_strangers_and_others_change_nothing() {
    const AHEAD: u64 = Epoch::AHEAD_MAX + 2;
    let mut first = leader();
    let before = first.member.clone();
    let grant = |epoch| Ballot::Grant { epoch: Epoch(epoch), sent_at_ns: 0, standing: IN_SYNC };
    let standing = Standing { epoch: Epoch(u64::MAX), number: u64::MAX, out: None };
    let early = Ballot::Grant { epoch: Epoch(1), sent_at_ns: 0, standing };
    let cases = [
        (Input::Stranger { epoch: Epoch(9) }, vec![Tell::StrangerEpoch(Epoch(9))]),
        (Input::Stranger { epoch: Epoch(1) }, vec![]),
        (Input::Received { from: Node::First, ballot: request(3) }, vec![Tell::NotAMember(Node::First)]),
        (Input::Received { from: Node::Witness, ballot: request(3) }, vec![Tell::ForeignEpoch { from: Node::Witness, epoch: Epoch(3) }]),
        (Input::Received { from: Node::Second, ballot: request(3) }, vec![Tell::ForeignEpoch { from: Node::Second, epoch: Epoch(3) }]),
        (
            Input::Received { from: Node::Second, ballot: request(AHEAD) },
            vec![Tell::ForeignEpoch { from: Node::Second, epoch: Epoch(AHEAD) }],
        ),
        (Input::Received { from: Node::Second, ballot: grant(4) }, vec![Tell::ForeignEpoch { from: Node::Second, epoch: Epoch(4) }]),
        (Input::Received { from: Node::Second, ballot: early }, vec![Tell::ForeignEpoch { from: Node::Second, epoch: Epoch(1) }]),
    ];
    for (input, expected) in cases {
        assert_eq!(tells(&first.take(input)), expected, "{input:?}");
        assert_eq!(first.member, before, "{input:?}");
    }
    let mut pair = Trial::new(Node::Second, Mode::Pair { winner: Node::First }, Record::NEW);
    assert_eq!(tells(&pair.receive(Node::Witness, grant(2))), [Tell::NotAMember(Node::Witness)]);
}

#[test]
fn times_that_make_no_pair_are_refused() {
    let ns = Duration::from_nanos;
    let config = |node, mode, lease, heartbeat| MemberConfig::new(node, mode, ns(lease), ns(heartbeat), 1_000).map(|_| ());
    let pair = Mode::Pair { winner: Node::Witness };
    assert_eq!(config(Node::First, Mode::Majority, 12_000, 5_994), Ok(()));
    let short = MemberConfigError::Lease { lease: ns(12_000), held: ns(11_988), heartbeat: ns(5_995) };
    assert_eq!(config(Node::First, Mode::Majority, 12_000, 5_995), Err(short));
    assert_eq!(config(Node::First, Mode::Majority, 12_000, 0), Err(MemberConfigError::Heartbeat));
    assert_eq!(config(Node::First, pair, 12_000, 3_000), Err(MemberConfigError::Winner));
    assert_eq!(config(Node::Witness, Mode::Pair { winner: Node::First }, 12_000, 3_000), Err(MemberConfigError::Winner));
    let good = MemberConfig::new(Node::First, Mode::Majority, ns(9), ns(3), 0).expect("good times");
    assert!(good.with_lease_max(ns(8)).is_err());
}

/// A leader whose Backup is recorded in sync.
fn protected() -> Trial {
    let mut first = leader();
    first.take(Input::BackupInSync);
    first.settle();
    let standing = first.member.durable.standing;
    first.receive(Node::Second, Ballot::Grant { epoch: Epoch(1), sent_at_ns: SILENCE_NS, standing });
    assert_eq!(first.member.protection(), Protection::Protected);
    first
}

#[test]
fn a_leader_that_hands_over_stops_at_once_and_votes_for_its_backup_when_its_lease_is_over() {
    let mut first = protected();
    let (_, until) = first.member.leading().expect("it leads");
    assert_eq!(first.take(Input::HandOver), [Output::Fenced { epoch: Epoch(1) }]);
    assert_eq!(first.member.leading(), None);
    first.at(until.nanos() - 1);
    let mut early = first.receive(Node::Second, request(2));
    early.extend(first.settle());
    assert_eq!(votes(&early), [], "a shard may not have heard of it yet");
    first.at(first.now + LEASE_NS);
    assert_eq!(first.member.campaign, None, "it leaves it to the other one");
    let mut voted = first.receive(Node::Second, request(2));
    voted.extend(first.settle());
    assert_eq!(votes(&voted).len(), 1, "its own word is not in the way: {voted:?}");
    let followed = first.renewed_by(Node::Second, 2);
    assert!(followed.contains(&Output::Follow { leader: Node::Second, epoch: Epoch(2) }), "{followed:?}");
    // The new leader dies at once: what was handed over is not waited for any longer than a lease.
    first.at(first.now + LEASE_NS);
    assert!(first.member.campaign.is_some());
}

#[test]
fn what_nobody_takes_is_led_again_by_who_has_handed_it_over() {
    let mut first = protected();
    let handed_over = first.now;
    first.take(Input::HandOver);
    // A cold candidate would be voted for after twice that time.
    let yields_ns = COLD_NS / 2;
    assert_eq!(first.member.next_timer(), Some(Instant::from_nanos(handed_over + yields_ns)));
    first.at(handed_over + yields_ns - 1);
    assert_eq!(first.member.campaign, None);
    first.at(handed_over + yields_ns);
    first.voted();
    first.settle();
    assert_eq!(first.member.leading().map(|(epoch, _)| epoch), Some(Epoch(3)));
}

#[test]
fn nothing_is_handed_over_to_who_lacks_something_or_could_not_lead() {
    let mut alone = leader();
    assert_eq!(alone.take(Input::HandOver), []);
    assert!(alone.member.leading().is_some());
    let winner = Mode::Pair { winner: Node::First };
    let mut first = Trial::new(Node::First, winner, Record { epoch: Epoch(1), reserved: Epoch(0), standing: IN_SYNC, ..GRANTED });
    first.at(SILENCE_NS);
    first.take(Input::BackupInSync);
    first.settle();
    assert_eq!(first.member.protection(), Protection::Protected);
    assert_eq!(first.take(Input::HandOver), [], "without a witness the other one leads only by force");
    assert!(first.member.leading().is_some());
}
