//! Publisher by ZMTP REQ: it tries either node, a millisecond after each refusal.

use std::time::{Duration, Instant};

use bodkin_zmtp::SocketType;

use super::super::nodes::zmtp;
use super::super::plan::Line;
use super::super::plant::Site;
use super::zmtp::ZmtpLink;
use super::{RETRY_AFTER, Scene, either_node};

/// Publishes an event of the line in each period.
///
/// # Errors
/// Returns an error if the system has no key.
pub fn publish(scene: &Scene, index: usize, line: &Line) -> anyhow::Result<()> {
    let security = scene.access.curve(&line.system)?;
    let connect = |site| ZmtpLink::open(zmtp(site, Site::Machine), SocketType::Req, &line.system, &security).ok();
    either_node::publish(scene, connect, |link, due| exchange(scene, link, index, line, due));
    Ok(())
}

/// Publishes one event. Returns whether it was accepted, or `None` if the link broke.
fn exchange(scene: &Scene, link: &mut ZmtpLink, index: usize, line: &Line, due: &mut Instant) -> Option<bool> {
    let sequence = scene.ledger().publish(index);
    let payload = Scene::payload(index, sequence);
    let next = Instant::now() + line.terms.period * 11 / 10;
    *due = next;
    link.send(&[b"", line.topic.as_bytes(), payload.as_bytes()]).ok()?;
    let (status, reason) = reply(link, scene.answer_max())?;
    let mut ledger = scene.ledger();
    if status == "200" {
        ledger.accept(index, sequence, Instant::now());
        return Some(true);
    }
    // A reply does not say whether the event may count later.
    let reason = if reason.trim().is_empty() { String::new() } else { format!("{status} {reason}") };
    ledger.refuse(index, sequence, &reason, false);
    if status == "503" {
        // The node does not lead. The other node is tried at once: waiting for a period would hide its failover.
        *due = Instant::now() + RETRY_AFTER;
    }
    Some(false)
}

/// Waits for a reply; returns its status and reason, or `None` if none comes.
fn reply(link: &mut ZmtpLink, wait_max: Duration) -> Option<(String, String)> {
    let deadline = Instant::now() + wait_max;
    let mut found = None;
    while found.is_none() {
        if Instant::now() > deadline {
            return None;
        }
        let turn = link.turn(|message| {
            let text = |frame: &[u8]| String::from_utf8_lossy(frame).into_owned();
            let frames: Vec<&[u8]> = message.frames().collect();
            if let [_, status, reason] = frames[..] {
                found = Some((text(status), text(reason)));
            }
        });
        if turn.is_err() && found.is_none() {
            return None;
        }
    }
    found
}
