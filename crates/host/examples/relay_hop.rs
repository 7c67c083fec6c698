//! What a relay adds to a message: there and back between two clouds over Bodkin's own relay, beside the same over one TLS connection without it.
//!
//! `cargo run --release -p bodkin-host --example relay_hop`
//!
//! Both clouds and the relay are in this process. A hop is one message's passage of the relay: there and back are two.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{common_name::CloudCommonName, core_service::CoreSystem};
use bodkin_host::{
    HubLimits, SecurityConfig,
    destination::Destinations,
    relay::{Destination, Dialer, Guests, Heard, ListedAdmission, Messages, Relay, RelayPlace, Relays, server::RelayServer},
    security::Security,
};
use bodkin_trust::{
    Authority, Certificate, Identity, Profile, TrustDirectory, base64,
    tls::{self, ClientCertificate, PeerCheck, ServerCheck},
};
use rustls::{ClientConnection, ServerConnection, StreamOwned, pki_types::ServerName};

const DAY: Duration = Duration::from_secs(86_400);
const TIMES: usize = 5_000;
const WARM: usize = 500;
/// Lengths of messages: a short one, a sealed question, a sealed kilobyte of a tunnel, a long one.
const LENGTHS: [usize; 4] = [100, 2_500, 10_000, 100_000];
/// Messages in a row for the throughput.
const STREAM_BYTES: usize = 256 * 1024 * 1024;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let (authority, relay) = cloud("relay");
    let places = ["one", "two"].map(|name| (tempfile::tempdir().expect("a directory"), name));
    let clouds = places.each_ref().map(|(directory, name)| secure_cloud(directory.path(), name));
    runtime.block_on(async {
        let keys = clouds.iter().map(|security| key_of(security)).collect::<BTreeSet<_>>();
        let admission = ListedAdmission::new(&relay, Guests { authorities: Vec::new(), keys }).expect("TLS");
        let server =
            RelayServer::start("127.0.0.1:0".parse().expect("an address"), HubLimits::default(), Arc::new(admission)).expect("it listens");
        let place = RelayPlace {
            address: "127.0.0.1".into(),
            port: server.address.port(),
            secure: true,
            authentication_info: Some(base64::encode(relay.certificate().public_key_info()).into()),
        };
        let dialers = clouds.each_ref().map(|security| Dialer::new(Destinations::new(&[]), security.clone(), CoreSystem::ServiceRegistry));
        let [one, two] = dialers.map(Relays::new);
        let (asker, answerer) = (one.link(&place), two.link(&place));
        println!("bytes   through the relay: there and back, median and 99 %   without: median and 99 %   added for each hop");
        for length in LENGTHS {
            let (through, without) = (through(&asker, &answerer, length).await, without(&relay, &authority, length));
            let added_us = (through.0 - without.0) / 2.0;
            println!(
                "{length:>6}  {:>8.1} us {:>8.1} us   {:>8.1} us {:>8.1} us   {added_us:>8.1} us",
                through.0, through.1, without.0, without.1
            );
        }
        let rate = stream(&asker, &answerer).await;
        println!("one direction, messages of 64 KiB: {rate:.0} MB/s");
        server.stop().await;
    });
}

fn cloud(name: &str) -> (Certificate, Identity) {
    let name = CloudCommonName::parse(&format!("{name}.company.arrowhead.eu")).expect("a name");
    let cloud = Authority::root(tls::now(), DAY).and_then(|root| root.issue_cloud(&name, tls::now(), DAY)).expect("an authority");
    let alternative_names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let profile = Profile { name: format!("relay.{name}"), alternative_names, now: tls::now(), lifetime: DAY };
    (cloud.certificate().clone(), cloud.issue(&profile).expect("an identity"))
}

fn secure_cloud(directory: &std::path::Path, name: &str) -> Arc<Security> {
    let directory = TrustDirectory::new(directory.join("trust"));
    directory.init(&CloudCommonName::parse(&format!("{name}.company.arrowhead.eu")).expect("a name"), tls::now()).expect("a cloud");
    let config = SecurityConfig {
        directory,
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: true,
        host_names: Vec::new(),
    };
    Security::open(config).expect("certificates")
}

