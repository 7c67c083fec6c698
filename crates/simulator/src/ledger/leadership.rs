//! Who holds the right to lead, in true time: never two, and no epoch twice.

use std::collections::BTreeMap;

use crate::{clock::Time, violation::Broken};

#[derive(Clone, Copy, Debug)]
struct Lease {
    node: u16,
    epoch: u64,
    until: Time,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    leases: Vec<Lease>,
    /// Which run of which node had an epoch.
    owners: BTreeMap<u64, (u16, u32)>,
}

impl Leadership {
    /// A node leads until a true time. Gives whether it begins to.
    pub(super) fn leads(&mut self, at: Time, node: u16, run: u32, epoch: u64, until: Time) -> Result<bool, Broken> {
        let other = self.leases.iter().find(|lease| lease.node != node && lease.until > at);
        if let Some(other) = other {
            return Err(Broken::TwoPrimaries { node, epoch, other: other.node, left_ns: other.until.since(at) });
        }
        let owner = *self.owners.entry(epoch).or_insert((node, run));
        if owner != (node, run) {
            return Err(Broken::EpochReused { node, epoch, other: owner.0 });
        }
        self.leases.retain(|lease| lease.node == node);
        let begins = self.leases.first().is_none_or(|lease| lease.epoch != epoch);
        self.leases.clear();
        self.leases.push(Lease { node, epoch, until });
        Ok(begins)
    }

    pub(super) fn ends(&mut self, at: Time, node: u16) {
        for lease in self.leases.iter_mut().filter(|lease| lease.node == node) {
            lease.until = lease.until.min(at);
        }
    }

    pub(super) fn acts(&self, at: Time, node: u16, action: &'static str) -> Result<(), Broken> {
        let may = self.leases.iter().any(|lease| lease.node == node && lease.until > at);
        if may { Ok(()) } else { Err(Broken::NoLease { node, action }) }
    }
}
