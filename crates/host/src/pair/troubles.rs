//! What is wrong with the pair just now, for `status` and `/metrics` of this node.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bodkin_broker::Node;

/// One thing that can be wrong. A node of the pair has each at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A second process of this node is refused.
    Duplicate(Node),
    /// That node refuses this process.
    Rejected(Node),
    /// That node runs with other times or topics than this one.
    SettingsDiffer(Node),
    /// That node refuses this node's lease.
    LeaseRefused(Node),
    /// This node's record cannot be written.
    Record,
    /// That node's record cannot be written.
    RecordOf(Node),
    /// The disk of this node takes no new data.
    Disk,
    /// The disk of that node takes no new data.
    DiskOf(Node),
    /// This node cannot keep what the leader sends.
    Follow,
    /// This broker finds no leader, and cannot lead.
    NoLeader,
    /// This node's own certificate is revoked, so that it takes no part in the pair.
    Revoked,
    /// Another node refuses this node's certificate as revoked.
    RevokedThere,
    /// This node refuses the certificate of that node as revoked.
    RevokedOther(Node),
    /// Certificates that were issued or revoked at this node are not known at the other one.
    Certificates,
}

struct Entry {
    text: String,
    ends: Option<Instant>,
}

/// What is wrong with the pair just now. The pair's threads write it, and the monitor reads it.
#[derive(Default)]
pub struct Troubles {
    entries: Mutex<BTreeMap<Trouble, Entry>>,
}

impl fmt::Debug for Troubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.texts()).finish()
    }
}

impl Troubles {
    /// Records a trouble, until it is cleared, or for some time if it is not recorded again.
    pub(crate) fn set(&self, trouble: Trouble, text: String, lasts: Option<Duration>) {
        let ends = lasts.map(|lasts| Instant::now() + lasts);
        self.with(|entries| entries.insert(trouble, Entry { text, ends }));
    }

    /// Records that something is right again; true if it was wrong.
    pub(crate) fn clear(&self, trouble: Trouble) -> bool {
        self.with(|entries| entries.remove(&trouble)).is_some()
    }

    /// A sentence for each trouble, with what to do.
    pub fn texts(&self) -> Vec<String> {
        self.with(|entries| entries.values().map(|entry| entry.text.clone()).collect())
    }

    /// Whether something is wrong.
    pub fn has(&self, trouble: Trouble) -> bool {
        self.count(|other| *other == trouble) > 0
    }

    /// Counts the troubles of a kind.
    pub fn count(&self, is_kind: impl Fn(&Trouble) -> bool) -> u64 {
        self.with(|entries| entries.keys().filter(|trouble| is_kind(trouble)).count() as u64)
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<Trouble, Entry>) -> T) -> T {
        // Each change is one insertion or removal, so a poisoned lock holds a whole map.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        entries.retain(|_, entry| entry.ends.is_none_or(|ends| now < ends));
        act(&mut entries)
    }
}

/// The name of a node in messages.
pub fn name(node: Node) -> &'static str {
    match node {
        Node::First => "the first candidate (--role primary)",
        Node::Second => "the second candidate (standby)",
        Node::Witness => "the witness",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_until_cleared_or_expired() {
        let troubles = Troubles::default();
        troubles.set(Trouble::Duplicate(Node::First), "two".to_owned(), Some(Duration::ZERO));
        troubles.set(Trouble::Record, "full".to_owned(), None);
        assert_eq!(troubles.texts(), ["full"], "the other one has expired");
        assert_eq!(troubles.count(|trouble| *trouble == Trouble::Record), 1);
        assert!(troubles.clear(Trouble::Record) && !troubles.clear(Trouble::Record));
        assert_eq!(troubles.texts(), Vec::<String>::new());
    }
}
