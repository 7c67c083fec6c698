//! What is not served, and what happens when the database goes away.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use bodkin_arrowhead::{
    log::{LogEntry, LogLevel},
    utc::UtcTime,
};

use super::*;

#[test]
#[ignore = "peer: ./x test --all"]
fn a_database_that_cannot_be_shared_is_refused_with_the_reason() {
    let Some(server) = Server::start() else { return skip("a_database_that_cannot_be_shared_is_refused_with_the_reason") };
    server.sql("postgres", "CREATE ROLE guest LOGIN; CREATE ROLE known LOGIN");
    let place = TempDir::new().unwrap();
    let refused = |url: String| Store::share(place.path(), &DatabasePlace::parse(&url).unwrap()).err().expect("refused").to_string();
    let told = refused(server.url_of("nobody", "cloud"));
    assert!(told.contains("role \"nobody\" does not exist") && told.contains("postgres://nobody@"), "{told}");
    let told = refused(server.url_of("bodkin", "nothing"));
    assert!(told.contains("database \"nothing\" does not exist"), "{told}");
    let told = refused(server.url_of("guest", "cloud"));
    assert!(told.contains("permission denied") && told.contains("GRANT CREATE"), "{told}");
    server.asks_for_a_password_of("known", "right");
    let told = refused(server.url_of("known:wrong", "cloud"));
    assert!(told.contains("password authentication failed") && !told.contains("wrong"), "{told}");
    let told = refused(server.url_of("known", "cloud"));
    assert!(told.contains("password missing"), "{told}");
    let told = refused(server.url_of("known:right", "cloud"));
    assert!(told.contains("permission denied"), "{told}");
    let node = Node::start(&server);
    server.sql("cloud", "UPDATE bodkin.shared SET version = 7");
    let told = share(place.path(), &server).err().unwrap();
    assert!(told.contains("version 7") && told.contains("same release"), "{told}");
    // What earlier versions do not have is made beside what they have; a node that runs goes on.
    const WITHOUT_3: &str = "DROP TABLE bodkin.node_start, bodkin.certificate_line, bodkin.audit_line; ALTER TABLE bodkin.node DROP COLUMN authority, DROP COLUMN issues;";
    server.sql("cloud", &format!("{WITHOUT_3} UPDATE bodkin.shared SET version = 2"));
    let (later, number) = (Node::start(&server), system(1));
    assert_eq!(server.sql("cloud", "SELECT version FROM bodkin.shared"), "4");
    node.runtime.block_on(node.store().write(move |draft| draft.register_system(&number), |_, id| id.0)).unwrap();
    later.follows(&node);
    drop((node, later));
    server.sql(
        "cloud",
        &format!("{WITHOUT_3} DROP TABLE bodkin.node; ALTER TABLE bodkin.shared DROP COLUMN cloud; UPDATE bodkin.shared SET version = 1"),
    );
    drop(Node::start(&server));
    assert_eq!(server.sql("cloud", "SELECT version FROM bodkin.shared"), "4");
    // Who may look, and not change.
    server.sql("cloud", "GRANT CREATE ON DATABASE cloud TO guest; GRANT USAGE ON SCHEMA bodkin TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA bodkin TO guest");
    let told = refused(server.url_of("guest", "cloud"));
    assert!(
        told.contains("may not read and change") && told.contains("certificate_line") && told.contains("GRANT SELECT, INSERT"),
        "{told}"
    );
    server.sql("cloud", "GRANT ALL ON ALL TABLES IN SCHEMA bodkin TO guest");
    Store::share(place.path(), &DatabasePlace::parse(&server.url_of("guest", "cloud")).unwrap()).unwrap().close();
    server.sql("postgres", "CREATE DATABASE other");
    server.sql("other", "CREATE SCHEMA bodkin; CREATE TABLE bodkin.mine (a INT)");
    let told = refused(server.url_of("bodkin", "other"));
    assert!(told.contains("no Bodkin has made"), "{told}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_text_that_the_database_does_not_take_is_its_senders_alone() {
    let Some(server) = Server::start() else { return skip("a_text_that_the_database_does_not_take_is_its_senders_alone") };
    let node = Node::start(&server);
    let mut wrong = system(1);
    wrong.authentication_info = Some("a\0b".into());
    let store = node.store().clone();
    let (bad, good) = node.runtime.block_on(async {
        let right = system(2);
        let bad = store.write(move |draft| draft.register_system(&wrong), |_, id| id.0);
        let good = store.write(move |draft| draft.register_system(&right), |_, id| id.0);
        tokio::join!(bad, good)
    });
    assert!(matches!(bad, Err(StoreError::Refused(_))), "{bad:?}");
    assert_eq!(good.unwrap(), 1);
}

/// Ends every connection of a Bodkin.
const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'bodkin %'";

/// What a writer was told of the systems it has tried.
#[derive(Default)]
struct Load {
    answered: Vec<usize>,
    unavailable: usize,
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_database_that_goes_and_comes_back_loses_nothing_that_was_answered() {
    let Some(mut server) = Server::start() else { return skip("a_database_that_goes_and_comes_back_loses_nothing_that_was_answered") };
    let nodes = Arc::new([Node::start(&server), Node::start(&server)]);
    let writers = Writers::start(&nodes);
    let more = |why: &str| writers.wait_for_more(why);
    more("at first");
    for _ in 0..3 {
        server.sql("cloud", CUT);
        more("behind a cut");
    }
    for _ in 0..2 {
        server.crash();
        for node in nodes.iter() {
            eventually(|| node.store().standing().unwrap().away.is_some(), || "the loss is noticed".into());
            assert!(node.snapshot().systems().len() > 5, "what was read is served");
        }
        server.begin();
        more("behind a crash");
        for node in nodes.iter() {
            eventually(|| node.store().standing().unwrap().away.is_none(), || "the return is noticed".into());
        }
    }
    let unavailable = writers.end(|| Node::start(&server));
    nodes[0].follows(&nodes[1]);
    assert_eq!(Node::start(&server).snapshot(), nodes[0].snapshot());
    assert!(unavailable > 0);
}

/// Who registers systems at two nodes, one behind the other at each.
pub(super) struct Writers {
    is_over: Arc<AtomicBool>,
    written: Arc<[AtomicUsize; 2]>,
    writers: [thread::JoinHandle<Load>; 2],
}

impl Writers {
    pub fn start(nodes: &[Node; 2]) -> Self {
        let (is_over, written) = (Arc::new(AtomicBool::new(false)), Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
        let writers = [0, 1].map(|own| {
            let (store, is_over, written) = (nodes[own].store().clone(), is_over.clone(), written.clone());
            thread::spawn(move || write_until(&store, own, &is_over, &written[own]))
        });
        Self { is_over, written, writers }
    }

    /// Waits until both have written more.
    pub fn wait_for_more(&self, why: &str) {
        let before = [0, 1].map(|own| self.written[own].load(SeqCst));
        eventually(|| [0, 1].iter().all(|own| self.written[*own].load(SeqCst) > before[*own] + 5), || format!("nothing is written {why}"));
    }

    /// Ends them, and finds all that was answered at a node that begins then; gives how often the database was not there.
    pub fn end(self, begun: impl FnOnce() -> Node) -> usize {
        self.is_over.store(true, SeqCst);
        let loads = self.writers.map(|writer| writer.join().unwrap());
        let kept: BTreeSet<String> = begun().snapshot().systems().map(|system| system.system_name.to_string()).collect();
        for load in &loads {
            println!("{} answered, {} refused for want of the database", load.answered.len(), load.unavailable);
            for number in &load.answered {
                assert!(kept.contains(&format!("racer-{number}")), "{number} was answered, and is lost");
            }
        }
        loads.iter().map(|load| load.unavailable).sum()
    }
}

/// Registers one system behind the other.
fn write_until(store: &Store, own: usize, is_over: &AtomicBool, written: &AtomicUsize) -> Load {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let mut load = Load::default();
    for number in (own..).step_by(2) {
        if is_over.load(SeqCst) {
            break;
        }
        let system = system(number);
        let write = store.write(move |draft| draft.register_system(&system), |_, id| id.0);
        let answer = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), write).await });
        match answer.expect("an answer in time") {
            Ok(_) => {
                load.answered.push(number);
                written.fetch_add(1, SeqCst);
            }
            Err(StoreError::Unavailable(_)) => {
                load.unavailable += 1;
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    }
    load
}

/// Has the database refuse every commit of a change, as a full disk does.
const FULL: &str = "CREATE FUNCTION bodkin.refuse() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''could not extend file: No space left on device'' USING ERRCODE = ''disk_full''; END';
    CREATE TRIGGER full_disk BEFORE INSERT ON bodkin.change EXECUTE FUNCTION bodkin.refuse()";

#[test]
#[ignore = "peer: ./x test --all"]
fn refused_commits_are_reported_until_one_is_taken() {
    let Some(server) = Server::start() else { return skip("refused_commits_are_reported_until_one_is_taken") };
    let node = Node::start(&server);
    let register = |number: usize| {
        let system = system(number);
        node.runtime.block_on(node.store().write(move |draft| draft.register_system(&system), |_, id| id.0))
    };
    register(1).unwrap();
    assert_eq!((node.store().refusal(), node.store().refused_commits()), (None, 0));
    server.sql("cloud", FULL);
    let refused = register(2).unwrap_err().to_string();
    assert!(refused.contains("No space left"), "{refused}");
    let why = node.store().refusal().expect("the refusal is reported");
    assert!(why.contains("No space left"), "{why}");
    assert!(node.store().standing().unwrap().away.is_none(), "the database is reached");
    // Without a change the database is tried, and refuses that too.
    node.store().try_again();
    eventually(|| node.store().refused_commits() == 2, || "the database is tried again".into());
    assert!(node.store().refusal().is_some());
    server.sql("cloud", "DROP TRIGGER full_disk ON bodkin.change");
    let is_over = || {
        node.store().try_again();
        node.store().refusal().is_none()
    };
    eventually(is_over, || "the refusal ends without a change".into());
    assert_eq!(server.sql("cloud", "SELECT count(*) FROM bodkin.change"), "1", "a try leaves nothing");
    assert_eq!(register(2).unwrap(), 2);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn long_text_is_refused_for_its_sender_alone() {
    let Some(server) = Server::start() else { return skip("long_text_is_refused_for_its_sender_alone") };
    let node = Node::start(&server);
    // Longer than a row of an index may be, and it does not compress.
    let long: String = (1..1000_u32).map(|number| format!("{:08x}", number.wrapping_mul(2_654_435_761))).collect();
    // The second time the server knows the statements already.
    for round in 0..2 {
        let store = node.store().clone();
        let (first, last) = (system(10 * round + 1), system(10 * round + 2));
        let mut wrong = core_systems::service("too-long", 9000);
        wrong.service_uri = long.as_str().into();
        let (at, message) = (UtcTime::from_unix_seconds(1), "it's".to_owned());
        let log = [LogEntry { entry_date: at, logger: "l".into(), level: LogLevel::Info, system: None, message }];
        let (first, wrong, logged, last) = node.runtime.block_on(async {
            tokio::join!(
                store.write(move |draft| draft.register_system(&first), |_, id| id.0),
                store.write(move |draft| draft.register(wrong), |_, id| id.0),
                store.write(move |draft| draft.append_log(&log, 10), |_, ()| ()),
                store.write(move |draft| draft.register_system(&last), |_, id| id.0),
            )
        });
        assert!(matches!(&wrong, Err(StoreError::Refused(why)) if why.to_string().contains("54000")), "{wrong:?}");
        let next = 2 * i64::try_from(round).unwrap();
        assert_eq!((first.unwrap(), logged.unwrap(), last.unwrap()), (next + 1, (), next + 2), "the refused one has no id");
    }
    let counts = "SELECT (SELECT count(*) FROM bodkin.logs), (SELECT count(*) FROM bodkin.service_definition), (SELECT count(*) FROM bodkin.system_)";
    assert_eq!(server.sql("cloud", counts), "2|0|4");
    assert_eq!(Node::start(&server).snapshot(), node.snapshot());
}
