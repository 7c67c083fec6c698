//! Pinging providers: whether they accept a TCP connection now.

use std::{sync::Arc, time::Duration};

use bodkin_arrowhead::record::EntryView;
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

/// Connections of all pings at the same time; more wait for their turn.
const SIMULTANEOUS_MAX: usize = 256;
/// For all pings of one request; a provider whose turn has not come by then counts as not reachable.
const REQUEST_MAX: Duration = Duration::from_secs(20);

/// Connects to providers and sends nothing.
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
    pub(super) async fn reachable(&self, entries: Vec<EntryView>) -> Vec<EntryView> {
        let mut pings: JoinSet<(usize, bool)> = JoinSet::new();
        for (index, view) in entries.iter().enumerate() {
            let (address, port) = (view.provider.address.as_str().to_owned(), view.provider.port);
            let (places, limit) = (self.places.clone(), self.limit);
            pings.spawn(async move {
                let _place = places.acquire_owned().await.expect("the semaphore is never closed");
                (index, matches!(timeout(limit, TcpStream::connect((address.as_str(), port))).await, Ok(Ok(_))))
            });
        }
        let deadline = Instant::now() + REQUEST_MAX;
        let mut accepted = vec![false; entries.len()];
        while let Ok(Some(ping)) = timeout_at(deadline, pings.join_next()).await {
            if let Ok((index, accepts)) = ping {
                accepted[index] = accepts;
            }
        }
        entries.into_iter().zip(accepted).filter_map(|(view, accepts)| accepts.then_some(view)).collect()
    }
}
