//! HTTP push: one task, one queue and one kept connection for each subscription, so that a dead or slow subscriber delays nobody.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::record::{Subscription, System};
use bodkin_broker::SubscriptionKey;
use bodkin_store::Store;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::mpsc, task::JoinHandle, time::timeout};

use crate::{
    inbox::{Inbox, Message},
    monitor::EventCounts,
};

/// Bytes of a subscriber's answer that are read and dropped; beyond them the connection is closed instead.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Events on their way to the subscription's task. The broker accounts for their bytes and offers no more than the
/// queue may hold, so the channel itself needs no limit.
pub type PushQueue = mpsc::UnboundedSender<Bytes>;

/// What every push task shares.
#[derive(Clone)]
pub struct PushContext {
    /// Where subscribers are looked up.
    pub store: Store,
    /// Where deliveries are reported.
    pub inbox: Arc<Inbox>,
    /// What is counted.
    pub counts: Arc<EventCounts>,
    /// For a subscriber to take an event.
    pub timeout: Duration,
    /// Bodkin's own listeners, which are never pushed to.
    pub own: Arc<[SocketAddr]>,
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
enum PushError {
    #[error("{0}")]
    Connect(#[from] io::Error),
    #[error("no address of {0} may be pushed to")]
    Forbidden(String),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("the event was not sent: {0}")]
    NotSent(hyper::Error),
    #[error("the subscriber is not registered any more")]
    Gone,
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the subscriber answered {0}")]
    Status(http::StatusCode),
    #[error("the subscriber wants https (it registered authenticationInfo), which insecure mode does not speak")]
    Secure,
}

/// Delivers in order until the subscription is gone; begins when the former task of the subscription has ended.
pub async fn deliver(
    key: SubscriptionKey,
    subscription: Arc<Subscription>,
    mut queue: mpsc::UnboundedReceiver<Bytes>,
    former: Option<JoinHandle<()>>,
    context: PushContext,
) {
    if let Some(former) = former {
        // It finishes the event it is posting; how it ended does not matter.
        let _ = former.await;
    }
    let mut link = Link { notify_uri: subscription.notify_uri.to_string(), sender: None };
    let mut failures = 0u64;
    while let Some(event) = queue.recv().await {
        let bytes = event.len() as u64;
        if queue.is_closed() {
            return drop_rest(key, bytes, queue, &context);
        }
        // Looked up for each event: a system may have registered anew without its public key.
        let subscriber = context.store.snapshot().system(subscription.subscriber).cloned();
        let taken = match &subscriber {
            None => Err(PushError::Gone),
            Some(subscriber) => match timeout(context.timeout, link.post(subscriber, event, &context.own)).await {
                Ok(taken) => taken,
                Err(_) => {
                    link.sender = None;
                    Err(PushError::Late(context.timeout))
                }
            },
        };
        let name = subscriber.as_ref().map_or("?", |subscriber| subscriber.system_name.as_str());
        match taken {
            Ok(()) if failures > 0 => {
                tracing::info!(subscriber = name, failures, "a subscriber takes pushed events again");
                failures = 0;
            }
            Ok(()) => {}
            Err(error) => {
                context.counts.push_failures.fetch_add(1, Relaxed);
                if failures == 0 {
                    tracing::warn!(subscriber = name, uri = %link.notify_uri, %error, "a pushed event was not taken; further failures are only counted");
                }
                failures += 1;
            }
        }
        context.inbox.post(Message::Sent { subscription: key, bytes });
    }
}

/// What is still queued for a subscription that has ended is not posted any more, but counted.
fn drop_rest(key: SubscriptionKey, first_bytes: u64, mut queue: mpsc::UnboundedReceiver<Bytes>, context: &PushContext) {
    let (mut events, mut bytes) = (1, first_bytes);
    while let Ok(event) = queue.try_recv() {
        events += 1;
        bytes += event.len() as u64;
    }
    context.counts.push_failures.fetch_add(events, Relaxed);
    context.inbox.post(Message::Sent { subscription: key, bytes });
}

/// The kept connection to a subscriber.
struct Link {
    notify_uri: String,
    sender: Option<http1::SendRequest<Full<Bytes>>>,
}

impl Link {
    /// Posts an event. A kept connection may have been closed by the subscriber meanwhile: what was certainly not sent on it
    /// is sent on a new one. An event that may have arrived is not posted again.
    async fn post(&mut self, subscriber: &System, event: Bytes, own: &[SocketAddr]) -> Result<(), PushError> {
        if subscriber.authentication_info.is_some() {
            return Err(PushError::Secure);
        }
        if let Some(mut kept) = self.sender.take()
            && kept.ready().await.is_ok()
        {
            match self.post_on(kept, subscriber, event.clone()).await {
                Err(PushError::NotSent(_)) => {}
                taken => return taken,
            }
        }
        let fresh = connect(subscriber, own).await?;
        self.post_on(fresh, subscriber, event).await
    }

