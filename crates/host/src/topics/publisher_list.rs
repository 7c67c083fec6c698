//! The systems that a topic's declaration lets publish: the key `publisher`.

use std::{fmt, num::NonZeroU32, sync::Arc};

use bodkin_arrowhead::name::SystemName;

/// The systems that may publish a topic, by name. An empty list permits every system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublisherList(Arc<[SystemName]>);

impl PublisherList {
    /// Reads the names of a topic that is declared for this number of publishers. A name may repeat.
    ///
    /// # Errors
    /// Returns the reason if a name is not a system's name, or if there are no names or too many.
    pub fn parse<'n>(names: impl IntoIterator<Item = &'n str>, publishers: NonZeroU32) -> Result<Self, String> {
        let mut list = Vec::new();
        for name in names {
            let parsed =
                SystemName::parse(name).map_err(|error| format!("publisher '{name}' {}", error.to_string().trim_end_matches('.')))?;
            if !list.contains(&parsed) {
                list.push(parsed);
            }
            // A list is at most as long as `publishers` allows, so its length is checked before it can grow.
            if list.len() > publishers.get() as usize {
                return Err(format!("publisher names more systems than publishers allows: expected at most publishers = {publishers}"));
            }
        }
        if list.is_empty() {
            return Err("publisher names no system: leave the key out to let every system publish".to_owned());
        }
        list.sort_unstable();
        Ok(Self(list.into()))
    }

    /// Returns whether a system of this name may publish.
    pub fn permits(&self, system: &str) -> bool {
        self.0.is_empty() || self.0.binary_search_by(|name| name.as_str().cmp(system)).is_ok()
    }

    /// Returns the names in alphabetical order; none if every system may publish.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(SystemName::as_str)
    }
}

impl fmt::Display for PublisherList {
    /// Writes the names separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(names: &[&str], publishers: u32) -> Result<PublisherList, String> {
        PublisherList::parse(names.iter().copied(), NonZeroU32::new(publishers).unwrap())
    }

    #[test]
    fn stated_list_permits_its_names_only() {
        let list = parsed(&["Sensor-2", "sensor-1", "SENSOR-2"], 2).unwrap();
        assert_eq!(list.to_string(), "sensor-1, sensor-2");
        assert_eq!(["sensor-1", "sensor-2", "sensor-3", ""].map(|name| list.permits(name)), [true, true, false, false]);
        assert!(PublisherList::default().permits("anyone"));
    }

    #[test]
    fn list_that_cannot_be_meant_is_refused_with_reason() {
        for (names, publishers, reason) in [
            (&["a", "b"][..], 1, "publisher names more systems than publishers allows: expected at most publishers = 1"),
            (&["a b"], 1, "publisher 'a b' "),
            (&[], 1, "publisher names no system: leave the key out to let every system publish"),
        ] {
            let error = parsed(names, publishers).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
