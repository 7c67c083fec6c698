//! ZMTP on a path of this machine (`ipc://`), beside the port.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use bodkin_broker::wire::ClientFrame;
use bodkin_broker::{Epoch, Incarnation};
use bodkin_client::realtime::{BrokerAddress, Brokers, Subscription};
use bodkin_zmtp::{ClientSecurity, Metadata, SocketType};

use crate::dealer::{header, hear, say};
use crate::real_time_client::{Hears, Sends, until};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch};
use crate::support::link::{Heard, Link};
use crate::zmtp::{asked, settle, subscriber, texts};

/// Where a cloud says that it listens.
pub fn path(cloud: &Cloud) -> Option<PathBuf> {
    cloud.ready()["listeners"]["zmtp-ipc"].as_str().map(PathBuf::from)
}

/// A peer whose handshake is done.
fn peer(path: &Path, socket_type: SocketType, identity: Option<&str>) -> Link<UnixStream> {
    let metadata = Metadata::of(socket_type);
    let metadata = match identity {
        Some(identity) => metadata.with("Identity", identity.as_bytes()).expect("an identity"),
        None => metadata,
    };
    let mut link = Link::on_path(path, metadata, ClientSecurity::Null);
    assert_eq!(link.hear(), Ok(Some(Heard::Ready(socket_type.counterpart()))));
    link
}

#[test]
fn the_clients_publisher_and_subscriber_use_the_path() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = Launch::new().data(data.path()).start();
    cloud.register_system("sensor", 1);
    cloud.register_system("display", 2);
    let address = format!("ipc://{}", path(&cloud).expect("there is a path").display());
    let brokers = |name| Brokers::one(name, address.parse::<BrokerAddress>().expect("an address"));
    let mut hears = Hears::by(brokers("display"), "hot", Subscription::default());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let (mut sends, topics) = Sends::by(brokers("sensor"), &["hot"]);
    sends.publish(topics[0], "1");
    until("it comes and is covered", || {
        sends.turn();
        hears.turn();
        (hears.events.len(), sends.covered[0]) == (1, 1)
    });
    // A broker that is not there is tried again and told, as one of a port.
    let mut away = Sends::by(Brokers::one("sensor", BrokerAddress::Ipc(data.path().join("nobody.ipc"))), &["hot"]).0;
    until("it is told", || {
        away.turn();
        away.ends.len() > 1
    });
    assert!(away.ends[0].contains("connection broke"), "{:?}", away.ends);
}

fn rights(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("the socket is there").permissions().mode() & 0o777
}

fn event_of(event_type: &str, payload: &str) -> (String, String) {
    (event_type.to_owned(), payload.to_owned())
}

