//! Ballots of an accepted node that no node sends, in any order: each is refused or taken, and nothing panics.

use proptest::{prelude::*, sample::select};

use super::*;

/// What another node, or time, does to a member.
#[derive(Clone, Debug)]
enum Event {
    Ballot(Node, Ballot),
    Greeting(Peer, Option<PairId>),
    Gone(Node),
    Stranger(Epoch),
    Rejected(Node),
    Beat,
    Passed(u64),
}

fn number() -> impl Strategy<Value = u64> {
    let extreme = select(vec![u64::MAX, u64::MAX - 1, Epoch::MAX.0, Epoch::MAX.0 + 1, Epoch::AHEAD_MAX, LEASE_NS, 2 * LEASE_NS]);
    prop_oneof![4 => 0..8_u64, 1 => extreme]
}

fn node() -> impl Strategy<Value = Node> {
    select(Node::ALL.to_vec())
}

fn standing() -> impl Strategy<Value = Standing> {
    (number(), number(), select(vec![None, Some(Node::First), Some(Node::Second), Some(Node::Witness)]))
        .prop_map(|(epoch, number, out)| Standing { epoch: Epoch(epoch), number, out })
}

fn ballot() -> impl Strategy<Value = Ballot> {
    let reason = select(vec![BallotRefusal::Stale, BallotRefusal::Granted, BallotRefusal::Cold, BallotRefusal::LeaseTooLong]);
    let claim = select(vec![Claim::Remembered, Claim::Heard, Claim::Agreed, Claim::Promised]);
    let numbers = (number(), number(), number(), number());
    (0..6_u8, numbers, standing(), any::<(bool, bool)>(), (reason, claim, node())).prop_map(
        |(kind, (epoch, sent_at_ns, lease_ns, other), standing, (warm, forced), (reason, claim, node))| {
            let epoch = Epoch(epoch);
            match kind {
                0 => Ballot::RenewRequest { epoch, sent_at_ns, lease_ns, standing },
                1 => Ballot::Grant { epoch, sent_at_ns, standing },
                2 => Ballot::VoteRequest { epoch, sent_at_ns, lease_ns, standing, warm, forced },
                3 => Ballot::Vote { epoch, sent_at_ns },
                4 => Ballot::Refused { epoch, asked: Epoch(other), reason, retry_after_ns: lease_ns },
                _ => {
                    let (pair, incarnation) = (warm.then_some(PairId(other)), forced.then_some(Incarnation(other)));
                    Ballot::Sighting { epoch, pair, node, incarnation, claim, number: sent_at_ns, answers: lease_ns }
                }
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let greeting = (node(), number(), prop::option::of(number().prop_map(PairId)));
    prop_oneof![
        12 => (node(), ballot()).prop_map(|(from, ballot)| Event::Ballot(from, ballot)),
        3 => greeting.prop_map(|(node, incarnation, pair)| Event::Greeting(Peer { node, incarnation: Incarnation(incarnation) }, pair)),
        1 => node().prop_map(Event::Gone),
        1 => number().prop_map(|epoch| Event::Stranger(Epoch(epoch))),
        1 => node().prop_map(Event::Rejected),
        2 => Just(Event::Beat),
        4 => select(vec![1, HEARTBEAT_NS, LEASE_NS, COLD_NS]).prop_map(Event::Passed),
    ]
}

proptest! {
    #[test]
    fn member_refuses_impossible_ballots(own in node(), is_old in any::<bool>(), events in prop::collection::vec(event(), 1..80)) {
        let mut trial = if is_old { Trial::old(own) } else { Trial::new(own, Mode::Majority, GRANTED) };
        for event in events {
            match event {
                Event::Ballot(from, ballot) => drop(trial.receive(from, ballot)),
                Event::Greeting(peer, pair) => {
                    let now = Instant::from_nanos(trial.now);
                    // The member may accept or refuse it; it must not panic.
                    let _ = trial.member.greet(now, peer, pair, &mut Vec::new());
                }
                Event::Gone(node) => drop(trial.take(Input::Gone(node))),
                Event::Stranger(epoch) => drop(trial.take(Input::Stranger { epoch })),
                Event::Rejected(by) => drop(trial.take(Input::Rejected { by, until: Instant::from_nanos(trial.now + LEASE_NS) })),
                Event::Beat => drop(trial.take(Input::Beat)),
                Event::Passed(nanos) => {
                    let now = trial.now + nanos;
                    trial.at(now);
                }
            }
            trial.settle();
        }
    }
}
