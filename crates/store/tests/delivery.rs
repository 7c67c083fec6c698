//! Where deliveries are and what they gave up, as it is found again at the next start.

use std::path::Path;

use bodkin_arrowhead::{
    access::Access,
    caller::Caller,
    event_handler::SubscriptionPut,
    form::{SubscriptionRequest, SystemRequest},
    name::NamingRules,
    record::SubscriptionId,
    system::{CoreSystemNames, SystemRegistration},
    utc::UtcTime,
};
use bodkin_store::{
    Draft, Opened, OperationError, Store, StoreError,
    delivery::{DeadLetters, DeliveriesAtStart, DeliveryRow, Place, Present, RefusedAgain, ReplayNoted, RowReplayed},
    event_log::{LogId, Position, RecordName},
};

const FIRST: SubscriptionId = SubscriptionId(1);
const SECOND: SubscriptionId = SubscriptionId(2);
const LOG: LogId = LogId(0x1234);
const OTHER: LogId = LogId(0x4321);

fn present(position: u64) -> Present {
    Present { log: Some(LOG), position: Position(position), after: RecordName::of_none_at(position) }
}

fn place(cursor: u64) -> Place {
    Place { cursor: Position(cursor), after: RecordName::of_none_at(cursor) }
}

struct Scene {
    opened: Opened,
    runtime: tokio::runtime::Runtime,
}

impl Scene {
    fn open(directory: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { opened: Store::open(directory).unwrap(), runtime }
    }

    /// With the subscriptions [`FIRST`] and [`SECOND`].
    fn new(directory: &Path) -> Self {
        let scene = Self::open(directory);
        let system = |port| SystemRequest {
            system_name: Some("subscriber".into()),
            address: Some("127.0.0.1".into()),
            port: Some(port),
            ..Default::default()
        };
        for port in [1, 2] {
            let registration = SystemRegistration::parse(system(port), CoreSystemNames::Refused, &NamingRules::default(), "/t").unwrap();
            scene.run(move |draft| draft.register_system(&registration).map(drop)).unwrap();
            scene.run(move |draft| draft.put_subscription(put(system(port)), 10).map(drop)).unwrap();
        }
        scene
    }

    fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.runtime.block_on(self.opened.store.write(operation, |_, result| result))
    }

    fn reopened(self, directory: &Path) -> Self {
        self.opened.close();
        Self::open(directory)
    }

    fn listed(&self, subscription: Option<SubscriptionId>, skipped: u64, events: u64) -> (Vec<(u64, u64, u64)>, u64) {
        let (rows, rest) = self.run(move |draft| draft.dead_letters(subscription, skipped, events)).unwrap();
        (rows.into_iter().map(|row| (row.first.0, row.last.0, row.events)).collect(), rest)
    }

    fn add(&self, letters: DeadLetters, rows_max: usize) -> Vec<(SubscriptionId, u64)> {
        let whose = self.opened.store.snapshot().subscriptions().get(&letters.subscription).cloned();
        let Some(whose) = whose else { return Vec::new() };
        self.run(move |draft| draft.add_dead_letters(&whose, &letters, rows_max)).unwrap()
    }

    /// Notes a replay of [`FIRST`]'s: rows by id, where they go on and how many events are done with.
    fn note(&self, rows: &[(i64, u64, u64)], refused: Vec<RefusedAgain>, rows_max: usize) -> ReplayNoted {
        let rows: Vec<_> = rows.iter().map(|&(id, next, events)| RowReplayed { id, next: Position(next), events }).collect();
        self.run(move |draft| draft.note_replayed(FIRST, &rows, &refused, rows_max)).unwrap()
    }
}

fn refused(of: i64, id: i64, letters: DeadLetters) -> RefusedAgain {
    RefusedAgain { of, letters: DeadLetters { id, ..letters } }
}

fn put(subscriber: SystemRequest) -> SubscriptionPut {
    let form = SubscriptionRequest {
        event_type: Some("hot".into()),
        subscriber_system: Some(subscriber),
        notify_uri: Some("/notify".into()),
        ..Default::default()
    };
    let form = Access::Own.admit(&Caller::Anonymous).unwrap().permit(form).unwrap();
    SubscriptionPut::parse(form, UtcTime::from_unix_seconds(0)).unwrap()
}

fn letters(subscription: SubscriptionId, first: u64, last: u64, events: u64) -> DeadLetters {
    DeadLetters {
        id: 0,
        subscription,
        log: Some(LOG),
        first: Position(first),
        last: Position(last),
        is_range: last > first,
        events,
        attempts: 5,
        reason: "the subscriber answered 400".into(),
        died_at: 0,
    }
}

