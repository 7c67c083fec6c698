//! Accepting connections, as many as there are places for.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use tokio::net::{TcpListener, TcpStream};

use super::{BACKLOG, PortContext, converse, too_many, welcome};
use crate::{
    answer::{self, DateText, Recipient},
    inbox::{Arrival, Inbox, Message},
    security::{Peer, SecurePort},
    seldom::Seldom,
    stopping::Stopping,
};

/// Pause after the system refused to accept, so that a lack of descriptors is no busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Open connections of clients that have shown no certificate where they are served; one more is answered 503.
pub const STRANGERS_MAX: usize = 256;

/// Places on a port that serves clients with a certificate and without: who shows none takes no place of those who do.
#[derive(Clone)]
pub struct Places {
    certified_max: usize,
    certified: Arc<Traffic>,
    strangers: Arc<Traffic>,
}

impl Places {
    /// So many for those with a certificate, and [`STRANGERS_MAX`] for those without.
    pub fn new(certified_max: usize) -> Self {
        Self { certified_max, certified: Arc::default(), strangers: Arc::default() }
    }

    pub(super) fn take(&self, peer: &Peer) -> Option<Connected> {
        if peer.has_certificate() {
            Connected::new(&self.certified, self.certified_max)
        } else {
            Connected::new(&self.strangers, STRANGERS_MAX)
        }
    }
}

/// The connections of the ports that share a limit.
#[derive(Default)]
pub struct Traffic {
    /// Connections that are open.
    pub connections: AtomicUsize,
    /// Connections that were refused.
    pub refused: Seldom,
}

/// Counts a connection while it lives.
pub(super) struct Connected(Arc<Traffic>);

impl Connected {
    /// `None` if that were more than `connections_max`.
    fn new(traffic: &Arc<Traffic>, connections_max: usize) -> Option<Self> {
        let connected = Self(traffic.clone());
        (traffic.connections.fetch_add(1, Relaxed) < connections_max).then_some(connected)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// Accepts connections of the control plane until the cloud stops.
pub async fn serve(listener: TcpListener, context: PortContext) {
    let (traffic, connections_max) = (context.traffic.clone(), context.limits.connections_max);
    let (is_plain, stopping) = (context.security.is_none(), context.stopping.clone());
    accept(listener, &traffic, connections_max, is_plain, &stopping, |stream, address, connected| {
        let (context, serving) = (context.clone(), stopping.serve());
        tokio::spawn(async move {
            let _connected = connected;
            if let Err(error) = converse(stream, address, &context, serving).await {
                tracing::debug!(%address, %error, "connection ended");
            }
        });
    })
    .await;
}

/// Accepts connections of the data plane until the cloud stops: each is handed over behind its handshake, once and for all.
/// `traffic` counts those that are not.
pub async fn hand_over(
    listener: TcpListener,
    port: Arc<SecurePort>,
    traffic: Arc<Traffic>,
    connections_max: usize,
    stopping: Arc<Stopping>,
    inbox: Arc<Inbox>,
) {
    accept(listener, &traffic, connections_max, false, &stopping, |stream, address, connected| {
        let (port, inbox, mut serving) = (port.clone(), inbox.clone(), stopping.serve());
        tokio::spawn(async move {
            let _connected = connected;
            let Some((channel, peer)) = welcome(&port, stream, address, &mut serving).await else { return };
            match channel.map_socket(|socket| socket.0.into_std()) {
                Ok(channel) => inbox.post(Message::Connected(Box::new(Arrival { channel, peer }))),
                Err(error) => tracing::debug!(%address, %error, "connection ended"),
            }
        });
    })
    .await;
}

async fn accept(
    listener: TcpListener,
    traffic: &Arc<Traffic>,
    connections_max: usize,
    is_plain: bool,
    stopping: &Stopping,
    mut begin: impl FnMut(TcpStream, SocketAddr, Connected),
) {
    let mut take_in = |stream, address| match Connected::new(traffic, connections_max) {
        Some(connected) => begin(stream, address, connected),
        None => {
            if let Some(times) = traffic.refused.due() {
                tracing::warn!(times, connections_max, "a connection too many was refused");
            }
            if is_plain {
                refuse(&stream);
            }
        }
    };
    let mut serving = stopping.serve();
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = serving.over() => break,
        };
        match accepted {
            Ok((stream, address)) => take_in(stream, address),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; is the limit on open files too low?");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // Who was connected by the system, and waits, has perhaps asked already: the runtime may not have been told of it yet.
    let Ok(listener) = listener.into_std() else { return };
    for (stream, address) in std::iter::from_fn(|| listener.accept().ok()).take(BACKLOG as usize) {
        if let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
            take_in(stream, address);
        }
    }
}

/// Says 503 as far as that is possible without waiting.
fn refuse(stream: &TcpStream) {
    let mut out = Vec::new();
    answer::push_answer(&mut out, &too_many(), DateText::default().at(SystemTime::now()), Recipient::CLOSED);
    // The client that does not get it sees the connection closed, which says the same.
    let _ = stream.try_write(&out);
}

#[cfg(test)]
mod tests {
    use super::{super::tests::ends, *};

    #[tokio::test]
    async fn who_waits_is_accepted_though_the_cloud_stops() {
        let (listener, _client) = ends();
        let (stopping, traffic) = (Stopping::default(), Arc::default());
        assert!(stopping.stop(Duration::ZERO).await);
        let mut accepted = 0;
        accept(listener, &traffic, 1, true, &stopping, |_, _, _| accepted += 1).await;
        assert_eq!(accepted, 1);
    }
}
