//! Events from elsewhere that a frame of the replica channel would not take.

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::Sequence;

use super::*;
use crate::{
    fleet::{FleetEvent, FleetTold, FromFleet},
    inbox::{Inbox, RelayedEvent},
};

/// An event with texts of so many bytes, and its metadata.
fn event(payload_bytes: usize, metadata_bytes: usize) -> (String, String) {
    let event = format!(r#"{{"eventType":"HOT","payload":"{}"}}"#, "x".repeat(payload_bytes));
    (event, format!(r#"{{"text":"{}"}}"#, "x".repeat(metadata_bytes)))
}

impl Scene {
    /// Takes an event of another cloud with texts of so many bytes.
    fn relay(&mut self, payload_bytes: usize, metadata_bytes: usize) -> Result<(), String> {
        let (event, metadata) = event(payload_bytes, metadata_bytes);
        let relayed = RelayedEvent { event, metadata, source: SystemId(1), time: UtcTime::from_unix_seconds(1) };
        self.shard.clock.advance();
        self.shard.take_relayed(&relayed).map_err(|error| error.error_message)
    }

    /// Takes events of the fleet with texts of so many bytes, and returns what became of each by the end of the turn.
    fn take_fleet_events(&mut self, texts: &[(usize, usize)]) -> Vec<FleetTold> {
        let fleet_event = |(sequence, &(payload_bytes, metadata_bytes)): (u64, &(usize, usize))| {
            let (event, metadata) = event(payload_bytes, metadata_bytes);
            let (incarnation, sequence) = (Incarnation(1), Sequence(sequence));
            FleetEvent { incarnation, sequence, source: SystemId(1), event: event.into(), metadata: metadata.into() }
        };
        let poll = mio::Poll::new().unwrap();
        let told = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap()));
        let events = (1..).zip(texts).map(fleet_event).collect();
        self.shard.clock.advance();
        self.shard.take_from_fleet(FromFleet { events, told: told.clone() });
        let mut all = Vec::new();
        told.take(&mut all);
        all
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

#[test]
fn event_of_the_fleet_that_is_longer_than_a_frame_is_refused() {
    let mut scene = Scene::new();
    scene.leads();
    let told = scene.take_fleet_events(&[(65_536, 60_000), (65_537, 0), (1, 1 << 20), (1, 1)]);
    let refused = |sequence, what| FleetTold::Refused((Incarnation(1), Sequence(sequence)), format!("The {what} are taken here."));
    let covered = |sequence| FleetTold::Covered((Incarnation(1), Sequence(sequence)));
    let expected = [
        covered(1),
        refused(2, "payload has 65537 bytes, at most 65536"),
        refused(3, "texts beside the payload have 1048592 bytes, at most 65536"),
        covered(4),
        FleetTold::HandedOver,
    ];
    assert_eq!(told, expected, "what is behind a refused event is taken");
}