    async fn post_on(&mut self, mut sender: http1::SendRequest<Full<Bytes>>, subscriber: &System, event: Bytes) -> Result<(), PushError> {
        let request = http::Request::post(&self.notify_uri)
            .header("Host", format!("{}:{}", bracketed(subscriber.address.as_str()), subscriber.port))
            .header("Content-Type", "application/json")
            .header("Accept", "text/plain, application/json")
            .body(Full::new(event))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut response = sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(_) => PushError::NotSent(error.into_error()),
            None => PushError::Http(error.into_error()),
        })?;
        let status = response.status();
        if drain(&mut response).await? {
            self.sender = Some(sender);
        }
        if status.is_success() { Ok(()) } else { Err(PushError::Status(status)) }
    }
}

/// Reads an answer's body and drops it; false if it is longer than anybody needs, so that the connection is not kept.
async fn drain(response: &mut http::Response<hyper::body::Incoming>) -> Result<bool, hyper::Error> {
    let mut left = ANSWER_BYTES_MAX;
    while let Some(frame) = response.frame().await {
        let bytes = frame?.data_ref().map_or(0, Bytes::len);
        let Some(less) = left.checked_sub(bytes) else { return Ok(false) };
        left = less;
    }
    Ok(true)
}

async fn connect(subscriber: &System, own: &[SocketAddr]) -> Result<http1::SendRequest<Full<Bytes>>, PushError> {
    let target = (subscriber.address.as_str(), subscriber.port);
    let mut refused = PushError::Forbidden(target.0.to_owned());
    for address in tokio::net::lookup_host(target).await?.filter(|address| may_push_to(address, own)) {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a push connection ended");
                    }
                });
                return Ok(sender);
            }
            Err(error) => refused = error.into(),
        }
    }
    Err(refused)
}

fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

/// Registered addresses are self-asserted: nothing is pushed to many at once, to the link's own range, or to ourselves.
fn may_push_to(address: &SocketAddr, own: &[SocketAddr]) -> bool {
    let ip = address.ip().to_canonical();
    let forbidden = ip.is_unspecified()
        || ip.is_multicast()
        || match ip {
            IpAddr::V4(ip) => ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
    let is_own = |listener: &SocketAddr| {
        listener.port() == address.port() && (listener.ip() == ip || listener.ip().is_unspecified() || ip.is_loopback())
    };
    !forbidden && !own.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_pushed_to_many_to_the_link_or_to_ourselves() {
        let own = ["127.0.0.1:8455".parse().unwrap(), "0.0.0.0:8443".parse().unwrap()];
        for refused in [
            "0.0.0.0:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "169.254.1.1:80",
            "[fe80::1]:80",
            "[ff02::1]:80",
            "[::]:80",
            "[::ffff:169.254.1.1]:80",
            "127.0.0.1:8455",
            "127.9.9.9:8455",
            "192.168.0.7:8443",
            "[::1]:8443",
        ] {
            assert!(!may_push_to(&refused.parse().unwrap(), &own), "{refused}");
        }
        for allowed in ["127.0.0.1:80", "192.168.0.7:8455", "[2001:db8::1]:80"] {
            assert!(may_push_to(&allowed.parse().unwrap(), &own), "{allowed}");
        }
    }
}
