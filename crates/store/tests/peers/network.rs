//! The network between a node and the database: it stands still, without a word, and comes back.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use super::*;

/// A look, and the longest statement: what `docs/design/shared-database.md` says.
const NOTICED_MAX: Duration = Duration::from_secs(16);
/// A statement, and another connection.
const REFUSED_MAX: Duration = Duration::from_secs(25);
/// How much later a busy machine may be.
const PATIENCE: Duration = Duration::from_secs(10);

/// Passes bytes between a port and a server's socket, or holds all of them.
pub(super) struct Wire {
    pub address: SocketAddr,
    pub holds: Arc<AtomicBool>,
}

impl Wire {
    pub fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, holds) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let held = holds.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&socket)) else { continue };
                let (from_client, to_client) = (client.try_clone().unwrap(), client);
                let (from_server, to_server) = (server.try_clone().unwrap(), server);
                let there = held.clone();
                thread::spawn(move || pass(from_client, to_server, &there, |to| drop(to.shutdown(std::net::Shutdown::Both))));
                let back = held.clone();
                thread::spawn(move || pass(from_server, to_client, &back, |to: &TcpStream| drop(to.shutdown(std::net::Shutdown::Both))));
            }
        });
        Self { address, holds }
    }
}

/// Until either end is gone; nothing is lost while it holds.
fn pass<To: Write>(mut from: impl Read, mut to: To, holds: &AtomicBool, end: impl FnOnce(&To)) {
    let mut bytes = [0; 16 * 1024];
    let mut one = || -> io::Result<bool> {
        let count = from.read(&mut bytes)?;
        while holds.load(SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        to.write_all(&bytes[..count])?;
        Ok(count > 0)
    };
    while one().unwrap_or(false) {}
    end(&to);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_node_that_is_cut_off_says_so_serves_what_it_has_read_and_comes_back() {
    let Some(server) = Server::start() else { return skip("a_node_that_is_cut_off_says_so_serves_what_it_has_read_and_comes_back") };
    let wire = Wire::to(server.socket());
    let cut = Node::at(&format!("postgres://bodkin@{}/cloud", wire.address));
    let other = Node::start(&server);
    let register = |node: &Node, number: usize| {
        let system = system(number);
        node.runtime.block_on(node.store().write(move |draft| draft.register_system(&system), |_, id| id.0))
    };
    register(&cut, 1).unwrap();
    register(&other, 2).unwrap();
    cut.follows(&other);

    wire.holds.store(true, SeqCst);
    let begun = Instant::now();
    let refusal = register(&cut, 3).unwrap_err();
    assert!(matches!(&refusal, StoreError::Unavailable(why) if why.contains("has not answered")), "{refusal}");
    assert!(begun.elapsed() < REFUSED_MAX + PATIENCE, "refused after {:?}", begun.elapsed());
    eventually(|| cut.store().standing().unwrap().away.is_some(), || "the cut is noticed".into());
    assert!(begun.elapsed() < REFUSED_MAX.max(NOTICED_MAX) + PATIENCE, "noticed after {:?}", begun.elapsed());
    println!("refused and noticed within {:?}", begun.elapsed());
    // What was read is served; who is not cut off writes.
    assert_eq!(cut.snapshot().systems().len(), 2);
    let begun = Instant::now();
    register(&other, 4).unwrap();
    println!("the other node has written within {:?}", begun.elapsed());
    assert_eq!(cut.snapshot().systems().len(), 2);

    wire.holds.store(false, SeqCst);
    let begun = Instant::now();
    eventually(|| cut.store().standing().unwrap().away.is_none(), || format!("{:?}", cut.store().standing()));
    cut.follows(&other);
    println!("back within {:?}", begun.elapsed());
    eventually(|| register(&cut, 5).is_ok(), || "it writes again".into());
    // What was refused without doubt is not there.
    other.follows(&cut);
    let names: BTreeSet<String> = other.snapshot().systems().map(|system| system.system_name.to_string()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["racer-1", "racer-2", "racer-4", "racer-5"]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_node_that_is_cut_off_in_its_turn_holds_the_others_up_for_five_seconds_at_the_most() {
    let Some(server) = Server::start() else {
        return skip("a_node_that_is_cut_off_in_its_turn_holds_the_others_up_for_five_seconds_at_the_most");
    };
    let wire = Wire::to(server.socket());
    let place = TempDir::new().unwrap();
    let url = format!("postgres://bodkin@{}/cloud", wire.address);
    let opened = Store::share(place.path(), &DatabasePlace::parse(&url).unwrap()).unwrap();
    let other = Node::start(&server);
    let holds = wire.holds.clone();
    let store = opened.store.clone();
    let writer = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let system = system(1);
        let write = store.write(
            move |draft| {
                let id = draft.register_system(&system)?;
                // It has the turn, and nothing of it goes through any more.
                holds.store(true, SeqCst);
                Ok(id)
            },
            |_, id| id.0,
        );
        runtime.block_on(write)
    });
    eventually(|| wire.holds.load(SeqCst), || "it has its turn".into());
    let begun = Instant::now();
    let system = system(2);
    other.runtime.block_on(other.store().write(move |draft| draft.register_system(&system), |_, id| id.0)).unwrap();
    let waited = begun.elapsed();
    println!("the other node has waited for {waited:?}");
    assert!((Duration::from_secs(3)..Duration::from_secs(5) + PATIENCE).contains(&waited), "{waited:?}");
    let refusal = writer.join().unwrap().unwrap_err();
    assert!(matches!(&refusal, StoreError::Unavailable(_)), "{refusal}");
    wire.holds.store(false, SeqCst);
    assert_eq!(other.snapshot().systems().len(), 1, "what was not answered as done was taken back");
    opened.close();
}

#[test]
#[ignore = "peer: ./x test --all"]
fn many_who_read_while_a_node_is_cut_off_are_refused_together() {
    let Some(server) = Server::start() else { return skip("many_who_read_while_a_node_is_cut_off_are_refused_together") };
    let wire = Wire::to(server.socket());
    let node = Node::at(&format!("postgres://bodkin@{}/cloud", wire.address));
    let read = |store: &Store| store.read_now(|draft| draft.nodes().map(|rows| rows.len()));
    read(node.store()).unwrap();
    wire.holds.store(true, SeqCst);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| read(node.store()).unwrap_err());
        }
    });
    println!("eight are refused within {:?}", begun.elapsed());
    assert!(begun.elapsed() < REFUSED_MAX + PATIENCE, "the last one waits for {:?}", begun.elapsed());
    wire.holds.store(false, SeqCst);
    eventually(|| read(node.store()).is_ok(), || "who comes then reads".into());
}
