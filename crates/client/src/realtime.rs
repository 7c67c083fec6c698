//! Real-time events: a publisher that keeps what is not covered and a subscriber that knows what it has lost, each with a warm session to both brokers of a
//! pair.
//!
//! Both are machines of [`bodkin_broker`] with sockets: [`RealtimePublisher`] and [`RealtimeSubscriber`] run on the caller's thread, without one of their own, for
//! to wake another thread costs more than all work on an event. `turn` waits until something happens, carries it out, and tells it to a function of the
//! caller's; whoever publishes or subscribes calls it again and again, the publisher between its events. It reconnects, redirects to whoever leads,
//! sends again what is not covered, acknowledges, and never waits longer than it is told. Names of topics are Arrowhead's event types.
//!
//! An asynchronous program awaits `ready` in front of each turn, and turns without waiting.
//!
//! ```no_run
//! use std::{ops::ControlFlow, time::Duration};
//! use bodkin_client::realtime::{BrokerAddress, Brokers, RealtimePublisher, Retention, WhenFull};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (first, second): (BrokerAddress, BrokerAddress) = ("10.0.0.1:5570".parse()?, "10.0.0.2:5570".parse()?);
//! let brokers = Brokers::pair("thermometer", first, second);
//! let mut publisher = RealtimePublisher::connect(brokers)?;
//! // The newest event in any case, and up to 64 that nobody has covered yet.
//! let topic = publisher.add_topic("TEMPERATURE", Retention::new(1, 64, WhenFull::Block));
//! loop {
//!     publisher.publish(topic, b"21.5")?;
//!     publisher.turn_for(Duration::from_millis(100), |report| println!("{report:?}"))?;
//! }
//! # }
//! ```

mod answer;
mod broker_address;
mod brokers;
mod clock;
mod guaranteed;
mod link;
mod links;
mod message;
mod publisher;
mod session_end;
mod subscriber;

pub use self::{
    broker_address::{BrokerAddress, NoBrokerAddress},
    brokers::{Brokers, SessionLimits},
    guaranteed::{Guaranteed, SuspendedBy},
    publisher::{PublishError, PublisherReport, RealtimePublisher},
    session_end::{SessionEnd, SessionReport},
    subscriber::{Event, RealtimeSubscriber, SubscriberReport, Subscription},
};
pub use bodkin_arrowhead::trace::{Cause, TraceContext};
pub use bodkin_broker::{
    Epoch, Incarnation, PublisherId, Sequence,
    publisher::{Published, Retention, Session, TopicKey as PublishedTopic, WhenFull},
    subscriber::{Beginning, StreamCounters, SubscriberConfig, TopicKey as SubscribedTopic},
    wire::{EventHeader, Guarantee, RefusalReason},
};
pub use bodkin_zmtp::{ClientSecurity, HeartbeatPolicy, KeyPair, Limits, PublicKey, SecretKey};
