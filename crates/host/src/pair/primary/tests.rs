mod logged;

use std::{
    io::Write,
    net::{self, TcpListener},
    sync::{Arc, mpsc},
    thread,
};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{IN_FLIGHT_MAX, Incarnation, Input, Output, PublisherId, Sequence, ShardLimits, TopicId, wire::StreamNumber};
use bodkin_store::{Opened, Store, event_log::NAMES_MAX, replication::Committed};
use mio::net::TcpStream;
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{answers::OPERATION_BYTES_MAX, *};
use crate::{
    config::HostConfig,
    pair::{
        Leadership, Message, PROTOCOL,
        link::take_frames,
        links::{LOGGED_SINCE, RECORDS_SINCE},
    },
};

/// Behind the last record of the event log when the Backup is given its copy.
const LOG_END: event_log::Position = event_log::Position(9);

/// A leader whose node hears nothing; what it sends goes to a socket that nobody reads.
struct Scene {
    primary: Primary,
    committed: mpsc::Receiver<Committed>,
    opened: Opened,
    runtime: Runtime,
    _directory: tempfile::TempDir,
    listener: TcpListener,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (sender, committed) = mpsc::channel();
        let outlet = Box::new(move |what| sender.send(what).expect("the test listens"));
        let leadership = Arc::new(Leadership::default());
        leadership.lead(Epoch(1), Instant::NEVER);
        let pair = PairHandle::without_node(leadership, Duration::from_millis(10));
        let mut primary = Primary::new(pair, directory.path().to_owned(), PairTerms::of(&HostConfig::on_loopback(directory.path())));
        assert_eq!(primary.begin(Epoch(1)), BackupStanding::Lost);
        Self {
            primary,
            committed,
            opened: Store::open_replicated(directory.path(), outlet).unwrap(),
            runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap(),
            _directory: directory,
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            now: Instant::default(),
        }
    }

    /// Writes; gives how many changes have to go to the Backup now, and the answer when it has come.
    fn write(&mut self) -> (usize, JoinHandle<bool>) {
        let store = self.opened.store.clone();
        let hot = EventType::parse("hot").unwrap();
        let answer = self.runtime.spawn(async move { store.write(move |draft| draft.declare_topic(&hot, "{}"), |_, ()| ()).await.is_ok() });
        let Committed::Group(group) = self.committed.recv().unwrap() else { panic!("no copy was asked for") };
        self.primary.committed(group).unwrap();
        (self.sent().len(), answer)
    }

    /// The operations that go to the Backup now, in a channel that has room for all.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let Some(link) = self.primary.link() else { return Vec::new() };
        let before = link.out().len();
        self.primary.send_changes(self.now, |number| Some(Position(number)));
        let mut bytes = self.primary.link().unwrap().out().split_off(before);
        let mut operations = Vec::new();
        let taken = take_frames(&mut bytes, |frame| {
            if let LinkFrame::Replication(Replication::Control { operation, .. }) = frame {
                operations.push(operation.to_vec());
            }
            Ok(Taken::Done)
        });
        taken.unwrap();
        operations
    }

    fn connect(&mut self) {
        let socket = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        self.primary.connected(Link::plain(socket, None, self.now), 1);
    }

    /// The same of a Backup that speaks this protocol; gives its end.
    fn connect_speaking(&mut self, protocol: u16) -> net::TcpStream {
        let socket = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let (backup, _) = self.listener.accept().unwrap();
        let mut link = Link::plain(socket, None, self.now);
        link.protocol = protocol;
        self.primary.connected(link, 1);
        backup
    }

    /// The Backup says this, and the leader reads until it knows it, or why the connection has to be closed.
    fn hear(&mut self, backup: &mut net::TcpStream, frames: &[Replication<'_>], is_known: fn(&Primary) -> bool) -> Result<(), SessionEnd> {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| LinkFrame::Replication(*frame).encode(&mut bytes));
        backup.write_all(&bytes).unwrap();
        for _ in 0..10_000 {
            self.primary.read(self.now)?;
            if is_known(&self.primary) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("it does not get to know it");
    }

    fn copy(&mut self) {
        let path = self.primary.wants_copy(self.now).unwrap();
        assert_eq!(self.primary.wants_copy(self.now), None, "one is enough");
        self.opened.store.copy_to(path).unwrap();
        let Committed::Copy(path) = self.committed.recv().unwrap() else { panic!("nothing was written") };
        self.primary.copied(&path.unwrap(), Position(0), LOG_END, self.now).unwrap();
    }

    /// Sends the rest of the copy; gives how many changes follow it.
    fn pump(&mut self) -> usize {
        self.pump_copy();
        let sent = self.sent().len();
        assert!(self.primary.has_sent_changes() && !self.primary.has_sent_changes());
        sent
    }

    fn pump_copy(&mut self) {
        while matches!(self.primary.session, Session::CatchingUp { copy: Some(_) }) {
            assert!(self.primary.is_pumping(), "the copy is short");
            self.primary.pump(self.now).unwrap();
        }
    }

    /// Commits changes behind those before.
    fn commit(&mut self, count: u64, bytes: usize) {
        let first = self.primary.committed + 1;
        self.primary.committed += count;
        let changes = (first..first + count).map(|number| Change { number, operation: vec![0; bytes].into() });
        self.primary.queue_changes(changes).unwrap();
    }

    /// Whether the member was told, since it was asked last, that the Backup has everything.
    fn is_told_in_sync(&self) -> bool {
        let mut told = Vec::new();
        self.primary.pair.inbox.take(&mut told);
        told.iter().any(|message| matches!(message, Message::BackupInSync(Epoch(1))))
    }

    fn answered(&self, answer: JoinHandle<bool>) -> bool {
        self.runtime.block_on(answer).unwrap()
    }
}

#[test]
fn a_backup_that_has_joined_may_lead_when_it_has_what_was_answered_meanwhile() {
    let mut scene = Scene::new();
    scene.connect();
    scene.primary.protected(Protection::Alone);
    scene.copy();
    scene.pump();
    let (sent, joining) = scene.write();
    assert_eq!((sent, scene.answered(joining)), (1, true), "the Backup is out: nothing waits for it");
    // It has all that it was given; what was answered since is on its way to it.
    scene.primary.caught_up();
    assert!(!scene.is_told_in_sync(), "it would lead without that change");
    let (_, behind) = scene.write();
    scene.primary.replicated(1);
    assert!(scene.is_told_in_sync() && !scene.is_told_in_sync(), "it has that one, and the next one is not answered");
    scene.primary.protected(Protection::Protected);
    scene.primary.replicated(2);
    assert!(scene.answered(behind));

    scene.primary.lose_session("cut");
    assert!(!scene.is_told_in_sync());
}

#[test]
fn a_backup_that_is_lost_before_the_member_hears_of_it_leaves_the_leader_alone() {
    let mut scene = Scene::new();
    scene.connect();
    scene.primary.protected(Protection::Alone);
    scene.copy();
    scene.pump();
    let (_, joining) = scene.write();
    assert!(scene.answered(joining));
    scene.primary.caught_up();
    let (_, cut) = scene.write();
    assert_eq!(scene.primary.commits.len(), 1, "nothing is answered without it as long as it may come to count");
    assert_eq!(scene.primary.lose_session("cut"), BackupStanding::Out);
    assert!(!scene.is_told_in_sync());
    let (_, alone) = scene.write();
    assert!(
        scene.answered(cut) && scene.answered(alone),
        "the member has said that the leader is alone, and has no reason to say it again"
    );
}

#[test]
fn a_change_is_answered_when_the_backup_has_it_or_is_known_to_be_out() {
    let mut scene = Scene::new();
    let (_, unsettled) = scene.write();
    assert_eq!(scene.primary.commits.len(), 1, "nothing is known of the Backup yet");
    scene.connect();
    assert_eq!(scene.primary.wants_copy(scene.now), None, "it may be elected as it is");
    assert_eq!(scene.primary.protected(Protection::Alone), Some(BackupStanding::Out));
    assert!(scene.answered(unsettled));

    scene.copy();
    let (sent, beside) = scene.write();
    assert_eq!(sent, 0, "it waits behind the copy");
    assert!(scene.answered(beside), "what is written beside a copy is answered, for the Backup is out");
    assert_eq!(scene.pump(), 1);
    let (sent, joining) = scene.write();
    assert_eq!((sent, scene.answered(joining)), (1, true));
    assert_eq!(scene.primary.caught_up(), BackupStanding::Settling);
    assert_eq!(scene.primary.protected(Protection::Alone), None, "that was said before the member knew");
    let (_, behind) = scene.write();
    assert_eq!(scene.primary.commits.len(), 1, "nothing is answered without it from now on");
    assert_eq!(scene.primary.protected(Protection::Protected), Some(BackupStanding::InSync));
    scene.primary.replicated(3);
    assert_eq!(scene.primary.commits.len(), 1, "that was the change in front of it");
    scene.primary.replicated(4);
    assert!(scene.answered(behind));

    let (_, cut) = scene.write();
    assert_eq!(scene.primary.lose_session("cut"), BackupStanding::Lost, "it may be elected until it is recorded out");
    assert_eq!(scene.primary.commits.len(), 1);
    assert_eq!(scene.primary.protected(Protection::Alone), Some(BackupStanding::Out));
    assert!(scene.answered(cut));
}

#[test]
fn what_was_answered_without_the_backup_is_given_to_it_before_it_counts() {
    let (mut scene, at) = (Scene::new(), event_log::Position);
    scene.primary.logged(vec![2, 5], at(5)).unwrap();
    assert_eq!(scene.primary.logged_through(), at(5), "nothing is known of the Backup");
    scene.primary.protected(Protection::Alone);
    scene.primary.logged(vec![2, 6], at(6)).unwrap();
    assert_eq!(scene.primary.logged_through(), at(u64::MAX), "they are answered without it");
    scene.connect();
    scene.copy();
    scene.primary.link().unwrap().protocol = RECORDS_SINCE;
    scene.pump();
    scene.primary.logged(vec![2, 9], at(9)).unwrap();
    assert!(scene.sent().is_empty(), "it waits behind what is lacking");
    assert_eq!((scene.primary.wants_piece(), scene.primary.is_complete()), (None, false), "all that is kept goes first");
    assert_eq!((scene.primary.wants_piece(), scene.primary.wants_piece()), (Some((1, at(5), LOG_END)), None));
    scene.primary.read_piece(1, Piece { batch: Some((at(5), vec![2, 5, 6])), next: LOG_END }, scene.now).unwrap();
    assert_eq!(scene.sent(), [vec![2, 5, 6], vec![2, 9]]);
    scene.primary.replicated(scene.primary.committed - 1);
    assert!(!scene.primary.has_given_lacking(), "the last one is not acknowledged");
    scene.primary.replicated(scene.primary.committed);
    assert!(scene.primary.has_given_lacking() && !scene.primary.has_given_lacking());
    assert_eq!(scene.primary.caught_up(), BackupStanding::Settling);

    // What is not acknowledged when the connection breaks is lacking again, from its first record on.
    scene.primary.logged(vec![2, 10], at(10)).unwrap();
    assert_eq!(scene.sent(), [vec![2, 10]]);
    assert_eq!(scene.primary.logged_through(), at(10));
    scene.primary.lose_session("cut");
    assert!(scene.primary.lack.holds());
}

/// A record that the Backup has.
fn logged(sequence: u64) -> Replication<'static> {
    Replication::Logged {
        epoch: Epoch(1),
        time_utc_ns: 1_800_000_000_000_000_000,
        publisher: PublisherId(3),
        incarnation: Incarnation(2),
        topic: TopicId(1),
        sequence: Sequence(sequence),
    }
}

