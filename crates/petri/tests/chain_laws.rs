//! Laws that hold for every Markov chain: probabilities add up to 1, and time may run backwards.

use bodkin_petri::chain::{
    Chain,
    steady::steady,
    transient::{Curves, curves},
};
use proptest::prelude::*;

const ERROR: f64 = 1e-10;
const TIMES: [f64; 3] = [0.0, 0.3, 4.0];

/// A chain that begins in state `first`.
fn chain(rates: &[Vec<f64>], first: usize) -> Chain {
    let mut chain = Chain::starting(vec![(first as u32, 1.0)]);
    for rates in rates {
        chain.push_row(&mut rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0).map(|(to, rate)| (to as u32, *rate)).collect());
    }
    chain
}

/// Probabilities of every state at [`TIMES`], `[times, states]`, and the bound on their error.
fn probabilities(rates: &[Vec<f64>], first: usize) -> (Vec<Vec<f64>>, f64) {
    let states: Vec<_> = (0..rates.len() as u32).map(|state| vec![(state, 1.0)]).collect();
    let Curves { values, error, .. } = curves(&chain(rates, first), &states, &TIMES, ERROR).expect("it is short");
    (values, error)
}

/// Rates between up to seven states, of which each leads to the next and the last to the first; others are there or not.
fn irreducible() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (2..8_usize).prop_flat_map(|size| {
        let rate = prop_oneof![2 => Just(0.0), 3 => 0.01..20.0];
        prop::collection::vec(prop::collection::vec(rate, size), size).prop_map(move |mut rates| {
            for (from, row) in rates.iter_mut().enumerate() {
                row[from] = 0.0;
                let next = &mut row[(from + 1) % size];
                *next = f64::max(*next, 0.5);
            }
            rates
        })
    })
}

proptest! {
    #[test]
    fn probabilities_add_up_to_one(rates in irreducible(), first in 0..2_usize) {
        let (values, error) = probabilities(&rates, first);
        for values in values {
            prop_assert!((values.iter().sum::<f64>() - 1.0).abs() <= error && values.iter().all(|value| *value >= 0.0), "{values:?} off {error:e}");
        }
    }

    /// With `w` the long run, `w_i p_ij(t)` is `w_j p*_ji(t)` of the chain with the rates `q*_ji = w_i q_ij / w_j` (Kelly, Reversibility and Stochastic
    /// Networks, 1979, section 1.7).
    #[test]
    fn the_reversed_chain_goes_the_way_back(rates in irreducible()) {
        let long_run = steady(&chain(&rates, 0), 1e-12).expect("it is small");
        let weights = &long_run.probabilities;
        let size = rates.len();
        let reversed: Vec<Vec<f64>> = (0..size).map(|j| (0..size).map(|i| weights[i] * rates[i][j] / weights[j]).collect()).collect();
        let (there, back): (Vec<_>, Vec<_>) = (0..size).map(|first| (probabilities(&rates, first).0, probabilities(&reversed, first).0)).unzip();
        for time in 0..TIMES.len() {
            for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                let (forward, backward) = (weights[i] * there[i][time][j], weights[j] * back[j][time][i]);
                prop_assert!((forward - backward).abs() < 1e-8, "from {i} to {j}: {forward} and {backward}");
            }
        }
    }
}
