//! A follower's snapshot is the leader's, and what its own database holds; promoted, it goes on with the same ids.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use bodkin_arrowhead::{audit::LineHash, name::EventType, snapshot::Snapshot};
use bodkin_broker::wire::Position;
use bodkin_store::{
    Draft, OpenError, Opened, OperationError, Store, StoreError,
    audit::Head,
    following::{Followed, Following, QUEUE_BYTES_MAX, QueueFull, Report},
    replication::Committed,
};
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    columns,
    operations::{Operation, Service, carry_out, operation},
};

/// A leader whose commits go to a follower.
struct Pair {
    leader: Opened,
    leader_data: TempDir,
    follower: Opened,
    follower_data: TempDir,
    following: Arc<Mutex<Option<Following>>>,
    /// The last position that was given.
    sent: Arc<AtomicU64>,
    /// The last of the leader's operations that was numbered.
    numbered: Arc<AtomicU64>,
    reports: mpsc::Receiver<Report>,
    /// While it is held the follower waits behind its next commit, and what comes meanwhile is repeated together.
    gate: Arc<Mutex<()>>,
    /// The declarations that the follower has told of, by event type.
    topics: BTreeMap<String, String>,
    runtime: Runtime,
}

impl Pair {
    fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// The follower has a database already.
    fn of(follower_data: TempDir) -> Self {
        let leader_data = tempfile::tempdir().unwrap();
        let (sender, reports) = mpsc::channel();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.clone();
        let report = Box::new(move |report| {
            drop(held.lock().unwrap());
            drop(sender.send(report));
        });
        let (follower, following) = Store::follow(follower_data.path(), report).unwrap();
        let following = Arc::new(Mutex::new(Some(following)));
        let sent = Arc::new(AtomicU64::new(0));
        let (to, position) = (following.clone(), sent.clone());
        let next = move || Position(position.fetch_add(1, Relaxed) + 1);
        let numbered = Arc::new(AtomicU64::new(0));
        let numbers = numbered.clone();
        let number = move || Some(Followed { epoch: 1, number: numbers.fetch_add(1, Relaxed) + 1 });
        let mut is_copied = false;
        let outlet = Box::new(move |committed| {
            let mut to = to.lock().unwrap();
            match (committed, to.as_mut()) {
                (Committed::Copy(path), Some(to)) => {
                    to.begin(1);
                    fs::read(path.as_ref().unwrap()).unwrap().chunks(1000).for_each(|part| to.part(part.to_vec()).unwrap());
                    fs::remove_file(path.unwrap()).unwrap();
                    to.end(next(), number()).unwrap();
                    is_copied = true;
                }
                (Committed::Group(group), Some(to)) => {
                    if is_copied {
                        group.operations.iter().for_each(|operation| to.operation(next(), number(), operation.clone()).unwrap());
                    }
                    group.release();
                }
                (Committed::Group(group), None) => group.release(),
                (Committed::Copy(_), None) => panic!("nobody is copied for"),
            }
        });
        Self {
            leader: Store::open_replicated(leader_data.path(), outlet).unwrap(),
            leader_data,
            follower,
            follower_data,
            following,
            sent,
            numbered,
            reports,
            gate,
            topics: BTreeMap::new(),
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    /// Has the leader carry an operation out.
    fn lead(&self, operation: Operation) {
        drop(self.runtime.block_on(carry_out(&self.leader.store, operation)));
    }

    /// Has the leader carry out operations, and the follower repeat all but the first of them in one commit.
    fn lead_together(&mut self, operations: impl IntoIterator<Item = Operation>) {
        let gate = self.gate.clone();
        let held = gate.lock().unwrap();
        operations.into_iter().for_each(|operation| self.lead(operation));
        drop(held);
        self.settle();
    }

    /// Has the leader write.
    fn write<T: Send + 'static>(&self, write: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError> + Send + 'static) -> T {
        self.runtime.block_on(self.leader.store.write(write, |_, answer| answer)).unwrap()
    }

    fn copy(&self) {
        self.leader.store.copy_to(self.leader_data.path().join("copy")).unwrap();
        // The copy is ordered in front of what is written behind it.
        self.write(|_| Ok(()));
    }

    /// Waits until the follower has what was sent.
    fn settle(&mut self) {
        let mut reached = Position(0);
        while self.sent.load(Relaxed) > reached.0 {
            reached = match self.reports.recv_timeout(Duration::from_secs(20)).unwrap() {
                Report::Copied { position, topics, .. } => {
                    self.topics = topics.into_iter().map(|declaration| (declared(&declaration), declaration)).collect();
                    position
                }
                Report::Repeated { position, topics, .. } => {
                    for topic in topics {
                        match topic.declaration {
                            Some(declaration) => self.topics.insert(topic.event_type.into(), declaration),
                            None => self.topics.remove(&*topic.event_type),
                        };
                    }
                    position
                }
                Report::Failed { why, .. } => panic!("{why}"),
            };
        }
        // Positions go on: what comes next is behind this one.
        self.sent.store(0, Relaxed);
    }

    fn leaders(&self) -> Arc<Snapshot> {
        self.leader.store.snapshot().clone()
    }

    fn followers(&self) -> Arc<Snapshot> {
        self.follower.store.snapshot().clone()
    }

    /// What the follower's database holds if it is killed now.
    fn left_by_a_kill(&self) -> Arc<Snapshot> {
        let place = tempfile::tempdir().unwrap();
        for file in ["bodkin.sqlite", "bodkin.sqlite-wal", "bodkin.sqlite.received"] {
            drop(fs::copy(self.follower_data.path().join(file), place.path().join(file)));
        }
        Store::open(place.path()).unwrap().store.snapshot().clone()
    }

    /// The follower leads; gives how many operations each of its commits has for who would follow it.
    fn promote(&self) -> mpsc::Receiver<usize> {
        let following = self.following.lock().unwrap().take().unwrap();
        let (sender, operations) = mpsc::channel();
        following.promote(Box::new(move |committed| match committed {
            Committed::Group(group) => {
                let _ = sender.send(group.operations.len());
                group.release();
            }
            Committed::Copy(_) => panic!("nobody has asked for a copy"),
        }));
        operations
    }
}

/// The event type in a declaration.
fn declared(declaration: &str) -> String {
    serde_json::from_str::<serde_json::Value>(declaration).unwrap()["event_type"].as_str().unwrap().to_owned()
}

/// Ids and what rows are about; reservations end by the clock, so which ones are made differs.
fn ids(data: &Path) -> Vec<String> {
    let mut ids = columns(data, 2);
    ids.retain(|row| !row.contains("qos_reservation"));
    ids
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_followers_snapshot_is_the_leaders_and_goes_on_with_its_ids(
        operations in prop::collection::vec(prop::collection::vec(operation(), 1..6), 1..16),
        copied_behind in prop::collection::btree_set(0usize..16, 1..3),
        behind in prop::collection::vec(operation(), 0..20),
    ) {
        let mut pair = Pair::new();
        let places: Vec<usize> = copied_behind.into_iter().map(|place| place % operations.len()).collect();
        let mut is_copied = false;
        for (index, together) in operations.into_iter().enumerate() {
            if places.contains(&index) {
                pair.copy();
                is_copied = true;
            }
            pair.lead_together(together);
            if is_copied {
                prop_assert_eq!(&pair.followers(), &pair.leaders());
            }
            if index % 4 == 0 {
                prop_assert_eq!(&pair.left_by_a_kill(), &pair.followers());
            }
        }
        let topics = pair.write(|draft| draft.declared_topics());
        prop_assert_eq!(pair.topics.values().cloned().collect::<Vec<_>>(), topics);

        pair.promote();
        for operation in behind {
            pair.lead(operation.clone());
            drop(pair.runtime.block_on(carry_out(&pair.follower.store, operation)));
        }
        let published = pair.followers();
        pair.leader.close();
        pair.follower.close();
        prop_assert_eq!(ids(pair.leader_data.path()), ids(pair.follower_data.path()));
        prop_assert_eq!(&published, &*Store::open(pair.follower_data.path()).unwrap().store.snapshot());
    }
}

/// A row of each kind is made, changed where that is possible, and removed.
#[test]
fn every_kind_of_row_is_made_changed_and_removed() {
    let service = |uri| Service { definition: 0, system: 1, uri, interfaces: vec![0, 1], metadata: Some(1), is_expired: false };
    let local = |provider, priority| (1, provider, 0, 0, priority, None);
    let script = vec![
        register(1),
        register(2),
        register(3),
        Operation::Register(service(0)),
        Operation::ReplaceEntry { id: 1, service: service(1) },
        Operation::PatchSystem { id: 3, port: 7 },
        Operation::AddName { kind: 0, name: 3 },
        Operation::Rename { kind: 0, id: 2, name: 2 },
        Operation::AddName { kind: 1, name: 3 },
        Operation::Rename { kind: 1, id: 5, name: 2 },
        Operation::InsertRules { consumer: 2, providers: vec![1], interfaces: vec![3, 4], definition: 1 },
        Operation::Subscribe { event_type: 0, system: 1, sources: Some(vec![2]), filter: true },
        Operation::UpdateSubscription { id: 1, event_type: 1, system: 2 },
        Operation::OwnCloud,
        Operation::PutRelay { id: None, port: 1, key: Some(1), kind: 0, exclusive: false },
        Operation::PutRelay { id: None, port: 2, key: None, kind: 1, exclusive: true },
        Operation::PutRelay { id: Some(1), port: 3, key: None, kind: 0, exclusive: false },
        Operation::PutCloud { id: None, cloud: 0, neighbor: false, relays: [vec![1], vec![2]] },
        Operation::PutCloud { id: Some(2), cloud: 0, neighbor: true, relays: [vec![1], vec![]] },
        Operation::AssignRelays { cloud: 2, relays: [vec![], vec![2]] },
        Operation::AcceptEvents { cloud: 2, event_type: 0 },
        Operation::AcceptEvents { cloud: 2, event_type: 1 },
        Operation::RefuseEvents { cloud: 2, event_type: 0 },
        Operation::Remove { kind: 10, id: 2 },
        Operation::InsertInterCloudRules { cloud: 2, providers: vec![1], interfaces: vec![3], definition: 1 },
        Operation::InsertStoreEntries { entries: vec![local(1, 1), local(2, 1), (1, 1, 0, 0, 1, Some(0))] },
        Operation::Reorder { ids: vec![1, 3, 2] },
        Operation::InsertFlexibleRule { consumer: 1, definition: 0, metadata: Some(1), interface: Some(1) },
        Operation::Lock { consumer: 2, offers: vec![(1, 1), (2, 1)], seconds: 0 },
        Operation::Confirm { consumer: 2, offers: vec![(1, 1), (2, 1)], seconds: 0 },
        Operation::Expire,
        Operation::Remove { kind: 9, id: 2 },
        Operation::ClearFlexibleStore,
        Operation::Remove { kind: 8, id: 1 },
        Operation::Remove { kind: 7, id: 1 },
        Operation::Remove { kind: 6, id: 2 },
        Operation::Remove { kind: 10, id: 1 },
        Operation::Remove { kind: 5, id: 1 },
        Operation::Remove { kind: 4, id: 1 },
        Operation::Remove { kind: 3, id: 1 },
        Operation::Remove { kind: 2, id: 3 },
        Operation::Remove { kind: 1, id: 1 },
        Operation::Remove { kind: 0, id: 1 },
    ];
    let mut pair = Pair::new();
    pair.copy();
    let mut last = pair.leaders();
    for operation in script {
        let told = format!("{operation:?}");
        pair.runtime.block_on(carry_out(&pair.leader.store, operation)).expect(&told);
        pair.settle();
        assert_ne!(pair.leaders(), last, "{told} changes something");
        assert_eq!(pair.followers(), pair.leaders(), "{told}");
        last = pair.leaders();
    }
}

fn register(system: u8) -> Operation {
    Operation::RegisterSystem { system }
}

#[test]
fn what_follows_serves_the_last_state_and_takes_writes_when_it_leads() {
    let mut pair = Pair::new();
    pair.lead(register(1));
    pair.copy();
    pair.lead(register(2));
    pair.settle();
    let refused = pair.runtime.block_on(carry_out(&pair.follower.store, register(3)));
    assert!(matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("Another node")), "{refused:?}");
    assert!(matches!(pair.follower.store.copy_to("copy".into()), Err(StoreError::Unavailable(_))));
    pair.lead(Operation::DeclareTopic { event_type: 1, version: 1 });
    pair.settle();
    assert_eq!(pair.follower.store.read_now(|draft| draft.declared_topics()).unwrap().len(), 1);
    let written = pair.follower.store.read_now(|draft| draft.forget_topic(&EventType::from_stored("EVENT-1")));
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "what reads changes nothing");
    assert_eq!(pair.followers(), pair.leaders());
    let gate = pair.gate.clone();
    let held = gate.lock().unwrap();
    pair.lead(register(3));
    pair.lead(register(4));
    let operations = pair.promote();
    drop(held);
    pair.runtime.block_on(carry_out(&pair.follower.store, register(5))).unwrap();
    assert_eq!(operations.recv().unwrap(), 1, "its commits are for another follower");
    assert!(matches!(Store::open(pair.follower_data.path()), Err(OpenError::InUse { .. })), "the directory is still its own");
    assert_eq!(
        pair.followers().systems().map(|system| system.id.0).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5],
        "what had come is repeated in front"
    );
}

