//! The three processes of a reliable pair, and a relay between two of them that can be cut.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use bodkin_arrowhead::{name::SystemName, pinned::PAIR_NODES};
use bodkin_trust::tls;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::cloud::{BINARY, System};
use crate::support::http::{Answer, Connection};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::ports::{HeldOffset, held_offset, held_port};
use crate::support::secure::{Client, DAY, copy, put_trust};

/// Long beside the stalls of a busy machine, so that no test sees a fail-over that it has not asked for.
pub const LEASE: Duration = Duration::from_millis(400);
pub const PLATFORM: &str = "[platform]\nlease_ms = 400\nheartbeat_ms = 50\ndrift_ppm = 200\ndetect_jitter_ms = 100\nredirect_ms = 50\n";

/// Lease, heartbeat, detection jitter and client reconnect of [`Pair::patient`], in milliseconds.
pub const PATIENT_MS: [u64; 4] = [3_000, 100, 300, 300];

/// The file of all three nodes.
const CONFIG: &str = "bodkin.toml";

/// One process; killed when dropped.
pub struct Node {
    child: Child,
    lines: Mutex<mpsc::Receiver<String>>,
    said: Arc<Mutex<String>>,
    /// Its first line: which node it is, and where it listens for others.
    pub first: Value,
    /// What it says when it serves.
    ready: Option<Value>,
    /// As whom it is called, in secure mode.
    operator: Option<Client>,
}

impl Node {
    /// Of the pair in `place`, with its data in the directory `name` there.
    fn start(arguments: &[&str], place: &Path, name: &str) -> Self {
        let mut child = Self::command(arguments, place, name).spawn().expect("the binary starts");
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let said = Arc::new(Mutex::new(String::new()));
        let (stderr, kept) = (BufReader::new(child.stderr.take().expect("piped")), said.clone());
        thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| *kept.lock().unwrap() += &(line + "\n")));
        let mut node = Self { child, lines: Mutex::new(lines), said, first: Value::Null, ready: None, operator: None };
        node.first = node.line().unwrap_or_else(|| panic!("it said nothing but: {}", node.said.lock().unwrap()));
        node
    }

    fn command(arguments: &[&str], place: &Path, name: &str) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).args(["--output", "json", "--log", "info", "--config"]).arg(place.join(CONFIG));
        command.arg("--data").arg(place.join(name)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn line(&self) -> Option<Value> {
        self.lines.lock().unwrap().recv_timeout(PATIENCE).ok().map(|line| serde_json::from_str(&line).expect("a line is JSON"))
    }

    /// Where it listens for the other nodes.
    pub fn pair_address(&self) -> SocketAddr {
        self.first["pair"].as_str().and_then(|text| text.parse().ok()).expect("it listens")
    }

    /// Waits until it serves.
    #[track_caller]
    pub fn served(&mut self) {
        self.ready = self.line();
        assert!(self.ready.is_some(), "it does not serve; it said: {}", self.said.lock().unwrap());
    }

    /// What it has said when it began to serve.
    pub fn ready(&self) -> &Value {
        self.ready.as_ref().expect("it serves")
    }

    /// A connection to a system of its cloud, which serves or follows.
    pub fn connect(&self, system: System) -> io::Result<Connection> {
        match &self.operator {
            Some(operator) => operator.connect(self.address(system)),
            None => Connection::open(self.address(system)),
        }
    }

    /// Where a system of its cloud listens.
    pub fn address(&self, system: System) -> SocketAddr {
        let ready = self.ready.as_ref().unwrap_or(&self.first);
        ready["listeners"][system.name()].as_str().expect("an address").parse().expect("an address")
    }

    /// One request on a new connection, in secure mode the operator's.
    pub fn call(&self, system: System, method: &str, target: &str, body: Option<&Value>) -> io::Result<Answer> {
        request(self.connect(system)?, method, target, body)
    }

    /// One request of a system's in secure mode.
    pub fn call_by(&self, client: &Client, system: System, method: &str, target: &str, body: Option<&Value>) -> io::Result<Answer> {
        request(client.connect(self.address(system))?, method, target, body)
    }

    /// A gauge of its metrics that counts.
    pub fn gauge(&self, name: &str) -> u64 {
        self.metric(name).parse().expect("a whole number")
    }

    /// A gauge of its metrics that measures.
    pub fn seconds(&self, name: &str) -> f64 {
        self.metric(name).parse().expect("a number")
    }

    fn metric(&self, name: &str) -> String {
        let metrics = self.call(System::Monitor, "GET", "/metrics", None).expect("metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).to_owned()
    }

    /// Waits until every change is on the Backup's disk before it is answered, or until it is not so any more.
    #[track_caller]
    pub fn protected(&self, expected: bool) {
        let is = eventually(|| self.gauge("bodkin_pair_protected") == u64::from(expected));
        assert!(is, "protected: {expected} does not come; it said: {}", self.said.lock().unwrap());
    }

    pub fn signal(&self, signal: Signal) {
        signal::kill(Pid::from_raw(self.child.id() as i32), signal).expect("it is there");
    }

    /// What it has said on standard error.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Ends it by SIGTERM; gives its exit code.
    pub fn stop(mut self) -> Option<i32> {
        self.signal(Signal::SIGTERM);
        assert!(eventually(|| self.child.try_wait().unwrap().is_some()), "SIGTERM does not end it; it said: {}", self.said());
        self.child.wait().unwrap().code()
    }
}

fn request(mut connection: Connection, method: &str, target: &str, body: Option<&Value>) -> io::Result<Answer> {
    let bytes = body.map(|value| value.to_string().into_bytes());
    let headers: &[(&str, &str)] = if body.is_some() { &[("Content-Type", "application/json")] } else { &[] };
    connection.request(method, target, headers, bytes.as_deref())
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("{} said:\n{}", self.first, self.said());
        }
    }
}

