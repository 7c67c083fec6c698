use std::{collections::BTreeSet, time::Duration};

use bodkin_arrowhead::common_name::CloudCommonName;
use rustls::{ClientConnection, Connection, HandshakeKind, ServerConnection, pki_types::ServerName};

use super::*;
use crate::{
    authority::{Authority, Profile},
    revocation::Revoked,
};

const DAY: Duration = Duration::from_secs(86_400);

struct World {
    root: Authority,
    cloud: Authority,
    server: Identity,
}

impl World {
    fn new() -> Self {
        // Long enough ago to have issued what has expired.
        let from = now().minus(20 * DAY);
        let root = Authority::root(from, 100 * DAY).unwrap();
        let cloud = root.issue_cloud(&cloud_name("testcloud.aitia.arrowhead.eu"), from, 50 * DAY).unwrap();
        let server = issue(&cloud, "serviceregistry.testcloud.aitia.arrowhead.eu", now(), 9 * DAY);
        Self { root, cloud, server }
    }

    fn server(&self, clients: ClientCertificate, check: PeerCheck) -> Arc<ServerConfig> {
        server(&self.server, &[self.cloud.certificate().clone()], clients, check).unwrap()
    }

    fn client(&self, identity: Option<&Identity>) -> Arc<ClientConfig> {
        client(identity, &[self.cloud.certificate().clone()], ServerCheck::HostName).unwrap()
    }
}

fn cloud_name(name: &str) -> CloudCommonName {
    CloudCommonName::parse(name).unwrap()
}

fn issue(authority: &Authority, name: &str, from: UtcTime, lifetime: Duration) -> Identity {
    authority.issue(&Profile { name: name.to_owned(), alternative_names: vec!["localhost".to_owned()], now: from, lifetime }).unwrap()
}

/// Carries what one end has to say to the other; gives whether it said anything.
fn carry(from: &mut Connection, to: &mut Connection) -> bool {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() && to.read_tls(&mut rest).is_ok_and(|read| read > 0) {}
    !bytes.is_empty()
}

/// Both ends behind a handshake, each with its refusal if it has one.
fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> [(Connection, Option<Refusal>); 2] {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = Connection::from(ClientConnection::new(client.clone(), name).unwrap());
    let mut server = Connection::from(ServerConnection::new(server.clone()).unwrap());
    let mut refusals = [None, None];
    loop {
        let to_server = carry(&mut client, &mut server);
        refusals[1] = refusals[1].take().or(process(&mut server).err());
        let to_client = carry(&mut server, &mut client);
        refusals[0] = refusals[0].take().or(process(&mut client).err());
        if !to_server && !to_client {
            let [of_client, of_server] = refusals;
            return [(client, of_client), (server, of_server)];
        }
    }
}

#[track_caller]
fn server_refuses(world: &World, shown: Option<&Identity>, check: &PeerCheck, name: Option<&str>, reason: &str) {
    let [(_, of_client), (_, of_server)] = handshake(&world.client(shown), &world.server(ClientCertificate::Required, check.clone()));
    let refusal = of_server.unwrap_or_else(|| panic!("{name:?} is let in"));
    assert_eq!(refusal.name(), name, "{refusal}");
    assert!(refusal.to_string().contains(reason), "{refusal}");
    let told = of_client.expect("the client is told").error;
    assert!(matches!(told, rustls::Error::AlertReceived(_)), "{told}");
}

#[test]
fn a_client_of_the_cloud_is_let_in_and_resumes() {
    let world = World::new();
    let provider = issue(&world.cloud, "provider.testcloud.aitia.arrowhead.eu", now(), DAY);
    let (client, server) = (world.client(Some(&provider)), world.server(ClientCertificate::Required, PeerCheck::default()));
    for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let [(_, None), (connection, None)] = handshake(&client, &server) else { panic!("the handshake fails") };
        assert_eq!(connection.handshake_kind(), Some(kind));
        assert_eq!(connection.peer_certificates().unwrap()[0], *provider.certificate().der(), "{kind:?}");
    }
}

#[test]
fn the_server_chooses_sha_256_whatever_a_client_prefers() {
    let world = World::new();
    let provider = issue(&world.cloud, "provider.testcloud.aitia.arrowhead.eu", now(), DAY);
    let stock = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider())).with_safe_default_protocol_versions();
    let stock = stock.unwrap().with_root_certificates(roots(&[world.cloud.certificate().clone()]).unwrap());
    let mut stock = stock.with_client_auth_cert(chain(&provider), provider.key().to_rustls()).unwrap();
    stock.alpn_protocols = vec![PROTOCOL.to_vec()];
    assert_eq!(stock.crypto_provider().cipher_suites[0].suite(), CipherSuite::TLS13_AES_256_GCM_SHA384);
    let server = world.server(ClientCertificate::Required, PeerCheck::default());
    let [(_, None), (connection, None)] = handshake(&Arc::new(stock), &server) else { panic!("the handshake fails") };
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    assert_eq!(suite, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
}

