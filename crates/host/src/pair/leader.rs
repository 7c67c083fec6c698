//! What a leader owes its Backup: a copy of the database, every commit behind it, and to its own clients an answer at the right time.
//!
//! A commit is answered when the Backup has it on its disk, or when it is recorded on two disks that the Backup is out of sync
//! (`docs/design/pair.md`, "Why nothing answered is lost").

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::Read,
    path::Path,
    time::Duration,
};

use bodkin_broker::{
    Epoch, Instant, Node,
    member::Protection,
    wire::{LINK_FRAME_BYTES_MAX, LinkFrame, Position, Replication},
};
use bodkin_store::replication::Group;

use super::{link::OUT_BYTES_MAX, links::Links};

/// Bytes of a piece of the copy.
const PART_BYTES: usize = 256 * 1024;
/// A copy is read on while less than this waits for the socket.
const COPY_AHEAD_BYTES: usize = 1 << 20;
/// Commits that wait for the end of a copy; beyond, it is begun anew.
const TAIL_BYTES_MAX: usize = 64 << 20;
/// Largest operation that fits a frame beside its fields.
const OPERATION_BYTES_MAX: usize = LINK_FRAME_BYTES_MAX - 64;
/// A commit waits so many leases for the Backup, and at least [`WAIT_MIN`], before the Backup is given up.
const WAIT_LEASES: u32 = 4;
const WAIT_MIN: Duration = Duration::from_millis(200);

/// How far the Backup is.
enum Join {
    /// It has nothing of this epoch.
    Apart,
    /// A copy is being made for it.
    Asked,
    /// A copy is on its way; what is committed meanwhile waits behind it.
    Copying { file: File, end: Position, is_sent: bool, tail: Vec<u8> },
    /// It has the copy and has to acknowledge what was sent until then.
    Behind { through: Position },
    /// It has everything that was answered.
    Joined,
}

/// A commit that is not answered.
struct Waiting {
    /// Which acknowledgement it waits for; `None`: that of the next copy, which has it.
    position: Option<Position>,
    since: Instant,
    group: Group,
}

