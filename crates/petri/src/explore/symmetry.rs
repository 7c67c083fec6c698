//! Parts of a net that may be exchanged for each other, as the cores of a processor: states that differ by an exchange only are one.

mod search;

use super::rules::State;

/// A part of a net: its places and the slots of its transitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub places: Vec<usize>,
    pub slots: Vec<usize>,
}

/// Blocks that may be exchanged for each other; their places and slots correspond by index.
pub(crate) type Orbit = Vec<Block>;

/// The orbits of a net; no part is in two of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symmetry {
    pub orbits: Vec<Orbit>,
}

impl Symmetry {
    pub fn is_trivial(&self) -> bool {
        self.orbits.is_empty()
    }

    /// Brings a state to the form that stands for all that are the same: blocks by falling contents.
    pub fn normalize(&self, state: &mut State) {
        for orbit in &self.orbits {
            let mut contents: Vec<(Vec<u32>, Vec<Vec<u32>>)> = orbit
                .iter()
                .map(|block| {
                    let tokens = block.places.iter().map(|place| state.marking[*place]).collect();
                    (tokens, block.slots.iter().map(|slot| std::mem::take(&mut state.clocks[*slot])).collect())
                })
                .collect();
            contents.sort_unstable_by(|a, b| b.cmp(a));
            for (block, (tokens, clocks)) in orbit.iter().zip(contents) {
                block.places.iter().zip(tokens).for_each(|(place, tokens)| state.marking[*place] = tokens);
                block.slots.iter().zip(clocks).for_each(|(slot, clocks)| state.clocks[*slot] = clocks);
            }
        }
    }

    /// Places that correspond to `place`, itself among them: by symmetry their expectations are the same.
    pub fn images(&self, place: usize) -> Vec<usize> {
        for orbit in &self.orbits {
            if let Some(index) = orbit.iter().find_map(|block| block.places.iter().position(|other| *other == place)) {
                return orbit.iter().map(|block| block.places[index]).collect();
            }
        }
        vec![place]
    }
}
