//! A database that another node repeats, and one that repeats another's.

use std::{fs, sync::mpsc};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::wire::Position;
use bodkin_store::{
    Opened, Store, StoreError,
    following::{Followed, Report},
    replication::Committed,
};
use tokio::runtime::Runtime;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime")
}

fn declare(runtime: &Runtime, store: &Store, declaration: &'static str) -> Result<(), StoreError> {
    let hot = EventType::parse("hot").expect("an event type");
    runtime.block_on(store.write(move |draft| draft.declare_topic(&hot, declaration), |_, ()| ()))
}

/// A leader whose commits are answered at once; what it tells.
fn leader(directory: &std::path::Path) -> (Opened, mpsc::Receiver<Result<std::path::PathBuf, String>>) {
    let (sender, copies) = mpsc::channel();
    let outlet = Box::new(move |committed| match committed {
        Committed::Group(group) => group.release(),
        Committed::Copy(copied) => sender.send(copied).expect("the test listens"),
    });
    (Store::open_replicated(directory, outlet).expect("a database"), copies)
}

#[test]
fn copy_that_fails_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (opened, copies) = leader(directory.path());
    let path = directory.path().join("copy-1");
    // A file that an earlier attempt has left.
    fs::write(&path, "half a copy").expect("written");
    opened.store.copy_to(path.clone()).expect("ordered");
    assert!(copies.recv().expect("told").is_err());
    assert!(!path.exists());
    opened.store.copy_to(path.clone()).expect("ordered");
    assert_eq!(copies.recv().expect("told"), Ok(path));
}

#[test]
fn text_that_another_node_could_not_repeat_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (opened, _copies) = leader(directory.path());
    let runtime = runtime();
    let refused = declare(&runtime, &opened.store, "a\0b").expect_err("it has a NUL");
    assert!(matches!(&refused, StoreError::Refused(_)) && refused.to_string().contains("U+0000"), "{refused}");
    declare(&runtime, &opened.store, "ab").expect("taken");
    assert_eq!(opened.store.read_now(|draft| draft.declared_topics()).expect("read"), ["ab"]);
}

#[test]
fn database_that_was_written_alone_goes_on_from_no_leader() {
    let [directory, of_leader] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let (opened, copies) = leader(of_leader.path());
    opened.store.copy_to(of_leader.path().join("copy")).expect("ordered");
    let copy = fs::read(copies.recv().expect("told").expect("copied")).expect("a copy");
    let (sender, reports) = mpsc::channel();
    let reporter = Box::new(move |report| sender.send(report).expect("the test listens"));
    let (opened, mut following) = Store::follow(directory.path(), reporter).expect("a database");
    following.begin(1);
    following.part(copy).expect("taken");
    let followed = Followed { epoch: 3, number: 7 };
    following.end(Position(3), Some(followed)).expect("taken");
    assert!(matches!(reports.recv().expect("told"), Report::Copied { .. }));
    assert_eq!(following.followed(), Some(followed));
    drop(following);
    opened.close();
    // An operator starts it as a cloud by itself.
    Store::open(directory.path()).expect("a database").close();
    let (opened, following) = Store::follow(directory.path(), Box::new(|_| {})).expect("a database");
    assert_eq!(following.followed(), None);
    drop(following);
    opened.close();
}
