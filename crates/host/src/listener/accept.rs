//! Accepting connections within their quotas.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::net::{TcpListener, TcpStream};

use super::{BACKLOG, Begun, PortContext, converse, welcome};
use crate::{
    answer::{self, Answer, DateText, Recipient},
    inbox::{Arrival, Inbox, Message},
    quotas::{ClientKey, ConnectionPermit, ConnectionQuota, QuotaExceeded},
    security::{Peer, SecurePort},
    seldom::Seldom,
    stopping::Stopping,
};

/// Pause after the system refused to accept, so that a lack of descriptors is no busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The quotas of a port.
#[derive(Clone)]
pub struct PortQuotas {
    /// Connections of clients with a certificate, and of all clients in insecure mode.
    pub certified: Arc<ConnectionQuota>,
    /// Connections of clients without a certificate in secure mode.
    pub anonymous: Arc<ConnectionQuota>,
}

impl PortQuotas {
    /// Admits a connection whose TLS handshake is done, or that needs none.
    ///
    /// # Errors
    /// Returns the quota that is used up.
    pub(super) fn admit(&self, peer: &Peer, address: IpAddr, is_secure: bool) -> Result<ConnectionPermit, QuotaExceeded> {
        let quota = if is_secure && !peer.has_certificate() { &self.anonymous } else { &self.certified };
        quota.admit(ClientKey::of(peer, Some(address)))
    }
}

/// Accepts connections of the control plane until the cloud stops.
pub async fn serve(listener: TcpListener, context: PortContext) {
    let stopping = context.stopping.clone();
    accept(listener, &stopping, |stream, address| {
        let begun = match &context.security {
            Some(port) => Begun::Handshake(port.handshake(address)),
            None => match context.quotas.admit(&Peer::anonymous(), address.ip(), false) {
                Ok(permit) => Begun::Admitted(permit),
                Err(exceeded) => return refuse(&stream, exceeded),
            },
        };
        let (context, serving) = (context.clone(), stopping.serve());
        tokio::spawn(async move {
            if let Err(error) = converse(stream, address, &context, begun, serving).await {
                tracing::debug!(%address, %error, "connection ended");
            }
        });
    })
    .await;
}

/// Accepts connections of the data plane until the cloud stops. Each one is handed over to the shard after its handshake.
pub async fn hand_over(listener: TcpListener, port: Arc<SecurePort>, stopping: Arc<Stopping>, inbox: Arc<Inbox>) {
    accept(listener, &stopping, |stream, address| {
        let (port, inbox, mut serving) = (port.clone(), inbox.clone(), stopping.serve());
        let slot = port.handshake(address);
        tokio::spawn(async move {
            let Some((channel, peer)) = welcome(&port, stream, address, slot, &mut serving).await else { return };
            match channel.map_socket(|socket| socket.0.into_std()) {
                Ok(channel) => inbox.post(Message::Connected(Box::new(Arrival { channel, peer }))),
                Err(error) => tracing::debug!(%address, %error, "connection ended"),
            }
        });
    })
    .await;
}

async fn accept(listener: TcpListener, stopping: &Stopping, mut begin: impl FnMut(TcpStream, SocketAddr)) {
    let mut serving = stopping.serve();
    let logged = Seldom::default();
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = serving.over() => break,
        };
        match accepted {
            Ok((stream, address)) => begin(stream, address),
            Err(error) => {
                if let Some(times) = logged.due() {
                    tracing::warn!(%error, times, "connection not accepted: raise the limit on open files if it is reached");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // A connection that waits in the queue of the system has perhaps sent its request; the runtime may not have reported it yet.
    let Ok(listener) = listener.into_std() else { return };
    for (stream, address) in std::iter::from_fn(|| listener.accept().ok()).take(BACKLOG as usize) {
        if let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
            begin(stream, address);
        }
    }
}

/// Sends 503 as far as that is possible without waiting.
fn refuse(stream: &TcpStream, exceeded: QuotaExceeded) {
    let mut out = Vec::new();
    answer::push_answer(&mut out, &Answer::quota(exceeded), DateText::default().at(SystemTime::now()), Recipient::CLOSED);
    // The client that does not get it sees the connection closed, which says the same.
    let _ = stream.try_write(&out);
}

#[cfg(test)]
mod tests {
    use super::{super::tests::ends, *};

    #[tokio::test]
    async fn who_waits_is_accepted_though_the_cloud_stops() {
        let (listener, _client) = ends();
        let stopping = Stopping::default();
        assert!(stopping.stop(Duration::ZERO).await);
        let mut accepted = 0;
        accept(listener, &stopping, |_, _| accepted += 1).await;
        assert_eq!(accepted, 1);
    }
}
