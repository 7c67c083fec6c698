//! Sockets of the C library at the ZMTP port: each type that is served publishes or hears, by NULL and by CURVE, and the others are told that they are not.

use std::path::Path;
use std::sync::Arc;

use bodkin_arrowhead::name::SystemName;
use bodkin_client::realtime::{KeyPair, PublicKey};
use bodkin_trust::{TrustDirectory, curve, tls::now};
use bodkin_zmtp::SocketType;
use nix::sys::signal::Signal;

use crate::support::arrowhead::system;
use crate::support::c_socket::{CSocket, Mechanism, Told, program};
use crate::support::cloud::Cloud;
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud, allow, register, register_publisher};
use crate::zmtp::{address, cloud};

/// Event types and payloads of the library's end, and a header behind them.
#[track_caller]
fn heard(socket: &mut CSocket) -> (String, String) {
    let [event_type, payload, header] = socket.message().try_into().expect("three frames");
    assert_eq!(header.len(), 42);
    let text = |octets| String::from_utf8(octets).expect("text");
    (text(event_type), text(payload))
}

/// What PUB, PUSH and REQ publish is heard by SUB, which is the display's; the others are the sensor's.
#[track_caller]
fn publish_and_hear(cloud: &Cloud, program: &Path, sensor: &Mechanism, display: &Mechanism) {
    let socket = |socket_type, mechanism| {
        let mut socket = CSocket::connects(program, socket_type, mechanism, address(cloud));
        assert_eq!(socket.hear(), Told::Ready, "{socket_type}");
        socket
    };
    let mut req = socket(SocketType::Req, sensor);
    let mut ask = |payload: &str| {
        req.say(&[b"Hot", payload.as_bytes()]);
        assert_eq!(req.message(), [b"200".to_vec(), vec![]]);
    };
    let mut sub = socket(SocketType::Sub, display);
    sub.subscribe(b"H");
    // A subscriber hears from when its subscription has come: it is asked for until something is heard.
    let mut first = None;
    std::thread::scope(|scope| {
        let hears = scope.spawn(|| heard(&mut sub));
        while !hears.is_finished() {
            ask("begin");
        }
        first = hears.join().ok();
    });
    assert_eq!(first, Some(("Hot".to_owned(), "begin".to_owned())));
    let mut next = || {
        loop {
            let event = heard(&mut sub);
            if event.1 != "begin" {
                return event;
            }
        }
    };
    for socket_type in [SocketType::Pub, SocketType::Push] {
        let mut publisher = socket(socket_type, sensor);
        if socket_type == SocketType::Pub {
            assert_eq!(publisher.hear(), Told::Subscribed(vec![]), "a PUB sends what is asked for only");
        }
        let payload = format!("by {socket_type}");
        publisher.say(&[b"Hot", payload.as_bytes()]);
        assert_eq!(next(), ("Hot".to_owned(), payload));
    }
    ask("by REQ");
    assert_eq!(next(), ("Hot".to_owned(), "by REQ".to_owned()));
}

/// How a socket that is not let in sees its connection end.
#[track_caller]
fn refused(cloud: &Cloud, program: &Path, socket_type: SocketType, mechanism: &Mechanism) -> String {
    match CSocket::connects(program, socket_type, mechanism, address(cloud)).hear() {
        Told::Ended(why) => why,
        other => panic!("{socket_type} was let in: {other:?}"),
    }
}

#[test]
fn sockets_of_the_c_library_publish_and_hear_and_other_types_are_refused() {
    const TEST: &str = "sockets_of_the_c_library_publish_and_hear_and_other_types_are_refused";
    let Some(program) = program(TEST, "c_socket") else { return };
    let cloud = cloud(&[]);
    publish_and_hear(&cloud, &program, &Mechanism::Null, &Mechanism::Null);
    for socket_type in [SocketType::Pull, SocketType::Rep, SocketType::Pair, SocketType::Router] {
        assert_eq!(refused(&cloud, &program, socket_type, &Mechanism::Null), "the peer told an error");
    }
    assert_eq!(refused(&cloud, &program, SocketType::Req, &Mechanism::Plain), "another security mechanism was expected");
}

#[test]
fn sockets_of_the_c_library_publish_and_hear_by_curve_and_by_nothing_else() {
    const TEST: &str = "sockets_of_the_c_library_publish_and_hear_by_curve_and_by_nothing_else";
    let Some(program) = program(TEST, "c_socket_by_curve") else { return };
    let secure = SecureCloud::start(["--log", "info"]);
    let sensor = register_publisher(&secure.cloud, &Client::system("sensor"), "sensor");
    let display = register(&secure.cloud, &Client::system("display"), &system("display", 2));
    allow(&secure.cloud, display, sensor);
    let directory = TrustDirectory::new(secure.trust(""));
    let server: PublicKey = curve::read_pair(&directory.server_pair()).expect("the cloud has a pair").public().clone();
    let by = |own: Arc<KeyPair>| Mechanism::Curve { own, peer: server.clone() };
    let [sensor, display] = ["sensor", "display"].map(|name| {
        let pair = Arc::new(curve::generate().expect("a pair"));
        directory.bind_curve_key(&SystemName::from_stored(name), Some(pair.public()), now()).expect("it is bound");
        pair
    });
    let readings = || secure.cloud.stderr().matches("were read again").count();
    let before = readings();
    secure.cloud.signal(Signal::SIGHUP);
    assert!(eventually(|| readings() > before), "{}", secure.cloud.stderr());

    publish_and_hear(&secure.cloud, &program, &by(sensor), &by(display));
    let stranger = Arc::new(curve::generate().expect("a pair"));
    assert_eq!(refused(&secure.cloud, &program, SocketType::Req, &by(stranger)), "the peer told an error");
    for mechanism in [Mechanism::Null, Mechanism::Plain] {
        assert_eq!(refused(&secure.cloud, &program, SocketType::Req, &mechanism), "another security mechanism was expected");
    }
}
