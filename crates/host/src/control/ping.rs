//! Pinging providers: whether they accept a TCP connection now (reference 3.4). Nothing is sent, in secure mode neither: what a service
//! speaks is its own business.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bodkin_arrowhead::{
    address::Address,
    record::{EntryView, System},
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::destination::{DestinationError, Destinations};

/// Connections of the pings of all requests at the same time; more wait for their turn.
const SIMULTANEOUS_MAX: usize = 256;
/// For all pings of one request; a provider whose turn has not come by then counts as not reachable.
const REQUEST_MAX: Duration = Duration::from_secs(20);

/// Where a provider listens. Several systems may share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Host name or IP address.
    pub address: Address,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Where a system listens.
    pub fn of(system: &System) -> Self {
        Self { address: system.address.clone(), port: system.port }
    }

    /// Whether a connection is accepted within `limit`. Our own listeners do, and are not asked.
    pub async fn accepts(&self, limit: Duration, destinations: &Destinations) -> bool {
        let connected = destinations.connect(self.address.as_str(), self.port, limit).await;
        matches!(connected, Ok(_) | Err(DestinationError::Own(_)))
    }
}

/// Connects to providers on behalf of requests.
pub struct Pings {
    limit: Duration,
    destinations: Destinations,
    places: Arc<Semaphore>,
}

impl Pings {
    /// `limit` is how long a provider may take to accept.
    pub fn new(limit: Duration, destinations: Destinations) -> Self {
        Self { limit, destinations, places: Arc::new(Semaphore::new(SIMULTANEOUS_MAX)) }
    }

    /// Keeps the entries whose provider accepts a connection, in their order. A caller that goes away ends its pings.
    pub(super) async fn reachable(&self, mut entries: Vec<EntryView>) -> Vec<EntryView> {
        self.retain_reachable(vec![&mut entries]).await;
        entries
    }

    /// As [`Self::reachable`] for several lists; each endpoint is connected to once.
    pub(super) async fn retain_reachable(&self, lists: Vec<&mut Vec<EntryView>>) {
        let endpoints = lists.iter().flat_map(|list| list.iter()).map(|view| Endpoint::of(&view.provider)).collect();
        let accepting = self.accepting(endpoints).await;
        for list in lists {
            list.retain(|view| accepting.contains(&Endpoint::of(&view.provider)));
        }
    }

    async fn accepting(&self, endpoints: BTreeSet<Endpoint>) -> BTreeSet<Endpoint> {
        let mut pings: JoinSet<Option<Endpoint>> = JoinSet::new();
        for endpoint in endpoints {
            let (places, limit, destinations) = (self.places.clone(), self.limit, self.destinations.clone());
            pings.spawn(async move {
                let _place = places.acquire_owned().await.expect("the semaphore is never closed");
                endpoint.accepts(limit, &destinations).await.then_some(endpoint)
            });
        }
        let deadline = Instant::now() + REQUEST_MAX;
        let mut accepting = BTreeSet::new();
        while let Ok(Some(ping)) = timeout_at(deadline, pings.join_next()).await {
            accepting.extend(ping.ok().flatten());
        }
        accepting
    }
}