#[test]
fn a_store_that_was_never_sent_a_copy_leads_from_what_it_has() {
    let data = tempfile::tempdir().unwrap();
    let opened = Store::open(data.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(carry_out(&opened.store, register(1))).unwrap();
    opened.close();
    let pair = Pair::of(data);
    assert_eq!(pair.followers().systems().len(), 1);
    pair.promote();
    runtime.block_on(carry_out(&pair.follower.store, register(2))).unwrap();
    assert_eq!(pair.followers().systems().len(), 2);
}

#[test]
fn a_copy_that_does_not_come_to_its_end_or_is_none_changes_nothing() {
    let mut pair = Pair::new();
    pair.lead(register(1));
    pair.copy();
    pair.settle();
    let before = pair.followers();
    let whole = fs::read(pair.follower_data.path().join("bodkin.sqlite")).unwrap();
    let failed = |pair: &Pair| matches!(pair.reports.recv().unwrap(), Report::Failed { session: 7, .. });
    {
        let following = pair.following.clone();
        let mut following = following.lock().unwrap();
        let following = following.as_mut().unwrap();
        following.begin(7);
        following.operation(Position(1), None, b"an operation".to_vec()).unwrap();
        assert!(failed(&pair), "an operation in a copy");
        following.begin(7);
        following.part(vec![7; 5000]).unwrap();
        following.end(Position(1), None).unwrap();
        following.part(vec![7; 5000]).unwrap();
        assert!(failed(&pair), "no database");
        following.begin(7);
        following.part(whole[..whole.len() / 2].to_vec()).unwrap();
        following.end(Position(1), None).unwrap();
        assert!(failed(&pair), "half a database");
        following.begin(7);
        following.part(whole[..4096].to_vec()).unwrap();
    }
    assert_eq!((pair.followers(), pair.left_by_a_kill()), (before.clone(), before.clone()));
    pair.lead(register(2));
    assert!(failed(&pair), "an operation in the middle of a copy");
    pair.copy();
    pair.lead(register(3));
    pair.settle();
    assert_eq!(pair.followers(), pair.leaders());
    let names = fs::read_dir(pair.follower_data.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains("received")).collect::<Vec<_>>(), Vec::<String>::new(), "nothing is left of a copy");
    drop(pair.following.lock().unwrap().take());
    let last = pair.followers();
    pair.follower.close();
    assert_eq!(last, *Store::open(pair.follower_data.path()).unwrap().store.snapshot());
}

