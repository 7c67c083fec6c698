//! Thousands of handshakes that are begun and never ended, of three kinds: silent, with half a first message, and with a whole one.

use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use rustls::{ClientConnection, pki_types::ServerName};

use crate::hostile::crowd::{crowd_size, one_crowd};
use crate::hostile::quotas::resident_kib;
use crate::support::cloud::System;
use crate::support::patience::PATIENCE;
use crate::support::secure::{Client, SecureCloud};

/// As many, where the system lets a process have so many.
const CROWD_MAX: usize = 10_000;
/// Memory that half handshakes may take: 512 slow ones of about 40 KiB, and little for each silent one.
const GROWTH_MAX_KIB: u64 = 60 * 1024;

/// What a client says first.
fn first_message() -> Vec<u8> {
    let name = ServerName::try_from("localhost").expect("a name");
    let mut session = ClientConnection::new(Client::new(None).config(), name).expect("a session");
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).expect("a vector takes everything");
    bytes
}

#[test]
fn ten_thousand_half_handshakes_keep_nobody_from_being_served() {
    let (_crowd, size) = (one_crowd(), crowd_size().min(CROWD_MAX));
    let limit = (size + 100).to_string();
    let hello = first_message();
    for of in [System::ServiceRegistry, System::EventHandler, System::Monitor] {
        // Longer than the test takes, so that the crowd stays.
        let secure = SecureCloud::start(["--connections-max", &limit, "--handshake-timeout-ms", "120000"]);
        let client = Client::system("patient");
        // Memory that a first request allocates is not counted as the crowd's.
        client.expect(&secure.cloud, "GET", "/healthz", None, 200);
        let before = resident_kib(&secure.cloud);
        let crowd: Vec<TcpStream> = (0..size)
            .map(|number| {
                let mut socket = TcpStream::connect(secure.cloud.address(of)).expect("a connection");
                let said = [&[][..], &hello[..hello.len() / 2], &hello][number % 3];
                socket.write_all(said).expect("sent");
                socket
            })
            .collect();
        // Full handshakes, on this port and the others.
        for other in [of, System::Orchestrator, System::Monitor] {
            let begun = Instant::now();
            let path = if other == System::Monitor { "/healthz".to_owned() } else { format!("/{}/echo", other.name()) };
            client.expect(&secure.cloud, "GET", &path, None, 200);
            assert!(begun.elapsed() < PATIENCE, "{} beside {size} on {} took {:?}", other.name(), of.name(), begun.elapsed());
        }
        assert_eq!(crowd.len(), size);
        let grown = resident_kib(&secure.cloud).saturating_sub(before);
        assert!(grown < GROWTH_MAX_KIB, "{}: {grown} KiB more beside {size} half handshakes", of.name());
    }
}
