//! Publisher slots of real-time topics: which systems publish a topic, and which one yields when all slots are taken.
//!
//! A slot belongs to the name of a system. Registrations of one name (an address and a port each) use further slots only while no
//! other name needs them. A name keeps its slot while it is silent, until another name needs a slot after [`SILENCE_MAX`].

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::PublisherId;

use crate::topics::parties::{LISTED_PUBLISHERS_MAX, SlotHolder};

/// For how long a silent publisher keeps its slot although another system needs one.
pub const SILENCE_MAX: Duration = Duration::from_secs(600);

/// A registration of a system that publishes a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// What numbers its events.
    pub publisher: PublisherId,
    /// The registered system.
    pub source: SystemId,
}

#[derive(Debug)]
struct Held {
    since: UtcTime,
    /// In the order of their publishers, with the time of the last event.
    registrations: Vec<(Registration, Instant)>,
    /// The registration of this name that yielded last.
    yielded: Option<PublisherId>,
}

/// No slot is free for a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSlot;

/// The publisher slots of one topic.
#[derive(Debug, Default)]
pub struct TopicSlots {
    by_name: BTreeMap<Arc<str>, Held>,
    /// Registrations of all names.
    count: usize,
}

impl TopicSlots {
    /// Records an event, if its publisher holds a slot.
    pub fn heard(&mut self, name: &str, publisher: PublisherId, now: Instant) -> bool {
        let Some(held) = self.by_name.get_mut(name) else { return false };
        let found = held.place(publisher);
        found.map(|at| held.registrations[at].1 = now).is_ok()
    }

    /// Gives a slot to a publisher that has none; returns the publisher whose slot it was, if no slot was free.
    ///
    /// `may_share` lets it take a slot of its own name; `is_registered` says whether a system still is.
    ///
    /// # Errors
    /// Returns [`NoSlot`] if `slots_max` are taken and none yields.
    pub fn admit(
        &mut self,
        (name, registration): (&str, Registration),
        (now, utc): (Instant, UtcTime),
        slots_max: usize,
        may_share: bool,
        is_registered: impl Fn(SystemId) -> bool,
    ) -> Result<Option<PublisherId>, NoSlot> {
        if self.count < slots_max {
            self.insert(name, registration, now, utc);
            return Ok(None);
        }
        let own = || self.by_name.get(name).filter(|_| may_share).and_then(Held::longest_silent);
        let yields = own().map(|publisher| (Arc::from(name), publisher)).or_else(|| self.yielding(name, now, is_registered));
        let (former, publisher) = yields.ok_or(NoSlot)?;
        // Inserted first, so that a name which replaces its own registration keeps its slot.
        self.insert(name, registration, now, utc);
        self.remove(&former, publisher);
        Ok(Some(publisher))
    }

    /// Returns the registration of this name that yielded last.
    pub fn yielded(&self, name: &str) -> Option<PublisherId> {
        self.by_name.get(name)?.yielded
    }

    /// Returns whether there is no slot for a further registration of this name but its own.
    pub fn shares(&self, name: &str, slots_max: usize) -> bool {
        self.count >= slots_max && self.by_name.contains_key(name)
    }

    /// The slot that yields to another name: of a system that is not registered any more, then of a name with several, then of a silent one.
    fn yielding(&self, name: &str, now: Instant, is_registered: impl Fn(SystemId) -> bool) -> Option<(Arc<str>, PublisherId)> {
        let all = self.by_name.iter().flat_map(|(of, held)| held.registrations.iter().map(move |row| (of, held, row)));
        let ranked = all.filter_map(|(of, held, (registration, heard))| {
            let rank = match () {
                () if !is_registered(registration.source) => 0,
                () if **of != *name && held.registrations.len() > 1 => 1,
                () if now.saturating_duration_since(*heard) > SILENCE_MAX => 2,
                () => return None,
            };
            Some((rank, *heard, of, registration.publisher))
        });
        let (.., of, publisher) = ranked.min_by_key(|(rank, heard, ..)| (*rank, *heard))?;
        Some((of.clone(), publisher))
    }

    fn insert(&mut self, name: &str, registration: Registration, now: Instant, utc: UtcTime) {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.into(), Held { since: utc, registrations: Vec::new(), yielded: None });
        }
        let held = self.by_name.get_mut(name).expect("it was just inserted");
        if let Err(at) = held.place(registration.publisher) {
            held.registrations.insert(at, (registration, now));
            self.count += 1;
        }
    }

    fn remove(&mut self, name: &str, publisher: PublisherId) {
        let Some(held) = self.by_name.get_mut(name) else { return };
        if let Ok(at) = held.place(publisher) {
            held.registrations.remove(at);
            held.yielded = Some(publisher);
            self.count -= 1;
        }
        if held.registrations.is_empty() {
            self.by_name.remove(name);
        }
    }

    /// Returns the number of names that hold slots.
    pub fn held(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the first names that hold slots.
    pub fn holders(&self) -> Arc<[SlotHolder]> {
        let holder = |(name, held): (&Arc<str>, &Held)| SlotHolder { system: name.clone(), since: held.since };
        self.by_name.iter().take(LISTED_PUBLISHERS_MAX).map(holder).collect()
    }
}

