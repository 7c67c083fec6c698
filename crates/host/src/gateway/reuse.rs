//! Which requests for a tunnel get the same port.
//!
//! A consumer that orchestrates before each call opens a tunnel each time. The grant is always new, so that the other cloud decides about each request, and the
//! answer has new tokens. The port is the one before, if the requests are for one [`Route`]:
//!
//! * a session that is in use stays, and the new tunnel is refused;
//! * a session that nobody is connected to ends, and the new one takes over its port.

use std::sync::{Arc, PoisonError, Weak};

use bodkin_arrowhead::{common_name::SystemCommonName, gateway::SessionForm};
use bodkin_relay::tunnel::Side;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Gateway, tunnel::Tunnel};

/// What makes two requests of consumers equal. The relay is no part: it says how the provider is reached, and not which one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    /// By its name, which is what its certificate proves at the port.
    consumer: String,
    provider: String,
    address: String,
    port: u16,
    cloud: String,
    service: String,
    /// The other gateway, and its key: a gateway with another key does not know the sessions of the former one.
    gateway: (String, String),
}

impl Route {
    pub(super) fn new(form: &SessionForm, peer: &SystemCommonName, peer_key: &str) -> Self {
        Self {
            consumer: form.consumer.as_str().to_owned(),
            provider: form.provider_name.as_str().to_owned(),
            address: form.provider.address.clone(),
            port: form.provider.port,
            cloud: form.provider_cloud(),
            service: form.service(),
            gateway: (peer.to_string(), peer_key.to_owned()),
        }
    }
}

/// The session of a former request.
pub(super) enum Former {
    /// It serves the new request too, at this port.
    InUse(u16),
    /// Nobody is connected to it.
    Unused(Arc<Tunnel>),
}

impl Gateway {
    /// Waits until no other request for the route is carried out: each finds the session of the one before.
    pub(super) async fn turn(&self, route: &Route) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // No more than there are requests.
            turns.retain(|_, turn| turn.strong_count() > 0);
            turns.get(route).and_then(Weak::upgrade).unwrap_or_else(|| {
                let turn = Arc::<Mutex<()>>::default();
                turns.insert(route.clone(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }

    /// The session whose port a new request for the route gets.
    pub(super) fn former(&self, route: &Route) -> Option<Former> {
        let is_equal = |tunnel: &&Arc<Tunnel>| tunnel.side == Side::Consumer && tunnel.is_open() && tunnel.route.as_ref() == Some(route);
        let equal: Vec<Arc<Tunnel>> = self.sessions().values().filter(is_equal).cloned().collect();
        let in_use = equal.iter().find(|tunnel| tunnel.session().is_in_use(self.time())).and_then(|tunnel| tunnel.port());
        let unused = || equal.iter().find(|tunnel| tunnel.session().connections() == 0).cloned();
        in_use.map(Former::InUse).or_else(|| unused().map(Former::Unused))
    }
}
