//! A publisher that restarts, and leaders that send again: the subscriber takes every event once.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Action {
    Publish,
    Restart,
    /// A leader sends so many of the last events again, run by run, as one does that has no acknowledgement of them.
    SendAgain(usize),
    /// Another node leads.
    FailOver,
    Wait(u64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Publish),
        1 => Just(Action::Restart),
        2 => (1usize..12).prop_map(Action::SendAgain),
        1 => Just(Action::FailOver),
        1 => (1..2 * AFTER_NS).prop_map(Action::Wait),
    ]
}

proptest! {
    #[test]
    fn every_event_is_taken_once(actions in prop::collection::vec(action(), 1..120), acknowledge_every in 1u32..5) {
        let mut trial = Trial::new(acknowledge_every, 0, Beginning::First);
        let (mut epoch, mut run, mut sequence) = (1, 1, 0);
        let (mut published, mut taken) = (Vec::new(), BTreeSet::new());
        for action in actions {
            let session = if epoch % 2 == 1 { One } else { Two };
            match action {
                Action::Publish => {
                    sequence += 1;
                    published.push((run, sequence));
                    let received = trial.receive(session, header(run, sequence, epoch));
                    prop_assert_eq!(received, New(KEY), "{} of run {}", sequence, run);
                    taken.insert((run, sequence));
                }
                Action::Restart => (run, sequence) = (run + 1, 0),
                Action::SendAgain(count) => {
                    for &(run, sequence) in &published[published.len().saturating_sub(count)..] {
                        let received = trial.receive(session, header(run, sequence, epoch));
                        prop_assert!(!matches!(received, New(_) | Late(_)), "{sequence} of run {run} is taken twice: {received:?}");
                    }
                }
                Action::FailOver => {
                    epoch += 1;
                    let session = if epoch % 2 == 1 { One } else { Two };
                    trial.take(Input::Leader { session, epoch: Epoch(epoch), is_leader: true });
                }
                Action::Wait(nanos) => {
                    trial.now += nanos;
                    trial.take(Input::Tick);
                }
            }
            for output in trial.told() {
                if let Output::Acknowledge { incarnation, through, .. } = output {
                    prop_assert!(taken.contains(&(incarnation.0, through.0)), "{through:?} of {incarnation:?} has not come");
                }
                prop_assert!(!matches!(output, Output::Lost { .. }), "{output:?}");
            }
        }
    }
}
