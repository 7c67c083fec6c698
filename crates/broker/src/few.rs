//! A list that nearly always has one element, which then takes no memory of its own: a topic's subscriptions, its streams and publishers, a stream's readers.

use std::{
    hash::{Hash, Hasher},
    ops::{Deref, DerefMut},
};

/// Elements in order, of which there is nearly always one.
#[derive(Clone, Debug, Default)]
pub enum Few<T> {
    /// No element.
    #[default]
    Empty,
    /// One.
    One(T),
    /// Two at some time.
    More(Vec<T>),
}

impl<T> Few<T> {
    /// Puts an element behind the others.
    pub fn push(&mut self, element: T) {
        self.insert(self.len(), element);
    }

    /// Puts an element at a place.
    ///
    /// # Panics
    /// The place is beyond the end.
    pub fn insert(&mut self, at: usize, element: T) {
        *self = match std::mem::take(self) {
            Self::Empty => {
                assert_eq!(at, 0, "an empty list has one place");
                Self::One(element)
            }
            Self::One(first) => {
                let mut list = vec![first];
                list.insert(at, element);
                Self::More(list)
            }
            Self::More(mut list) => {
                list.insert(at, element);
                Self::More(list)
            }
        };
    }

    /// Takes the element at a place out.
    ///
    /// # Panics
    /// There is none.
    pub fn remove(&mut self, at: usize) -> T {
        if let Self::More(list) = self {
            return list.remove(at);
        }
        match std::mem::take(self) {
            Self::One(element) if at == 0 => element,
            _ => panic!("there is no element {at}"),
        }
    }

    /// The same, with the last one in its place.
    ///
    /// # Panics
    /// There is none.
    pub fn swap_remove(&mut self, at: usize) -> T {
        if let Self::More(list) = self { list.swap_remove(at) } else { self.remove(at) }
    }

    /// Keeps those of which `is_kept` says so.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) {
        match self {
            Self::More(list) => list.retain(is_kept),
            Self::One(element) if !is_kept(element) => *self = Self::Empty,
            _ => {}
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Empty => &[],
            Self::One(element) => std::slice::from_ref(element),
            Self::More(list) => list,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Empty => &mut [],
            Self::One(element) => std::slice::from_mut(element),
            Self::More(list) => list,
        }
    }
}

/// How they are kept says nothing.
impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Few<T> {}

impl<T: Hash> Hash for Few<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_are_what_a_vector_is(script in prop::collection::vec((0u8..5, 0usize..4, any::<u8>()), 0..60)) {
            let (mut few, mut list) = (Few::default(), Vec::new());
            for (action, at, element) in script {
                match action {
                    0 => {
                        few.push(element);
                        list.push(element);
                    }
                    1 if at <= list.len() => {
                        few.insert(at, element);
                        list.insert(at, element);
                    }
                    2 if at < list.len() => prop_assert_eq!(few.remove(at), list.remove(at)),
                    3 if at < list.len() => prop_assert_eq!(few.swap_remove(at), list.swap_remove(at)),
                    4 => {
                        few.retain(|kept| kept % 3 != element % 3);
                        list.retain(|kept| kept % 3 != element % 3);
                    }
                    _ => {}
                }
                few.iter_mut().for_each(|element| *element = element.wrapping_add(1));
                list.iter_mut().for_each(|element| *element = element.wrapping_add(1));
                prop_assert_eq!(&*few, &*list);
                prop_assert_eq!(&few, &Few::More(list.clone()));
            }
        }
    }
}