/// The Backup cannot follow on this connection: the reason. A new one begins with a new copy.
#[derive(Debug)]
pub struct TooFar(pub &'static str);

/// The leader of one epoch.
pub struct Leader {
    epoch: Epoch,
    backup: Node,
    wait: Duration,
    protection: Protection,
    last: Position,
    acked: Position,
    join: Join,
    waiting: VecDeque<Waiting>,
}

impl Leader {
    pub fn new(epoch: Epoch, backup: Node, lease: Duration) -> Self {
        let wait = (lease * WAIT_LEASES).max(WAIT_MIN);
        let (last, acked) = (Position(0), Position(0));
        Self { epoch, backup, wait, protection: Protection::Unsettled, last, acked, join: Join::Apart, waiting: VecDeque::new() }
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a copy has to be made; it is noted as asked for.
    pub fn wants_copy(&mut self) -> bool {
        let is_apart = matches!(self.join, Join::Apart);
        if is_apart {
            self.join = Join::Asked;
        }
        is_apart
    }

    /// The copy is made: everything that was committed until now is in it.
    pub fn copied(&mut self, path: &Path, links: &mut Links) {
        let opened = File::open(path);
        // Open or useless.
        let _ = fs::remove_file(path);
        if !matches!(self.join, Join::Asked) {
            return;
        }
        match opened {
            Ok(file) => {
                let position = self.last;
                let end = self.next();
                self.send(links, Replication::SnapshotBegin { epoch: self.epoch, position });
                for waiting in &mut self.waiting {
                    waiting.position.get_or_insert(end);
                }
                self.join = Join::Copying { file, end, is_sent: false, tail: Vec::new() };
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the copy for the Backup cannot be read");
                self.join = Join::Apart;
            }
        }
    }

    /// No copy could be made.
    pub fn not_copied(&mut self) {
        if matches!(self.join, Join::Asked) {
            self.join = Join::Apart;
        }
    }

    /// Sends as much of the copy as the connection takes, and what follows it.
    pub fn pump(&mut self, links: &mut Links) -> Result<(), TooFar> {
        let (epoch, backup) = (self.epoch, self.backup);
        let Join::Copying { file, end, is_sent, tail } = &mut self.join else { return Ok(()) };
        while !*is_sent && links.queued(backup) < COPY_AHEAD_BYTES {
            let mut part = vec![0; PART_BYTES];
            let bytes = file.read(&mut part).map_err(|_| TooFar("the copy of the database cannot be read"))?;
            if bytes > 0 {
                links.send(backup, LinkFrame::Replication(Replication::SnapshotPart { epoch, part: &part[..bytes] }));
            } else {
                links.send(backup, LinkFrame::Replication(Replication::SnapshotEnd { epoch, position: *end }));
                links.send_bytes(backup, tail);
                tail.clear();
                *is_sent = true;
            }
        }
        Ok(())
    }

    /// Takes a commit: to the Backup, and in the row of those that wait for their answers.
    pub fn committed(&mut self, group: Group, now: Instant, links: &mut Links) -> Result<(), TooFar> {
        let is_sending = matches!(self.join, Join::Copying { .. } | Join::Behind { .. } | Join::Joined);
        let mut result = Ok(());
        if is_sending {
            result = self.send_operations(&group, links);
        }
        let position = is_sending.then_some(self.last);
        self.waiting.push_back(Waiting { position, since: now, group });
        self.settle();
        result
    }

    fn send_operations(&mut self, group: &Group, links: &mut Links) -> Result<(), TooFar> {
        for operation in &group.operations {
            if operation.len() > OPERATION_BYTES_MAX {
                return Err(TooFar("a change is larger than a frame"));
            }
            let position = self.next();
            let frame = LinkFrame::Replication(Replication::Control { epoch: self.epoch, position, operation });
            match &mut self.join {
                Join::Copying { is_sent: false, tail, .. } if tail.len() > TAIL_BYTES_MAX => {
                    return Err(TooFar("too many changes wait for the end of the copy"));
                }
                Join::Copying { is_sent: false, tail, .. } => frame.encode(tail),
                _ if links.queued(self.backup) > OUT_BYTES_MAX - LINK_FRAME_BYTES_MAX => {
                    return Err(TooFar("it takes changes too slowly"));
                }
                _ => links.send(self.backup, frame),
            }
        }
        Ok(())
    }

    /// The Backup has everything up to here. True when it is in sync with that: from now on nothing is answered without it.
    pub fn acknowledged(&mut self, position: Position) -> Result<bool, TooFar> {
        if position > self.last {
            return Err(TooFar("it acknowledges what was not sent"));
        }
        self.acked = self.acked.max(position);
        if let Join::Copying { end, is_sent: true, .. } = self.join
            && self.acked >= end
        {
            self.join = Join::Behind { through: self.last };
        }
        let is_in_sync = matches!(self.join, Join::Behind { through } if self.acked >= through);
        if is_in_sync {
            self.join = Join::Joined;
        }
        self.settle();
        Ok(is_in_sync)
    }

    /// What may be counted on has changed.
    pub fn protected(&mut self, protection: Protection) {
        self.protection = protection;
        self.settle();
    }

    /// The connection to the Backup is gone: the next one begins with a copy, which has what it has not acknowledged.
    pub fn lost_backup(&mut self) {
        self.join = Join::Apart;
        self.waiting.iter_mut().for_each(|waiting| waiting.position = None);
        self.settle();
    }

    /// Whether commits have waited for the Backup long enough.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.waiting.front().is_some_and(|waiting| now.since(waiting.since) > self.wait)
    }

    /// This node does not lead any more: what was not answered may count or not.
    pub fn lose(self, why: &str) {
        self.waiting.into_iter().for_each(|waiting| waiting.group.lose(why));
    }

    fn settle(&mut self) {
        let is_joined = matches!(self.join, Join::Behind { .. } | Join::Joined);
        let is_free = self.protection == Protection::Alone && !is_joined;
        while let Some(waiting) = self.waiting.front() {
            if !is_free && waiting.position.is_none_or(|position| position > self.acked) {
                break;
            }
            self.waiting.pop_front().expect("there is a first").group.release();
        }
    }

    fn next(&mut self) -> Position {
        self.last.0 += 1;
        self.last
    }

    fn send(&self, links: &mut Links, frame: Replication<'_>) {
        links.send(self.backup, LinkFrame::Replication(frame));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use bodkin_arrowhead::name::EventType;
    use bodkin_broker::Incarnation;
    use bodkin_store::{Opened, Store, replication::Committed};
    use mio::{Poll, Token};
    use tokio::{runtime::Runtime, task::JoinHandle};

    use super::*;
    use crate::pair::links::OwnName;

    /// A leader whose Backup is a network without anybody; frames go nowhere, acknowledgements come from the test.
    struct Scene {
        leader: Leader,
        links: Links,
        committed: mpsc::Receiver<Committed>,
        opened: Opened,
        runtime: Runtime,
        directory: tempfile::TempDir,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let (sender, committed) = mpsc::channel();
            let outlet = Box::new(move |what| sender.send(what).expect("the test listens"));
            let registry = Poll::new().unwrap().registry().try_clone().unwrap();
            let own = OwnName { node: Node::First, incarnation: Incarnation(1) };
            let now = Instant::default();
            Self {
                leader: Leader::new(Epoch(1), Node::Second, Duration::from_millis(10)),
                links: Links::new(own, Duration::from_secs(1), registry, None, Token(0), &[], now).unwrap(),
                committed,
                opened: Store::open_replicated(directory.path(), outlet).unwrap(),
                runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap(),
                directory,
                now,
            }
        }

        /// Writes; the answer is in what is given when it is finished.
        fn write(&mut self) -> JoinHandle<bool> {
            let store = self.opened.store.clone();
            let answer = self.runtime.spawn(async move {
                store.write(|draft| draft.declare_topic(&EventType::from_stored("t"), "{}"), |_, ()| ()).await.is_ok()
            });
            let Committed::Group(group) = self.committed.recv().unwrap() else { panic!("no copy was asked for") };
            self.leader.committed(group, self.now, &mut self.links).unwrap();
            answer
        }

        fn copy(&mut self) {
            assert!(self.leader.wants_copy());
            self.opened.store.copy_to(self.directory.path().join("copy")).unwrap();
            let Committed::Copy(path) = self.committed.recv().unwrap() else { panic!("nothing was written") };
            self.leader.copied(&path.unwrap(), &mut self.links);
            self.leader.pump(&mut self.links).unwrap();
        }

        fn answered(&self, answer: JoinHandle<bool>) -> bool {
            self.runtime.block_on(answer).unwrap()
        }
    }

    #[test]
    fn a_change_is_answered_when_the_backup_has_it_or_is_known_to_be_out() {
        let mut scene = Scene::new();
        let unsettled = scene.write();
        assert_eq!(scene.leader.waiting.len(), 1, "nothing is known of the Backup yet");
        scene.leader.protected(Protection::Alone);
        assert!(scene.answered(unsettled));
        let alone = scene.write();
        assert!(scene.answered(alone));

        scene.copy();
        let beside = scene.write();
        assert!(scene.answered(beside), "what is written beside a copy is answered, for the Backup is out");
        assert!(!scene.leader.acknowledged(Position(1)).unwrap(), "it has the copy, but not what was answered beside it");
        let cut = scene.write();
        assert_eq!(scene.leader.waiting.len(), 1);
        scene.leader.lost_backup();
        assert!(scene.answered(cut), "it is recorded out as before");
        scene.copy();
        let beside = scene.write();
        assert!(scene.answered(beside));
        let (end, last) = (Position(scene.leader.last.0 - 1), scene.leader.last);
        assert!(!scene.leader.acknowledged(end).unwrap());
        let behind = scene.write();
        assert!(scene.leader.acknowledged(last).unwrap(), "now it has everything that was answered");
        scene.leader.protected(Protection::Protected);
        assert_eq!(scene.leader.waiting.len(), 1, "nothing is answered without it");
        scene.leader.acknowledged(scene.leader.last).unwrap();
        assert!(scene.answered(behind));
        let cut = scene.write();
        scene.leader.lost_backup();
        scene.leader.protected(Protection::Unsettled);
        assert_eq!(scene.leader.waiting.len(), 1, "the Backup may be elected until it is recorded out");
        scene.leader.protected(Protection::Alone);
        assert!(scene.answered(cut));
        assert!(scene.leader.acknowledged(Position(99)).is_err(), "it was not sent");
    }

    #[test]
    fn what_waits_for_a_backup_that_is_gone_is_lost_with_the_lease_and_overdue_before() {
        let mut scene = Scene::new();
        let waiting = scene.write();
        assert!(!scene.leader.is_overdue(scene.now.plus(WAIT_MIN)));
        assert!(scene.leader.is_overdue(scene.now.plus(WAIT_MIN).plus_nanos(1)));
        scene.leader.lost_backup();
        let leader = std::mem::replace(&mut scene.leader, Leader::new(Epoch(3), Node::Second, Duration::from_millis(10)));
        leader.lose("fenced");
        assert!(!scene.answered(waiting));
    }
}
