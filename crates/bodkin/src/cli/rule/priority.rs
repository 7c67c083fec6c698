//! Another priority for one rule. The Orchestrator wants the priorities of all rules of the same consumer, service and
//! interface at once.

use std::collections::BTreeMap;

use anyhow::ensure;
use bodkin_client::{CoreSystems, Page, answer::StoreEntry};

use crate::cli::lookup;

/// Gives `entry` this priority; gives the entry as it is then.
pub async fn set(cloud: &CoreSystems, entry: &StoreEntry, priority: u32) -> anyhow::Result<StoreEntry> {
    let (definition, interface) = (&entry.service_definition.service_definition, &entry.service_interface.interface_name);
    let group = cloud.store_entries_of(entry.consumer_system.id, definition, Some(interface), &Page::default()).await?.data;
    let ids: Vec<(i64, i64)> = group.iter().map(|entry| (entry.priority, entry.id)).collect();
    ensure!(
        usize::try_from(priority).is_ok_and(|priority| priority <= ids.len()),
        "there are {} rules for that consumer, service and interface; give a priority from 1 to {}",
        ids.len(),
        ids.len()
    );
    cloud.set_store_priorities(&moved(ids, entry.id, priority as usize)).await?;
    lookup::found(cloud.store_entry(entry.id).await, "rule", entry.id, super::LIST_COMMAND)
}

/// Dense priorities by id, with `id` at `priority` and all others in the order they had.
fn moved(mut priorities_and_ids: Vec<(i64, i64)>, id: i64, priority: usize) -> BTreeMap<i64, i64> {
    priorities_and_ids.sort_unstable();
    let mut ids: Vec<i64> = priorities_and_ids.into_iter().map(|(_, other)| other).filter(|other| *other != id).collect();
    ids.insert(priority - 1, id);
    ids.into_iter().zip(1..).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_keep_their_order() {
        let group = vec![(3, 30), (1, 10), (2, 20), (4, 40)];
        for (id, priority, order) in [(30, 1, [30, 10, 20, 40]), (10, 4, [20, 30, 40, 10]), (20, 2, [10, 20, 30, 40])] {
            let moved = moved(group.clone(), id, priority);
            let expected: BTreeMap<i64, i64> = order.into_iter().zip(1..).collect();
            assert_eq!(moved, expected, "{id} to {priority}");
        }
    }
}
