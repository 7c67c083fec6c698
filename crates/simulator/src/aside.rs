//! What belongs to a process without being a part of its state.

use std::{
    hash::{Hash, Hasher},
    ops::{Deref, DerefMut},
};

/// A buffer that is empty between two steps, or something that never changes: two processes that differ only in it are the same.
#[derive(Debug, Default)]
pub struct Aside<T>(pub T);

impl<T> Deref for Aside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Aside<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Clone> Clone for Aside<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
