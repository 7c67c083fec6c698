//! Direct solutions for few states, by elimination without a subtraction.
//!
//! Grassmann, Taksar and Heyman (Operations Research 33, 1985): a state is taken out by sending what comes into it where it would
//! go. Only rates of one sign are added and multiplied, so that every result is good to a relative error that does not depend on how
//! ill the chain is conditioned.

/// Rates between `size` states, row behind row; the diagonal is not used.
pub(super) struct Rates {
    pub size: usize,
    pub entries: Vec<f64>,
}

impl Rates {
    pub fn zero(size: usize) -> Self {
        Self { size, entries: vec![0.0; size * size] }
    }

    pub fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.entries[row * self.size + column]
    }

    /// Takes state `last` out of states `0..=last`; its row keeps the probabilities of where it goes, its column the rates into it.
    /// Gives the rate at which it is left for lower states, which is above 0 in an irreducible chain.
    fn take_out(&mut self, last: usize) -> f64 {
        let (above, row) = self.entries.split_at_mut(last * self.size);
        let row = &mut row[..last];
        let exit: f64 = row.iter().sum();
        if exit > 0.0 {
            row.iter_mut().for_each(|rate| *rate /= exit);
            for other in above.chunks_exact_mut(self.size) {
                let into = other[last];
                if into > 0.0 {
                    other[..last].iter_mut().zip(&*row).for_each(|(rate, share)| *rate += into * share);
                }
            }
        }
        exit
    }

    /// Long-run probabilities of an irreducible chain.
    pub fn stationary(mut self) -> Vec<f64> {
        let mut exits = vec![0.0; self.size];
        for state in (1..self.size).rev() {
            exits[state] = self.take_out(state);
        }
        let mut weights = vec![1.0; self.size];
        for state in 1..self.size {
            let inflow: f64 = (0..state).map(|from| weights[from] * self.entries[from * self.size + state]).sum();
            weights[state] = inflow / exits[state];
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        weights
    }
}
