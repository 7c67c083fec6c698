//! Events that go to another cloud: each is a question to its gatekeeper, through the relay.

use std::sync::Arc;

use bodkin_arrowhead::{
    dialogue::Subject,
    error::ArrowheadError,
    gatekeeper::asking_cloud,
    shared_event::{self, Share, SharedIdentity},
};
use bodkin_store::Store;

use super::{
    link::{PushError, PushEvent},
    response::{Permission, Response},
    traced::Sending,
};
use crate::{gatekeeper::Gatekeeper, replay::source, trace::caused_by};

/// The cloud that events go to.
#[derive(Clone, Copy)]
pub struct Neighbor<'t> {
    /// Which one, and how soon.
    pub share: &'t Share,
    /// Where it is looked up: it may be forgotten meanwhile, or have another key.
    pub store: &'t Store,
    /// Who speaks with it.
    pub gatekeeper: Option<&'t Arc<Gatekeeper>>,
}

impl Neighbor<'_> {
    /// Tells it of events, one after the other; each that it takes is answered as a subscriber would have.
    pub async fn tell_all(&self, events: &[PushEvent], sending: &Sending, answers: &mut Vec<Response>) -> Result<(), PushError> {
        for (at, event) in events.iter().enumerate() {
            match caused_by(sending.cause(at), Box::pin(self.tell(event))).await {
                Ok(()) => answers.push(Response { status: 200, keeps_alive: true, retry_after: None, permission: Permission::Silent }),
                // What was taken before is told first.
                Err(_) if !answers.is_empty() => return Ok(()),
                Err(error) => return Err(PushError::Cloud(error.into())),
            }
        }
        Ok(())
    }

    /// The cloud, as it is told.
    pub fn cloud(&self) -> String {
        format!("{}.{}", self.share.name, self.share.operator)
    }

    async fn tell(&self, event: &PushEvent) -> Result<(), ArrowheadError> {
        let Share { operator, name, .. } = self.share;
        let gatekeeper = self.gatekeeper.ok_or_else(|| ArrowheadError::unavailable("This cloud has no Gatekeeper."))?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = snapshot.cloud_by_name(operator.as_str(), name.as_str()).cloned();
        let unknown = || ArrowheadError::unavailable(format!("Cloud {name}.{operator} is not known here any more."));
        let cloud = cloud.filter(|cloud| !cloud.own_cloud).ok_or_else(unknown)?;
        let publisher = source(event.id).and_then(|source| snapshot.system(source)).map(|system| system.system_name.to_string());
        let id = event.id;
        let identity = SharedIdentity { publisher: id.publisher.0, incarnation: id.incarnation.0, sequence: id.sequence.0 };
        let asker = asking_cloud(&snapshot, &gatekeeper.authentication_info());
        let broken = |error: &dyn std::fmt::Display| ArrowheadError::arrowhead(format!("An event cannot be shared: {error}."));
        let text = std::str::from_utf8(&event.json).map_err(|error| broken(&error))?;
        let question = shared_event::question(&asker, identity, &publisher.unwrap_or_default(), text).map_err(|error| broken(&error))?;
        gatekeeper.clone().ask(snapshot, cloud, (Subject::SharedEvent, question), gatekeeper.asking_time()).await.map(drop)
    }
}

impl std::fmt::Debug for Neighbor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Neighbor").field("share", &self.share).finish_non_exhaustive()
    }
}
