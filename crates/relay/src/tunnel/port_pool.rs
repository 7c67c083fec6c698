//! The ports at which consumers reach tunnels.

use std::collections::{BTreeSet, VecDeque};

/// Which ports there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRange {
    /// Those from the first to the last, both of them.
    Ports {
        /// The lowest, not 0.
        first: u16,
        /// The highest.
        last: u16,
    },
    /// Any that the system gives.
    Any,
}

impl PortRange {
    /// How many there are; `None`: as many as the system gives.
    pub fn count(self) -> Option<usize> {
        match self {
            Self::Ports { first, last } => Some(usize::from(last.saturating_sub(first)) + 1),
            Self::Any => None,
        }
    }
}

/// Ports that are free, the one that was given back longest ago first: who still knows the port of a session that is over does not soon reach another one by it.
#[derive(Clone, Debug)]
pub struct PortPool {
    range: PortRange,
    free: VecDeque<u16>,
    /// Given away.
    taken: BTreeSet<u16>,
}

impl PortPool {
    /// All ports are free.
    pub fn new(range: PortRange) -> Self {
        let free = match range {
            PortRange::Ports { first, last } => (first..=last).collect(),
            PortRange::Any => VecDeque::new(),
        };
        Self { range, free, taken: BTreeSet::new() }
    }

    /// Which ports there are.
    pub fn range(&self) -> PortRange {
        self.range
    }

    /// Ports that could be given away; `None`: as many as the system gives.
    pub fn free(&self) -> Option<usize> {
        self.range.count().map(|_| self.free.len())
    }

    /// Gives a port away; `None`: none is free. Port 0 is any that the system gives.
    pub fn take(&mut self) -> Option<u16> {
        if self.range == PortRange::Any {
            return Some(0);
        }
        let port = self.free.pop_front()?;
        self.taken.insert(port);
        Some(port)
    }

    /// Takes a port back. One that was not given away is passed over.
    pub fn give_back(&mut self, port: u16) {
        if self.taken.remove(&port) {
            self.free.push_back(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_port_that_was_given_back_last_comes_last() {
        let mut pool = PortPool::new(PortRange::Ports { first: 8000, last: 8002 });
        assert_eq!((pool.take(), pool.take()), (Some(8000), Some(8001)));
        pool.give_back(8000);
        assert_eq!((pool.take(), pool.take(), pool.take()), (Some(8002), Some(8000), None));
        pool.give_back(8001);
        pool.give_back(8001);
        assert_eq!((pool.free(), pool.take(), pool.take()), (Some(1), Some(8001), None));
        let mut any = PortPool::new(PortRange::Any);
        assert_eq!((any.take(), any.free()), (Some(0), None));
        any.give_back(40_000);
        assert_eq!(any.take(), Some(0));
    }

    proptest! {
        #[test]
        fn no_port_is_given_away_twice_or_lost(turns in proptest::collection::vec((any::<bool>(), 0..5_u16), 0..100)) {
            let mut pool = PortPool::new(PortRange::Ports { first: 1, last: 4 });
            let mut held = BTreeSet::new();
            for (takes, port) in turns {
                if takes {
                    match pool.take() {
                        Some(port) => prop_assert!(held.insert(port)),
                        None => prop_assert_eq!(held.len(), 4),
                    }
                } else {
                    pool.give_back(port);
                    held.remove(&port);
                }
                prop_assert_eq!(pool.free(), Some(4 - held.len()));
            }
        }
    }
}
