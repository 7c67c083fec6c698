//! Events from elsewhere that a frame of the replica channel would not take.

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};

use super::*;
use crate::inbox::RelayedEvent;

impl Scene {
    /// Takes an event of another cloud with texts of so many bytes.
    fn relay(&mut self, payload_bytes: usize, metadata_bytes: usize) -> Result<(), String> {
        let event = format!(r#"{{"eventType":"HOT","payload":"{}"}}"#, "x".repeat(payload_bytes));
        let metadata = format!(r#"{{"text":"{}"}}"#, "x".repeat(metadata_bytes));
        let relayed = RelayedEvent { event, metadata, source: SystemId(1), time: UtcTime::from_unix_seconds(1) };
        self.shard.clock.advance();
        self.shard.take_relayed(&relayed).map_err(|error| error.error_message)
    }
}

#[test]
fn event_of_another_cloud_that_is_longer_than_a_frame_is_refused() {
    let mut scene = Scene::new();
    scene.declare("HOT", false);
    scene.leads();
    assert_eq!(scene.relay(65_536, 60_000), Ok(()));
    let refused = |what| Err(format!("The {what} are taken here."));
    assert_eq!(scene.relay(65_537, 0), refused("payload has 65537 bytes, at most 65536"));
    assert_eq!(scene.relay(1, 1 << 20), refused("texts beside the payload have 1048592 bytes, at most 65536"));
}