#[test]
fn places_pauses_and_counts_are_there_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::new(directory.path());
    assert_eq!(scene.run(|draft| draft.deliveries_at_start()).unwrap(), DeliveriesAtStart::default());
    let gone = SubscriptionId(99);
    scene.run(move |draft| draft.note_deliveries(present(7), &[(FIRST, Some(place(3))), (gone, Some(place(1)))])).unwrap();
    assert!(scene.run(|draft| draft.pause_delivery(SECOND, true)).unwrap());
    assert!(!scene.run(move |draft| draft.pause_delivery(gone, true)).unwrap());
    scene.add(letters(SECOND, 10, 19, 6), 10);
    scene.add(letters(gone, 10, 19, 6), 10);
    let scene = scene.reopened(directory.path());
    let row = |subscription, cursor: Option<u64>, paused| {
        let place = cursor.map(place);
        DeliveryRow { subscription, cursor: place.map(|place| place.cursor), after: place.map(|place| place.after), paused }
    };
    let expected = DeliveriesAtStart {
        log: Some(LOG),
        present: Some(Position(7)),
        after: Some(present(7).after),
        rows: vec![row(FIRST, Some(3), false), row(SECOND, None, true)],
        dead_letters: vec![(SECOND, 6)],
    };
    assert_eq!(scene.run(|draft| draft.deliveries_at_start()).unwrap(), expected);
    scene.run(|draft| draft.note_deliveries(present(9), &[(FIRST, None), (SECOND, Some(place(8)))])).unwrap();
    scene.run(|draft| draft.pause_delivery(SECOND, false)).unwrap();
    let rows = scene.run(|draft| draft.deliveries_at_start()).unwrap().rows;
    assert_eq!(rows, [row(SECOND, Some(8), false)], "who is in the present needs no row");
    scene.run(|draft| draft.remove_subscription(SECOND)).unwrap();
    let left = scene.run(|draft| draft.deliveries_at_start()).unwrap();
    assert_eq!((left.rows.len(), left.dead_letters.len()), (0, 0), "a subscription takes everything with it");
}

#[test]
fn dead_letters_are_paged_continued_and_limited() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::new(directory.path());
    assert_eq!(scene.add(letters(SECOND, 10, 19, 6), 3), []);
    assert_eq!(scene.add(letters(SECOND, 20, 29, 4), 3), [], "a range goes on");
    assert_eq!(scene.add(letters(FIRST, 5, 5, 1), 3), []);
    assert_eq!(scene.add(letters(SECOND, 30, 30, 1), 3), [], "a single one is no part of a range");
    let (first, range, single) = ((5, 5, 1), (10, 29, 10), (30, 30, 1));
    for (subscription, skipped, events, rows, rest) in [
        (None, 0, 100, vec![first, range, single], 0),
        (None, 0, 1, vec![first], 0),
        (None, 1, 1, vec![range], 0),
        (None, 4, 2, vec![range], 3),
        (None, 10, 2, vec![range, single], 9),
        (None, 12, 2, vec![], 0),
        (Some(SECOND), 9, 2, vec![range, single], 9),
        (Some(FIRST), 0, 9, vec![first], 0),
    ] {
        let found = scene.listed(subscription, skipped, events);
        assert_eq!(found, (rows, rest), "{subscription:?} {skipped} {events}");
    }
    assert_eq!(scene.run(|draft| draft.dead_letter_count(None)).unwrap(), 12);
    assert_eq!(scene.add(letters(FIRST, 40, 40, 1), 3), [(SECOND, 10)], "the oldest go");
    assert_eq!(scene.run(|draft| draft.remove_dead_letters(Some(FIRST))).unwrap(), [(FIRST, 1), (FIRST, 1)]);
    assert_eq!(scene.run(|draft| draft.dead_letter_count(None)).unwrap(), 1);
}

