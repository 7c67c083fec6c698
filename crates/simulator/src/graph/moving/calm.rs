//! An operator that stays at the office: it takes events of the office's own, which the broker keeps for the graph until a checkpoint has what came of them.

use bodkin_broker::{
    Incarnation, PublisherId, Sequence,
    graph::{SupplierId, Taken},
};

use super::{World, press::at};
use crate::graph::Broken;

/// Events that are kept at the most.
const KEPT_MAX: u64 = 12;
pub(super) const LOADS: usize = 1;

/// Its events, and what it has taken: that is its state.
#[derive(Clone, Debug, Default)]
pub(super) struct Calm {
    pub published: u64,
    /// Up to where the broker keeps nothing any more, and up to where the leader has handed it over.
    pub acknowledged: u64,
    pub brought: u64,
    pub taken: u64,
}

impl Calm {
    pub fn check_end(&self) -> Result<(), Broken> {
        let Self { published, taken, acknowledged, .. } = self;
        match (taken, acknowledged) {
            (taken, acknowledged) if taken == published && acknowledged == published => Ok(()),
            _ => Err(format!("of {published} loads {taken} are taken and {acknowledged} acknowledged")),
        }
    }
}

pub(super) fn load(number: u64) -> Taken {
    Taken { supplier: SupplierId::of(LOADS), publisher: PublisherId(8), incarnation: Incarnation(1), through: Sequence(number) }
}

impl World {
    pub(super) fn publish_load(&mut self) {
        let calm = &mut self.office.calm;
        calm.published += u64::from(calm.published - calm.acknowledged < KEPT_MAX);
    }

    /// The operator takes what is kept for the graph; while it is held up, that waits.
    pub(super) fn take_loads(&mut self, most: u64) -> Result<(), Broken> {
        let office = &mut self.office;
        let Some(protection) = office.protection.as_mut().filter(|_| !office.is_held_up) else { return Ok(()) };
        let calm = &mut office.calm;
        for number in calm.brought + 1..=calm.published.min(calm.brought + most) {
            let Taken { supplier, publisher, incarnation, through } = load(number);
            calm.brought = number;
            let is_had = protection.cover.has(supplier, publisher, incarnation, through);
            if !is_had {
                if number != calm.taken + 1 {
                    return Err(format!("load {number} is taken behind {}", calm.taken));
                }
                calm.taken = number;
            }
            if !protection.cover.take(at(self.now), load(number)) || is_had {
                calm.acknowledged = calm.acknowledged.max(number);
            }
        }
        self.let_go();
        Ok(())
    }
}
