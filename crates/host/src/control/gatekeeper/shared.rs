//! Events that other clouds share with this one.

use std::sync::Arc;

use bodkin_arrowhead::{
    core_service::CoreSystem,
    error::ArrowheadError,
    publication::told_time,
    record::{Cloud, SystemId},
    shared_event::SharedEvent,
    snapshot::Snapshot,
};
use serde_json::json;
use tokio::sync::oneshot;

use super::dialogue::text;
use crate::{
    control::{Control, Result, now},
    inbox::{Message, RelayedEvent},
    own_services,
};

impl Control {
    /// Takes an event of another cloud if its type is accepted of that cloud: it is published here as the own Gatekeeper's, and whoever may hear that may hear it.
    pub(super) async fn take_shared_event(&self, asker: &Cloud, question: &str) -> Result<String> {
        let event = SharedEvent::parse(question, asker)?;
        let heard = &self.speaker()?.heard;
        // The row as it is now: consent may have been given or taken back since the call.
        let snapshot = Arc::clone(&self.store.snapshot());
        let accepted = event.check_accepted(snapshot.cloud(asker.id).map_or(asker, AsRef::as_ref));
        accepted.inspect_err(|_| heard.refuse(asker, &event.event_type))?;
        let source = own_gatekeeper(&snapshot).ok_or_else(|| {
            ArrowheadError::unavailable("This cloud's Gatekeeper is not registered, as which events of other clouds are published.")
        })?;
        heard.take((asker, &event), source, &snapshot, || self.publish_relayed(asker, &event, source)).await?;
        Ok(text(&json!({"taken": true})))
    }

    async fn publish_relayed(&self, asker: &Cloud, event: &SharedEvent, source: SystemId) -> std::result::Result<(), ArrowheadError> {
        let (done, told) = oneshot::channel();
        let time = told_time(&event.event).unwrap_or_else(now);
        let relayed = RelayedEvent { event: event.event.clone(), metadata: event.metadata_from(asker), source, time };
        self.inbox.post(Message::Relayed { event: Box::new(relayed), done });
        told.await.unwrap_or_else(|_| Err(ArrowheadError::unavailable("This cloud stops.")))
    }
}

/// The system as which this cloud's own Gatekeeper is registered.
fn own_gatekeeper(snapshot: &Snapshot) -> Option<SystemId> {
    own_services::own(snapshot, CoreSystem::Gatekeeper, "inter-cloud-events")
}