#[test]
fn a_backup_that_names_its_newest_records_is_given_what_is_behind_them_whatever_this_leader_has_noted() {
    let (mut scene, at) = (Scene::new(), event_log::Position);
    scene.primary.protected(Protection::Alone);
    scene.primary.logged(vec![2, 5], at(5)).unwrap();
    assert!(scene.primary.lack.holds(), "it was answered without the Backup");
    let mut backup = scene.connect_speaking(LOGGED_SINCE);
    let has_two = |primary: &Primary| matches!(&primary.parting, Parting::Named(names) if names.len() == 2);
    scene.hear(&mut backup, &[logged(7), logged(6)], has_two).unwrap();
    assert!(scene.primary.wants_search().is_none(), "there may be more");
    scene.hear(&mut backup, &[Replication::Have { epoch: Epoch(1), number: None }], |primary| primary.have.is_some()).unwrap();
    let (serial, names) = scene.primary.wants_search().unwrap();
    let sequences: Vec<u64> = names.iter().map(|name| name.id.sequence.0).collect();
    assert_eq!((serial, sequences, scene.primary.lack.holds()), (1, vec![6, 7], false));
    assert!(scene.primary.wants_search().is_none() && scene.primary.wants_copy(scene.now).is_none(), "it is being looked for");
    // What is answered meanwhile is lacking too.
    scene.primary.logged(vec![2, 8], at(8)).unwrap();
    scene.primary.searched(2, Some(at(1)));
    scene.primary.searched(1, Some(at(4)));
    scene.copy();
    scene.pump();
    assert_eq!((scene.primary.is_complete(), scene.primary.wants_piece()), (false, Some((1, at(4), LOG_END))));
    // The event log keeps none of them any more.
    scene.primary.read_piece(1, Piece { batch: None, next: LOG_END }, scene.now).unwrap();
    assert!(scene.sent().is_empty());
    assert!(scene.primary.has_given_lacking(), "nothing is owed");
}

