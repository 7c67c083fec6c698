//! Secure mode on the wire: who is let in, who is not and what is told of it, and what changes while connections are open.

mod bodies;
mod certificates;
mod commands;
mod connections;
mod edges;
mod encrypted_authority;
mod gatekeeper;
mod graphs;
mod half_handshakes;
mod moves;
mod onboarding;
mod permissions;
mod pushes;
mod refusals;
mod reload;
mod sign_in;
mod start;
mod zmtp;

use std::path::Path;

use bodkin_trust::{Certificate, keystore, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::system;
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, DAY, allow, authority, issue, public_key, register, register_publisher, replace};

/// Waits until the cloud has said a line with all of these parts.
#[track_caller]
fn wait_for_log(cloud: &Cloud, parts: &[&str]) {
    let said = || cloud.stderr().lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(eventually(said), "no line with {parts:?} in:\n{}", cloud.stderr());
}

/// Of key stores.
const PASSWORD: &str = "123456";

/// Puts the key store of a core system there.
pub fn put_key_store(folder: &Path, system: &str) {
    let identity = issue(&authority(), &format!("{system}.{CLOUD}"), &["localhost", "127.0.0.1"], tls::now(), 365 * DAY);
    let content = keystore::write_identity(&identity, system, PASSWORD).expect("a key store");
    replace(&folder.join(format!("{system}.p12")), &content);
}

/// The key stores that an Arrowhead cloud without a Gatekeeper has, with a trust store of these authorities; their password is in the file `password`.
pub fn key_stores(anchors: &[Certificate]) -> TempDir {
    let place = TempDir::new().expect("a temporary directory");
    let write = |name: &str, content: &[u8]| replace(&place.path().join(name), content);
    for system in ["serviceregistry", "authorization", "orchestrator", "eventhandler"] {
        put_key_store(place.path(), system);
    }
    write("truststore.p12", &keystore::write_anchors(anchors, PASSWORD).expect("a trust store"));
    write("password", PASSWORD.as_bytes());
    place
}

/// A cloud that uses them.
fn with_key_stores(data: &Path, stores: &Path, password: &str) -> Launch {
    let path = |name: &str| stores.join(name).to_str().expect("text").to_owned();
    let (folder, trust_store, password) = (path(""), path("truststore.p12"), path(password));
    let flags = ["--key-stores", &folder, "--trust-store", &trust_store, "--key-store-password-file", &password];
    Launch::new().secure().data(data).flags(flags)
}

/// A system on 127.0.0.1 with a public key, as secure mode's systems register.
fn keyed(name: &str, port: u16) -> Value {
    let mut system = system(name, port);
    system["authenticationInfo"] = json!(public_key());
    system
}
