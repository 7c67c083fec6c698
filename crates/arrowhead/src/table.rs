//! Rows by id, and by their place in the order of ids.
//!
//! A page of a list costs its own rows: its first row is found by its place in O(log n), however many rows are in front.

use std::{iter::FusedIterator, ops::Bound, sync::Arc};

use imbl::{OrdMap, Vector, ordmap::RangedIter, shared_ptr::DefaultSharedPtr};

/// A table whose versions share structure. Ids mostly grow, and then a new row costs O(1) beside the map's O(log n).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table<K: Ord, V> {
    rows: OrdMap<K, Arc<V>>,
    /// The ids, ascending.
    order: Vector<K>,
}

impl<K: Copy + Ord, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: OrdMap::new(), order: Vector::new() }
    }
}

impl<K: Copy + Ord, V> Table<K, V> {
    /// Puts a row in, and gives the one it replaces.
    pub(crate) fn insert(&mut self, id: K, row: Arc<V>) -> Option<Arc<V>> {
        let former = self.rows.insert(id, row);
        if former.is_none() {
            let place = match self.order.last() {
                Some(last) if *last < id => self.order.len(),
                _ => self.order.binary_search(&id).expect_err("an id without a row has no place"),
            };
            self.order.insert(place, id);
        }
        former
    }

    /// Takes a row out.
    pub(crate) fn remove(&mut self, id: K) -> Option<Arc<V>> {
        let row = self.rows.remove(&id)?;
        self.order.remove(self.order.binary_search(&id).expect("an id with a row has a place"));
        Some(row)
    }

    /// The row of an id.
    pub(crate) fn get(&self, id: K) -> Option<&Arc<V>> {
        self.rows.get(&id)
    }

    /// All rows in the order of ids.
    pub(crate) fn rows(&self) -> Rows<'_, K, V> {
        Rows { table: self, place: 0, ahead: None }
    }
}

/// Rows in the order of ids. Skipping costs O(log n), not what is skipped.
pub(crate) struct Rows<'t, K: Ord, V> {
    table: &'t Table<K, V>,
    /// Place of the next row.
    place: usize,
    /// Where it is in the map, once that was looked for.
    ahead: Option<RangedIter<'t, K, Arc<V>, DefaultSharedPtr>>,
}

impl<'t, K: Copy + Ord, V> Iterator for Rows<'t, K, V> {
    type Item = &'t Arc<V>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = *self.table.order.get(self.place)?;
        let rows = &self.table.rows;
        let ahead = self.ahead.get_or_insert_with(|| rows.range((Bound::Included(first), Bound::Unbounded)));
        self.place += 1;
        Some(ahead.next().expect("every place has a row").1)
    }

    fn nth(&mut self, skipped: usize) -> Option<Self::Item> {
        if skipped > 0 {
            self.place = self.place.saturating_add(skipped).min(self.table.order.len());
            self.ahead = None;
        }
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.table.order.len() - self.place;
        (left, Some(left))
    }
}

impl<K: Copy + Ord, V> ExactSizeIterator for Rows<'_, K, V> {}
impl<K: Copy + Ord, V> FusedIterator for Rows<'_, K, V> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_found_by_id_and_by_place(steps in prop::collection::vec((0i64..300, any::<bool>()), 0..600), skipped in 0usize..200) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (value, (id, put)) in steps.into_iter().enumerate() {
                let (former, expected) =
                    if put { (table.insert(id, Arc::new(value)), model.insert(id, value)) } else { (table.remove(id), model.remove(&id)) };
                prop_assert_eq!(former.as_deref(), expected.as_ref());
            }
            prop_assert_eq!(table.rows().len(), model.len());
            let listed: Vec<usize> = table.rows().map(|row| **row).collect();
            prop_assert_eq!(listed, model.values().copied().collect::<Vec<_>>());
            let (mut rows, mut values) = (table.rows(), model.values());
            while let Some(row) = rows.nth(skipped) {
                prop_assert_eq!(Some(&**row), values.nth(skipped));
                prop_assert_eq!(rows.next().map(|row| &**row), values.next());
                prop_assert_eq!(rows.len(), values.len());
            }
            prop_assert!(model.iter().all(|(id, value)| table.get(*id).map(|row| &**row) == Some(value)));
        }
    }
}
