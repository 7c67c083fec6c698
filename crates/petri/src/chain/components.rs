//! Strongly connected components of a chain: which states come back to each other, and which sets are never left.

use super::Chain;

/// The components of a chain's states.
pub(super) struct Components {
    /// The component of each state. A component's number is above those of the components that it reaches.
    pub of: Vec<u32>,
    /// Whether the component is never left.
    pub is_closed: Vec<bool>,
}

/// Not met yet.
const NEW: u32 = u32::MAX;

impl Components {
    /// Tarjan's algorithm (SIAM J. Comput. 1, 1972), with a stack of its own: chains are deeper than threads' stacks.
    pub fn of(chain: &Chain) -> Self {
        let mut search = Search {
            chain,
            order: vec![NEW; chain.len()],
            low: vec![0; chain.len()],
            of: vec![NEW; chain.len()],
            open: Vec::new(),
            met: 0,
            closed: 0,
        };
        for state in 0..chain.len() {
            if search.order[state] == NEW {
                search.visit(state);
            }
        }
        let (of, count) = (search.of, search.closed as usize);
        let mut is_closed = vec![true; count];
        for state in 0..chain.len() {
            if chain.row(state).any(|(other, _)| of[other] != of[state]) {
                is_closed[of[state] as usize] = false;
            }
        }
        Self { of, is_closed }
    }

    /// The states of each closed component.
    pub fn closed(&self) -> Vec<Vec<usize>> {
        let mut states = vec![Vec::new(); self.is_closed.len()];
        for (state, component) in self.of.iter().enumerate() {
            if self.is_closed[*component as usize] {
                states[*component as usize].push(state);
            }
        }
        states.retain(|states| !states.is_empty());
        states
    }
}

struct Search<'a> {
    chain: &'a Chain,
    order: Vec<u32>,
    low: Vec<u32>,
    of: Vec<u32>,
    open: Vec<usize>,
    met: u32,
    closed: u32,
}

impl Search<'_> {
    fn meet(&mut self, state: usize) {
        self.order[state] = self.met;
        self.low[state] = self.met;
        self.met += 1;
        self.open.push(state);
    }

    fn visit(&mut self, root: usize) {
        // A state with how many entries of its row were followed.
        let mut path = vec![(root, self.chain.range(root).start)];
        self.meet(root);
        while let Some((state, next)) = path.last_mut() {
            let (state, entry) = (*state, *next);
            if entry < self.chain.range(state).end {
                *next += 1;
                let other = self.chain.columns[entry] as usize;
                if self.order[other] == NEW {
                    self.meet(other);
                    path.push((other, self.chain.range(other).start));
                } else if self.of[other] == NEW {
                    self.low[state] = self.low[state].min(self.order[other]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[state]);
            }
            if self.low[state] == self.order[state] {
                self.close(state);
            }
        }
    }

    fn close(&mut self, root: usize) {
        while let Some(state) = self.open.pop() {
            self.of[state] = self.closed;
            if state == root {
                break;
            }
        }
        self.closed += 1;
    }
}
