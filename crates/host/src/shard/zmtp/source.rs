//! As which registered system a link publishes: looked up once for each version of the local cloud, and not for each event.

use std::sync::Arc;

use bodkin_arrowhead::{
    error::ArrowheadError,
    name::SystemName,
    record::{System, SystemId},
    snapshot::Snapshot,
};

/// The one registered system of this name.
pub fn registered<'s>(snapshot: &'s Snapshot, name: &SystemName) -> Result<&'s System, ArrowheadError> {
    let mut systems = snapshot.systems_with(name);
    match (systems.next(), systems.next()) {
        (Some(system), None) => Ok(system),
        (None, _) => {
            Err(ArrowheadError::invalid_parameter(format!("Source system with name: {name} is not registered: register it first.")))
        }
        _ => Err(ArrowheadError::invalid_parameter(format!("Several systems are named {name}: publish over HTTP, which says which one."))),
    }
}

/// Whether the rules let somebody of this name hear anything: there has to be one such system. The error says what to do.
pub fn is_hearer(snapshot: &Snapshot, name: &SystemName) -> Result<(), String> {
    match snapshot.systems_with(name).take(2).count() {
        1 => Ok(()),
        0 => Err(format!("{name} is not registered, so that no rule lets it hear anybody: register it, and make rules for it")),
        _ => Err(format!("several systems are named {name}, so that whose rules count is not known: hear over HTTP, which says which one")),
    }
}

/// Numbers the versions of the local cloud as links see them.
#[derive(Default)]
pub struct Versions {
    /// The last one. It is held, so that no other one can be in its place.
    seen: Option<Arc<Snapshot>>,
    number: u64,
}

impl Versions {
    /// The number of this version, if it is the last one that was seen; a new one otherwise.
    fn number(&mut self, snapshot: &Arc<Snapshot>) -> u64 {
        if !self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, snapshot)) {
            self.seen = Some(snapshot.clone());
            self.number += 1;
        }
        self.number
    }
}

/// What was found for a link, and in which version.
#[derive(Clone, Copy, Default)]
pub struct Source(Option<(u64, SystemId)>);

impl Source {
    /// The registered system of a link's name, which stays the same.
    pub fn find<'s>(
        &mut self,
        versions: &mut Versions,
        snapshot: &'s Arc<Snapshot>,
        name: &SystemName,
    ) -> Result<&'s System, ArrowheadError> {
        let version = versions.number(snapshot);
        if let Some((found_in, system)) = self.0
            && found_in == version
        {
            return Ok(snapshot.system(system).expect("it was found in this version"));
        }
        let system = registered(snapshot, name)?;
        self.0 = Some((version, system.id));
        Ok(system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::stream::tests::snapshot;

    #[test]
    fn a_version_that_is_replaced_counts_no_more() {
        let (mut versions, mut source) = (Versions::default(), Source::default());
        let sensor = SystemName::parse("sensor").unwrap();
        let mut find = |snapshot: &Arc<Snapshot>| source.find(&mut versions, snapshot, &sensor).ok().map(|system| system.id.0);
        let version = |systems: &[(i64, &str)]| Arc::new(snapshot(systems));
        let first = version(&[(1, "sensor"), (2, "other")]);
        assert_eq!([find(&first), find(&first)], [Some(1); 2]);
        drop(first);
        // Each may be where the one before it was.
        for (systems, found) in
            [(&[(2, "other")][..], None), (&[(3, "sensor")], Some(3)), (&[(3, "sensor"), (4, "sensor")], None), (&[(4, "sensor")], Some(4))]
        {
            let version = version(systems);
            assert_eq!([find(&version), find(&version)], [found; 2], "{systems:?}");
        }
    }

    #[test]
    fn what_one_link_has_seen_another_one_looks_up_for_itself() {
        let (mut versions, first) = (Versions::default(), Arc::new(snapshot(&[(1, "a"), (2, "b")])));
        let names = ["a", "b"].map(|name| SystemName::parse(name).unwrap());
        let mut sources = [Source::default(); 2];
        for _ in 0..2 {
            let found = [0, 1].map(|at| sources[at].find(&mut versions, &first, &names[at]).unwrap().id.0);
            assert_eq!(found, [1, 2]);
        }
    }
}