#[test]
fn an_operation_of_another_form_or_that_cannot_be_repeated_asks_for_a_new_copy() {
    let mut pair = Pair::new();
    for operation in [&[2, 0, 0, 0, 0][..], b"\x01\0\0\0\0DELETE FROM nothing;"] {
        pair.copy();
        pair.settle();
        let before = pair.followers();
        pair.following.lock().unwrap().as_mut().unwrap().operation(Position(1), None, operation.to_vec()).unwrap();
        let Report::Failed { why, .. } = pair.reports.recv().unwrap() else { panic!("it cannot be repeated") };
        assert!(why.contains("A new copy is needed"), "{why}");
        assert_eq!(pair.followers(), before);
    }
}

#[test]
fn a_follower_that_was_away_knows_what_it_has_and_repeats_nothing_twice() {
    let mut pair = Pair::new();
    assert_eq!(pair.following.lock().unwrap().as_ref().unwrap().followed(), None);
    pair.lead(register(1));
    pair.copy();
    pair.lead(register(2));
    pair.lead(Operation::DeclareTopic { event_type: 1, version: 1 });
    pair.settle();
    let reached = Some(Followed { epoch: 1, number: pair.numbered.load(Relaxed) });
    drop(pair.following.lock().unwrap().take());
    pair.follower.close();
    let (told, reports) = mpsc::channel();
    let (follower, mut following) = Store::follow(pair.follower_data.path(), Box::new(move |report| drop(told.send(report)))).unwrap();
    assert_eq!((following.followed(), follower.store.snapshot().systems().len()), (reached, 2));
    following.resume(5, Position(0));
    let Report::Copied { session: 5, position: Position(0), topics } = reports.recv().unwrap() else { panic!("what is there counts") };
    assert_eq!(topics.len(), 1);
    // It cannot be repeated, so that it is seen whether it was.
    let wrong = b"\x01\0\0\0\0DELETE FROM nothing;".to_vec();
    following.operation(Position(1), reached, wrong.clone()).unwrap();
    assert!(matches!(reports.recv().unwrap(), Report::Repeated { position: Position(1), .. }), "it is there already");
    let next = reached.map(|reached| Followed { number: reached.number + 1, ..reached });
    following.operation(Position(2), next, wrong).unwrap();
    assert!(matches!(reports.recv().unwrap(), Report::Failed { session: 5, .. }));
    assert_eq!(following.followed(), reached);
    // Another leader counts anew.
    following.resume(6, Position(2));
    let other = Some(Followed { epoch: 2, number: 1 });
    following.operation(Position(3), other, b"\x01\0\0\0\0DELETE FROM system_ WHERE id = 0;".to_vec()).unwrap();
    assert!(reports.iter().any(|report| matches!(report, Report::Repeated { session: 6, .. })));
    assert_eq!(following.followed(), other);
}

