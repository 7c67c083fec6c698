//! New certificates, authorities and revocations while connections are open.

use bodkin_arrowhead::audit::{AuditQuery, Kind};
use bodkin_store::audit::AuditReader;
use bodkin_trust::{Certificate, tls};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::{key_stores, register, register_publisher, wait_for_log, with_key_stores};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::http::Connection;
use crate::support::secure::{CLOUD, Client, DAY, SecureCloud, anchor, authority, issue, other_authority, replace, system as identity};
use crate::support::sse::EventStream;

#[track_caller]
fn asks(connection: &mut Connection, of: System) {
    connection.request("GET", &format!("/{}/echo", of.name()), &[], None).expect("an answer").expect_status(200);
}

#[test]
fn a_revoked_certificates_connections_are_closed_and_the_others_live_on() {
    let secure = SecureCloud::start([]);
    let (lost, kept) = (identity("lost"), identity("kept"));
    let (lost_client, kept_client) = (Client::new(Some(&lost)), Client::new(Some(&kept)));
    let source = register_publisher(&secure.cloud, &Client::system("source"), "source");
    let stream_of = |client: &Client, name: &str| {
        let id = register(&secure.cloud, client, &system(name, 1));
        super::allow(&secure.cloud, id, source);
        let target = format!("/eventhandler/subscription?eventtype=reload&system_name={name}&address=127.0.0.1&port=1");
        EventStream::open_on(client.connect(secure.cloud.address(System::EventHandler)).expect("a connection"), &target, &[])
    };
    let (lost_stream, kept_stream) = (stream_of(&lost_client, "lost"), stream_of(&kept_client, "kept"));
    let open = |client: &Client| {
        System::CORE.map(|of| {
            let mut connection = client.connect(secure.cloud.address(of)).expect("a connection");
            asks(&mut connection, of);
            (of, connection)
        })
    };
    let (lost_open, mut kept_open) = (open(&lost_client), open(&kept_client));

    secure.revoke(&[&lost]);
    lost_stream.until_end();
    for (of, mut connection) in lost_open {
        assert!(connection.is_closed_by_server(), "{} keeps a revoked one", of.name());
        // Neither a new handshake nor an old session lets it in again.
        lost_client.refused(&secure.cloud, of);
    }
    wait_for_log(&secure.cloud, &["closed", &format!("certificate=\"lost.{CLOUD}\""), "revoked"]);
    for (of, connection) in &mut kept_open {
        asks(connection, *of);
    }
    let publisher = Client::system("source");
    publisher.expect(&secure.cloud, "POST", "/eventhandler/publish", Some(&event("reload", system("source", 1), "still")), 200);
    assert_eq!(kept_stream.wait_for(1)[0].data, "still");
}

#[test]
fn a_revocation_list_that_is_lost_revokes_on() {
    let secure = SecureCloud::start(["--log", "info"]);
    let lost = identity("lost");
    secure.revoke(&[&lost]);
    wait_for_log(&secure.cloud, &["read again", "revoked=1"]);
    std::fs::remove_file(secure.trust("revoked.crl")).expect("it is there");
    wait_for_log(&secure.cloud, &["revoked.crl is missing", "--refresh", "count on"]);
    Client::new(Some(&lost)).refused(&secure.cloud, System::Orchestrator);
    Client::system("kept").expect(&secure.cloud, "GET", "/orchestrator/echo", None, 200);
}

#[test]
fn an_expired_certificates_connections_are_closed() {
    let secure = SecureCloud::start([]);
    let short = issue(&authority(), &format!("short.{CLOUD}"), &[], tls::now(), std::time::Duration::from_secs(3));
    let client = Client::new(Some(&short));
    let mut open = [System::Orchestrator, System::EventHandler].map(|of| {
        let mut connection = client.connect(secure.cloud.address(of)).expect("a connection");
        asks(&mut connection, of);
        (of, connection)
    });
    for (of, connection) in &mut open {
        assert!(connection.is_closed_by_server(), "{} keeps an expired one", of.name());
        wait_for_log(&secure.cloud, &["closed", &format!("certificate=\"short.{CLOUD}\""), "counts from"]);
        client.refused(&secure.cloud, *of);
    }
}

