//! Publisher by `POST /eventhandler/publish`: it tries either node, a millisecond after each refusal.

use std::time::Instant;

use serde_json::json;

use super::super::nodes::EVENT_HANDLER_PORT;
use super::super::plan::Line;
use super::super::plant::{Site, address};
use super::{Scene, either_node};
use crate::http::Http;

/// Publishes an event of the line in each period.
///
/// # Errors
/// Returns an error if the system has no certificate.
pub fn publish(scene: &Scene, index: usize, line: &Line) -> anyhow::Result<()> {
    let caller = scene.access.caller(&line.system)?;
    let connect = |site| Http::connect((address(site, Site::Machine), EVENT_HANDLER_PORT).into(), &caller, scene.answer_max()).ok();
    either_node::publish(scene, connect, |link, due| exchange(scene, link, index, line, due));
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
