//! Relays of the binary, by itself and inside a cloud, spoken to over TLS as a gatekeeper speaks to them.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_host::destination::Destinations;
use bodkin_host::relay::{Destination, Dialer, Heard, Relay, RelayPlace, Relays};
use bodkin_host::security::Security;
use bodkin_host::{HubLimits, SecurityConfig};
use bodkin_trust::TrustDirectory;
use tempfile::TempDir;

use crate::support::cloud::{BINARY, System};
use crate::support::conditions::{Monitor, assert_shown};
use crate::support::patience::PATIENCE;
use crate::support::relay::Serving;
use crate::support::secure::{Client, SecureCloud, put_trust};

/// The certificates of a cloud in this directory.
fn security(trust: &Path) -> Arc<Security> {
    let config = SecurityConfig {
        directory: TrustDirectory::new(trust),
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: true,
        host_names: Vec::new(),
    };
    Security::open(config).expect("certificates")
}

/// One message through a relay, and what the other end hears.
fn passes(security: &Arc<Security>, address: &str, key: Option<&str>) -> String {
    let (host, port) = address.rsplit_once(':').expect("host and port");
    let place =
        RelayPlace { address: host.into(), port: port.parse().expect("a port"), secure: true, authentication_info: key.map(Arc::from) };
    let queue = Destination::queue("REQ-gatekeeper-1").expect("a name");
    let dialer = Dialer::new(Destinations::new(&[]), security.clone(), CoreSystem::Authorization);
    soon(async move {
        let (one, two) = (Relays::new(dialer.clone()), Relays::new(dialer));
        let (from, to): (Arc<dyn Relay>, Arc<dyn Relay>) = (one.link(&place), two.link(&place));
        let mut messages = to.listen(&queue).await.expect("it listens");
        from.send(&queue, "hello".into()).await.expect("it goes");
        match messages.next().await {
            Ok(Heard::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    })
}

fn soon<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await }).expect("it is done soon")
}

#[test]
fn a_relay_by_itself_lets_in_who_was_named_and_keeps_its_key() {
    let (data, cloud) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    put_trust(&cloud.path().join("trust"));
    let security = security(&cloud.path().join("trust"));
    let guest = security.trust().authentication_info(CoreSystem::Authorization);
    let relay = Serving::start(data.path(), "127.0.0.1:0", &["--admit-key", &guest]);
    let key = relay.said("authenticationInfo").to_owned();
    assert_eq!(passes(&security, relay.said("relay"), Some(&key)), "hello");
    assert_eq!(relay.stop(), Some(0));
    let again = Serving::start(data.path(), "127.0.0.1:0", &["--admit-key", &guest]);
    assert_eq!(again.said("authenticationInfo"), key);
    assert_eq!(again.stop(), Some(0));
}

#[test]
fn a_relay_that_would_let_nobody_in_does_not_start() {
    let data = TempDir::new().expect("a directory");
    for (guests, told) in [(vec![], "nobody would be let in"), (vec!["--admit-key", "no Base64!"], "authenticationInfo")] {
        let mut command = Command::new(BINARY);
        let output = command.args(["relay", "serve", "--data"]).arg(data.path()).args(guests).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains(told)), (Some(2), true), "{said}");
    }
}

#[test]
fn a_cloud_has_a_relay_of_its_own_and_shows_its_numbers() {
    let cloud = SecureCloud::start(["--relay-listen", "127.0.0.1:0"]);
    let address = cloud.cloud.ready()["listeners"]["relay"].as_str().expect("it says where its relay is").to_owned();
    assert_eq!(passes(&security(&cloud.trust("")), &address, None), "hello");
    let metrics = Client::system("sysop").expect(&cloud.cloud, "GET", "/metrics", None, 200).text();
    for line in ["bodkin_relay_messages_in_total 1", "bodkin_relay_messages_out_total 1", "bodkin_relay_waiting_bytes 0"] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
}

#[test]
fn client_at_its_limit_of_listeners_is_reported() {
    let cloud = SecureCloud::start(["--relay-listen", "127.0.0.1:0"]);
    let address: SocketAddr = cloud.cloud.ready()["listeners"]["relay"].as_str().and_then(|text| text.parse().ok()).expect("an address");
    let place = RelayPlace { address: address.ip().to_string().into(), port: address.port(), secure: true, authentication_info: None };
    let relays = Relays::new(Dialer::new(Destinations::new(&[]), security(&cloud.trust("")), CoreSystem::Authorization));
    soon(async move {
        let (relay, topic) = (relays.link(&place), Destination::topic("General").expect("a name"));
        let mut listeners = Vec::new();
        for _ in 0..HubLimits::default().client_topic_listeners_max {
            listeners.push(relay.listen(&topic).await.expect("it is within the limit"));
        }
        // The refusal may come before or after the channel is opened.
        if let Ok(mut refused) = relay.listen(&topic).await {
            assert!(refused.next().await.is_err(), "one above the limit");
        }
    });
    assert_shown(Monitor::secure(cloud.cloud.address(System::Monitor)), "BodkinRelayClientAtLimit");
}
