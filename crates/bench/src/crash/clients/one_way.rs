//! Publisher by ZMTP PUSH or PUB at one node: it has no acknowledgement.

use std::thread;
use std::time::Instant;

use bodkin_zmtp::SocketType;

use super::super::nodes::zmtp;
use super::super::plan::{Line, Transport};
use super::super::plant::Site;
use super::zmtp::ZmtpLink;
use super::{RETRY_AFTER, Scene};

/// Publishes an event of the line in each period. A node that does not lead counts and drops the event.
///
/// # Errors
/// Returns an error if the system has no key.
pub fn publish(scene: &Scene, index: usize, line: &Line, broker: Site) -> anyhow::Result<()> {
    let security = scene.access.curve(&line.system)?;
    let socket_type = if line.transport == Transport::Push { SocketType::Push } else { SocketType::Pub };
    while scene.publishers_run() {
        thread::sleep(RETRY_AFTER);
        let Ok(mut link) = ZmtpLink::open(zmtp(broker, Site::Machine), socket_type, "", &security) else { continue };
        let mut sent = Ok(());
        while scene.publishers_run() && sent.is_ok() {
            let due = Instant::now() + line.terms.period * 11 / 10;
            let sequence = scene.ledger().publish(index);
            let payload = Scene::payload(index, sequence);
            sent = link.send(&[line.topic.as_bytes(), payload.as_bytes()]);
            while sent.is_ok() && Instant::now() < due {
                sent = link.turn_until(due, |_| {});
            }
        }
    }
    Ok(())
}
