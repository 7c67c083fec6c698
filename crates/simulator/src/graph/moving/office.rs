//! The edge that fetches the events when the operator is there.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bodkin_broker::{
    Incarnation, Input as ShardInput, Sequence,
    graph::{
        Carried, Operator, SupplierId, Taken,
        handover::Handover,
        placement::{EdgeId, origin},
    },
    subscriber::{self, Beginning, Received, Session, Subscriber, SubscriberConfig, TopicKey},
    wire::{EventHeader, Watermark},
};

use super::{
    MoveFlaw, Place, World,
    calm::Calm,
    database::Database,
    operator_with,
    press::{EPOCH, PUBLISHER, Said, at},
    protection::Protection,
};
use crate::graph::Broken;

const FOR_EVER: Duration = Duration::from_secs(1_000);
const CONFIG: SubscriberConfig = SubscriberConfig { acknowledge_every: u32::MAX, acknowledge_after: FOR_EVER, window: 64, streams_max: 4 };

/// A change of the database that a step waits for.
pub(super) enum Waits {
    /// The operator goes.
    Gives,
    /// It comes, with this.
    Takes(Handover),
    /// What has gone is known to be there.
    Forgets,
}

/// Its process, or that of its leader, and its database.
pub(super) struct Office {
    pub database: Database,
    /// What runs: the database may be ahead of it.
    pub version: Place,
    /// Its number, and what begins behind it.
    pub waits: Option<(u64, Waits)>,
    /// Nothing is taken in.
    pub is_held_up: bool,
    /// In a pair.
    pub protection: Option<Protection>,
    pub calm: Calm,
    pub operator: Option<Box<dyn Operator>>,
    pub carried: Carried,
    /// It hears the press, whether the operator is here or is to come.
    pub is_hearing: bool,
    pub is_connected: bool,
    pub arriving: VecDeque<EventHeader>,
    pub says: Vec<Said>,
    subscriber: Subscriber,
    topic: TopicKey,
    inbox: VecDeque<EventHeader>,
    acknowledged: BTreeMap<Incarnation, Sequence>,
}

