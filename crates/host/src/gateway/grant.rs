//! Tunnels that other clouds have opened for consumers of this one, and that are entered or refused.

use std::{
    collections::BTreeSet,
    sync::{Arc, MutexGuard, PoisonError},
};

use bodkin_arrowhead::{common_name::SystemCommonName, dialogue::SessionId, error::ArrowheadError};
use bodkin_relay::tunnel::{Control, Side};
use tokio::{runtime::Handle, time::timeout};

use super::{Gateway, tunnel::Queues};
use crate::relay::RelayPlace;

/// Where another cloud's gateway waits for this one. Unless the tunnel is entered, that gateway is told that nobody comes as soon as this is dropped: it would wait for four times
/// `gateway_idle_timeout_ms` otherwise, and have a session less for others.
pub struct GrantPlace {
    gateway: Arc<Gateway>,
    relay: RelayPlace,
    queue_id: SessionId,
    peer: SystemCommonName,
    is_refused: bool,
}

impl GrantPlace {
    /// At a relay that this cloud knows.
    pub fn new(gateway: &Arc<Gateway>, relay: RelayPlace, queue_id: SessionId, peer: SystemCommonName) -> Self {
        Self { gateway: gateway.clone(), relay, queue_id, peer, is_refused: true }
    }

    /// It is the business of whoever enters it now.
    pub fn leave(mut self) {
        self.is_refused = false;
    }
}

impl Drop for GrantPlace {
    fn drop(&mut self) {
        // A queue id that is in use is another session's, whoever has told it twice.
        if !self.is_refused || self.gateway.is_taken(&self.queue_id) {
            return;
        }
        // Without a runtime the cloud stops, and its connections with it.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(decline(self.gateway.clone(), self.relay.clone(), self.queue_id.clone(), self.peer.clone()));
    }
}

/// Tells the provider's gateway that nobody comes by the tunnel that it has opened.
async fn decline(gateway: Arc<Gateway>, place: RelayPlace, queue_id: SessionId, peer: SystemCommonName) {
    let Ok(queues) = Queues::new(&queue_id, &peer, Side::Consumer) else { return };
    let relay = gateway.links.link(&place);
    let told = timeout(gateway.config.patience, relay.send(&queues.out_control, Control::Close.of(queue_id.as_str()))).await;
    if !matches!(told, Ok(Ok(()))) {
        tracing::debug!(system = "gateway", relay = %relay.place(), "the other gateway was not told that nobody comes");
    }
}

/// A queue id from being entered on until there is a session of it.
pub(super) struct Entering {
    gateway: Arc<Gateway>,
    queue_id: SessionId,
}

impl Entering {
    /// # Errors
    /// 400 where there is a session of it, or another one is being entered.
    pub(super) fn reserve(gateway: &Arc<Gateway>, queue_id: &SessionId, peer: &SystemCommonName) -> Result<Self, ArrowheadError> {
        let taken = || ArrowheadError::invalid_parameter(format!("There is a session of {peer} with this queue id already."));
        if !gateway.entering().insert(queue_id.clone()) {
            return Err(taken());
        }
        let entering = Self { gateway: gateway.clone(), queue_id: queue_id.clone() };
        // Whoever was here before has its session there before it goes from here.
        let is_taken = gateway.sessions().contains_key(queue_id);
        if is_taken { Err(taken()) } else { Ok(entering) }
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        self.gateway.entering().remove(&self.queue_id);
    }
}

impl Gateway {
    /// Whether there is a session of a queue id, or one is being entered.
    fn is_taken(&self, queue_id: &SessionId) -> bool {
        let is_entered = self.entering().contains(queue_id);
        is_entered || self.sessions().contains_key(queue_id)
    }

    fn entering(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.entering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