#[test]
fn a_new_server_certificate_is_shown_at_once_on_sighup_and_broken_files_change_nothing() {
    let secure = SecureCloud::start([]);
    let client = Client::system("looking");
    let shown = || {
        let connection = client.connect(secure.cloud.address(System::EventHandler)).expect("a connection");
        connection.session().peer_certificates().expect("a chain")[0].clone()
    };
    let mut open = client.connect(secure.cloud.address(System::EventHandler)).expect("a connection");
    let before = shown();
    let names = Certificate::from_der(&before).expect("a certificate").alternative_names().join(" ") + " new.example";
    let names: Vec<&str> = names.split(' ').collect();
    let new = issue(&authority(), &format!("eventhandler.{CLOUD}"), &names, tls::now(), 80 * DAY);

    // Half a certificate.
    replace(&secure.trust("systems/eventhandler.crt"), &new.chain_to_pem().as_bytes()[..500]);
    secure.cloud.signal(Signal::SIGHUP);
    wait_for_log(&secure.cloud, &["SIGHUP", "eventhandler.crt", "count on"]);
    assert_eq!(shown(), before);
    asks(&mut open, System::EventHandler);

    replace(&secure.trust("systems/eventhandler.key"), new.key().to_pem().as_bytes());
    replace(&secure.trust("systems/eventhandler.crt"), new.chain_to_pem().as_bytes());
    secure.cloud.signal(Signal::SIGHUP);
    assert!(crate::support::patience::eventually(|| shown() == *new.certificate().der()), "{}", secure.cloud.stderr());
    asks(&mut open, System::EventHandler);
}

#[test]
fn who_is_certified_by_an_authority_that_is_trusted_no_more_is_closed() {
    // Two authorities of one name, as while a cloud changes its key.
    let former = other_authority(CLOUD);
    let (data, stores) = (TempDir::new().expect("a temporary directory"), key_stores(&[anchor()]));
    let trust = |anchors: &[&Certificate]| {
        let text: String = anchors.iter().map(|anchor| anchor.to_pem()).collect();
        replace(&stores.path().join("truststore.p12"), text.as_bytes());
    };
    let (own, former_anchor) = (anchor(), former.certificate().clone());
    trust(&[&own, &former_anchor]);
    let cloud = with_key_stores(data.path(), stores.path(), "password").flags(["--log", "info"]).start();
    let (of_former, of_own) = (issue(&former, &format!("former.{CLOUD}"), &[], tls::now(), DAY), identity("own"));
    let clients = [Client::new(Some(&of_former)), Client::new(Some(&of_own))];
    let open = || {
        [System::Orchestrator, System::EventHandler].map(|of| {
            clients.each_ref().map(|client| {
                let mut connection = client.connect(cloud.address(of)).expect("a connection");
                asks(&mut connection, of);
                connection
            })
        })
    };
    let mut before = open();
    // One more that is trusted closes nothing.
    trust(&[&own, &former_anchor, other_authority("testcloud9.aitia.arrowhead.eu").certificate()]);
    wait_for_log(&cloud, &["read again", "files have changed"]);
    for (connections, of) in before.iter_mut().zip([System::Orchestrator, System::EventHandler]) {
        connections.iter_mut().for_each(|connection| asks(connection, of));
    }
    trust(&[&own]);
    for connection in before.iter_mut().flatten() {
        assert!(connection.is_closed_by_server(), "it lives on: {}", cloud.stderr());
    }
    wait_for_log(&cloud, &["closed", &format!("certificate=\"former.{CLOUD}\""), "not any more"]);
    for of in [System::Orchestrator, System::EventHandler] {
        clients[0].refused(&cloud, of);
        clients[1].expect(&cloud, "GET", &format!("/{}/echo", of.name()), None, 200);
    }
    let told = AuditReader::new(&data.path().join("audit"))
        .first(&AuditQuery { kind: Some(Kind::Certificate), ..AuditQuery::default() }, 100)
        .expect("the log is read");
    let believed: Vec<usize> = told.iter().map(|read| read.entry.event.detail["authorities"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(believed, [2, 3, 1], "{told:?}");
}