#[test]
fn backup_begins_anew_where_the_event_log_cannot_be_read() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    let mut backup = scene.connect_speaking(LOGGED_SINCE);
    let have = [logged(7), Replication::Have { epoch: Epoch(1), number: None }];
    scene.hear(&mut backup, &have, |primary| primary.have.is_some()).unwrap();
    let (serial, _) = scene.primary.wants_search().unwrap();
    assert_eq!(scene.primary.log_unread(serial + 1, "of another connection"), None);
    assert_eq!(scene.primary.log_unread(serial, "too many open files"), Some(BackupStanding::Out));
    assert!(scene.primary.link.is_none() && scene.primary.wants_copy(scene.now).is_none(), "a Backup without its events must not lead");
    assert_eq!(scene.primary.log_unread(serial, "too many open files"), None, "once");
}

#[test]
fn a_backup_that_names_what_it_was_not_asked_for_is_refused() {
    let have = Replication::Have { epoch: Epoch(1), number: None };
    let too_many: Vec<Replication<'_>> = (0..=NAMES_MAX as u64).map(logged).collect();
    for (protocol, frames) in [(LOGGED_SINCE, &too_many[..]), (LOGGED_SINCE, &[have, logged(1)]), (RECORDS_SINCE, &[logged(1)])] {
        let mut scene = Scene::new();
        scene.primary.protected(Protection::Alone);
        let mut backup = scene.connect_speaking(protocol);
        assert!(scene.hear(&mut backup, frames, |_| false).is_err());
    }
}

