//! How long another client's ping takes while all connections of a relay close, each with as many listeners as it may have.
//!
//! `cargo run --release -p bodkin-host --example relay_close`
//!
//! The relay and its clients are in this process. The clients have as many connections and channels as the quotas of a client admit.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use bodkin_arrowhead::common_name::CloudCommonName;
use bodkin_host::{
    HubLimits,
    relay::{
        Destination, Guests, ListedAdmission,
        server::{HANDSHAKES_MAX, RelayServer},
    },
};
use bodkin_relay::native::{Assembly, Channel, Frame, Role, VERSIONS, write};
use bodkin_trust::{
    Authority, Certificate, Identity, Profile,
    tls::{self, RELAY_PROTOCOL, ServerCheck},
};
use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};

const DAY: Duration = Duration::from_secs(86_400);
/// Connections that close.
const CONNECTIONS: usize = 64;
/// Time between the starts of two pings.
const PING_PERIOD: Duration = Duration::from_millis(1);
/// How often it is looked whether everything is closed.
const POLL_PERIOD: Duration = Duration::from_millis(20);
/// A ping that takes longer is counted.
const LONG: Duration = Duration::from_millis(10);
/// How long pings are measured before and after.
const QUIET: Duration = Duration::from_secs(5);

fn main() {
    let limits = HubLimits { connections_max: CONNECTIONS + 1, ..HubLimits::default() };
    let clients = CONNECTIONS * limits.channels_max / limits.client_channels_max;
    let name = CloudCommonName::parse("relay.company.arrowhead.eu").expect("a name");
    let cloud = Authority::root(tls::now(), DAY).and_then(|root| root.issue_cloud(&name, tls::now(), DAY)).expect("an authority");
    let identity = |name: String| {
        let alternative_names = vec!["localhost".to_owned()];
        cloud.issue(&Profile { name, alternative_names, now: tls::now(), lifetime: DAY }).expect("an identity")
    };
    let identities: Vec<_> = (0..=clients).map(|number| identity(format!("client{number}"))).collect();
    let guests = Guests { authorities: vec![cloud.certificate().clone()], keys: BTreeSet::new() };
    let admission = ListedAdmission::new(&identity("relay".to_owned()), guests).expect("TLS");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let _entered = runtime.enter();
    let server = RelayServer::start("127.0.0.1:0".parse().expect("an address"), limits, Arc::new(admission)).expect("it listens");

    let connect = |number: usize| Connection::open(server.address, &identities[number], cloud.certificate());
    let mut pinging = connect(clients);
    const { assert!(CONNECTIONS <= HANDSHAKES_MAX) };
    let mut closing: Vec<_> = (0..CONNECTIONS).map(|number| connect(number % clients)).collect();
    for connection in &mut closing {
        connection.listen(limits.channels_max);
    }
    let opened = server.counts().hub.channels;
    assert_eq!(opened, CONNECTIONS * limits.channels_max, "each listener is there");

    println!("{clients} clients with {CONNECTIONS} connections and {opened} listeners");
    let begun = Instant::now();
    report("before", pinging.pings(|| begun.elapsed() < QUIET));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let closer = scope.spawn(|| {
            drop(closing);
            while server.counts().hub.channels > 0 {
                sleep(POLL_PERIOD);
            }
        });
        report("while they close", pinging.pings(|| !closer.is_finished()));
    });
    println!("all are closed after {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    report("after", pinging.pings(|| begun.elapsed() < QUIET));
}

fn report(when: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    let (count, long) = (took.len(), took.iter().filter(|took| **took > LONG).count());
    println!(
        "{when:>16}: {count:>5} pings, median {:.2} ms, 99 % {:.2} ms, longest {:.2} ms; above {LONG:?}: {long}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// A client's connection. It is not read but for answers to pings.
struct Connection {
    stream: StreamOwned<ClientConnection, TcpStream>,
    input: Assembly,
}

impl Connection {
    fn open(address: SocketAddr, identity: &Identity, anchor: &Certificate) -> Self {
        let mut config =
            Arc::unwrap_or_clone(tls::client(Some(identity), std::slice::from_ref(anchor), ServerCheck::HostName).expect("TLS"));
        config.alpn_protocols = vec![RELAY_PROTOCOL.to_vec()];
        let stream = TcpStream::connect(address).expect("it accepts");
        stream.set_nodelay(true).expect("it can be");
        let session = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").expect("a name")).expect("TLS");
        let mut connection = Self { stream: StreamOwned::new(session, stream), input: Assembly::default() };
        connection.send(&[Frame::Greeting { newest: *VERSIONS.end(), oldest: *VERSIONS.start() }]);
        connection.ping();
        connection
    }

    fn send(&mut self, frames: &[Frame<'_>]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| write(frame, &mut bytes));
        self.stream.write_all(&bytes).and_then(|()| self.stream.flush()).expect("it goes");
    }

    fn listen(&mut self, count: usize) {
        let destination = Destination::queue("q").expect("a name");
        let open = |channel| Frame::Open { channel: Channel(channel), role: Role::Listen, destination: destination.clone() };
        let frames: Vec<_> = (1..=u32::try_from(count).expect("a few thousand")).map(open).collect();
        self.send(&frames);
        self.ping();
    }

    /// Returns when the relay has read everything that was sent before.
    fn ping(&mut self) {
        self.send(&[Frame::Ping { token: 1 }]);
        let mut bytes = [0; 4096];
        loop {
            match self.input.next_frame().expect("a frame") {
                Some(Frame::Pong { .. }) => return,
                Some(Frame::Greeting { .. }) => {}
                Some(frame) => panic!("the relay answers {frame:?}"),
                None => {
                    let length = self.stream.read(&mut bytes).expect("an answer");
                    assert!(length > 0, "the relay has closed the connection");
                    self.input.put(&bytes[..length]);
                }
            }
        }
    }

    /// Pings for as long as it is wanted, and returns how long each ping took.
    fn pings(&mut self, is_wanted: impl Fn() -> bool) -> Vec<Duration> {
        let mut took = Vec::new();
        while took.is_empty() || is_wanted() {
            let begun = Instant::now();
            self.ping();
            let elapsed = begun.elapsed();
            took.push(elapsed);
            sleep(PING_PERIOD.saturating_sub(elapsed));
        }
        took
    }
}
