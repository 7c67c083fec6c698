//! The network between a node and the database: it stands still, without a word, and comes back.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    time::{Duration, Instant},
};

use super::*;

/// A look, and the longest statement: what `docs/design/shared-database.md` says.
const NOTICED_MAX: Duration = Duration::from_secs(16);
/// A statement, and another connection.
const REFUSED_MAX: Duration = Duration::from_secs(25);
/// How much later another node may have its turn on a busy machine.
const BUSY: Duration = Duration::from_millis(1500);
/// How much later a busy machine may be.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a node may hold its turn: what `docs/design/shared-database.md` says.
const TURN_MAX: Duration = Duration::from_secs(3);

/// Passes bytes between a port and a server's socket, later, or holds all of them.
pub(super) struct Wire {
    pub address: SocketAddr,
    pub holds: Arc<AtomicBool>,
    /// Milliseconds that bytes take, in each direction.
    pub delay_ms: Arc<AtomicU64>,
}

impl Wire {
    pub fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, holds) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let delay_ms = Arc::new(AtomicU64::new(0));
        let (held, delay) = (holds.clone(), delay_ms.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&socket)) else { continue };
                let (from_client, to_client) = (client.try_clone().unwrap(), client);
                let (from_server, to_server) = (server.try_clone().unwrap(), server);
                let there = (held.clone(), delay.clone());
                thread::spawn(move || pass(from_client, to_server, &there, |to| drop(to.shutdown(std::net::Shutdown::Both))));
                let back = (held.clone(), delay.clone());
                thread::spawn(move || pass(from_server, to_client, &back, |to: &TcpStream| drop(to.shutdown(std::net::Shutdown::Both))));
            }
        });
        Self { address, holds, delay_ms }
    }
}