#[test]
fn who_does_not_lead_any_more_does_not_know() {
    let mut scene = Scene::new();
    let (_, waiting) = scene.write();
    scene.primary.fenced();
    let (_, late) = scene.write();
    assert!(!scene.answered(waiting) && !scene.answered(late));
    scene.primary.begin(Epoch(3));
    assert_eq!(scene.primary.authority(), Authority { epoch: Epoch(3), until: Instant::default() }, "the lease is still of another epoch");
    scene.primary.protected(Protection::Alone);
    let (_, early) = scene.write();
    assert_eq!(scene.primary.commits.len(), 1);
    scene.primary.pair.leadership().lead(Epoch(3), Instant::NEVER);
    scene.primary.authority();
    scene.primary.protected(Protection::Alone);
    assert!(scene.answered(early));
}

#[test]
fn change_that_fits_no_frame_goes_to_the_backup_in_a_copy() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.write();
    let long = Change { number: 2, operation: vec![0; OPERATION_BYTES_MAX + 1].into() };
    (scene.primary.committed, scene.primary.is_fenced) = (2, false);
    scene.primary.tail.push(&long);
    let mut backup = scene.connect_speaking(PROTOCOL);
    let epoch = Epoch(1);
    scene.hear(&mut backup, &[Replication::Have { epoch, number: Some(1) }], |primary| primary.have.is_some()).unwrap();
    scene.primary.parting = Parting::Known;
    assert!(scene.primary.resume(Position(0), LOG_END, scene.now).is_none(), "it would be longer than a frame");
    assert!(scene.primary.wants_copy(scene.now).is_some());
}

#[test]
fn records_that_the_backup_may_lack_are_not_safe_when_the_node_leads_again() {
    let mut scene = Scene::new();
    scene.primary.logged(Vec::new(), event_log::Position(4)).unwrap();
    assert_eq!(scene.primary.logged_through(), event_log::Position(4));
    scene.primary.fenced();
    assert_eq!(scene.primary.logged_through(), event_log::Position(0));
    scene.primary.begin(Epoch(3));
    assert_eq!(scene.primary.logged_through(), event_log::Position(4), "it is not known how the Backup stands");
    scene.primary.pair.leadership().lead(Epoch(3), Instant::NEVER);
    scene.primary.authority();
    scene.primary.protected(Protection::Alone);
    assert_eq!(scene.primary.logged_through(), event_log::Position(u64::MAX));
}

