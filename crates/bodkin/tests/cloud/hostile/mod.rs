//! Senders that mean harm or do not know better: each has a limit, a told answer and no effect on others.

mod bodies;
pub mod crowd;
mod dealer;
mod depth;
mod framing;
mod neighbours;
mod notify_uri;
pub mod quotas;
mod slow;
mod smuggling;
mod subscribers;
mod unread;
mod zmtp;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::support::cloud::{Cloud, System};
use crate::support::http::{Answer, Connection};

const ALL: [System; 5] = [System::ServiceRegistry, System::Authorization, System::Orchestrator, System::EventHandler, System::Monitor];

/// A path of each system that answers GET by 200.
fn living(system: System) -> String {
    match system {
        System::Monitor => "/healthz".into(),
        core => format!("/{}/echo", core.name()),
    }
}

/// A path of each core system that takes POST.
fn posting(system: System) -> &'static str {
    match system {
        System::ServiceRegistry => "/serviceregistry/query",
        System::Authorization => "/authorization/intracloud/check",
        System::Orchestrator => "/orchestrator/orchestration",
        System::EventHandler | System::Monitor => "/eventhandler/publish",
        System::Gatekeeper => "/gatekeeper/init_gsd",
        System::Gateway => "/gateway/connect_provider",
    }
}

/// How long a refusal of bad bytes may take, and the close after it: nothing is worked on meanwhile.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);

/// Sends bytes on a new connection and reads one answer.
fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<(Answer, Connection)> {
    let mut connection = Connection::open(address)?;
    connection.wait_at_most(REFUSAL_PATIENCE)?;
    // The server may refuse and close before it was told everything.
    let _ = connection.send(bytes);
    let answer = connection.read_answer()?;
    Ok((answer, connection))
}

/// What is wrong with the answer to an ambiguous request: not refused, or read on after it.
fn two_readings_fault(address: SocketAddr, request: &[u8]) -> Option<String> {
    match exchange(address, request) {
        // 501 is what the standard wants for an unknown transfer coding, 505 for a version.
        Ok((answer, _)) if !matches!(answer.status, 400 | 501 | 505) => Some(format!("answered {}", answer.status)),
        Ok((_, mut connection)) => match connection.read_answer() {
            Ok(second) => Some(format!("the smuggled request was answered {}", second.status)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some("it stays open".into()),
            Err(_) => None,
        },
        Err(error) => Some(format!("no answer: {error}")),
    }
}

#[track_caller]
fn assert_all_live(cloud: &Cloud) {
    for system in ALL {
        let answer = cloud.connect(system).request("GET", &living(system), &[], None).expect("an answer");
        assert_eq!(answer.status, 200, "{}", system.name());
    }
}

/// The value of a metric without labels.
#[track_caller]
fn metric(cloud: &Cloud, name: &str) -> f64 {
    let text = cloud.get("/metrics").expect_status(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}