/// Until either end is gone; nothing is lost while it holds.
fn pass<To: Write>(
    mut from: impl Read + Send + 'static,
    mut to: To,
    (holds, delay_ms): &(Arc<AtomicBool>, Arc<AtomicU64>),
    end: impl FnOnce(&To),
) {
    let (sender, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    let delay_ms = delay_ms.clone();
    thread::spawn(move || {
        let mut bytes = [0; 16 * 1024];
        loop {
            let count = from.read(&mut bytes).unwrap_or(0);
            let due = Instant::now() + Duration::from_millis(delay_ms.load(SeqCst));
            if sender.send((due, bytes[..count].to_vec())).is_err() || count == 0 {
                break;
            }
        }
    });
    for (due, bytes) in due {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        while holds.load(SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        if bytes.is_empty() || to.write_all(&bytes).is_err() {
            break;
        }
    }
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
fn cut_node_delays_others_by_its_turn_at_most() {
    let Some(server) = Server::start() else { return skip("cut_node_delays_others_by_its_turn_at_most") };
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
    assert!((TURN_MAX / 2..TURN_MAX + BUSY).contains(&waited), "{waited:?}");
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

/// A node whose messages take this long in each direction, and that has measured it.
fn slow_node(server: &Server, delay_ms: u64) -> (Wire, Node) {
    let wire = Wire::to(server.socket());
    let node = Node::at(&format!("postgres://bodkin@{}/cloud", wire.address));
    let trip = || node.store().standing().unwrap().round_trip.unwrap_or_default();
    assert!(trip() < Duration::from_millis(100), "{:?}", trip());
    register_one(node.store(), 0).unwrap();
    wire.delay_ms.store(delay_ms, SeqCst);
    eventually(|| trip() > Duration::from_millis(delay_ms), || format!("{:?}", trip()));
    (wire, node)
}

fn register_one(store: &Store, number: usize) -> Result<i64, StoreError> {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let system = system(number);
    runtime.block_on(store.write(move |draft| draft.register_system(&system), |_, id| id.0))
}

#[test]
#[ignore = "peer: ./x test --all"]
fn sixty_four_changes_take_three_round_trips() {
    let Some(server) = Server::start() else { return skip("sixty_four_changes_take_three_round_trips") };
    let (wire, slow) = slow_node(&server, 200);
    let near = Node::start(&server);
    // What the slow node has to take in.
    register_one(near.store(), 1000).unwrap();
    let begun = Instant::now();
    let changes = (1..=64).map(|number| {
        let system = system(number);
        slow.store().write(move |draft| draft.register_system(&system), |_, id| id.0)
    });
    let runtime = &slow.runtime;
    let answers: Vec<_> = runtime.block_on(async {
        let mut all: Vec<_> = changes.map(Box::pin).collect();
        // Each is sent when it is polled first.
        std::future::poll_fn(|context| {
            all.iter_mut().for_each(|change| assert!(change.as_mut().poll(context).is_pending()));
            std::task::Poll::Ready(())
        })
        .await;
        let mut answers = Vec::new();
        for change in all {
            answers.push(change.await.unwrap());
        }
        answers
    });
    let took = begun.elapsed();
    println!("64 changes with 0.2 s in each direction: {took:?}");
    assert!(took < Duration::from_millis(3 * 400 + 1200), "{took:?}");
    assert_eq!(answers, (3..67).collect::<Vec<_>>(), "ids continue behind those of the other node");
    assert_eq!(server.sql("cloud", "SELECT number FROM bodkin.shared"), "3", "they are one commit");
    wire.delay_ms.store(0, SeqCst);
    near.follows(&slow);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn slow_node_leaves_the_turn_to_others() {
    const SECONDS: u64 = 15;
    let Some(server) = Server::start() else { return skip("slow_node_leaves_the_turn_to_others") };
    let (wire, slow) = slow_node(&server, 200);
    let near = Node::start(&server);
    let is_over = AtomicBool::new(false);
    let (waits, own) = thread::scope(|scope| {
        let own = scope.spawn(|| (1..).take_while(|number| !is_over.load(SeqCst) && register_one(slow.store(), *number).is_ok()).count());
        let (end, mut waits) = (Instant::now() + Duration::from_secs(SECONDS), Vec::new());
        for number in 1000.. {
            let begun = Instant::now();
            register_one(near.store(), number).unwrap();
            waits.push(begun.elapsed());
            if Instant::now() > end {
                break;
            }
        }
        is_over.store(true, SeqCst);
        (waits, own.join().unwrap())
    });
    let long: Vec<_> = waits.iter().filter(|wait| **wait > Duration::from_millis(200)).collect();
    println!("near: {} changes, of which {} wait for more than 0.2 s: {long:?}; slow: {own}", waits.len(), long.len());
    assert!(long.iter().all(|wait| **wait < TURN_MAX + BUSY), "{long:?}");
    let waited: Duration = long.into_iter().sum();
    assert!(waited < Duration::from_secs(SECONDS) / 3, "the near node waits for {waited:?}");
    assert!(own >= 2, "the slow node has its turns: {own}");
    wire.delay_ms.store(0, SeqCst);
    near.follows(&slow);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn mirror_that_differs_is_found_before_commit() {
    let Some(server) = Server::start() else { return skip("mirror_that_differs_is_found_before_commit") };
    let node = Node::start(&server);
    register_one(node.store(), 1).unwrap();
    // Nobody is told of that.
    server.sql("cloud", "DELETE FROM bodkin.system_");
    let key = bodkin_arrowhead::system::SystemKey::of(node.snapshot().systems().next().expect("it is shown"));
    let unregister = || {
        let key = key.clone();
        node.runtime.block_on(node.store().write(move |draft| draft.unregister_system(&key), |_, ()| ()))
    };
    let refused = unregister().unwrap_err();
    assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("BK001")), "{refused}");
    // Then the tables are read again.
    assert!(matches!(unregister(), Err(StoreError::Refused(_))));
    assert_eq!(register_one(node.store(), 2).unwrap(), 2);
}
