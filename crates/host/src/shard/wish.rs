//! Event streams and pushed subscriptions that ask a deadline or a bound on losses of their topic. A stream is opened when the admission test has found that it
//! fits, and else refused alone; what it asks is forgotten with its connection.

use bodkin_arrowhead::{error::ArrowheadError, record::Subscription, snapshot::Snapshot};
use bodkin_broker::timing::Wish;

use super::{Shard, connection::Phase};
use crate::{
    answer::Refusal,
    http::Persistence,
    inbox::ConnectionKey,
    listening::{Listening, Since},
    topics::{
        TopicError,
        asking::{Answered, Waiter},
        wish::{Asker, wish_of},
    },
};

/// What a stream asks of its topic.
pub struct Asking {
    asker: Asker,
    event_type: Box<str>,
    /// The stream, until the question is answered.
    opening: Option<(Listening, Option<Since>)>,
}

impl Shard {
    /// Has a stream wait for the admission test.
    pub(super) fn ask_for_stream(&mut self, slot: usize, listening: Listening, since: Option<Since>, wish: Wish, keep_alive: Persistence) {
        let connection = &mut self.connections[slot];
        let (asker, event_type) = (self.context.asking.asker(), Box::<str>::from(listening.event_type.as_str()));
        let key = ConnectionKey { slot, serial: connection.serial };
        self.context.asking.ask(&event_type, asker, wish, Waiter::Stream(key));
        connection.asking = Some(Asking { asker, event_type, opening: Some((listening, since)) });
        connection.phase = Phase::Waiting { keep_alive, is_head: false };
    }

    /// The admission test has answered.
    pub(super) fn wish_answered(&mut self, answered: Answered) {
        let Answered { event_type, waiter, result } = answered;
        let result = result.and_then(|(topic, terms)| {
            self.backup_knows_asked(&topic);
            self.admit(topic, terms).map_err(Into::into)
        });
        match waiter {
            Some(Waiter::Dealer(link)) => self.dealer_answered(link, &event_type, result),
            Some(Waiter::Stream(key)) => self.stream_answered(key, result),
            Some(Waiter::Pushed(subscription)) => {
                if let Err(error) = result {
                    tracing::error!(%error, %subscription, "a pushed subscription has not got what it asks of its topic, and is served as the topic is declared");
                }
            }
            None => {}
        }
    }

    fn stream_answered(&mut self, key: ConnectionKey, result: Result<(), TopicError>) {
        let Some(connection) = self.connections.get_mut(key.slot).filter(|connection| connection.serial == key.serial) else { return };
        let opening = connection.asking.as_mut().and_then(|asking| asking.opening.take());
        let (Some((listening, since)), Phase::Waiting { keep_alive, is_head }) = (opening, connection.phase) else { return };
        connection.phase = Phase::Requests;
        let opened = match result {
            Ok(()) => self.start_stream(key.slot, listening, since),
            Err(error) => Err(ArrowheadError::invalid_parameter(format!("The stream was not opened: {error}.")).into()),
        };
        if let Err(refusal) = opened {
            let asking = self.connections[key.slot].asking.take();
            self.forget_asked(asking);
            self.write(key.slot, &Refusal::into(refusal), keep_alive, is_head);
            self.serve(key.slot);
        }
        self.resume(key.slot);
    }

    /// Has the topics of pushed subscriptions be as strict as they ask: what one asked was admitted when it was made, and is asked anew at each start.
    pub(super) fn ask_for_pushed(&self, snapshot: &Snapshot, former: Option<&Subscription>, new: Option<&Subscription>) {
        let event_type = |row: &Subscription| snapshot.event_type(row.event_type).map(|of| of.event_type_name.as_str());
        let asking = |row: &&Subscription| !row.bounds.is_none();
        if let Some(row) = new.filter(asking)
            && let Some(event_type) = event_type(row)
        {
            self.context.asking.ask(event_type, Asker::pushed(row.subscriber), wish_of(row.bounds), Waiter::Pushed(row.id));
        }
        // A subscriber asks once of an event type, and may have subscribed anew.
        let asks_still =
            |former: &Subscription| snapshot.subscription_of(former.subscriber, former.event_type).is_some_and(|row| !row.bounds.is_none());
        if let Some(row) = former.filter(asking)
            && !asks_still(row)
            && let Some(event_type) = event_type(row)
        {
            self.context.asking.forget(event_type, Asker::pushed(row.subscriber));
        }
    }

    /// The topic need not be as strict for a stream any more.
    pub(super) fn forget_asked(&self, asking: Option<Asking>) {
        if let Some(Asking { asker, event_type, .. }) = asking {
            self.context.asking.forget(&event_type, asker);
        }
    }
}
