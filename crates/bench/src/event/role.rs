//! One side of an event run, in a process of its own: what it shall do comes as a line of JSON on stdin, what it did goes
//! as lines of JSON to stdout.

use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::thread;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::event::publisher::{PublisherOrder, PublisherReport, publish};
use crate::event::pushed::{PushOrder, PushReceiver};
use crate::event::relay::{Relay, RelayAddresses, RelayOrder};
use crate::event::subscriber::{SubscriberOrder, subscribe};
use crate::event::tally::{Sent, SubscriberReport};
use crate::realtime::cpep::{ConsumeOrder, ConsumeReport, Consumers, Suppliers, SupplyOrder, SupplyReport};
use crate::realtime::detour::{Detour, DetourOrder};
use crate::realtime::listener::{ListenerOrder, Listeners};
use crate::realtime::publisher::{Proxies, ProxyOrder, ProxyReport};
use crate::realtime::relay::{Chain, Relay as ZmtpRelay, RelayOrder as ZmtpRelayOrder};
use crate::realtime::tally::ListenerReport;
use crate::realtime::window::Window;

/// The first line on stdin.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum RoleOrder {
    /// Publish and report.
    Publisher(PublisherOrder),
    /// Say when the streams are open, read, learn from a second line what was sent, report.
    Subscriber(SubscriberOrder),
    /// Say where the subscribers listen, take what is pushed, learn from a second line what was sent, report.
    Push(PushOrder),
    /// Say where it listens, relay until the publishers are gone.
    Relay(RelayOrder),
    /// Connect every proxy of a workload, publish in the window that a second line gives, report.
    Proxies(ProxyOrder),
    /// Subscribe every subscriber of a workload, hear in the window that a second line gives, report.
    Listeners(ListenerOrder),
    /// Connect every supplier of a graph, or say where it listens for who takes their events; push in the window that a second line gives, report.
    Suppliers(SupplyOrder),
    /// Subscribe every consumer of a graph, or say where it listens for who has their results; hear in the window that a second line gives, report.
    Consumers(ConsumeOrder),
    /// Say where it listens, relay between ZMTP sockets until the publishers are gone.
    ZmtpRelay(ZmtpRelayOrder),
    /// Say where it listens, delay what passes until stdin ends.
    Detour(DetourOrder),
    /// Say where it listens, be one hop until the one who connects is gone.
    Chain {
        /// The hop behind it.
        next: Option<SocketAddr>,
    },
}

/// A line on stdout.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Told {
    /// The relay listens.
    Listening(RelayAddresses),
    /// The subscribers listen for pushes.
    PushListening {
        /// Each on its port.
        ports: Vec<u16>,
    },
    /// One socket listens.
    At {
        /// There.
        address: SocketAddr,
    },
    /// The detour listens.
    Detours {
        /// A socket for each broker.
        addresses: Vec<SocketAddr>,
    },
    /// Every publisher is connected.
    Connected,
    /// The proxies are done.
    Proxied(ProxyReport),
    /// The listeners are done.
    Listened(ListenerReport),
    /// The suppliers are done.
    Supplied(SupplyReport),
    /// The consumers are done.
    Consumed(ConsumeReport),
    /// The streams are open.
    Subscribed,
    /// The publishers are done.
    Published(PublisherReport),
    /// The subscribers are done.
    Received(SubscriberReport),
}

/// Does what stdin says.
///
/// # Errors
/// The order is no order, or what it asks for fails.
pub fn run() -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("no order on stdin")?;
    match serde_json::from_str(&line).context("no order on stdin")? {
        RoleOrder::Publisher(order) => tell(&Told::Published(publish(&order)?)),
        RoleOrder::Subscriber(order) => {
            let subscribed = subscribe(&order)?;
            tell(&Told::Subscribed)?;
            tell(&Told::Received(subscribed.receive(&sent_from_stdin())?))
        }
        RoleOrder::Push(order) => {
            let receiver = PushReceiver::listen(&order)?;
            tell(&Told::PushListening { ports: receiver.ports().to_vec() })?;
            tell(&Told::Received(receiver.receive(&sent_from_stdin())?))
        }
        RoleOrder::Relay(order) => {
            let relay = Relay::listen(order)?;
            tell(&Told::Listening(relay.addresses()?))?;
            relay.run()
        }
        RoleOrder::Proxies(order) => {
            let proxies = Proxies::connect(order)?;
            tell(&Told::Connected)?;
            tell(&Told::Proxied(proxies.publish(window_from_stdin()?)?))
        }
        RoleOrder::Listeners(order) => {
            let listeners = Listeners::subscribe(order)?;
            tell(&Told::Subscribed)?;
            tell(&Told::Listened(listeners.hear(window_from_stdin()?)?))
        }
        RoleOrder::Suppliers(order) => {
            let suppliers = match order.broker {
                Some(broker) => Suppliers::connect(order, broker)?,
                None => Suppliers::accept(order, &listening()?)?,
            };
            tell(&Told::Connected)?;
            tell(&Told::Supplied(suppliers.push(window_from_stdin()?)?))
        }
        RoleOrder::Consumers(order) => {
            let consumers = match order.broker {
                Some(broker) => Consumers::subscribe(order, broker)?,
                None => Consumers::accept(order, &listening()?)?,
            };
            tell(&Told::Subscribed)?;
            tell(&Told::Consumed(consumers.hear(window_from_stdin()?)?))
        }
        RoleOrder::ZmtpRelay(order) => {
            let relay = ZmtpRelay::listen(order)?;
            tell(&Told::At { address: relay.address()? })?;
            relay.run()
        }
        RoleOrder::Detour(order) => {
            let detour = Detour::listen(order)?;
            tell(&Told::Detours { addresses: detour.addresses()? })?;
            // The end of stdin is that of whoever has started this.
            detour.run(std::io::stdin())
        }
        RoleOrder::Chain { next } => {
            let hop = Chain::listen(next)?;
            tell(&Told::At { address: hop.address()? })?;
            hop.run()
        }
    }
}

/// Listens on a free port, and says where.
fn listening() -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port to listen on")?;
    tell(&Told::At { address: listener.local_addr()? })?;
    Ok(listener)
}

fn window_from_stdin() -> anyhow::Result<Window> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("no window on stdin")?;
    serde_json::from_str(&line).context("no window on stdin")
}

/// A thread that sleeps in stdin costs the reading one nothing; the line that ends it is the last thing it does.
fn sent_from_stdin() -> Arc<OnceLock<Sent>> {
    let sent = Arc::new(OnceLock::new());
    let heard = Arc::clone(&sent);
    thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        // Without the line nothing can be waited for: whoever gave the order is gone.
        let told = read.ok().and_then(|_| serde_json::from_str(&line).ok()).unwrap_or(Sent(Vec::new()));
        heard.get_or_init(|| told);
    });
    sent
}

fn tell(told: &Told) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer(&mut stdout, told)?;
    stdout.write_all(b"\n")?;
    stdout.flush()?;
    Ok(())
}
