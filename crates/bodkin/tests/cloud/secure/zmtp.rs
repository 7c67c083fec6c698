//! The ZMTP port in secure mode: by CURVE, each key the system that it is bound to, and by the rules that hold over HTTP.

use std::{net::TcpStream, sync::Arc};

use bodkin_arrowhead::name::SystemName;
use bodkin_client::realtime::{Brokers, ClientSecurity, KeyPair, RefusalReason, Subscription};
use bodkin_trust::{TrustDirectory, curve, tls::now};
use bodkin_zmtp::{ConnectionError, Metadata, SocketType};
use nix::sys::signal::Signal;

use super::{allow, register, register_publisher};
use crate::real_time_client::{Hears, Sends, required, topic, until};
use crate::support::arrowhead::system;
use crate::support::link::{Heard, Link};
use crate::support::patience::eventually;
use crate::support::secure::{Client, SecureCloud};
use crate::zmtp::{address, told};

/// A cloud with the real-time topic `HOT`.
fn cloud(place: &std::path::Path) -> SecureCloud {
    let file = place.join("bodkin.toml");
    std::fs::write(&file, topic("hot", "")).expect("written");
    SecureCloud::start(["--config", file.to_str().expect("text")])
}

fn directory(secure: &SecureCloud) -> TrustDirectory {
    TrustDirectory::new(secure.trust(""))
}

/// Binds a system to a new pair, and has the cloud look.
fn bind(secure: &SecureCloud, name: &str) -> Arc<KeyPair> {
    let pair = curve::generate().expect("a pair");
    directory(secure).bind_curve_key(&SystemName::from_stored(name), Some(pair.public()), now()).expect("it is bound");
    secure.cloud.signal(Signal::SIGHUP);
    Arc::new(pair)
}

/// By which a client proves who it is.
fn security(secure: &SecureCloud, own: &Arc<KeyPair>) -> ClientSecurity {
    let server = curve::read_pair(&directory(secure).server_pair()).expect("the cloud has a pair").public().clone();
    ClientSecurity::Curve { own: own.clone(), server }
}

fn brokers(secure: &SecureCloud, name: &str, own: &Arc<KeyPair>) -> Brokers {
    Brokers { security: security(secure, own), ..Brokers::one(name, address(&secure.cloud)) }
}

fn link(secure: &SecureCloud, socket_type: SocketType, own: &Arc<KeyPair>) -> Link {
    let stream = TcpStream::connect(address(&secure.cloud)).expect("a connection");
    Link::client_with(stream, Metadata::of(socket_type), security(secure, own))
}

#[test]
fn who_has_a_systems_key_publishes_and_hears_by_its_rules() {
    let place = tempfile::tempdir().expect("a directory");
    let secure = cloud(place.path());
    let sensor = register_publisher(&secure.cloud, &Client::system("sensor"), "sensor");
    let (sensor_pair, display_pair) = (bind(&secure, "sensor"), bind(&secure, "display"));

    // Whoever it calls itself, it is the system of its key.
    let (mut sends, topics) = Sends::by(brokers(&secure, "display", &sensor_pair), &["hot"]);
    let mut hears = Hears::by(brokers(&secure, "display", &display_pair), "hot", required());
    until("it is not registered", || {
        hears.turn();
        !hears.refused.is_empty()
    });
    assert_eq!(hears.refused[0].0, RefusalReason::NotAuthorized);
    assert!(hears.refused[0].1.contains("no rule lets it hear anybody: register it"), "{}", hears.refused[0].1);
    let display = register(&secure.cloud, &Client::system("display"), &system("display", 2));
    let mut hears = Hears::by(brokers(&secure, "display", &display_pair), "hot", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    sends.publish(topics[0], "before the rule");
    until("what is for nobody is covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [1]
    });
    allow(&secure.cloud, display, sensor);
    sends.publish(topics[0], "behind the rule");
    until("it is heard and covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [2] && hears.events == ["behind the rule"]
    });

    // A SUB hears by the same rules, in boxes as well.
    let mut sub = link(&secure, SocketType::Sub, &display_pair);
    assert_eq!(sub.hear(), Ok(Some(Heard::Ready(SocketType::Pub))));
    sub.subscribe(b"");
    crate::zmtp::settle(&mut sub);
    sends.publish(topics[0], "to both");
    until("it is covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [3]
    });
    assert_eq!(crate::zmtp::texts(&mut sub), ("HOT".to_owned(), "to both".to_owned()));
    let mut req = link(&secure, SocketType::Req, &sensor_pair);
    assert_eq!(req.hear(), Ok(Some(Heard::Ready(SocketType::Rep))));
    assert_eq!(crate::zmtp::asked(&mut req, &[b"hot", b"by REQ"]).0, "200");

    // A key that is taken away ends what it had opened.
    directory(&secure).bind_curve_key(&SystemName::from_stored("sensor"), None, now()).expect("it is taken away");
    secure.cloud.signal(Signal::SIGHUP);
    until("its session is ended", || {
        sends.turn();
        sends.ends.iter().any(|end| end.contains("is not bound to its system any more") || end.contains("bound to no system"))
    });
}

#[test]
fn without_a_bound_key_nobody_comes_in() {
    let place = tempfile::tempdir().expect("a directory");
    let secure = cloud(place.path());
    let mut plain =
        Link::client(TcpStream::connect(address(&secure.cloud)).expect("a connection"), SocketType::Dealer, ClientSecurity::Null);
    assert!(matches!(plain.hear(), Err(ConnectionError::Mechanism { .. })));
    let path = crate::zmtp_ipc::path(&secure.cloud).expect("there is a path");
    let mut plain = Link::on_path(&path, Metadata::of(SocketType::Dealer), ClientSecurity::Null);
    assert!(matches!(plain.hear(), Err(ConnectionError::Mechanism { .. })), "on the path it is the same");
    let stranger = Arc::new(curve::generate().expect("a pair"));
    assert!(told(&mut link(&secure, SocketType::Dealer, &stranger)).contains("bound to no system"));
    // A second key in place of the first one's.
    let (former, latter) = (bind(&secure, "sensor"), bind(&secure, "sensor"));
    let is_let_in = |pair| matches!(link(&secure, SocketType::Dealer, pair).hear(), Ok(Some(Heard::Ready(_))));
    assert!(eventually(|| is_let_in(&latter)));
    assert!(!is_let_in(&former));
    let subscription = Subscription::default();
    let mut hears = Hears::by(brokers(&secure, "sensor", &stranger), "hot", subscription);
    for _ in 0..50 {
        hears.turn();
    }
    assert_eq!(hears.subscribed, 0);
    assert!(secure.cloud.stderr().contains("its key is bound to no system"));
}

#[test]
fn a_key_counts_as_soon_as_it_is_read() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("bodkin.toml");
    std::fs::write(&file, topic("hot", "")).expect("written");
    let secure = SecureCloud::start(["--config", file.to_str().expect("text"), "--log", "info"]);
    let readings = || secure.cloud.stderr().matches("were read again").count();
    for _ in 0..4 {
        let before = readings();
        let pair = bind(&secure, "sensor");
        assert!(eventually(|| readings() > before));
        let heard = link(&secure, SocketType::Dealer, &pair).hear();
        assert!(matches!(heard, Ok(Some(Heard::Ready(_)))), "libzmq does not try again: {heard:?}");
    }
}