impl Office {
    pub fn new(is_pair: bool) -> Self {
        let mut subscriber = Subscriber::new(CONFIG);
        let topic = subscriber.subscribe(Some(0), Beginning::Present);
        Self {
            database: Database::new(),
            version: Place::Press,
            waits: None,
            is_held_up: false,
            protection: is_pair.then(|| Protection::new(Place::Press, 0)),
            calm: Calm::default(),
            operator: None,
            carried: Carried::default(),
            is_hearing: false,
            is_connected: false,
            arriving: VecDeque::new(),
            says: Vec::new(),
            subscriber,
            topic,
            inbox: VecDeque::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    /// Whether nothing is on its way to the operator, where that is here.
    pub fn has_all_of(&self, _last: Sequence) -> bool {
        self.inbox.is_empty() && self.arriving.is_empty()
    }

    /// That of the next leader of a pair, which has nothing but its database yet.
    pub fn led_next(database: Database, calm: Calm) -> Self {
        Self { version: database.runs, database, calm, ..Self::new(true) }
    }

    /// Nobody needs these any more here.
    pub fn acknowledge(&mut self, incarnation: Incarnation, through: Sequence) {
        let known = self.acknowledged.entry(incarnation).or_insert(through);
        *known = through.max(*known);
        if self.is_connected {
            self.says.push(Said::Delivered(incarnation, through));
        }
    }

    /// The last event of each run that was taken, as the handover has it.
    pub fn taken(&self) -> impl Iterator<Item = Taken> {
        self.carried.taken(SupplierId::of(0))
    }
}

impl World {
    /// A session begins, where the office needs one.
    pub(super) fn connect(&mut self) {
        let office = &mut self.office;
        if !office.is_hearing || std::mem::replace(&mut office.is_connected, true) {
            return;
        }
        // A new subscriber: another deployment, or the same that brings again what was not acknowledged.
        let mut told = Vec::new();
        office.subscriber.step(at(self.now), subscriber::Input::Connected(Session::One), &mut told);
        let leads = subscriber::Input::Leader { session: Session::One, epoch: EPOCH, is_leader: true };
        office.subscriber.step(at(self.now), leads, &mut told);
        let watermark = |(incarnation, through): (&Incarnation, &Sequence)| Watermark {
            publisher: PUBLISHER,
            incarnation: *incarnation,
            through: *through,
        };
        office.says.push(Said::Attach(office.acknowledged.iter().map(watermark).collect()));
    }

    /// The connection breaks with everything that is on its way.
    pub(super) fn cut(&mut self) {
        let office = &mut self.office;
        if !std::mem::take(&mut office.is_connected) {
            return;
        }
        self.tally.cuts += 1;
        office.arriving.clear();
        office.says.clear();
        office.subscriber.step(at(self.now), subscriber::Input::Closed(Session::One), &mut Vec::new());
        if let Some(subscription) = self.press.subscription {
            self.press.shard.step(at(self.now), ShardInput::Detached { subscription }, &mut Vec::new());
        }
    }

    /// Another link of the office takes the session over: what was brought and not acknowledged comes again.
    pub(super) fn renew(&mut self) {
        self.cut();
        let mut subscriber = Subscriber::new(CONFIG);
        self.office.topic = subscriber.subscribe(Some(0), Beginning::Present);
        self.office.subscriber = subscriber;
        self.office.inbox.clear();
        self.office.acknowledged.clear();
    }

    /// Events come to the office's carrier; while the operator is not there they are left.
    pub(super) fn bring(&mut self) -> Result<(), Broken> {
        for header in std::mem::take(&mut self.office.arriving) {
            let office = &mut self.office;
            let mut told = Vec::new();
            match office.subscriber.receive(at(self.now), Session::One, office.topic, &header, &mut told) {
                Received::New(_) | Received::Late(_) if office.operator.is_some() => office.inbox.push_back(header),
                Received::New(_) | Received::Late(_) | Received::Duplicate | Received::Old => {}
                other => return Err(format!("event {} is {other:?}", header.sequence.0)),
            }
        }
        Ok(())
    }

    /// The operator takes what has come, and what is taken is acknowledged when it is safe.
    pub(super) fn take(&mut self, most: u64) -> Result<(), Broken> {
        if self.office.is_held_up {
            return Ok(());
        }
        let count = self.office.inbox.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        for header in self.office.inbox.drain(..count).collect::<Vec<_>>() {
            let publisher = origin::arrived(EdgeId::of(0), 2, header.publisher).map_err(|error| error.to_string())?;
            let event = Taken { supplier: SupplierId::of(0), publisher, incarnation: header.incarnation, through: header.sequence };
            let Office { operator: Some(operator), carried, protection, .. } = &mut self.office else { continue };
            let came = carried.arrive(protection.as_mut().map(|protection| &mut protection.cover), at(self.now), &event);
            if came.is_new {
                self.results.process(&mut **operator, self.numbers[&(header.incarnation, header.sequence.0)])?;
            } else {
                self.tally.passed_over += 1;
            }
            if came.is_safe {
                self.office.acknowledge(header.incarnation, header.sequence);
            }
        }
        self.let_go();
        Ok(())
    }

    /// The office begins to hear the press, in a session of its own.
    pub(super) fn hear_press(&mut self) {
        if !self.office.is_hearing {
            self.renew();
            self.office.is_hearing = true;
        }
    }

    /// The office begins with an operator that has come.
    pub(super) fn office_begins(&mut self, handover: &Handover) {
        self.renew();
        let office = &mut self.office;
        (office.operator, office.carried, office.is_hearing) = (Some(operator_with(&handover.state)), Carried::default(), true);
        if self.flaw == Some(MoveFlaw::ForgetsTaken) {
            return;
        }
        for taken in &handover.taken {
            let supplier = SupplierId::of(0);
            let (publisher, incarnation, through) = (taken.publisher, taken.incarnation, taken.through);
            let taken = Taken { supplier, publisher, incarnation, through };
            office.carried.pass_over(&taken);
            if let Some(protection) = office.protection.as_mut().filter(|_| self.flaw != Some(MoveFlaw::LeavesOutTaken)) {
                protection.cover.inherit(&[taken]);
            }
        }
    }

    /// The office needs the events no more.
    pub(super) fn office_leaves(&mut self) {
        let office = &mut self.office;
        (office.operator, office.is_hearing) = (None, false);
        office.inbox.clear();
        if office.is_connected {
            office.says.push(Said::Unsubscribe);
        } else if let Some(subscription) = self.press.subscription.take() {
            // It is waited for no more.
            self.press.shard.step(at(self.now), ShardInput::Unsubscribe { subscription }, &mut Vec::new());
        }
    }

    /// The office is killed, if it holds nothing that its database has not.
    pub(super) fn kill_office(&mut self) {
        let is_safe = self.office.operator.is_none() || self.office.database.taken.is_some();
        if !is_safe || self.office.protection.is_some() {
            return;
        }
        self.cut();
        self.tally.kills += 1;
        let database = self.office.database.clone();
        let has_handover = database.taken.is_some() || database.given.is_some();
        self.tally.kills_with_handover += u64::from(has_handover);
        let taken = database.taken.clone();
        // The press waits for what it keeps for the office.
        self.office = Office { version: database.runs, database, is_hearing: taken.is_some(), ..Office::new(false) };
        if let Some(handover) = taken.as_deref().and_then(|bytes| Handover::decode(bytes).ok()) {
            self.office_begins(&handover);
        }
    }
}