#[test]
fn a_replica_is_timed_at_a_time_unless_it_waits_for_the_backups_disk() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.copy();
    scene.pump();
    let at = |nanos| Instant::default().plus_nanos(nanos);
    scene.primary.time(Position(1), at(1));
    assert_eq!(scene.primary.acknowledged(Position(1), Position(1), at(9)), None, "a Backup that joins has more to do");
    scene.primary.caught_up();
    scene.primary.protected(Protection::Protected);
    scene.primary.time(Position(2), at(10));
    scene.primary.time(Position(3), at(20));
    assert_eq!(scene.primary.acknowledged(Position(1), Position(3), at(30)), None);
    assert_eq!(scene.primary.acknowledged(Position(3), Position(3), at(35)), Some(25), "the first that went out");
    scene.primary.send_change(&Change { number: 1, operation: [1].as_slice().into() }, Position(4), at(40));
    scene.primary.time(Position(5), at(41));
    assert_eq!(scene.primary.acknowledged(Position(5), Position(5), at(90)), None, "it waited for a disk");
    scene.primary.time(Position(6), at(100));
    scene.primary.lose_session("cut");
    assert_eq!(scene.primary.acknowledged(Position(6), Position(6), at(101)), None);
}

#[test]
fn a_backup_that_owes_an_acknowledgement_is_given_up_in_time() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    assert_eq!(scene.primary.gives_up_at(), None);
    scene.copy();
    assert_eq!(scene.primary.gives_up_at(), Some(scene.now.plus(JOIN_MAX)));
    scene.pump();
    scene.primary.caught_up();
    scene.primary.acknowledged(Position(7), Position(7), scene.now);
    assert_eq!(scene.primary.gives_up_at(), None);
    scene.primary.owe(scene.now);
    scene.primary.owe(scene.now.plus_nanos(5));
    assert_eq!(scene.primary.gives_up_at(), Some(scene.now.plus(WAIT_MIN)), "since the first");
    scene.primary.acknowledged(Position(8), Position(9), scene.now.plus_nanos(7));
    assert_eq!(scene.primary.gives_up_at(), Some(scene.now.plus(WAIT_MIN).plus_nanos(7)));
}

#[test]
fn nobody_waits_for_what_the_backup_may_forget() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.primary.flush().unwrap();
    let (epoch, stream) = (Epoch(1), StreamNumber(1));
    let mut is_awaited = |frame: Replication<'_>| {
        scene.primary.send(frame);
        let is_awaited = scene.primary.is_awaited();
        scene.primary.flush().unwrap();
        assert!(!scene.primary.is_awaited(), "it is on its way");
        is_awaited
    };
    assert!(!is_awaited(Replication::Discard { epoch, stream, through: Sequence(1) }));
    assert!(!is_awaited(Replication::StreamClose { epoch, stream }));
    assert!(is_awaited(Replication::SnapshotEnd { epoch, position: Position(1) }));
    scene.primary.owe(scene.now);
    assert!(scene.primary.is_awaited(), "a replica was put behind what goes out");
}

/// The shard that has the channel's order, and a Backup that catches up.
fn catching_up(scene: &Scene) -> bodkin_broker::Shard<()> {
    let limits = ShardLimits { subscriptions_max: 1, topics_max: 1, queue_bytes_max: 1 };
    let mut shard = bodkin_broker::Shard::follower(limits);
    shard.step(scene.now, Input::Backup(BackupStanding::CatchingUp), &mut Vec::new());
    shard
}

#[test]
fn changes_behind_copy_are_sent_as_backup_acknowledges() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.copy();
    let mut shard = catching_up(&scene);
    // More than the channel takes without an acknowledgement; changes come on while the Backup takes them.
    scene.commit(3 * IN_FLIGHT_MAX as u64, 300);
    scene.pump_copy();
    loop {
        scene.primary.send_changes(scene.now, |number| shard.control(number));
        // The socket takes it.
        scene.primary.link().unwrap().out().clear();
        if scene.primary.has_sent_changes() {
            break;
        }
        assert!(!scene.primary.is_pumping(), "it waits for an acknowledgement");
        scene.commit(200, 300);
        let mut outputs = Vec::new();
        shard.acknowledged(shard.position(), &mut outputs).unwrap();
        assert!(outputs.len() <= IN_FLIGHT_MAX / 8, "there is room for what is kept");
        for output in outputs {
            let Output::Replicated { operation } = output else { panic!("{output:?} of a control operation") };
            assert_eq!(operation, scene.primary.replicated + 1, "in their order");
            scene.primary.replicated(operation);
        }
    }
    assert_eq!(shard.position(), Position(scene.primary.committed));
}