fn key_of(security: &Security) -> Vec<u8> {
    base64::decode(&security.trust().authentication_info(CoreSystem::ServiceRegistry)).expect("Base64")
}

async fn next(messages: &mut Messages) -> String {
    match messages.next().await {
        Ok(Heard::Message(message)) => message,
        other => panic!("{other:?}"),
    }
}

/// Median and 99th percentile in microseconds.
fn quantiles(mut took: Vec<Duration>) -> (f64, f64) {
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    (at(0.5), at(0.99))
}

async fn through(asker: &Arc<dyn Relay>, answerer: &Arc<dyn Relay>, length: usize) -> (f64, f64) {
    let there = Destination::queue(&format!("REQ-{length}")).expect("a name");
    let back = Destination::queue(&format!("RESP-{length}")).expect("a name");
    let (mut questions, mut answers) = (answerer.listen(&there).await.expect("it listens"), asker.listen(&back).await.expect("it listens"));
    let (answerer, of_answerer) = (answerer.clone(), back.clone());
    let echo = tokio::spawn(async move {
        for _ in 0..TIMES + WARM {
            let message = next(&mut questions).await;
            answerer.send(&of_answerer, message).await.expect("it goes");
        }
    });
    let (message, mut took) = ("x".repeat(length), Vec::with_capacity(TIMES + WARM));
    for _ in 0..TIMES + WARM {
        let begun = Instant::now();
        asker.send(&there, message.clone()).await.expect("it goes");
        assert_eq!(next(&mut answers).await.len(), length);
        took.push(begun.elapsed());
    }
    echo.await.expect("it ends");
    quantiles(took.split_off(WARM))
}

/// The same by two threads and one TLS connection.
fn without(identity: &Identity, authority: &Certificate, length: usize) -> (f64, f64) {
    let anchors = [authority.clone()];
    let server = tls::server(identity, &anchors, ClientCertificate::Required, PeerCheck::default()).expect("TLS");
    let client = tls::client(Some(identity), &anchors, ServerCheck::HostName).expect("TLS");
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("an address");
    let echo = std::thread::spawn(move || {
        let stream = listener.accept().expect("a client").0;
        stream.set_nodelay(true).expect("it can be");
        let mut stream = StreamOwned::new(ServerConnection::new(server).expect("TLS"), stream);
        let mut bytes = vec![0; length];
        for _ in 0..TIMES + WARM {
            stream.read_exact(&mut bytes).expect("a message");
            stream.write_all(&bytes).and_then(|()| stream.flush()).expect("it goes");
        }
    });
    let stream = TcpStream::connect(address).expect("it accepts");
    stream.set_nodelay(true).expect("it can be");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = StreamOwned::new(ClientConnection::new(client, name).expect("TLS"), stream);
    let (mut bytes, mut took) = (vec![b'x'; length], Vec::with_capacity(TIMES + WARM));
    for _ in 0..TIMES + WARM {
        let begun = Instant::now();
        stream.write_all(&bytes).and_then(|()| stream.flush()).expect("it goes");
        stream.read_exact(&mut bytes).expect("an answer");
        took.push(begun.elapsed());
    }
    echo.join().expect("it ends");
    quantiles(took.split_off(WARM))
}

/// Megabytes a second in one direction.
async fn stream(from: &Arc<dyn Relay>, to: &Arc<dyn Relay>) -> f64 {
    const LENGTH: usize = 64 * 1024;
    let queue = Destination::queue("stream").expect("a name");
    let mut messages = to.listen(&queue).await.expect("it listens");
    let from = from.clone();
    let begun = Instant::now();
    tokio::spawn(async move {
        let message = "x".repeat(LENGTH);
        for _ in 0..STREAM_BYTES / LENGTH {
            from.send(&queue, message.clone()).await.expect("it goes");
        }
    });
    for _ in 0..STREAM_BYTES / LENGTH {
        next(&mut messages).await;
    }
    STREAM_BYTES as f64 / 1e6 / begun.elapsed().as_secs_f64()
}