#[test]
fn a_replay_shortens_what_is_left_and_keeps_what_failed_again() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::new(directory.path());
    scene.add(letters(FIRST, 10, 19, 6), 10);
    scene.add(letters(FIRST, 30, 30, 1), 10);
    let noted = scene.note(&[(1, 15, 3), (2, 31, 1)], vec![refused(1, 0, letters(FIRST, 12, 12, 1))], 10);
    assert_eq!(noted, ReplayNoted { fewer: 3, surplus: vec![], refused_to: Some(3) });
    assert_eq!(scene.listed(None, 0, 100).0, [(12, 12, 1), (15, 19, 3)]);
    let first_of = |newest: i64| scene.run(move |draft| draft.first_dead_letters(FIRST, LOG, newest, 10)).unwrap().len();
    assert_eq!((first_of(1), first_of(3)), (1, 2), "what failed again is younger than the replay");
    assert_eq!(scene.run(|draft| draft.newest_dead_letters(FIRST)).unwrap(), Some(3));
    scene.add(letters(FIRST, 20, 29, 4), 10);
    scene.note(&[(1, 20, 3)], vec![], 10);
    assert_eq!(scene.listed(None, 0, 100).0, [(12, 12, 1), (20, 29, 4)], "a range that was continued goes on");
    scene.run(|draft| draft.remove_dead_letters(None)).unwrap();
    let noted = scene.note(&[(1, 25, 2)], vec![refused(1, 0, letters(FIRST, 22, 22, 1))], 10);
    assert_eq!(noted, ReplayNoted::default());
    assert_eq!(scene.listed(None, 0, 100).0, [], "what was removed meanwhile stays removed");
    assert_eq!(scene.run(|draft| draft.newest_dead_letters(FIRST)).unwrap(), None);
}

#[test]
fn every_position_that_is_known_is_in_front_of_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::new(directory.path());
    let end = || scene.run(|draft| draft.positions_end(Some(LOG))).unwrap().0;
    assert_eq!(end(), 0);
    scene.run(|draft| draft.note_deliveries(present(7), &[])).unwrap();
    assert_eq!(end(), 7);
    scene.run(|draft| draft.note_deliveries(present(7), &[(FIRST, Some(place(9)))])).unwrap();
    assert_eq!(end(), 9);
    scene.add(letters(SECOND, 10, 19, 6), 10);
    assert_eq!(end(), 20);
    assert_eq!(scene.run(|draft| draft.positions_end(Some(OTHER))).unwrap().0, 0, "those are of another log");
    assert_eq!(scene.run(|draft| draft.positions_end(None)).unwrap().0, 20);
}

#[test]
fn dead_letters_of_another_log_stay_until_it_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::new(directory.path());
    scene.add(letters(FIRST, 10, 19, 6), 10);
    scene.add(DeadLetters { log: Some(OTHER), ..letters(FIRST, 20, 29, 4) }, 10);
    assert_eq!(scene.listed(None, 0, 100).0, [(10, 19, 6), (20, 29, 4)], "a range of another log continues none");
    let first_of = |log| scene.run(move |draft| draft.first_dead_letters(FIRST, log, 9, 10)).unwrap().len();
    let elsewhere = |log| scene.run(move |draft| draft.dead_letters_elsewhere(FIRST, log)).unwrap();
    assert_eq!((first_of(LOG), elsewhere(LOG), first_of(OTHER), elsewhere(OTHER)), (1, 4, 1, 6));
    assert_eq!(scene.run(|draft| draft.dead_letter_count(Some(FIRST))).unwrap(), 10);
    scene.add(DeadLetters { log: None, ..letters(FIRST, 30, 39, 1) }, 10);
    assert_eq!((first_of(LOG), first_of(OTHER)), (2, 2), "of the node's own log, whichever it is");
    scene.run(|draft| draft.name_log_of_dead_letters(LOG)).unwrap();
    assert_eq!((first_of(LOG), first_of(OTHER)), (2, 1));
}

#[test]
fn what_a_replay_makes_of_rows_is_limited_to_their_own_subscription() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::new(directory.path());
    scene.add(letters(SECOND, 1, 1, 1), 3);
    scene.add(letters(FIRST, 10, 99, 90), 3);
    scene.add(letters(FIRST, 200, 200, 1), 3);
    // Three events of the range are refused, one by one, and the rest is still to come.
    let noted = scene.note(&[(2, 40, 30)], [12, 14, 16].map(|at| refused(2, 0, letters(FIRST, at, at, 1))).to_vec(), 3);
    assert_eq!(noted, ReplayNoted { fewer: 27, surplus: vec![(FIRST, 1), (FIRST, 1)], refused_to: Some(6) });
    assert_eq!(scene.listed(None, 0, 100).0, [(16, 16, 1), (40, 99, 60), (200, 200, 1), (1, 1, 1)]);
    // What goes on refusing makes no further row, and the range is done with.
    let noted = scene.note(&[(2, 100, 60)], vec![refused(2, 6, letters(FIRST, 40, 99, 60))], 3);
    assert_eq!(noted, ReplayNoted { fewer: 0, surplus: vec![], refused_to: Some(6) });
    assert_eq!(scene.listed(None, 0, 100).0, [(16, 99, 61), (200, 200, 1), (1, 1, 1)]);
}
