//! Laws that hold for every Markov chain: probabilities add up to 1, and time may run backwards.

use bodkin_petri::chain::{
    Chain,
    steady::steady,
    transient::{Curves, curves, visit},
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

/// A queue with room for `room` customers that come at rate 1 and are served at rate 2.
fn queue(room: u32) -> Chain {
    let mut chain = Chain::starting(vec![(room, 1.0)]);
    for waiting in 0..=room {
        let (arrive, serve) = ((waiting < room).then(|| (waiting + 1, 1.0)), (waiting > 0).then(|| (waiting.wrapping_sub(1), 2.0)));
        chain.push_row(&mut arrive.into_iter().chain(serve).collect());
    }
    chain
}

/// 3e12 steps would be needed until the last time, and its long run is there long before.
#[test]
fn what_has_settled_is_not_stepped_on() {
    let room = 20;
    let empty = vec![vec![(0, 1.0)]];
    let Curves { values, error, steps } = curves(&queue(room), &empty, &[200.0, 1e4, 1e12], ERROR).expect("it settles");
    let expected = 0.5 / (1.0 - 0.5_f64.powi(room as i32 + 1));
    assert!(
        (values[1][0] - expected).abs() <= error && (values[2][0] - expected).abs() <= error,
        "{values:?} for {expected}, off {error:e}"
    );
    assert!(error <= ERROR && steps < 20_000, "{error:e} in {steps} steps");
    let mut visited = Vec::new();
    let (error, steps) = visit(&queue(room), &[1e4, 1e12], ERROR, |visit| visited.push(visit.probabilities[0])).expect("it settles");
    assert!(
        visited.iter().all(|value| (value - expected).abs() <= error) && error <= ERROR && steps < 20_000,
        "{visited:?} in {steps} steps"
    );
}

/// Two halves that hardly ever change places: nothing changes from step to step, and yet nothing has settled at that time.
#[test]
fn a_slow_change_is_no_settling() {
    let slow = 1e-9;
    let mut chain = Chain::starting(vec![(0, 1.0)]);
    for (here, there) in [(1, 2), (0, 3), (3, 0), (2, 1)] {
        chain.push_row(&mut vec![(here, 1.0), (there, slow)]);
    }
    let half = vec![vec![(0, 1.0), (1, 1.0)]];
    let time = 2e6;
    let Curves { values, error, .. } = curves(&chain, &half, &[time], 1e-8).expect("its steps can be made");
    let expected = 0.5 * (1.0 + (-2.0 * slow * time).exp());
    assert!((values[0][0] - expected).abs() <= error && (values[0][0] - 1.0).abs() > 1e-4, "{values:?} for {expected}, off {error:e}");
    // By the time where it has, its steps cannot be made.
    curves(&chain, &half, &[1e12], 1e-8).expect_err("nothing that is known says where it is then");
}

/// Behind a stage that is left ten thousand times faster than the others there is no need for steps of its length.
#[test]
fn states_that_are_over_cost_no_steps() {
    let (fast, length, last) = (1e4, 400_u32, 200.0);
    let mut chain = Chain::starting(vec![(0, 1.0)]);
    chain.push_row(&mut vec![(1, fast)]);
    (1..length).for_each(|state| chain.push_row(&mut vec![(state + 1, 1.0)]));
    chain.push_row(&mut Vec::new());
    let second = vec![vec![(1, 1.0)]];
    let times = [1e-4, 0.5, 3.0, last];
    let expected = times.map(|time: f64| fast / (fast - 1.0) * ((-time).exp() - (-fast * time).exp()));
    let Curves { values, error, steps } = curves(&chain, &second, &times, ERROR).expect("it is short");
    for (values, expected) in values.iter().zip(expected) {
        assert!((values[0] - expected).abs() <= error, "{values:?} for {expected}, off {error:e}");
    }
    assert!(error <= ERROR && (steps as f64) < 0.02 * fast * last, "{error:e} in {steps} steps");
    let mut visited = Vec::new();
    let (error, steps) = visit(&chain, &times, ERROR, |visit| visited.push(visit.probabilities[1])).expect("it is short");
    assert!(
        visited.iter().zip(expected).all(|(value, expected)| (value - expected).abs() <= error),
        "{visited:?} for {expected:?}, off {error:e}"
    );
    assert!((steps as f64) < 0.02 * fast * last, "{steps} steps");
}

/// Fast states that are met later: the rate grows with what is there.
#[test]
fn states_that_come_later_are_stepped_as_fast_as_they_are_left() {
    let (stages, fast) = (30_u32, 500.0);
    let mut chain = Chain::starting(vec![(0, 1.0)]);
    (0..stages).for_each(|state| chain.push_row(&mut vec![(state + 1, 1.0)]));
    chain.push_row(&mut vec![(stages + 1, fast)]);
    chain.push_row(&mut Vec::new());
    let done = vec![vec![(stages + 1, 1.0)]];
    let times = [10.0, 60.0, 200.0];
    let whole = curves(&chain, &done, &times, 1e-11).expect("it is short");
    // The sum of 30 stages of rate 1 and one of rate 500, by its own integral.
    for (values, time) in whole.values.iter().zip(times) {
        let expected = stages_and_one(stages, fast, time);
        assert!((values[0] - expected).abs() <= whole.error + 1e-11, "{values:?} for {expected} at {time}, off {:e}", whole.error);
    }
}

/// The distribution function of `stages` exponential stages of rate 1 and another one of rate `fast`: Erlang's, and the last stage's short time by
/// Simpson's rule.
fn stages_and_one(stages: u32, fast: f64, time: f64) -> f64 {
    let erlang = |time: f64| {
        let mut term = (-time).exp();
        let mut below = 0.0;
        for k in 0..stages {
            below += term;
            term *= time / f64::from(k + 1);
        }
        1.0 - below
    };
    let (pieces, width) = (4_000_u32, 40.0 / fast);
    let at = |index: u32| {
        let late = width * f64::from(index) / f64::from(pieces);
        fast * (-fast * late).exp() * erlang(time - late)
    };
    let inner: f64 = (1..pieces).map(|index| if index % 2 == 1 { 4.0 * at(index) } else { 2.0 * at(index) }).sum();
    (at(0) + inner + at(pieces)) * width / f64::from(pieces) / 3.0
}
