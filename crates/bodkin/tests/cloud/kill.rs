//! SIGKILL at any instant loses nothing that was answered and brings back nothing that was taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::{Answer, Connection};
use crate::support::patience::eventually;
use crate::support::random::Random;

const ROUNDS: usize = 10;
const WRITERS: usize = 8;
/// Answers of a round in front of which nobody is killed: that there is a load does not depend on how fast the machine and its disk are.
const ANSWERS_MIN: usize = 2 * WRITERS;
/// From these answers to the kill, in milliseconds.
const LOAD_MS: (u64, u64) = (20, 150);

/// What is known of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its creation was answered.
    There,
    /// Its removal was answered.
    Gone,
    /// A request about it was sent and not answered.
    Open,
}

/// A row that a writer made: the table and a name that no other row of that table has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Entry(String),
    Rule(String),
    Subscription(String),
}

type Ledger = BTreeMap<Row, Fate>;

#[test]
fn what_was_answered_survives_sigkill_under_load() {
    let mut random = Random::from_environment("instants of the kills");
    let data = TempDir::new().expect("a temporary directory");
    let mut ledgers = vec![Ledger::new(); WRITERS];
    let consumer = {
        let cloud = Launch::new().data(data.path()).start();
        let id = cloud.register_system("kill-consumer", 1);
        cloud.kill();
        id
    };
    for round in 0..ROUNDS {
        let cloud = Launch::new().data(data.path()).start();
        settle(&cloud, &mut ledgers, round);
        let load = Duration::from_millis(random.between(LOAD_MS.0, LOAD_MS.1));
        write_until_killed(cloud, &mut ledgers, round, consumer, load);
    }
    let cloud = Launch::new().data(data.path()).start();
    settle(&cloud, &mut ledgers, ROUNDS);
    let answered = ledgers.iter().flat_map(BTreeMap::values).filter(|fate| **fate == Fate::There).count();
    assert!(answered > ROUNDS * WRITERS, "only {answered} rows were written: this was no load");
}

/// Compares every ledger with what the cloud holds, and learns what became of the open rows.
#[track_caller]
fn settle(cloud: &Cloud, ledgers: &mut [Ledger], round: usize) {
    let held = held_rows(cloud);
    for (row, fate) in ledgers.iter_mut().flatten() {
        match (*fate, held.contains(row)) {
            (Fate::There, false) => panic!("after {round} kills: {row:?} was answered and is lost"),
            (Fate::Gone, true) => panic!("after {round} kills: {row:?} was taken away and is back"),
            (Fate::Open, true) => *fate = Fate::There,
            (Fate::Open, false) => *fate = Fate::Gone,
            _ => {}
        }
    }
    let known: usize = ledgers.iter().map(|ledger| ledger.values().filter(|fate| **fate == Fate::There).count()).sum();
    assert_eq!(held.len(), known, "after {round} kills there are rows that nobody wrote");
}

/// Every row that a writer could have made; panics on one that is not whole.
fn held_rows(cloud: &Cloud) -> BTreeSet<Row> {
    let mut held = BTreeSet::new();
    let mut keep = |target: &str, interfaces: bool, row: &dyn Fn(&Value) -> Option<Row>| {
        let rows = cloud.get(target).expect_status(200).json();
        for value in list(&rows, "/data") {
            let Some(row) = row(value) else { continue };
            assert!(!interfaces || list(value, "/interfaces").len() == 1, "{value} is not whole");
            assert!(held.insert(row), "{value} is there twice");
        }
    };
    let name = |value: &Value, pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        text.starts_with("kill-p-").then(|| text.to_string())
    };
    keep("/serviceregistry/mgmt", true, &|value| name(value, "/provider/systemName").map(Row::Entry));
    keep("/authorization/mgmt/intracloud", true, &|value| name(value, "/providerSystem/systemName").map(Row::Rule));
    keep("/eventhandler/mgmt/subscriptions", false, &|value| name(value, "/subscriberSystem/systemName").map(Row::Subscription));
    held
}

