//! Events on their way from the fleet to the shard: handed over in their order, a part at a time, and again as long as the shard cannot take them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_store::event_log::Position;

use super::{FleetEvent, FleetTold, FromFleet};
use crate::{
    inbox::{Inbox, Message},
    trace::now_ns,
};

/// What became of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is where it is not lost.
    Done(u64),
    /// It will never be taken.
    Refused(u64, String),
    /// It is tried again.
    Later(String),
}

#[derive(Debug)]
struct Held {
    event: FleetEvent,
    /// Where the event log ended when it came: it is behind that.
    behind: Position,
    came_ms: u64,
    is_handed: bool,
}

/// What is held until it is done.
pub(super) struct Hands {
    shard: Arc<Inbox>,
    told: Arc<Inbox<FleetTold>>,
    held: BTreeMap<u64, Held>,
    /// The shard has not looked at all that it was handed.
    is_looking: bool,
    rests_until: Option<Instant>,
}

impl Hands {
    pub fn new(shard: Arc<Inbox>, told: Arc<Inbox<FleetTold>>) -> Self {
        Self { shard, told, held: BTreeMap::new(), is_looking: false, rests_until: None }
    }

    /// One has come.
    pub fn take(&mut self, event: FleetEvent, behind: Position) {
        self.held.insert(event.sequence.0, Held { event, behind, came_ms: now_ns() / 1_000_000, is_handed: false });
    }

    /// They are of a stream that is gone.
    pub fn forget(&mut self) {
        self.held.clear();
        self.rests_until = None;
    }

    /// In front of here the event log has nothing that is not done.
    pub fn oldest(&self) -> Option<Position> {
        self.held.values().map(|held| held.behind).min()
    }

    /// When the first one came that is held, in milliseconds since 1970.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.held.first_key_value().map(|(_, held)| held.came_ms)
    }

    /// How long until the shard is asked again, if it is to be.
    pub fn patience(&self) -> Option<Duration> {
        self.rests_until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Hands over what was not, behind what was looked at.
    pub fn hand_over(&mut self) {
        if self.is_looking || self.rests_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        self.rests_until = None;
        let waiting = self.held.values_mut().filter(|held| !held.is_handed);
        let events: Vec<FleetEvent> = waiting
            .map(|held| {
                held.is_handed = true;
                held.event.clone()
            })
            .collect();
        if !events.is_empty() {
            self.is_looking = true;
            self.shard.post(Message::FromFleet(Box::new(FromFleet { events, told: self.told.clone() })));
        }
    }

    /// What the shard has said.
    pub fn heard(&mut self) -> Vec<End> {
        let mut heard = Vec::new();
        self.told.take(&mut heard);
        heard.into_iter().filter_map(|told| self.hear(told)).collect()
    }

    fn hear(&mut self, told: FleetTold) -> Option<End> {
        let of_this_stream = |name: &(bodkin_broker::Incarnation, bodkin_broker::Sequence), held: &BTreeMap<u64, Held>| {
            held.get(&name.1.0).is_some_and(|held| held.event.incarnation == name.0)
        };
        match told {
            FleetTold::HandedOver => {
                self.is_looking = false;
                None
            }
            FleetTold::Covered(name) if of_this_stream(&name, &self.held) => {
                self.held.remove(&name.1.0);
                Some(End::Done(name.1.0))
            }
            FleetTold::Refused(name, why) if of_this_stream(&name, &self.held) => {
                self.held.remove(&name.1.0);
                Some(End::Refused(name.1.0, why))
            }
            FleetTold::Later(name, why, rest) if of_this_stream(&name, &self.held) => {
                self.held.get_mut(&name.1.0)?.is_handed = false;
                self.rests_until = Some(Instant::now() + rest);
                why.map(End::Later)
            }
            FleetTold::Covered(_) | FleetTold::Refused(..) | FleetTold::Later(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::record::SystemId;
    use bodkin_broker::{Incarnation, Sequence};

    use super::*;

    fn inbox<M>() -> (mio::Poll, Arc<Inbox<M>>) {
        let poll = mio::Poll::new().expect("a poll");
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).expect("a waker");
        (poll, Arc::new(Inbox::new(waker)))
    }

    fn event(sequence: u64) -> FleetEvent {
        let (incarnation, sequence) = (Incarnation(7), Sequence(sequence));
        FleetEvent { incarnation, sequence, source: SystemId(1), event: "{}".into(), metadata: "{}".into() }
    }

    fn handed(shard: &Inbox) -> Vec<u64> {
        let mut messages = Vec::new();
        shard.take(&mut messages);
        let events = messages.into_iter().flat_map(|message| match message {
            Message::FromFleet(from) => from.events,
            other => panic!("{other:?}"),
        });
        events.map(|event| event.sequence.0).collect()
    }

    #[test]
    fn what_cannot_be_taken_now_goes_again_in_front_of_what_came_behind_it() {
        let ((_one, shard), (_two, told)) = (inbox(), inbox());
        let mut hands = Hands::new(shard.clone(), told.clone());
        hands.take(event(3), Position(10));
        hands.take(event(5), Position(11));
        hands.hand_over();
        hands.take(event(9), Position(12));
        hands.hand_over();
        assert_eq!(handed(&shard), [3, 5], "the next ones go when these were looked at");
        let name = |sequence| (Incarnation(7), Sequence(sequence));
        told.post(FleetTold::Later(name(5), Some("the log is suspended".to_owned()), Duration::from_secs(60)));
        told.post(FleetTold::HandedOver);
        told.post(FleetTold::Covered(name(3)));
        told.post(FleetTold::Covered((Incarnation(6), Sequence(9))));
        assert_eq!(hands.heard(), [End::Later("the log is suspended".to_owned()), End::Done(3)], "another stream's are nobody's");
        assert_eq!((hands.oldest(), hands.patience().is_some()), (Some(Position(11)), true));
        hands.hand_over();
        assert_eq!(handed(&shard), [0; 0], "it rests first");
        hands.rests_until = Some(Instant::now());
        hands.hand_over();
        assert_eq!(handed(&shard), [5, 9]);
        told.post(FleetTold::Refused(name(5), "too long".to_owned()));
        told.post(FleetTold::Covered(name(9)));
        assert_eq!(hands.heard(), [End::Refused(5, "too long".to_owned()), End::Done(9)]);
        assert_eq!(hands.oldest(), None);
    }
}
