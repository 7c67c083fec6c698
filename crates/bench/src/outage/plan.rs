//! Plan of a campaign: each fault's strikes follow from the seed and the fault's number, so that a rerun repeats them.

use std::time::Duration;

use super::fault::{Fault, Kind};
use crate::draws::Draws;

/// Nodes of the shared cloud, which are the first members.
pub const NODES: usize = 3;
/// Edges of the fleet, which are the other members.
pub const EDGES: usize = 3;
/// Share of faults that are two overlapping ones.
const OVERLAPS: f64 = 0.15;
/// Bits of a seed that are the fault's number.
const NUMBER_BITS: u32 = 32;

/// One fault of a member, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// The fault.
    pub fault: Fault,
    /// Index of the member that it strikes; 0 for a server.
    pub member: usize,
    /// Wait before it begins.
    pub after: Duration,
    /// How long it lasts.
    pub lasts: Duration,
}

impl Strike {
    fn draw(draws: &mut Draws, faults: &[Fault]) -> Self {
        let fault = faults[draws.below(faults.len() as u64) as usize];
        let member = match fault.strikes() {
            Some(Kind::Node) => draws.below(NODES as u64) as usize,
            Some(Kind::Edge) => NODES + draws.below(EDGES as u64) as usize,
            None => 0,
        };
        let [least, most] = fault.lasts().map(|lasts| lasts.as_secs_f64());
        // Each order of magnitude is as likely.
        let share = draws.below(1_000_001) as f64 / 1e6;
        let lasts = if least > 0.0 { least * (most / least).powf(share) } else { most };
        Self { fault, member, after: Duration::ZERO, lasts: Duration::from_millis((lasts * 1e3) as u64) }
    }

    /// Returns the member, if the fault strikes one.
    pub fn target(&self) -> Option<usize> {
        self.fault.strikes().map(|_| self.member)
    }
}

/// Returns the strikes of one fault of a campaign: one, or two overlapping ones.
///
/// # Panics
/// Panics if `faults` is empty.
pub fn strikes(seed: u64, number: usize, faults: &[Fault]) -> Vec<Strike> {
    let mut draws = Draws::new(seed ^ (number as u64).rotate_left(NUMBER_BITS));
    let first = Strike::draw(&mut draws, faults);
    if first.fault.is_single() || !draws.chance(OVERLAPS) {
        return vec![first];
    }
    let mut second = Strike::draw(&mut draws, faults);
    second.after = Duration::from_millis(draws.below(first.lasts.as_millis() as u64 + 1));
    // Two faults of one member would undo each other's ends.
    let is_same = first.target() == second.target() && (first.target().is_some() || first.fault == second.fault);
    if second.fault.is_single() || is_same { vec![first] } else { vec![first, second] }
}

/// Returns the label of the strikes in reports.
pub fn label(strikes: &[Strike]) -> String {
    strikes.iter().map(|strike| strike.fault.name()).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_fault_repeats_its_strikes() {
        let all = |seed| (1..400).map(|number| strikes(seed, number, &Fault::ALL)).collect::<Vec<_>>();
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        let drawn: std::collections::BTreeSet<Fault> = all(7).into_iter().flatten().map(|strike| strike.fault).collect();
        assert_eq!(drawn.len(), Fault::ALL.len());
    }

    #[test]
    fn overlapping_strikes_have_different_targets() {
        let drawn: Vec<Vec<Strike>> = (1..2000).map(|number| strikes(3, number, &Fault::ALL)).collect();
        let pairs: Vec<&Vec<Strike>> = drawn.iter().filter(|strikes| strikes.len() == 2).collect();
        assert!((100..400).contains(&pairs.len()), "{}", pairs.len());
        for pair in pairs {
            assert!(pair[1].after <= pair[0].lasts && !pair.iter().any(|strike| strike.fault.is_single()), "{pair:?}");
            assert!(pair[0].target() != pair[1].target() || pair[0].fault != pair[1].fault, "{pair:?}");
        }
    }

    #[test]
    fn strike_lasts_within_limits_of_fault() {
        for strike in (1..2000).flat_map(|number| strikes(5, number, &Fault::ALL)) {
            let [least, most] = strike.fault.lasts();
            assert!((least..=most).contains(&strike.lasts), "{strike:?}");
            assert_eq!(strike.fault.strikes() == Some(Kind::Edge), strike.member >= NODES, "{strike:?}");
        }
    }
}