fn write_until_killed(cloud: Cloud, ledgers: &mut [Ledger], round: usize, consumer: i64, load: Duration) {
    let addresses = [System::ServiceRegistry, System::Authorization, System::EventHandler].map(|system| cloud.address(system));
    let (released, answers) = (Barrier::new(WRITERS + 1), AtomicUsize::new(0));
    thread::scope(|scope| {
        for (index, ledger) in ledgers.iter_mut().enumerate() {
            let (released, answers) = (&released, &answers);
            scope.spawn(move || {
                let mut writer = Writer::connect(addresses, ledger, consumer, answers).expect("the cloud is up");
                released.wait();
                let mut turn = 0;
                while writer.write(turn, &format!("kill-p-{round}-{index}-{turn}")).is_ok() {
                    turn += 1;
                }
            });
        }
        released.wait();
        assert!(eventually(|| answers.load(SeqCst) >= ANSWERS_MIN), "the writers stand still; it said: {}", cloud.stderr());
        // The load itself is what takes this long: nothing is waited for.
        thread::sleep(load);
        cloud.kill();
    });
}

/// One participant that creates and removes rows and keeps the ledger of them.
struct Writer<'a> {
    registry: Connection,
    authorization: Connection,
    events: Connection,
    ledger: &'a mut Ledger,
    consumer: i64,
    /// Those of all writers in this round.
    answers: &'a AtomicUsize,
}

impl<'a> Writer<'a> {
    fn connect(addresses: [SocketAddr; 3], ledger: &'a mut Ledger, consumer: i64, answers: &'a AtomicUsize) -> io::Result<Self> {
        let [registry, authorization, events] = addresses.map(Connection::open);
        Ok(Self { registry: registry?, authorization: authorization?, events: events?, ledger, consumer, answers })
    }

    /// Registers `name`; in some turns adds a rule and a subscription, in some takes rows away again.
    fn write(&mut self, turn: usize, name: &str) -> io::Result<()> {
        let (entry, rule, subscribed) = (Row::Entry(name.into()), Row::Rule(name.into()), Row::Subscription(name.into()));
        let definition = format!("kill-d-{}", turn % 10);
        let registered = self.create(entry.clone(), "/serviceregistry/register", &service(&definition, system(name, 1)), 201)?.json();
        if turn.is_multiple_of(3) {
            let body = json!({"consumerId": self.consumer, "providerIds": [number(&registered, "/provider/id")],
                "serviceDefinitionIds": [number(&registered, "/serviceDefinition/id")], "interfaceIds": [INSECURE_JSON_ID]});
            let created = self.create(rule.clone(), "/authorization/mgmt/intracloud", &body, 201)?.json();
            if turn.is_multiple_of(2) {
                self.remove(rule, &format!("/authorization/mgmt/intracloud/{}", number(&created, "/data/0/id")))?;
            }
        }
        if turn.is_multiple_of(4) {
            let body = subscription(&format!("kill-{}", turn % 5), system(name, 1), "/notify");
            self.create(subscribed.clone(), "/eventhandler/subscribe", &body, 200)?;
        }
        if turn % 8 == 4 {
            let event_type = format!("kill-{}", turn % 5);
            let target = format!("/eventhandler/unsubscribe?event_type={event_type}&system_name={name}&address=127.0.0.1&port=1");
            self.remove(subscribed, &target)?;
        }
        if turn % 5 == 1 {
            let target = format!(
                "/serviceregistry/unregister?service_definition={definition}&system_name={name}&address=127.0.0.1&port=1&service_uri="
            );
            self.remove(entry, &target)?;
        }
        Ok(())
    }

    fn create(&mut self, row: Row, target: &str, body: &Value, status: u16) -> io::Result<Answer> {
        self.ledger.insert(row.clone(), Fate::Open);
        let bytes = body.to_string();
        let headers = [("Content-Type", "application/json")];
        let answer = self.connection(&row).request("POST", target, &headers, Some(bytes.as_bytes()))?.expect_status(status);
        self.ledger.insert(row, Fate::There);
        self.answers.fetch_add(1, SeqCst);
        Ok(answer)
    }

    fn remove(&mut self, row: Row, target: &str) -> io::Result<()> {
        self.ledger.insert(row.clone(), Fate::Open);
        self.connection(&row).request("DELETE", target, &[], None)?.expect_status(200);
        self.ledger.insert(row, Fate::Gone);
        self.answers.fetch_add(1, SeqCst);
        Ok(())
    }

    fn connection(&mut self, row: &Row) -> &mut Connection {
        match row {
            Row::Entry(_) => &mut self.registry,
            Row::Rule(_) => &mut self.authorization,
            Row::Subscription(_) => &mut self.events,
        }
    }
}
