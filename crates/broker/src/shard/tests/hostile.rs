//! Frames that no leader and no Backup sends, in any order: each is refused or taken, and nothing panics.

use proptest::{prelude::*, sample::select};

use super::*;
use crate::{Backup, BackupError, Promotion};

/// A frame for a Backup. Positions are relative to the next one, except in a snapshot.
#[derive(Clone, Debug)]
enum Frame {
    Snapshot(u64),
    SnapshotEnd(u64),
    Open { number: u32, topic: &'static str, publisher: u64, incarnation: u64 },
    Close(u32),
    Replica { ahead: u64, number: u32, sequence: u64, created: u64 },
    Discard { number: u32, through: u64 },
    Control(u64),
    Checkpoint(u64),
    Saved(u64),
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..5_u64, 1 => select(vec![u64::MAX - 1, u64::MAX, 1 << 63])]
}

/// Mostly the position that is expected.
fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0), 1 => number()]
}

fn frame() -> impl Strategy<Value = Frame> {
    // Few, so that what is opened is met again.
    let open = (0..2_u32, select(vec!["A", "A", "B", "none"]), select(vec![1, 1, u64::MAX]), select(vec![1, 1, u64::MAX]));
    prop_oneof![
        1 => number().prop_map(Frame::Snapshot),
        1 => ahead().prop_map(Frame::SnapshotEnd),
        6 => open.prop_map(|(number, topic, publisher, incarnation)| Frame::Open { number, topic, publisher, incarnation }),
        2 => (0..2_u32).prop_map(Frame::Close),
        6 => (ahead(), 0..2_u32, number(), number())
            .prop_map(|(ahead, number, sequence, created)| Frame::Replica { ahead, number, sequence, created }),
        2 => (0..2_u32, number()).prop_map(|(number, through)| Frame::Discard { number, through }),
        1 => ahead().prop_map(Frame::Control),
        1 => ahead().prop_map(Frame::Checkpoint),
        1 => number().prop_map(Frame::Saved),
    ]
}

/// A Backup, and the last position that it has taken.
struct Fed {
    backup: Backup,
    last: u64,
    outputs: Vec<Output>,
}

impl Fed {
    fn take(&mut self, frame: &Frame) -> Result<(), BackupError> {
        let next = |ahead: u64| Position(self.last.wrapping_add(1).wrapping_add(ahead));
        let (backup, outputs) = (&mut self.backup, &mut self.outputs);
        let taken = match *frame {
            Frame::Snapshot(position) => {
                backup.begin_snapshot(Position(position), outputs);
                self.last = position;
                return Ok(());
            }
            Frame::Open { number, topic, publisher, incarnation } => {
                return backup.open_stream(StreamNumber(number), topic, PublisherId(publisher), Incarnation(incarnation));
            }
            Frame::Close(number) => return backup.close_stream(StreamNumber(number), outputs),
            Frame::Discard { number, through } => return backup.discard(StreamNumber(number), Sequence(through), outputs),
            Frame::Saved(through) => {
                backup.saved(Position(through));
                return Ok(());
            }
            Frame::Replica { ahead, number, sequence, created } => {
                backup.keep(next(ahead), StreamNumber(number), Sequence(sequence), at(created)).map(drop)
            }
            Frame::SnapshotEnd(ahead) => backup.end_snapshot(next(ahead)),
            Frame::Control(ahead) => backup.control(next(ahead)),
            Frame::Checkpoint(ahead) => backup.checkpoint(next(ahead)),
        };
        // One that finds its stream full has taken its position.
        self.last = self.last.wrapping_add(u64::from(matches!(taken, Ok(()) | Err(BackupError::Full(_)))));
        taken
    }
}

proptest! {
    #[test]
    fn backup_refuses_impossible_frames_and_can_lead(frames in prop::collection::vec(frame(), 1..60)) {
        let mut fed = Fed { backup: Backup::new(), last: 0, outputs: Vec::new() };
        for topic in ["A", "B"] {
            fed.backup.admit(topic, TERMS, LIMITS.topics_max).unwrap();
        }
        for frame in &frames {
            // A host closes the connection of one that is refused.
            let _ = fed.take(frame);
            fed.backup.acknowledgement();
        }
        let mut driven = Driven { shard: Shard::follower(LIMITS), now: 1_000, outputs: Vec::new() };
        driven.shard.admit("A", TERMS).unwrap();
        let promotion = Promotion { authority: Authority { epoch: Epoch(2), until: Instant::NEVER }, redirect: Duration::from_nanos(500) };
        fed.backup.promote(at(driven.now), promotion, &mut driven.shard);
        driven.step(Input::Backup(BackupStanding::Out));
        driven.now = 2_000;
        driven.work();
        driven.told();
    }
}

#[test]
fn second_number_of_a_stream_is_refused() {
    let mut backup = Backup::new();
    backup.admit("A", TERMS, LIMITS.topics_max).unwrap();
    let mut open = |number| backup.open_stream(StreamNumber(number), "A", PublisherId(1), Incarnation(1));
    assert_eq!([open(1), open(2)], [Ok(()), Err(BackupError::SecondNumber(2))]);
    assert_eq!([1, 2].map(|number| backup.close_stream(StreamNumber(number), &mut Vec::new())), [Ok(()), Err(BackupError::Number(2))]);
}

#[test]
fn stream_beyond_memory_is_refused() {
    let mut backup = Backup::new();
    backup.admit("A", Terms { backlog_max: NonZeroU32::MAX, ..TERMS }, LIMITS.topics_max).unwrap();
    let refused = backup.open_stream(StreamNumber(1), "A", PublisherId(1), Incarnation(1));
    assert_eq!(refused, Err(BackupError::Memory(u32::MAX)));
}

#[test]
fn nothing_follows_the_last_position() {
    let mut backup = Backup::new();
    backup.begin_snapshot(Position(u64::MAX), &mut Vec::new());
    let refused = [u64::MAX, 0].map(|position| backup.control(Position(position)));
    assert_eq!(refused, [u64::MAX, 0].map(|found| Err(BackupError::Position { expected: u64::MAX, found })));
}