#[test]
fn every_other_client_is_refused_with_its_name_and_the_reason() {
    let world = World::new();
    let none = PeerCheck::default();
    let of = |authority: &Authority, name: &str| issue(authority, name, now(), DAY);
    let other = world.root.issue_cloud(&cloud_name("other.aitia.arrowhead.eu"), now(), DAY).unwrap();
    let foreign = Authority::root(now(), DAY).unwrap();
    let foreign = foreign.issue_cloud(&cloud_name("testcloud.aitia.arrowhead.eu"), now(), DAY).unwrap();
    let refuses = |shown: &Identity, reason: &str| {
        server_refuses(&world, Some(shown), &none, shown.certificate().common_name(), reason);
    };
    server_refuses(&world, None, &none, None, "no certificate");
    refuses(&of(&other, "a.other.aitia.arrowhead.eu"), "issued by other.aitia.arrowhead.eu");
    refuses(&of(&foreign, "a.testcloud.aitia.arrowhead.eu"), "leads to no authority");
    refuses(&issue(&world.cloud, "old.testcloud.aitia.arrowhead.eu", now().minus(9 * DAY), DAY), "counts from");
    refuses(&issue(&world.cloud, "new.testcloud.aitia.arrowhead.eu", now().plus(DAY), DAY), "counts from");
    refuses(world.cloud.identity(), "authority's, not a system's");
    let revoked = of(&world.cloud, "lost.testcloud.aitia.arrowhead.eu");
    let list = [Revoked { serial: revoked.certificate().serial().to_vec(), since: now() }];
    let list = world.cloud.revocation_list(&list, now(), now().plus(DAY)).unwrap();
    let revocations = Revocations::from_pem(list.as_bytes(), &[world.cloud.certificate().clone()]).unwrap();
    let check = PeerCheck { revocations: Arc::new(revocations), ..PeerCheck::default() };
    server_refuses(&world, Some(&revoked), &check, revoked.certificate().common_name(), "revoked");
}

#[test]
fn where_none_is_required_nobody_is_let_in_and_a_wrong_certificate_is_not() {
    let world = World::new();
    let server = world.server(ClientCertificate::Optional, PeerCheck::default());
    let [(_, None), (connection, None)] = handshake(&world.client(None), &server) else { panic!("nobody is refused") };
    assert!(connection.peer_certificates().is_none());
    let old = issue(&world.cloud, "old.testcloud.aitia.arrowhead.eu", now().minus(9 * DAY), DAY);
    let [_, (_, refusal)] = handshake(&world.client(Some(&old)), &server);
    assert!(refusal.is_some());
}

#[test]
fn a_server_for_another_host_is_refused_unless_the_host_does_not_matter() {
    let mut world = World::new();
    world.server = world
        .cloud
        .issue(&Profile {
            name: "sensor.testcloud.aitia.arrowhead.eu".to_owned(),
            alternative_names: vec!["sensor.example".to_owned()],
            now: now(),
            lifetime: DAY,
        })
        .unwrap();
    let server = world.server(ClientCertificate::Optional, PeerCheck::default());
    let [(_, refusal), _] = handshake(&world.client(None), &server);
    let refusal = refusal.expect("it is refused");
    assert_eq!(refusal.name(), Some("sensor.testcloud.aitia.arrowhead.eu"));
    assert!(refusal.to_string().contains("localhost"), "{refusal}");
    let any_host = client(None, &[world.cloud.certificate().clone()], ServerCheck::ChainOnly).unwrap();
    assert!(handshake(&any_host, &server)[0].1.is_none());
}

/// The relay is of another cloud: what its clients believe of it, and it of them, are keys.
#[test]
fn clouds_that_share_no_authority_know_each_other_by_their_keys_at_a_relay() {
    let (of_relay, of_neighbour) = (World::new(), World::new());
    let own = issue(&of_relay.cloud, "gatekeeper.testcloud.aitia.arrowhead.eu", now(), 9 * DAY);
    let neighbour = &of_neighbour.server;
    let stranger = issue(&of_neighbour.cloud, "gatekeeper.testcloud.aitia.arrowhead.eu", now(), 9 * DAY);
    let key = |identity: &Identity| identity.certificate().public_key_info().to_vec();
    let anchors = [of_relay.cloud.certificate().clone()];
    let server = |anchors: &[Certificate]| {
        relay_server(&of_relay.server, anchors, Arc::new(BTreeSet::from([key(neighbour)])), PeerCheck::default()).unwrap()
    };
    let towards = |identity: &Identity, pinned: Option<Vec<u8>>| {
        towards_relay(identity, &anchors, pinned, ServerCheck::HostName, PeerCheck::default()).unwrap()
    };
    let pinned = Some(key(&of_relay.server));

    let [(client, of_client), (server_end, of_server)] = handshake(&towards(neighbour, pinned.clone()), &server(&[]));
    assert!(of_client.is_none() && of_server.is_none(), "{of_client:?} {of_server:?}");
    assert_eq!((client.alpn_protocol(), server_end.alpn_protocol()), (Some(RELAY_PROTOCOL), Some(RELAY_PROTOCOL)));

    let [(_, of_client), (_, of_server)] = handshake(&towards(&own, None), &server(&anchors));
    assert!(of_client.is_none() && of_server.is_none(), "the cloud's own need no key: {of_client:?} {of_server:?}");

    for anchors in [&anchors[..], &[]] {
        let [_, (_, of_server)] = handshake(&towards(&stranger, pinned.clone()), &server(anchors));
        assert_eq!(of_server.expect("it is refused").name(), Some("gatekeeper.testcloud.aitia.arrowhead.eu"));
    }
    let [(_, of_client), _] = handshake(&towards(neighbour, Some(key(neighbour))), &server(&[]));
    assert!(of_client.is_some(), "another key than that of the record is refused");
    let without_pin =
        towards_relay(neighbour, &[of_neighbour.cloud.certificate().clone()], None, ServerCheck::HostName, PeerCheck::default());
    let [(_, of_client), _] = handshake(&without_pin.unwrap(), &server(&[]));
    assert!(of_client.is_some(), "without a key the relay's certificate has to lead to an authority that is believed");
}
