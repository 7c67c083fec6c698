//! Subscriber by an event stream (SSE), which continues at the other node with `Last-Event-ID`.

use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use bodkin_client::{EventParser, Part};

use super::super::access::STREAM_SYSTEM;
use super::super::nodes::{BROKERS, EVENT_HANDLER_PORT};
use super::super::plan::Transport;
use super::super::plant::{Site, address};
use super::{RETRY_AFTER, Scene};
use crate::http::Http;

/// Event by which a stream reports losses.
const LOST: &str = "bodkin-lost";
/// Longest line or event that is accepted.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Longest wait of one read.
const TURN_MAX: Duration = Duration::from_millis(100);
/// Silence after which the client opens the stream at the other node: each line has several events per second.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Receives the events of one line until the subscribers end.
///
/// # Errors
/// Returns an error if the system has no certificate.
pub fn subscribe(scene: &Scene, index: usize) -> anyhow::Result<()> {
    let caller = scene.access.caller(STREAM_SYSTEM)?;
    let topic = &scene.settings.lines[index].topic;
    let target = format!("/eventhandler/subscription?eventtype={topic}{}", scene.access.stream_query());
    let mut last_id = String::new();
    // A connection is kept after a refusal: otherwise TLS handshakes would fill both cores while no node leads.
    let mut links = BROKERS.map(|broker| (broker, None));
    let mut at = 0;
    while scene.subscribers_run() {
        let (broker, kept) = &mut links[at];
        at = (at + 1) % BROKERS.len();
        let node = (address(*broker, Site::Viewer), EVENT_HANDLER_PORT).into();
        if let Some(mut http) = kept.take().or_else(|| Http::connect(node, &caller, SILENCE_MAX).ok()) {
            let headers = if last_id.is_empty() { String::new() } else { format!("Last-Event-ID: {last_id}\r\n") };
            match http.open_stream(&target, &headers) {
                Ok(200) => receive(scene, index, &mut http, &mut last_id),
                Ok(_) => *kept = Some(http),
                Err(_) => {}
            }
        }
        thread::sleep(RETRY_AFTER);
    }
    Ok(())
}

/// Receives events until the stream ends or is silent for too long.
fn receive(scene: &Scene, index: usize, http: &mut Http, last_id: &mut String) {
    let mut parser = EventParser::after(last_id, EVENT_BYTES_MAX);
    if http.set_wait(TURN_MAX).is_err() {
        return;
    }
    let mut last = Instant::now();
    while scene.subscribers_run() && last.elapsed() < SILENCE_MAX {
        let bytes = match http.read() {
            Ok(bytes) if bytes.is_empty() => return,
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => return,
        };
        last = Instant::now();
        if parser.push(&bytes).is_err() {
            return;
        }
        while let Some(part) = parser.pop() {
            let Part::Event(event) = part else { continue };
            if event.event == LOST {
                scene.ledger().report_loss(Transport::Stream, index);
            } else {
                scene.receive(Transport::Stream, event.data.as_bytes(), false);
            }
            *last_id = event.id;
        }
    }
}
