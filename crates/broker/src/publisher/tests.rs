//! The publisher: each promise by name, and all of them over random scripts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Session::*, *};

const LAST_AFTER: Duration = Duration::from_nanos(100);
const RUN: Incarnation = Incarnation(7);

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

struct Trial {
    publisher: Publisher,
    topic: TopicKey,
    now: u64,
}

impl Trial {
    /// One topic, nobody leads.
    fn new(newest: u32, capacity: u32, when_full: WhenFull) -> Self {
        let mut publisher = Publisher::new(RUN, LAST_AFTER);
        let topic = publisher.add_topic(Retention::new(newest, capacity, when_full));
        Self { publisher, topic, now: 0 }
    }

    fn take(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.publisher.step(at(self.now), input, &mut outputs);
        outputs
    }

    fn leads(&mut self, session: Session, epoch: u64) -> Vec<Output> {
        self.take(Input::Leader { session, epoch: Epoch(epoch), is_leader: true })
    }

    fn covered(&mut self, session: Session, epoch: u64, through: u64) -> Vec<Output> {
        let (epoch, through) = (Epoch(epoch), Sequence(through));
        self.take(Input::Covered { session, epoch, topic: self.topic, incarnation: RUN, through })
    }

    fn refused(&mut self, sequence: u64, reason: RefusalReason, retry_after_ns: u64) -> Vec<Output> {
        let (sequence, retry_after) = (Sequence(sequence), Duration::from_nanos(retry_after_ns));
        self.take(Input::Refused { session: One, topic: self.topic, sequence, reason, retry_after })
    }

    fn publish(&mut self) -> Result<Published, Full> {
        self.publisher.publish(self.topic, self.now)
    }

    fn publish_some(&mut self, count: u32) {
        for _ in 0..count {
            self.publish().unwrap();
        }
    }

    /// Everything that is to be sent, in words.
    fn sent(&mut self) -> Vec<String> {
        let sends = std::iter::from_fn(|| self.publisher.next_send(at(self.now)));
        let text = |send| match send {
            Send::Event { sequence, is_resent, .. } => format!("{}{}", if is_resent { "again " } else { "" }, sequence.0),
            Send::Resume { from, to, .. } => format!("resume {}..{}", from.0, to.0),
            Send::Last { sequence, .. } => format!("last {}", sequence.0),
        };
        sends.map(text).collect()
    }
}

