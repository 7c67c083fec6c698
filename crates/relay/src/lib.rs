//! What gatekeepers and gateways of two clouds say to the relay between them, as pure codecs and machines: no socket, clock or randomness.
//!
//! There are two protocols, and one kind of name ([`Destination`]) in both:
//!
//! * [`stomp`]: STOMP 1.2, spoken to brokers of Java clouds (ActiveMQ Classic, Artemis);
//! * [`native`]: the frames of Bodkin's own relay, in which every destination has credit of its own.
//!
//! Of either there is a client's end ([`session`]), and of the own one the relay itself ([`native::hub`]): machines that take bytes and time, and give bytes and events.
//!
//! Neither knows what the messages say: they are sealed for the other cloud's gatekeeper or gateway. What gateways say is [`tunnel`]'s.

mod destination;
pub mod native;
pub mod session;
pub mod stomp;
pub mod tunnel;

pub use crate::destination::{Destination, DestinationError, NAME_BYTES_MAX};