#[test]
fn what_is_spoken_on_the_port_is_spoken_on_a_path_of_the_machine() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = Launch::new().data(data.path()).start();
    cloud.register_system("sensor", 1);
    let path = path(&cloud).expect("there is a path");
    assert_eq!((path.as_path(), rights(&path)), (data.path().join("zmtp.ipc").as_path(), 0o600));
    let platform = cloud.get("/api/v1/platform").expect_status(200).json();
    assert_eq!(platform["zmtp"]["ipc"].as_str(), path.to_str(), "{platform}");

    let mut here = peer(&path, SocketType::Sub, None);
    here.subscribe(b"hot");
    settle(&mut here);
    let mut there = subscriber(&cloud, "hot");
    let mut sensor = peer(&path, SocketType::Req, Some("sensor"));
    assert_eq!(asked(&mut sensor, &[b"hot", b"by REQ"]), event_of("200", ""));
    let mut unknown = peer(&path, SocketType::Req, Some("nobody"));
    assert_eq!(asked(&mut unknown, &[b"hot", b"x"]).0, "400", "the rules are those of the port");
    cloud.publish(&event("hot", system("sensor", 1), "by HTTP"));
    let mut dealer = peer(&path, SocketType::Dealer, Some("sensor"));
    say(&mut dealer, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: Incarnation(7), name: "sensor" });
    hear(&mut dealer, |command| assert!(matches!(command, ClientFrame::Leader { is_leader: true, .. }), "{command:?}"));
    let mut bytes = Vec::new();
    header(1).encode(&mut bytes);
    dealer.say(&[b"hot", b"by DEALER", &bytes]);
    hear(&mut dealer, |command| assert!(matches!(command, ClientFrame::Covered { .. }), "{command:?}"));
    for payload in ["by REQ", "by HTTP", "by DEALER"] {
        assert_eq!([texts(&mut here), texts(&mut there)], [event_of("hot", payload), event_of("hot", payload)]);
    }
    let second = Launch::new().flags(["--zmtp-ipc", path.to_str().expect("text")]).try_start().err().expect("it is in use");
    assert!(second.code == Some(1) && second.stderr.contains("another process listens there"), "{second:?}");

    cloud.kill();
    assert!(path.exists(), "who is killed leaves it");
    let cloud = Launch::new().data(data.path()).start();
    assert_eq!(asked(&mut peer(&path, SocketType::Req, Some("sensor")), &[b"hot", b"again"]).0, "200");
    assert!(cloud.stop().success());
    assert!(!path.exists(), "who ends takes it away");
}

#[test]
fn a_path_is_named_opened_to_a_group_or_switched_off() {
    let place = tempfile::tempdir().expect("a directory");
    let named = place.path().join("here");
    let flag = named.to_str().expect("text");
    let cloud = Launch::new().flags(["--zmtp-ipc", flag, "--zmtp-ipc-access", "group"]).start();
    assert_eq!((path(&cloud).as_deref(), rights(&named)), (Some(named.as_path()), 0o660));
    assert!(cloud.stop().success());
    let cloud = Launch::new().flags(["--zmtp-ipc", ""]).start();
    assert_eq!(path(&cloud), None);
    assert!(cloud.get("/api/v1/platform").expect_status(200).json()["zmtp"]["ipc"].is_null());

    let refused = |flags: [&str; 4]| Launch::new().flags(flags).try_start().err().expect("it is refused");
    fs::write(&named, "somebody's").expect("written");
    let taken = refused(["--zmtp-ipc", flag, "--zmtp-ipc-access", "owner"]);
    assert!(taken.code == Some(1) && taken.stderr.contains("there is something that is no socket"), "{taken:?}");
    assert_eq!(fs::read_to_string(&named).expect("it is there"), "somebody's");
    let long = place.path().join("x".repeat(100));
    let long = refused(["--zmtp-ipc", long.to_str().expect("text"), "--zmtp-ipc-access", "owner"]);
    assert!(long.code == Some(1) && long.stderr.contains("that of a socket at most 107"), "{long:?}");
    let unknown = refused(["--zmtp-ipc", "auto", "--zmtp-ipc-access", "all"]);
    assert!(unknown.stderr.contains("where owner or group is expected"), "{unknown:?}");
}

#[test]
fn a_data_directory_whose_path_is_too_long_does_without() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("x".repeat(100));
    let cloud = Launch::new().data(&data).start();
    assert_eq!(path(&cloud), None);
    assert!(cloud.stderr().contains("ZMTP is not spoken on ipc://"), "{}", cloud.stderr());
}

#[test]
fn a_path_where_somebody_else_listens_is_left_to_him() {
    let data = tempfile::tempdir().expect("a directory");
    let _his = UnixListener::bind(data.path().join("zmtp.ipc")).expect("a socket");
    let cloud = Launch::new().data(data.path()).start();
    assert_eq!(path(&cloud), None);
    assert!(cloud.stderr().contains("another process listens there"), "{}", cloud.stderr());
    assert!(cloud.stop().success());
    assert!(data.path().join("zmtp.ipc").exists());
}