/// The places of a pair; the processes are the test's.
pub struct Pair {
    place: TempDir,
    witness_address: Option<SocketAddr>,
    backup_address: Option<SocketAddr>,
    /// How far the brokers' ports are from the standard ones; `None`: anywhere.
    offsets: Option<[HeldOffset; 2]>,
    is_secure: bool,
    /// Client of the operator in secure mode; `None`: the system `sysop` of the tests' own cloud.
    operator: Option<Client>,
}

impl Pair {
    pub fn new() -> Self {
        Self::with("", "")
    }

    /// With these keys and tables in the configuration of both brokers.
    pub fn with(keys: &str, tables: &str) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        fs::write(place.path().join(CONFIG), format!("{keys}{PLATFORM}{tables}")).expect("a file");
        Self { place, witness_address: None, backup_address: None, offsets: None, is_secure: false, operator: None }
    }

    /// In secure mode, on ports that the clients know: the Primary's trust directory, at the Backup all of it but the root's key, at the witness what it
    /// needs.
    pub fn secure(tables: &str) -> Self {
        let pair = Self { offsets: Some([held_offset(), held_offset()]), is_secure: true, ..Self::with("", tables) };
        let primary = put_trust(&pair.trust("primary"));
        let witness = SystemName::from_stored(PAIR_NODES[2]);
        primary.ensure_identity(&witness, &[], tls::now(), DAY).expect("an identity");
        copy(primary.path(), &pair.trust("backup"));
        fs::remove_file(pair.trust("backup").join("root.key")).expect("it was copied");
        fs::create_dir_all(pair.trust("witness").join("systems")).expect("a directory");
        for file in ["cloud.crt", "revoked.crl", "systems/bodkin-witness.crt", "systems/bodkin-witness.key"] {
            fs::copy(primary.path().join(file), pair.trust("witness").join(file)).expect("a file is copied");
        }
        pair
    }

    /// Pair in secure mode whose configuration and data directories are in `place` already.
    pub fn recorded(place: TempDir, operator: Client) -> Self {
        let offsets = Some([held_offset(), held_offset()]);
        Self { place, witness_address: None, backup_address: None, offsets, is_secure: true, operator: Some(operator) }
    }

    /// Another configuration for the nodes that start from now on.
    pub fn configure(&self, text: &str) {
        fs::write(self.place.path().join(CONFIG), text).expect("a file");
    }

    /// With a lease that outlasts the stalls of a loaded machine, for tests in which a failover would be a failure.
    pub fn patient(self) -> Self {
        let [lease, heartbeat, jitter, redirect] = PATIENT_MS;
        self.configure(&format!(
            "[platform]\nlease_ms = {lease}\nheartbeat_ms = {heartbeat}\ndrift_ppm = 200\ndetect_jitter_ms = {jitter}\nredirect_ms = {redirect}\n"
        ));
        self
    }

    /// The trust directory of a node.
    pub fn trust(&self, node: &str) -> PathBuf {
        self.place.path().join(node).join("trust")
    }

    /// The data directory of a node.
    pub fn data(&self, node: &str) -> PathBuf {
        self.place.path().join(node)
    }

    /// The database of a node.
    pub fn database(&self, node: &str) -> PathBuf {
        self.place.path().join(node).join("bodkin.sqlite")
    }

    /// Takes the disk of a node that does not run.
    pub fn lose_disk(&self, node: &str) {
        fs::remove_dir_all(self.place.path().join(node)).expect("it had one");
    }

    /// How a node is told its mode.
    fn mode(&self) -> &'static [&'static str] {
        if self.is_secure { &[] } else { &["--insecure"] }
    }

    /// The witness, where it was before.
    pub fn witness(&mut self) -> Node {
        let address = self.witness_address.unwrap_or_else(held_address).to_string();
        let node = Node::start(&[&["witness", "--witness-listen", &address], self.mode()].concat(), self.place.path(), "witness");
        self.witness_address = Some(node.pair_address());
        node
    }

    /// Names another pair's witness as its own, by an operator's mistake.
    pub fn borrow_witness(&mut self, witness: &Node) {
        self.witness_address = Some(witness.pair_address());
    }

    /// The Backup, where it was before.
    pub fn backup(&mut self) -> Node {
        let address = self.backup_address.unwrap_or_else(held_address).to_string();
        let node = self.broker(&["backup", "--pair-listen", &address], "backup");
        self.backup_address = Some(node.pair_address());
        node
    }

    /// The Backup, whose operator wants it to lead.
    pub fn forced_backup(&self) -> Node {
        self.broker(&["backup", "--pair-listen", "127.0.0.1:0", "--force-lead"], "backup")
    }

    /// The Primary, which reaches the Backup at `peer`.
    pub fn primary_by(&self, peer: SocketAddr) -> Node {
        self.broker(&["up", "--role", "primary", "--peer", &peer.to_string()], "primary")
    }

    /// A second process with a node's arguments, on other ports, with its data in a directory of its own.
    pub fn second(&self, arguments: &[&str], data: &str) -> Node {
        self.broker(arguments, data)
    }

    /// Copies a node's record of votes, as a cloned machine has it.
    pub fn clone_record(&self, node: &str, clone: &str) {
        let (from, to) = (self.place.path().join(node), self.place.path().join(clone));
        fs::create_dir_all(&to).expect("a directory");
        for file in ["member.0", "member.1"] {
            fs::copy(from.join(file), to.join(file)).expect("a record");
        }
    }

    /// Copies the whole data directory of a node, which may run, as a cloned machine has it.
    pub fn clone_data(&self, node: &str, clone: &str) {
        copy(&self.place.path().join(node), &self.place.path().join(clone));
    }

    /// Where the Backup listens for the Primary.
    pub fn peer(&self) -> String {
        self.backup_address.expect("a Backup was started").to_string()
    }

    /// Starts the standby, which is to end by itself. Returns its exit code and its standard error.
    #[track_caller]
    pub fn refused_backup(&self) -> (Option<i32>, String) {
        let (witness, peer) = (self.witness_address.expect("a witness was started").to_string(), self.peer());
        let arguments = [&["backup", "--pair-listen", &*peer, "--witness", &witness, "--any-port"], self.mode()].concat();
        let mut child = Node::command(&arguments, self.place.path(), "backup").spawn().expect("the binary starts");
        let has_ended = eventually(|| child.try_wait().expect("its status").is_some());
        // A child that has ended cannot be killed.
        let _ = child.kill();
        let output = child.wait_with_output().expect("its output");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(has_ended, "the standby starts: {stderr}");
        (output.status.code(), stderr)
    }

    /// With a witness, if one was started.
    fn broker(&self, arguments: &[&str], data: &str) -> Node {
        let witness = self.witness_address.map(|address| address.to_string());
        let witness: Vec<&str> = witness.iter().flat_map(|address| ["--witness", address]).collect();
        let known = ["primary", "backup"].iter().position(|node| *node == data);
        let offset = self.offsets.as_ref().zip(known).map(|(offsets, node)| offsets[node].get().to_string());
        let ports: &[&str] = if let Some(offset) = &offset { &["--port-offset", offset] } else { &["--any-port"] };
        let arguments = [arguments, &witness, ports, self.mode()].concat();
        let operator = self.is_secure.then(|| self.operator.clone().unwrap_or_else(|| Client::system("sysop")));
        let mut node = Node::start(&arguments, self.place.path(), data);
        node.operator = operator;
        node
    }

    pub fn primary(&self) -> Node {
        self.primary_by(self.backup_address.expect("a Backup was started"))
    }

    /// All three, the Primary leading and its Backup in sync.
    #[track_caller]
    pub fn protected() -> (Self, Node, Node, Node) {
        Self::protected_with("", "")
    }

    /// The same, on ports that the clients know before anybody serves there.
    #[track_caller]
    pub fn known(keys: &str, tables: &str) -> (Self, Node, Node, Node) {
        Self { offsets: Some([held_offset(), held_offset()]), ..Self::with(keys, tables) }.begin()
    }

    /// The same, with the Primary started before its Backup.
    #[track_caller]
    pub fn known_primary_first(keys: &str, tables: &str) -> (Self, Node, Node, Node) {
        let mut pair = Self { offsets: Some([held_offset(), held_offset()]), ..Self::with(keys, tables) };
        let witness = pair.witness();
        pair.backup_address = Some(held_address());
        let mut primary = pair.primary();
        primary.served();
        let backup = pair.backup();
        primary.protected(true);
        (pair, witness, backup, primary)
    }

    /// Where the brokers speak ZMTP, if their ports are known.
    pub fn zmtp_addresses(&self) -> (SocketAddr, SocketAddr) {
        let [first, second] = self
            .offsets
            .as_ref()
            .expect("the ports are known")
            .each_ref()
            .map(|offset| SocketAddr::from(([127, 0, 0, 1], 5570 + offset.get())));
        (first, second)
    }

    /// The same, with these keys and tables in the configuration.
    #[track_caller]
    pub fn protected_with(keys: &str, tables: &str) -> (Self, Node, Node, Node) {
        Self::with(keys, tables).begin()
    }

    /// All three processes, the Primary leading and its Backup in sync.
    #[track_caller]
    pub fn begin(mut self) -> (Self, Node, Node, Node) {
        let (witness, backup) = (self.witness(), self.backup());
        let mut primary = self.primary();
        primary.served();
        primary.protected(true);
        (self, witness, backup, primary)
    }
}

