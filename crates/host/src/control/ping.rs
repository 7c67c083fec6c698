//! Pinging providers: whether they accept a TCP connection now.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bodkin_arrowhead::{
    address::Address,
    record::{EntryView, System},
};
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

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

    /// Whether a connection is accepted within `limit`. Nothing is sent.
    pub async fn accepts(&self, limit: Duration) -> bool {
        matches!(timeout(limit, TcpStream::connect((self.address.as_str(), self.port))).await, Ok(Ok(_)))
    }
}

/// Connects to providers on behalf of requests.
pub struct Pings {
    limit: Duration,
    places: Arc<Semaphore>,
}

impl Pings {
    /// `limit` is how long a provider may take to accept.
    pub fn new(limit: Duration) -> Self {
        Self { limit, places: Arc::new(Semaphore::new(SIMULTANEOUS_MAX)) }
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
            let (places, limit) = (self.places.clone(), self.limit);
            pings.spawn(async move {
                let _place = places.acquire_owned().await.expect("the semaphore is never closed");
                endpoint.accepts(limit).await.then_some(endpoint)
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