#[test]
fn resume_names_no_event_behind_those_that_come() {
    let mut trial = Trial::new(0, 4, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish_some(3);
    trial.sent();
    trial.refused(3, RefusalReason::TooLarge, 0);
    trial.leads(Two, 2);
    assert_eq!(trial.sent(), ["resume 1..2", "again 1", "again 2"]);
    let refused = |sequence| Input::Refused {
        session: Two,
        topic: TopicKey(0),
        sequence: Sequence(sequence),
        reason: RefusalReason::TooLarge,
        retry_after: Duration::ZERO,
    };
    for sequence in [1, 2] {
        trial.take(refused(sequence));
    }
    trial.leads(One, 3);
    assert_eq!(trial.sent(), ["resume 1..0"]);
}

/// Its broker may have taken them, and tells nothing of them any more.
#[test]
fn a_run_that_is_over_waits_for_none_of_its_events() {
    let mut trial = Trial::new(1, 4, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish_some(4);
    trial.sent();
    trial.covered(One, 1, 1);
    let over = |sequence| Output::NotTaken { topic: trial.topic, sequence: Sequence(sequence), reason: RefusalReason::OldIncarnation };
    let told = [over(2), over(3)];
    assert_eq!(trial.refused(3, RefusalReason::OldIncarnation, 0), told);
    assert_eq!(trial.refused(3, RefusalReason::OldIncarnation, 0), [], "it is told once");
    trial.now += 1000;
    assert_eq!(trial.sent(), ["last 4"], "of which nothing is known");
    trial.refused(4, RefusalReason::OldIncarnation, 0);
    trial.now += 1000;
    assert_eq!(trial.sent(), [""; 0], "there is nothing to ask for");
    trial.publish_some(4);
    assert_eq!(trial.sent(), ["5", "6", "7", "8"]);
}

#[test]
fn what_is_kept_goes_to_the_next_leader_in_order_and_then_what_is_new() {
    let mut trial = Trial::new(1, 8, WhenFull::Block);
    trial.publish().unwrap();
    assert_eq!(trial.sent(), [""; 0], "nobody leads");
    assert_eq!(trial.leads(One, 1), [Output::Redirected { session: One, epoch: Epoch(1) }]);
    assert_eq!(trial.sent(), ["again 1"], "it was never sent, and may be old");
    trial.publish_some(3);
    assert_eq!(trial.sent(), ["2", "3", "4"]);
    assert_eq!(trial.covered(One, 1, 2), [Output::Covered { topic: trial.topic, through: Sequence(2) }]);
    trial.leads(Two, 2);
    trial.publish().unwrap();
    assert_eq!(trial.sent(), ["resume 3..5", "again 3", "again 4", "again 5"]);
    assert_eq!(trial.covered(One, 1, 5), [], "it does not lead any more");
    assert_eq!(trial.leads(One, 1), [Output::StaleEpoch { session: One, epoch: Epoch(1) }]);
    assert_eq!(trial.leads(One, 2), [Output::TwoLeaders { epoch: Epoch(2) }]);
    assert_eq!(trial.publisher.leader(), Some(Two));
}

#[test]
fn another_connection_to_the_same_leader_gets_everything_again() {
    let mut trial = Trial::new(0, 8, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish_some(2);
    trial.sent();
    assert_eq!(trial.take(Input::Closed(One)), [Output::Leaderless]);
    assert_eq!(trial.take(Input::Closed(Two)), []);
    trial.publish().unwrap();
    assert_eq!(trial.sent(), [""; 0]);
    trial.leads(One, 1);
    assert_eq!(trial.sent(), ["resume 1..3", "again 1", "again 2", "again 3"]);
}

#[test]
fn the_newest_are_kept_although_they_are_covered() {
    let mut trial = Trial::new(2, 4, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish_some(3);
    trial.sent();
    trial.covered(One, 1, 3);
    assert_eq!(trial.publisher.oldest_kept(trial.topic), Sequence(2));
    trial.leads(Two, 2);
    assert_eq!(trial.sent(), [""; 0], "they are covered");
    trial.publish().unwrap();
    assert_eq!(trial.sent(), ["resume 2..4", "again 2", "again 3", "again 4"]);
}

#[test]
fn what_is_covered_comes_again_in_front_of_the_next_event_and_what_was_never_sent_needs_no_word() {
    let mut trial = Trial::new(1, 4, WhenFull::Block);
    let kept = trial.topic;
    let [gone, uncovered, unsent] = [0; 3].map(|newest| trial.publisher.add_topic(Retention::new(newest, 4, WhenFull::Block)));
    trial.leads(One, 1);
    for topic in [kept, gone, uncovered] {
        trial.publisher.publish(topic, 0).unwrap();
    }
    trial.sent();
    for topic in [kept, gone] {
        let (epoch, through) = (Epoch(1), Sequence(1));
        trial.take(Input::Covered { session: One, epoch, topic, incarnation: RUN, through });
    }
    trial.take(Input::Closed(One));
    trial.publisher.publish(unsent, 0).unwrap();
    trial.leads(Two, 2);
    let sent = |trial: &mut Trial| {
        let sends = std::iter::from_fn(|| trial.publisher.next_send(at(trial.now)));
        let word = |send| match send {
            Send::Event { topic, is_resent, .. } => (topic, if is_resent { "again" } else { "event" }),
            Send::Resume { topic, .. } => (topic, "resume"),
            Send::Last { topic, .. } => (topic, "last"),
        };
        sends.map(word).collect::<Vec<_>>()
    };
    assert_eq!(sent(&mut trial), [(unsent, "again"), (uncovered, "resume"), (uncovered, "again")]);
    trial.publisher.publish(gone, 0).unwrap();
    assert_eq!(sent(&mut trial), [(gone, "event")], "nothing older is kept");
    trial.publisher.publish(kept, 0).unwrap();
    assert_eq!(sent(&mut trial), [(kept, "resume"), (kept, "again"), (kept, "again")], "as old as its wait for what is in front of it");
}

#[test]
fn what_is_uncovered_blocks_or_is_dropped_and_told() {
    let mut trial = Trial::new(1, 2, WhenFull::Block);
    let taken = |sequence, dropped| Ok(Published { sequence: Sequence(sequence), place: sequence as u32 % 2, dropped });
    trial.leads(One, 1);
    assert_eq!([trial.publish(), trial.publish()], [taken(1, None), taken(2, None)]);
    assert_eq!(trial.publish(), Err(Full { kept: 2, oldest: 1 }));
    trial.sent();
    trial.covered(One, 1, 2);
    assert_eq!(trial.publish(), taken(3, None));
    assert_eq!(trial.publish(), taken(4, None), "the covered one that was kept makes room");
    assert_eq!(trial.publish(), Err(Full { kept: 2, oldest: 3 }));
    let mut dropping = Trial::new(1, 2, WhenFull::DropOldest);
    assert_eq!([dropping.publish(), dropping.publish()], [taken(1, None), taken(2, None)]);
    assert_eq!(dropping.publish(), taken(3, Some(Sequence(1))));
    dropping.leads(One, 1);
    assert_eq!(dropping.sent(), ["resume 2..3", "again 2", "again 3"]);
    dropping.refused(2, RefusalReason::Full, 50);
    assert_eq!(dropping.publish(), taken(4, Some(Sequence(2))));
    dropping.now = 50;
    dropping.take(Input::Tick);
    assert_eq!(dropping.sent(), ["resume 3..4", "again 3", "again 4"], "the broker waits for the one that it has refused");
    assert_eq!(dropping.publish(), taken(5, Some(Sequence(3))));
    assert_eq!(dropping.sent(), ["5"], "what was sent and dropped is the broker's");
}

#[test]
fn a_refusal_that_comes_when_its_event_was_dropped_is_answered_with_what_will_come() {
    let mut trial = Trial::new(0, 1, WhenFull::DropOldest);
    trial.leads(One, 1);
    trial.publish_some(1);
    assert_eq!(trial.sent(), ["1"]);
    assert_eq!(trial.publish().unwrap().dropped, Some(Sequence(1)));
    assert_eq!(trial.sent(), ["2"], "the word about 1 is still under way");
    trial.refused(1, RefusalReason::Full, 50);
    assert_eq!(trial.sent(), [""; 0], "it waits");
    trial.now = 50;
    trial.take(Input::Tick);
    assert_eq!(trial.sent(), ["resume 2..2", "again 2"], "the broker takes nothing behind 1 until it knows that it will not come");
    trial.covered(One, 1, 2);
    trial.refused(1, RefusalReason::Full, 50);
    trial.publish_some(1);
    assert_eq!(trial.sent(), ["3"], "nobody waits for what lies in front of what is covered");
}

#[test]
fn a_refused_event_comes_again_in_its_place() {
    let mut trial = Trial::new(0, 8, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish_some(4);
    trial.sent();
    assert_eq!(trial.refused(2, RefusalReason::Full, 50), []);
    assert_eq!(trial.refused(3, RefusalReason::Full, 50), []);
    trial.publish().unwrap();
    assert_eq!(trial.sent(), [""; 0], "it waits");
    assert_eq!(trial.publisher.next_timer(), Some(at(50)));
    trial.now = 50;
    trial.take(Input::Tick);
    assert_eq!(trial.sent(), ["again 2", "again 3", "again 4", "5"]);
    let not_taken = Output::NotTaken { topic: trial.topic, sequence: Sequence(4), reason: RefusalReason::TooLarge };
    assert_eq!(trial.refused(4, RefusalReason::TooLarge, 0), [not_taken]);
    assert_eq!(trial.refused(5, RefusalReason::NotLeading, 0), [], "who leads instead will say so");
    assert_eq!(trial.refused(9, RefusalReason::TooLarge, 0), [], "it was not sent");
    trial.leads(Two, 2);
    assert_eq!(trial.sent(), ["resume 1..5", "again 1", "again 2", "again 3", "again 5"]);
    trial.leads(One, 3);
    assert_eq!(trial.sent().len(), 5);
    trial.covered(One, 3, 2);
    trial.refused(1, RefusalReason::Full, 50);
    trial.refused(3, RefusalReason::Full, 50);
    trial.now = 100;
    trial.take(Input::Tick);
    assert_eq!(trial.sent(), ["again 3", "again 5"], "what is covered need not come again");
    trial.refused(5, RefusalReason::Full, u64::MAX);
    trial.now = at(100).plus(RETRY_AFTER_MAX).nanos();
    trial.take(Input::Tick);
    assert_eq!(trial.sent()[0], "again 5", "no pause is endless");
}

#[test]
fn the_last_event_of_a_silent_topic_is_named_until_it_is_covered() {
    let mut trial = Trial::new(0, 8, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish().unwrap();
    trial.sent();
    for (now, expected) in [(99, None), (100, Some("last 1")), (150, None), (200, Some("last 1"))] {
        trial.now = now;
        trial.take(Input::Tick);
        assert_eq!(trial.sent(), Vec::from_iter(expected), "at {now}");
    }
    assert_eq!(trial.publisher.next_timer(), Some(at(300)));
    trial.covered(One, 1, 1);
    trial.now = 300;
    assert_eq!((trial.sent(), trial.publisher.next_timer()), (vec![], None));
}

#[test]
fn what_was_not_published_cannot_be_covered() {
    let mut trial = Trial::new(0, 8, WhenFull::Block);
    trial.leads(One, 1);
    trial.publish().unwrap();
    assert_eq!(trial.covered(One, 1, 2), [Output::CoveredUnpublished { topic: trial.topic, through: Sequence(2) }]);
    let old = Input::Covered { session: One, epoch: Epoch(1), topic: trial.topic, incarnation: Incarnation(6), through: Sequence(1) };
    assert_eq!(trial.take(old), []);
    assert_eq!(trial.covered(One, 1, 1).len(), 1);
}

#[test]
fn topics_take_turns() {
    let mut trial = Trial::new(0, 8, WhenFull::Block);
    let other = trial.publisher.add_topic(Retention::new(0, 8, WhenFull::Block));
    trial.leads(One, 1);
    trial.publish_some(2);
    for _ in 0..2 {
        trial.publisher.publish(other, 0).unwrap();
    }
    assert_eq!(trial.sent(), ["1", "1", "2", "2"]);
}

#[test]
fn only_new_topics_take_memory() {
    let mut trial = Trial::new(1, 4, WhenFull::DropOldest);
    let topics = [trial.topic, trial.publisher.add_topic(Retention::new(1, 4, WhenFull::DropOldest))];
    let capacities = |publisher: &Publisher| [publisher.ready.capacity(), publisher.quiet.capacity(), publisher.paused.capacity()];
    let before = capacities(&trial.publisher);
    for round in 1..1_000 {
        trial.now += 40;
        if round % 10 == 0 {
            trial.leads(if round % 20 == 0 { One } else { Two }, round);
        }
        for topic in topics {
            trial.publisher.publish(topic, 0).unwrap();
        }
        trial.sent();
        trial.refused(round, RefusalReason::Full, 100);
        trial.take(Input::Tick);
    }
    assert_eq!(capacities(&trial.publisher), before);
}

#[derive(Clone, Debug)]
enum Step {
    Publish,
    Cover(u64),
    Refuse(u64, bool),
    Leader(bool, u64),
    Close(bool),
    Send(u8),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Publish),
        2 => (0u64..6).prop_map(Step::Cover),
        1 => (0u64..6, any::<bool>()).prop_map(|(back, passes)| Step::Refuse(back, passes)),
        1 => (any::<bool>(), 0u64..3).prop_map(|(first, ahead)| Step::Leader(first, ahead)),
        1 => any::<bool>().prop_map(Step::Close),
        4 => (0u8..6).prop_map(Step::Send),
        1 => (1u64..80).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Whatever happens, a session gets every event that is neither covered nor told as lost, in order and behind a word about what comes; the
    /// newest N are kept; bytes that may be needed are not overwritten.
    #[test]
    fn nothing_is_lost_without_being_told(
        newest in 0u32..4, capacity in 1u32..8, drops: bool, steps in prop::collection::vec(step(), 1..200),
    ) {
        let when_full = if drops { WhenFull::DropOldest } else { WhenFull::Block };
        let mut trial = Trial::new(newest, capacity, when_full);
        let capacity = capacity.max(newest);
        let (mut published, mut covered, mut gone) = (0, 0, BTreeSet::new());
        // What the session has: whether it was told what comes, or need not be, and the newest event. What any session had.
        let (mut resumed, mut last_sent, mut ever_sent, mut epoch) = (false, 0u64, 0u64, 0);
        for step in steps {
            match step {
                Step::Publish => {
                    let uncovered = (covered + 1..=published).filter(|sequence| !gone.contains(sequence)).count();
                    match trial.publish() {
                        Ok(taken) => {
                            published += 1;
                            prop_assert_eq!((taken.sequence.0, taken.place), (published, (published % u64::from(capacity)) as u32));
                            gone.extend(taken.dropped.map(|sequence| sequence.0));
                        }
                        Err(full) => prop_assert!(!drops && uncovered > 0 && full.kept == capacity && full.oldest > covered),
                    }
                }
                Step::Cover(back) => {
                    let through = last_sent.saturating_sub(back);
                    let Some(session) = trial.publisher.leader() else { continue };
                    trial.covered(session, epoch, through);
                    covered = covered.max(through);
                }
                Step::Refuse(back, passes) => {
                    let sequence = last_sent.saturating_sub(back);
                    let reason = if passes { RefusalReason::Full } else { RefusalReason::Header };
                    let Some(session) = trial.publisher.leader() else { continue };
                    let retry_after = Duration::from_nanos(40);
                    let told = trial.take(Input::Refused { session, topic: trial.topic, sequence: Sequence(sequence), reason, retry_after });
                    gone.extend(told.iter().filter_map(|output| if let Output::NotTaken { sequence, .. } = output { Some(sequence.0) } else { None }));
                    let was_kept = trial.publisher.oldest_kept(trial.topic).0 <= sequence;
                    if passes && was_kept && sequence > 0 {
                        last_sent = last_sent.min(sequence - 1).max(covered);
                    } else if passes && sequence > covered {
                        // Dropped meanwhile: the broker waits for it, and has to be told what comes before anything does.
                        resumed = false;
                    }
                }
                Step::Leader(first, ahead) => {
                    let session = if first { One } else { Two };
                    if trial.leads(session, epoch + ahead).iter().any(|output| matches!(output, Output::Redirected { .. })) {
                        epoch += ahead;
                        (resumed, last_sent) = (ever_sent < trial.publisher.oldest_kept(trial.topic).0, 0);
                    }
                }
                Step::Close(first) => drop(trial.take(Input::Closed(if first { One } else { Two }))),
                Step::Send(count) => {
                    for _ in 0..count {
                        match trial.publisher.next_send(at(trial.now)) {
                            Some(Send::Resume { from, to, .. }) => {
                                prop_assert!((to.0 + 1..=published).all(|sequence| gone.contains(&sequence)), "{to:?} leaves something out");
                                prop_assert!(to < from || !gone.contains(&to.0), "{to:?} does not come");
                                prop_assert!(!resumed || from.0 - 1 <= covered || gone.contains(&(from.0 - 1)));
                                prop_assert!((covered + 1..from.0).all(|sequence| gone.contains(&sequence)), "{from:?} leaves something out");
                                prop_assert!(from.0 + u64::from(newest) <= published + 1 || gone.contains(&(from.0 - 1)) || from.0 == 1);
                                (resumed, last_sent) = (true, from.0 - 1);
                            }
                            Some(Send::Event { sequence, .. }) => {
                                prop_assert!(resumed, "nobody was told what comes");
                                let skipped = last_sent + 1..sequence.0;
                                prop_assert!(sequence.0 > last_sent, "{sequence:?} behind {last_sent}");
                                prop_assert!(skipped.clone().all(|sequence| sequence <= covered || gone.contains(&sequence)), "{skipped:?}");
                                last_sent = sequence.0;
                                ever_sent = ever_sent.max(last_sent);
                            }
                            Some(Send::Last { sequence, .. }) => prop_assert!(sequence.0 <= published),
                            None => break,
                        }
                    }
                }
                Step::Pass(nanos) => {
                    trial.now += nanos;
                    trial.take(Input::Tick);
                }
            }
            let oldest = trial.publisher.oldest_kept(trial.topic).0;
            prop_assert!(published + 1 - oldest >= u64::from(newest).min(published) || gone.contains(&(oldest - 1)));
        }
    }
}