/// Where a node may come back.
fn held_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], held_port()))
}

/// Passes connections on until it is cut; then what is sent gets lost without a word. While it is mute, that is so of what those send who have connected.
pub struct Relay {
    pub address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    pub is_mute: Arc<AtomicBool>,
    /// How much longer the way back takes, in milliseconds.
    pub delay_ms: Arc<AtomicU64>,
}

impl Relay {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let relay = Self { address, is_cut: Arc::default(), is_mute: Arc::default(), delay_ms: Arc::default() };
        let (is_cut, is_mute, delay_ms) = (relay.is_cut.clone(), relay.is_mute.clone(), relay.delay_ms.clone());
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(target) else { continue };
                for (mut from, mut to, is_mute, delay_ms) in [
                    (near.try_clone().unwrap(), far.try_clone().unwrap(), is_mute.clone(), Arc::default()),
                    (far.try_clone().unwrap(), near.try_clone().unwrap(), Arc::default(), delay_ms.clone()),
                ] {
                    let is_cut = is_cut.clone();
                    thread::spawn(move || {
                        let mut buffer = [0; 65536];
                        while let Ok(count @ 1..) = from.read(&mut buffer) {
                            thread::sleep(Duration::from_millis(delay_ms.load(SeqCst)));
                            if !is_cut.load(SeqCst) && !is_mute.load(SeqCst) && to.write_all(&buffer[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        relay
    }

    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, SeqCst);
    }
}
