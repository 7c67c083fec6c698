//! Subscriber of the stream to which the pair forwards.

use std::thread;
use std::time::Duration;

use bodkin_nats::lane::Record;

use super::super::jetstream::{LANE, STREAM, address};
use super::super::plan::Transport;
use super::Scene;
use crate::realtime::fleet::bare::Bare;
use crate::realtime::fleet::stored::LaneReader;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Reads the forwarded events until the subscribers end.
///
/// # Errors
/// Returns an error if what the pair has forwarded is no batch, or does not follow what it forwarded before.
pub fn subscribe(scene: &Scene, edge: &str) -> anyhow::Result<()> {
    let mut lane = LaneReader::new(STREAM, &format!("fleet.{edge}.{LANE}"))?;
    let mut bare = Bare::connect(address())?;
    let mut is_there = false;
    while scene.subscribers_run() {
        let read = lane.next(&mut bare, |record| match record {
            Record::Event { payload, .. } => scene.receive(Transport::JetStream, payload, false),
            Record::Lost { count, .. } => scene.receive_forwarded_loss(count),
        });
        match read {
            Ok(has_more) => {
                is_there = true;
                if !has_more {
                    thread::sleep(LOOK_EVERY);
                }
            }
            // The pair makes the stream when it forwards the first event.
            Err(_) if !is_there => {
                thread::sleep(LOOK_EVERY);
                bare = Bare::connect(address())?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