#[test]
fn more_than_may_wait_is_refused_until_the_next_copy() {
    let pair = Pair::new();
    let mut following = pair.following.lock().unwrap().take().unwrap();
    following.begin(1);
    assert_eq!(following.part(vec![0; QUEUE_BYTES_MAX]), Err(QueueFull));
    assert_eq!(following.operation(Position(1), None, Vec::new()), Err(QueueFull), "it would be behind a gap");
    following.begin(2);
    assert_eq!(following.part(vec![0; 1000]), Ok(()));
}

#[test]
fn what_the_database_says_of_a_nodes_own_audit_log_stays_that_nodes() {
    let head = |number| Head { number, hash: LineHash::default() };
    let data = tempfile::tempdir().unwrap();
    let opened = Store::open(data.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let note = |store: &Store, number| {
        let note = move |draft: &mut Draft<'_>| draft.note_audit_checkpoint(head(number)).and_then(|()| draft.note_audited_ledger(number));
        runtime.block_on(store.write(note, |_, ()| ())).unwrap();
    };
    let noted = |store: &Store| {
        let noted = |draft: &mut Draft<'_>| Ok((draft.audit_checkpoint()?.map(|head| head.number), draft.audited_ledger()?));
        runtime.block_on(store.write(noted, |_, noted| noted)).unwrap()
    };
    note(&opened.store, 5);
    opened.close();
    let mut pair = Pair::of(data);
    note(&pair.leader.store, 100);
    pair.copy();
    note(&pair.leader.store, 200);
    pair.lead(Operation::DeclareTopic { event_type: 1, version: 1 });
    pair.settle();
    pair.promote();
    assert_eq!((noted(&pair.leader.store), noted(&pair.follower.store)), ((Some(200), 200), (Some(5), 5)));
    let topics = runtime.block_on(pair.follower.store.write(|draft| draft.declared_topics(), |_, topics| topics)).unwrap();
    assert_eq!(topics.len(), 1, "what is not a node's own is repeated");
}
