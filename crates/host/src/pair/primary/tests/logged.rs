//! What is logged about a session, and at which level.

use std::sync::Mutex;

use tracing::{
    Event, Level, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

use super::*;

/// The levels of what is logged on the test's thread.
#[derive(Clone, Default)]
struct LoggedLevels(Arc<Mutex<Vec<Level>>>);

impl Subscriber for LoggedLevels {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn replica_session_end_by_fault_is_a_warning() {
    let mut scene = Scene::new();
    let levels = LoggedLevels::default();
    let _logs = tracing::subscriber::set_default(levels.clone());
    let logged = || std::mem::take(&mut *levels.0.lock().unwrap());
    let mut backup = scene.connect_speaking(PROTOCOL);
    let end = scene.hear(&mut backup, &[Replication::Have { epoch: Epoch(9), number: None }], |_| false).unwrap_err();
    scene.primary.lose_session(end);
    assert_eq!(logged(), [Level::WARN], "no Backup sends this");
    let mut backup = scene.connect_speaking(PROTOCOL);
    backup.shutdown(net::Shutdown::Both).unwrap();
    let end = scene.hear(&mut backup, &[], |_| false).unwrap_err();
    scene.primary.lose_session(end);
    assert_eq!(logged(), [Level::INFO], "the Backup has stopped");
    scene.connect();
    scene.connect();
    assert_eq!(logged(), [Level::INFO], "the Backup has connected again");
    scene.primary.begin(Epoch(2));
    assert_eq!(logged(), [Level::INFO], "an epoch begins");
    scene.connect();
    scene.primary.lose_session("it acknowledges nothing");
    assert_eq!(logged(), [Level::WARN]);
    scene.connect();
    scene.primary.lose_session("it acknowledges nothing");
    assert!(logged().is_empty(), "it was logged a moment ago");
}

#[test]
fn standby_that_joins_for_too_long_is_a_warning() {
    let mut scene = Scene::new();
    scene.primary.protected(Protection::Alone);
    scene.connect();
    scene.copy();
    scene.pump();
    assert!(matches!(scene.primary.session, Session::Joining));
    let levels = LoggedLevels::default();
    let _logs = tracing::subscriber::set_default(levels.clone());
    let mut acknowledges = |position, wait| {
        scene.now = scene.now.plus(wait);
        scene.primary.acknowledged(Position(position), Position(100), scene.now);
        levels.0.lock().unwrap().contains(&Level::WARN)
    };
    assert!(!acknowledges(1, Duration::ZERO) && !acknowledges(2, JOIN_MAX));
    assert!(acknowledges(3, Duration::from_nanos(1)), "it acknowledges, and does not come to the end of what it is given");
}
