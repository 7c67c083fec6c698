//! Pinging providers: whether they accept a TCP connection now.

use std::time::Duration;

use bodkin_arrowhead::record::EntryView;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

/// Providers pinged at the same time; more wait for their turn.
const SIMULTANEOUS_MAX: usize = 64;

/// Keeps the entries whose provider accepts a connection within `limit`, in their order. Nothing is sent.
pub(super) async fn reachable(entries: Vec<EntryView>, limit: Duration) -> Vec<EntryView> {
    let mut pings: JoinSet<(usize, bool)> = JoinSet::new();
    let mut accepted = vec![false; entries.len()];
    for (index, view) in entries.iter().enumerate() {
        if pings.len() >= SIMULTANEOUS_MAX
            && let Some(Ok((index, accepts))) = pings.join_next().await
        {
            accepted[index] = accepts;
        }
        let (address, port) = (view.provider.address.as_str().to_owned(), view.provider.port);
        pings.spawn(async move { (index, matches!(timeout(limit, TcpStream::connect((address.as_str(), port))).await, Ok(Ok(_)))) });
    }
    while let Some(Ok((index, accepts))) = pings.join_next().await {
        accepted[index] = accepts;
    }
    entries.into_iter().zip(accepted).filter_map(|(view, accepts)| accepts.then_some(view)).collect()
}
