//! A stop in the middle of what is sent from the event log: nothing of it comes twice.

use std::net::TcpStream;
use std::thread;

use serde_json::json;
use tempfile::TempDir;

use super::{DEAD_LETTERS, QUICK, Scene, numbers};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};

/// Stops a cloud while `listener` waits with its answer, which it gives when the cloud listens no more.
fn stop_while_it_waits(cloud: Cloud, listener: &PushSubscriber) {
    let address = cloud.address(System::EventHandler);
    thread::scope(|scope| {
        let stopping = scope.spawn(|| cloud.stop());
        assert!(eventually(|| TcpStream::connect(address).is_err()));
        listener.release();
        assert!(stopping.join().expect("no panic").success());
    });
}

#[test]
fn a_stop_doubles_nothing_for_who_is_behind() {
    let (listener, place) = (PushSubscriber::listen(Manner::Waits), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()), listener.port());
    scene.act("pause");
    scene.publish(0..3);
    scene.act("resume");
    listener.wait_for_payload("0");
    let port = scene.port;
    stop_while_it_waits(scene.cloud, &listener);
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    scene.publish(3..4);
    listener.wait_for_payload("3");
    assert_eq!(listener.payloads(), numbers(0..4));
}

#[test]
fn a_stop_doubles_nothing_of_a_replay() {
    let (port, place) = (held_port(), TempDir::new().expect("a temporary directory"));
    let scene = Scene::new(Launch::new().data(place.path()).flags(["--push-give-up-s", "1"]), port);
    scene.publish(0..10);
    scene.wait_for("deadLetters", 9);
    let listener = PushSubscriber::listen_at(port, Manner::Waits);
    let mut replaying = scene.cloud.connect(System::Monitor);
    replaying.send_request("POST", &format!("{DEAD_LETTERS}/replay"), &[], Some(b"")).expect("sent");
    listener.wait_for_payload("0");
    listener.wait_for_payload("9");
    stop_while_it_waits(scene.cloud, &listener);
    let scene = Scene { cloud: Launch::new().data(place.path()).flags(QUICK).start(), port };
    assert_eq!(scene.replay(), json!({"replayed": 8, "failed": 0, "remaining": 0, "elsewhere": 0}));
    assert_eq!(listener.payloads()[2..], numbers(1..9));
}