#[test]
fn changes_behind_copy_wait_for_full_socket() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.copy();
    scene.pump_copy();
    let mut shard = catching_up(&scene);
    let bytes = 100_000;
    scene.commit(100, bytes);
    scene.primary.send_changes(scene.now, |number| shard.control(number));
    let link = scene.primary.link().unwrap();
    assert!((COPY_AHEAD_BYTES..COPY_AHEAD_BYTES + 2 * bytes).contains(&link.queued()));
    link.out().clear();
    assert!(scene.primary.is_pumping() && !scene.primary.has_sent_changes());
}

#[test]
fn changes_for_joining_backup_wait_for_full_socket() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.copy();
    scene.pump();
    assert!(!scene.primary.holds_replicas());
    let mut shard = catching_up(&scene);
    let bytes = 100_000;
    scene.commit(200, bytes);
    loop {
        scene.primary.send_changes(scene.now, |number| shard.control(number));
        let link = scene.primary.link().unwrap();
        assert!(link.queued() < COPY_AHEAD_BYTES + 2 * bytes);
        if scene.primary.queue.is_empty() {
            break;
        }
        assert!(scene.primary.holds_replicas() && !scene.primary.is_pumping(), "changes wait for the socket");
        scene.primary.link().unwrap().out().clear();
        assert!(scene.primary.holds_replicas() && scene.primary.is_pumping(), "changes go first");
    }
    scene.primary.link().unwrap().out().clear();
    assert!(!scene.primary.holds_replicas() && !scene.primary.is_pumping());
    // Publishers wait for a Backup that is in sync.
    scene.primary.caught_up();
    scene.primary.protected(Protection::Protected);
    scene.commit(20, bytes);
    scene.primary.send_changes(scene.now, |number| shard.control(number));
    assert!(scene.primary.queue.is_empty() && !scene.primary.holds_replicas());
}

#[test]
fn change_without_room_in_channel_waits_for_acknowledgement() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.copy();
    scene.pump();
    scene.primary.caught_up();
    scene.primary.protected(Protection::Protected);
    scene.commit(2, 10);
    scene.primary.send_changes(scene.now, |_| None);
    assert!(!scene.primary.is_pumping(), "the acknowledgement wakes the shard");
    assert_eq!(scene.sent().len(), 2);
    scene.commit(1, 10);
    scene.primary.lose_session("cut");
    scene.connect();
    assert_eq!(scene.sent().len(), 0, "it is in the next copy");
}

/// A Backup that has the operations of this epoch up to a number, and nothing to be searched for in the event log.
fn resuming(scene: &mut Scene, number: u64) -> net::TcpStream {
    let mut backup = scene.connect_speaking(PROTOCOL);
    let have = Replication::Have { epoch: Epoch(1), number: Some(number) };
    scene.hear(&mut backup, &[have], |primary| primary.have.is_some()).unwrap();
    scene.primary.parting = Parting::Known;
    assert_eq!(scene.primary.resume(Position(0), LOG_END, scene.now), Some(BackupStanding::CatchingUp));
    backup
}

#[test]
fn changes_behind_many_records_are_sent_to_backup_that_was_away() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.write();
    // Records have numbers too, and are given to a Backup from the event log.
    for record in 0..2 * IN_FLIGHT_MAX as u64 {
        scene.primary.logged(vec![2], event_log::Position(record)).unwrap();
    }
    scene.write();
    let _backup = resuming(&mut scene, 1);
    assert_eq!(scene.sent().len(), 1);
    assert!(scene.primary.has_sent_changes());
}

#[test]
fn backup_that_lacks_no_change_is_in_sync_whatever_was_numbered_while_it_was_away() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.write();
    scene.primary.logged(vec![2], event_log::Position(4)).unwrap();
    let _backup = resuming(&mut scene, 1);
    assert!(scene.primary.has_sent_changes());
    // The log keeps it no more, and everything else is acknowledged.
    assert!(!scene.primary.is_complete(), "it lacks a record");
    scene.primary.acknowledged(Position(1), Position(1), scene.now);
    scene.primary.wants_piece().unwrap();
    scene.primary.read_piece(1, Piece { batch: None, next: LOG_END }, scene.now).unwrap();
    assert!(scene.primary.has_given_lacking());
    scene.primary.caught_up();
    assert!(scene.is_told_in_sync(), "nothing more will come");
    assert_eq!(scene.primary.gives_up_at(), None, "it owes nothing");
}
