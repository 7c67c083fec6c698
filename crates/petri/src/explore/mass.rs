//! Probabilities of numbered states.

/// A probability for each state. Those before `first` are 0, and cost nothing: a net without a way back leaves its early states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mass {
    pub values: Vec<f64>,
    pub first: usize,
}

impl Mass {
    /// Of these states, the others having none.
    pub fn of(entries: &[(u32, f64)], states: usize) -> Self {
        let mut mass = Self::default();
        mass.clear(states);
        entries.iter().for_each(|(state, probability)| mass.add(*state as usize, *probability));
        mass
    }

    /// None for any of `states` states.
    pub fn clear(&mut self, states: usize) {
        let from = self.first.min(self.values.len());
        self.values[from..].fill(0.0);
        self.values.resize(states, 0.0);
        self.first = states;
    }

    /// Makes room for states that were met meanwhile.
    pub fn grow(&mut self, states: usize) {
        self.first = if self.first == self.values.len() { states } else { self.first };
        self.values.resize(states, 0.0);
    }

    /// Adds to the probability of a state.
    #[inline]
    pub fn add(&mut self, state: usize, probability: f64) {
        self.values[state] += probability;
        self.first = self.first.min(state);
    }

    /// Adds `weight` times the numbers of a row, whose columns rise.
    #[inline]
    pub fn add_row(&mut self, weight: f64, columns: &[u32], numbers: &[f64]) {
        let Some(first) = columns.first() else { return };
        self.first = self.first.min(*first as usize);
        for (column, number) in columns.iter().zip(numbers) {
            self.values[*column as usize] += weight * number;
        }
    }

    /// Adds `weight` times another's.
    pub fn add_scaled(&mut self, weight: f64, other: &Self) {
        if self.values.len() < other.values.len() {
            self.grow(other.values.len());
        }
        self.first = self.first.min(other.first);
        let own = &mut self.values[other.first..];
        own.iter_mut().zip(&other.values[other.first..]).for_each(|(own, other)| *own += weight * other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_before_the_first_stays_nothing() {
        let mut mass = Mass::of(&[(2, 0.5), (3, 0.25)], 4);
        let mut sum = Mass::default();
        sum.clear(1);
        sum.add_scaled(2.0, &mass);
        assert_eq!((sum.first, sum.values.as_slice()), (2, [0.0, 0.0, 1.0, 0.5].as_slice()));
        mass.clear(6);
        assert_eq!((mass.first, mass.values.iter().sum::<f64>()), (6, 0.0));
        mass.add(5, 1.0);
        mass.grow(8);
        assert_eq!((mass.first, mass.values.len()), (5, 8));
        mass.add_row(2.0, &[4, 7], &[0.5, 0.25]);
        mass.add_row(1.0, &[], &[]);
        assert_eq!((mass.first, &mass.values[4..]), (4, [1.0, 1.0, 0.0, 0.5].as_slice()));
    }
}