impl Held {
    fn place(&self, publisher: PublisherId) -> Result<usize, usize> {
        self.registrations.binary_search_by_key(&publisher, |(registration, _)| registration.publisher)
    }

    fn longest_silent(&self) -> Option<PublisherId> {
        self.registrations.iter().min_by_key(|(_, heard)| *heard).map(|(registration, _)| registration.publisher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Admitted {
        Known,
        New,
        Replaced(u64),
    }

    struct Scene {
        slots: TopicSlots,
        start: Instant,
    }

    impl Scene {
        fn new() -> Self {
            Self { slots: TopicSlots::default(), start: Instant::now() }
        }

        fn publish(&mut self, name: &str, publisher: u64, second: u64) -> Result<Admitted, NoSlot> {
            self.publish_as(name, publisher, second, true, &[])
        }

        fn publish_as(&mut self, name: &str, publisher: u64, second: u64, may_share: bool, removed: &[i64]) -> Result<Admitted, NoSlot> {
            let now = self.start + Duration::from_secs(second);
            if self.slots.heard(name, PublisherId(publisher), now) {
                return Ok(Admitted::Known);
            }
            let registration = Registration { publisher: PublisherId(publisher), source: SystemId(publisher.cast_signed()) };
            let is_registered = |source: SystemId| !removed.contains(&source.0);
            let admitted = self.slots.admit((name, registration), (now, UtcTime::from_unix_seconds(second)), 2, may_share, is_registered);
            admitted.map(|replaced| replaced.map_or(Admitted::New, |publisher| Admitted::Replaced(publisher.0)))
        }

        fn holders(&self) -> Vec<(String, u64)> {
            self.slots.holders().iter().map(|holder| (holder.system.to_string(), holder.since.unix_seconds())).collect()
        }
    }

    #[test]
    fn second_registration_yields_to_another_name() {
        let mut scene = Scene::new();
        assert_eq!([scene.publish("alice", 1, 0), scene.publish("alice", 2, 1)], [Ok(Admitted::New); 2]);
        assert_eq!(scene.publish("sensor", 3, 2), Ok(Admitted::Replaced(1)));
        assert_eq!(scene.holders(), [("alice".to_owned(), 0), ("sensor".to_owned(), 2)]);
        // The name still has its slot: its registrations take turns.
        assert_eq!(scene.publish("alice", 1, 3), Ok(Admitted::Replaced(2)));
        assert_eq!([scene.publish("sensor", 3, 4), scene.publish("bob", 4, 5)], [Ok(Admitted::Known), Err(NoSlot)]);
        assert_eq!(scene.slots.yielded("alice"), Some(PublisherId(2)));
    }

    #[test]
    fn silent_name_keeps_its_slot_until_it_is_needed() {
        let mut scene = Scene::new();
        assert_eq!([scene.publish("a", 1, 0), scene.publish("b", 2, 0)], [Ok(Admitted::New); 2]);
        assert_eq!([scene.publish("a", 1, 5_000), scene.publish("b", 2, 6_000)], [Ok(Admitted::Known); 2], "it returns");
        assert_eq!([scene.publish("c", 3, 5_600), scene.publish("c", 3, 5_601)], [Err(NoSlot), Ok(Admitted::Replaced(1))]);
        assert_eq!(scene.holders(), [("b".to_owned(), 0), ("c".to_owned(), 5_601)]);
    }

    #[test]
    fn removed_system_yields_first() {
        let mut scene = Scene::new();
        assert_eq!([scene.publish("a", 1, 0), scene.publish("b", 2, 1)], [Ok(Admitted::New); 2]);
        assert_eq!(scene.publish_as("c", 3, 2, true, &[2]), Ok(Admitted::Replaced(2)));
    }

    #[test]
    fn named_streams_of_one_system_do_not_take_turns() {
        let mut scene = Scene::new();
        let mut publish = |publisher| scene.publish_as("edge", publisher, publisher, false, &[]);
        assert_eq!([1, 2, 3].map(&mut publish), [Ok(Admitted::New), Ok(Admitted::New), Err(NoSlot)]);
    }
}
