//! Thousands of handshakes that are begun and never ended, of three kinds: silent, with half a first message, and with a whole one.

use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit};
use rustls::{ClientConnection, pki_types::ServerName};

use crate::support::cloud::System;
use crate::support::patience::PATIENCE;
use crate::support::secure::{Client, SecureCloud};

/// As many, where the system lets a process have so many.
const CROWD_MAX: usize = 10_000;
/// Descriptors that this process and the cloud need for everything else.
const SPARE_DESCRIPTORS: usize = 1_000;

fn crowd_size() -> usize {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of descriptors is known");
    CROWD_MAX.min(usize::try_from(soft).unwrap_or(usize::MAX).saturating_sub(SPARE_DESCRIPTORS))
}

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
    let size = crowd_size();
    let limit = (size + 100).to_string();
    let hello = first_message();
    for of in [System::ServiceRegistry, System::EventHandler, System::Monitor] {
        // Longer than the test takes, so that the crowd stays.
        let secure = SecureCloud::start(["--connections-max", &limit, "--handshake-timeout-ms", "120000"]);
        let client = Client::system("patient");
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
    }
}
