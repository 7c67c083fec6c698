//! Where the topic of a name probably is.
//!
//! A tree of names compares a dozen of them and more, each somewhere else in memory, for every frame that names a topic. A table knows at once where to look.
//! It is small, it is asked a few places only, and it is never believed without a look at the name; whoever makes names share their places is served by the tree.

/// Places that a name may have, one behind the other.
const PLACES: usize = 8;
/// Places for each name at the least, so that nearly every name has one.
const SPARE: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    /// A part of the name's hash.
    tag: u32,
    topic: u32,
}

impl Place {
    const EMPTY: Self = Self { tag: 0, topic: u32::MAX };
    /// Place of a name that was removed. A search continues after it.
    const REMOVED: Self = Self { tag: 1, topic: u32::MAX };
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    /// As many as a power of two, and [`PLACES`] more; or none.
    places: Vec<Place>,
}

impl Names {
    /// A table with room for twice as many names as these, which are numbered from 0.
    pub fn of<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> Self {
        let places = (names.len() * 2 * SPARE).next_power_of_two() + PLACES;
        let mut table = Self { places: vec![Place::EMPTY; places] };
        names.zip(0..).for_each(|(name, topic)| table.insert(name, topic));
        table
    }

    /// Whether so many names want a larger table.
    pub fn is_too_small(&self, names: usize) -> bool {
        names * SPARE > self.places.len()
    }

    /// Gives a name its place, if one is left.
    pub fn insert(&mut self, name: &str, topic: u32) {
        let (at, tag) = self.look(name);
        let places = &mut self.places[at..at + PLACES];
        if let Some(place) = places.iter_mut().find(|place| place.topic == u32::MAX) {
            *place = Place { tag, topic };
        }
    }

    /// Removes a name, if it has a place.
    pub fn remove(&mut self, name: &str, topic: u32) {
        if self.places.is_empty() {
            return;
        }
        let (at, _) = self.look(name);
        if let Some(place) = self.places[at..at + PLACES].iter_mut().find(|place| place.topic == topic) {
            *place = Place::REMOVED;
        }
    }

    /// The topic of a name, as far as the table knows; `is_named` looks whether a topic has the name.
    pub fn find(&self, name: &str, is_named: impl Fn(u32) -> bool) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let (at, tag) = self.look(name);
        let places = self.places[at..at + PLACES].iter().take_while(|place| **place != Place::EMPTY);
        places.filter(|place| place.tag == tag && place.topic != u32::MAX).map(|place| place.topic).find(|topic| is_named(*topic))
    }

    /// The first place of a name, and its tag.
    fn look(&self, name: &str) -> (usize, u32) {
        let hash = hash(name);
        let mask = (self.places.len() - PLACES - 1) as u64;
        ((hash & mask) as usize, (hash >> 32) as u32)
    }
}

/// A number that is another one for nearly every other name.
fn hash(name: &str) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(ODD);
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(name.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
    let hash = mix(hash, rest);
    // The low bits of a product know nothing of the high ones of its factors.
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[String]) -> Names {
        let mut table = Names::default();
        for (topic, name) in names.iter().enumerate() {
            let count = topic + 1;
            if table.is_too_small(count) {
                table = Names::of(names[..count].iter().map(String::as_str));
            } else {
                table.insert(name, topic as u32);
            }
        }
        table
    }

    #[test]
    fn nearly_every_name_has_its_place_and_no_other_has_one() {
        let names: Vec<String> = (0..20_000).map(|n| format!("FRAME{}-{n}", n % 5)).collect();
        let table = table(&names);
        let find = |name: &str| table.find(name, |topic| names[topic as usize] == name);
        let found = names.iter().zip(0..).filter(|(name, topic)| find(name) == Some(*topic)).count();
        assert!(found > 19_900, "{found}");
        assert!(table.places.len() <= 20_000 * 2 * SPARE * 2 + PLACES);
        assert_eq!(["", "FRAME", "FRAME0-20001", "frame0-0"].map(find), [None; 4]);
        assert_eq!(Names::default().find("A", |_| true), None);
    }

    #[test]
    fn removed_name_leaves_its_place_to_another() {
        let mut table = Names::of(["A"; 3].into_iter());
        table.remove("A", 1);
        assert_eq!((0..3).map(|topic| table.find("A", |each| each == topic)).collect::<Vec<_>>(), [Some(0), None, Some(2)]);
        (3..1000).for_each(|topic| {
            table.insert("A", topic);
            assert_eq!(table.find("A", |each| each == topic), Some(topic), "the places are not used up");
            table.remove("A", topic);
        });
        assert_eq!(table.find("A", |each| each == 2), Some(2));
    }

    #[test]
    fn names_that_share_their_places_are_left_to_the_tree() {
        let mut table = Names::of(["A"; 4].into_iter());
        (4..100).for_each(|topic| table.insert("A", topic));
        assert_eq!((table.find("A", |topic| topic == 7), table.find("A", |topic| topic == 8)), (Some(7), None));
    }
}
