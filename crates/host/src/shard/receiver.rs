//! Who hears what the broker delivers.

use std::sync::Arc;

use bodkin_arrowhead::record::Subscription;

use crate::{
    listening::Listening,
    push::{PushQueue, delivery::Delivery},
};

/// Who receives a subscription's events.
pub(super) enum Receiver {
    /// An event stream on one of our connections.
    Stream {
        /// The connection's slot.
        slot: usize,
        /// What is wanted.
        listening: Arc<Listening>,
    },
    /// A registered subscription.
    Push {
        /// Its limits.
        subscription: Arc<Subscription>,
        /// Where its events go. The task ends when it is dropped.
        queue: PushQueue,
        /// What is known of its delivery.
        delivery: Arc<Delivery>,
    },
    /// A subscriber of the ZMTP port.
    Link {
        /// The link's slot.
        slot: usize,
        /// With what its event types begin, in the spelling in which it wants to hear them.
        prefix: Arc<[u8]>,
    },
    /// A client of the ZMTP port that acknowledges.
    Dealer {
        /// The link's slot.
        slot: usize,
        /// The topic, as the client spells it.
        topic: Arc<str>,
    },
    /// A graph of a pair, which acknowledges by its checkpoints.
    Graph,
}
