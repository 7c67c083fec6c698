//! Publisher by `POST /eventhandler/publish`: it tries either node, a millisecond after each refusal.

use std::thread;
use std::time::Instant;

use serde_json::json;

use super::super::nodes::{EVENT_HANDLER_PORT, publishing_sites};
use super::super::plan::Line;
use super::super::plant::{Site, address};
use super::http::Http;
use super::{RETRY_AFTER, Scene};

/// Publishes an event of the line in each period.
///
/// # Errors
/// Returns an error if the system has no certificate.
pub fn publish(scene: &Scene, index: usize, line: &Line) -> anyhow::Result<()> {
    let caller = scene.access.caller(&line.system)?;
    let sites = publishing_sites(&scene.settings);
    let mut links: Vec<Option<Http>> = sites.iter().map(|_| None).collect();
    let mut at = 0;
    let mut due = Instant::now();
    while scene.publishers_run() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if links[at].is_none() {
            let node = (address(sites[at], Site::Machine), EVENT_HANDLER_PORT).into();
            links[at] = Http::connect(node, &caller, scene.answer_max()).ok();
        }
        let is_accepted = links[at].as_mut().and_then(|link| exchange(scene, link, index, line, &mut due));
        if is_accepted.is_none() {
            links[at] = None;
        }
        if is_accepted != Some(true) {
            at = (at + 1) % sites.len();
            due = due.max(Instant::now() + RETRY_AFTER);
        }
    }
    Ok(())
}

/// Publishes one event. Returns whether it was accepted, or `None` if the connection broke.
fn exchange(scene: &Scene, link: &mut Http, index: usize, line: &Line, due: &mut Instant) -> Option<bool> {
    let sequence = scene.ledger().publish(index);
    let body = json!({
        "eventType": line.topic, "payload": Scene::payload(index, sequence),
        "source": {"systemName": line.system, "address": "machine", "port": 1},
    });
    // Two events closer than a period are in excess, and the first one may have been accepted unseen.
    let next = Instant::now() + line.terms.period * 11 / 10;
    let Ok(answer) = link.exchange("POST", "/eventhandler/publish", "", &body.to_string()) else {
        *due = next;
        return None;
    };
    let mut ledger = scene.ledger();
    if answer.status == 200 {
        ledger.accept(index, sequence, Instant::now());
        *due = next;
        return Some(true);
    }
    let is_undone = answer.has_retry_after && matches!(answer.status, 429 | 503);
    ledger.refuse(index, sequence, &answer.reason(), is_undone);
    if !is_undone {
        *due = next;
    }
    Some(false)
}
