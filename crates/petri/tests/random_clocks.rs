//! Nets that nobody has chosen, with clocks of every kind: what each method says has to agree with the simulator.

use std::num::NonZeroU32;

use bodkin_petri::{
    distribution::{
        Deterministic, Distribution, Empirical, Erlang, Exponential, Gamma, HypoExponential, Lognormal, Mixture, PhaseType,
        TruncatedNormal, Uniform, Weibull,
    },
    net::{Arc, Delay, Firing, Memory, Net, Place, Servers, Timed, Transition},
    random::{self, Draws},
    simulate::{self, simulate},
    solve::{Answer, Method, Question, SolveError, When, solve},
};

/// What an interval of a million misses once is allowed beside the error of the numerical method.
const CONFIDENCE: f64 = 1.0 - 1e-6;

/// Numbers for one net.
struct Dice(Draws);

impl Dice {
    fn of(seed: u64) -> Self {
        Self(Draws::at(seed, random::Place { run: 0, stream: 1, draw: 0 }))
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.0.uniform() * limit as f64) as usize
    }

    fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    /// One of `0.5, 1, 1.5 ...`, so many.
    fn halves(&mut self, count: usize) -> f64 {
        0.5 * (1 + self.below(count)) as f64
    }

    /// A law that is not made of exponential stages; its corners are halves.
    fn general(&mut self) -> Distribution {
        let law = match self.below(6) {
            0 | 1 => {
                let from = 0.5 * self.below(2) as f64;
                Uniform::new(from, from + self.halves(3)).map(Distribution::Uniform)
            }
            2 => Deterministic::new(self.halves(3)).map(Distribution::Deterministic),
            3 => Gamma::new(1.7 + self.halves(4), 3.0).map(Distribution::Gamma),
            4 => TruncatedNormal::new(self.halves(2), 0.4, 0.0, f64::INFINITY).map(Distribution::TruncatedNormal),
            _ => Weibull::new(2.5, self.halves(3)).map(Distribution::Weibull),
        };
        law.expect("a law")
    }

    /// A law without density, whose values are tenths or halves.
    fn atoms(&mut self) -> Distribution {
        let unit = if self.one_in(2) { 0.5 } else { 0.1 };
        let mut value = || unit * (1 + self.below(6)) as f64;
        let values = [value(), value(), value()];
        let law = if self.one_in(2) {
            Deterministic::new(values[0]).map(Distribution::Deterministic)
        } else {
            Empirical::new(values.to_vec()).map(Distribution::Empirical)
        };
        law.expect("a law")
    }

    /// A law of exponential stages.
    fn stages(&mut self) -> Distribution {
        let rate = 1.0 + self.below(4) as f64;
        let exponential = |rate| Exponential::new(rate).expect("a law");
        match self.below(6) {
            0 => Distribution::Erlang(Erlang::new(2 + self.below(3) as u32, 2.0 * rate).expect("a law")),
            1 => Distribution::HypoExponential(HypoExponential::new(&[rate, rate + 0.7, 3.0]).expect("a law")),
            2 => {
                Distribution::HyperExponential(Mixture::new(vec![(0.3, exponential(rate)), (0.7, exponential(4.0 * rate))]).expect("a law"))
            }
            3 => {
                let branches = vec![(0.4, Erlang::new(2, 3.0 * rate).expect("a law")), (0.6, Erlang::new(1, rate).expect("a law"))];
                Distribution::HyperErlang(Mixture::new(branches).expect("a law"))
            }
            4 => {
                let generator = [vec![-3.0, 1.0], vec![0.5, -rate - 0.5]];
                Distribution::PhaseType(PhaseType::new(&[0.6, 0.4], &generator).expect("a law"))
            }
            _ => Distribution::Exponential(exponential(rate)),
        }
    }

    fn servers(&mut self) -> Servers {
        match self.below(3) {
            0 => Servers::Infinite,
            1 => Servers::Count(NonZeroU32::new(2).expect("it is not 0")),
            _ => Servers::SINGLE,
        }
    }
}

fn timed(name: &str, law: Distribution, servers: Servers, memory: Memory, from: usize, to: usize) -> Transition {
    let arc = |place| vec![Arc { place, weight: 1 }];
    let firing = Firing::Timed(Timed { delay: Delay::Distribution(law), servers, memory, priority: 0, weight: 1.0 });
    Transition {
        name: name.to_owned(),
        inputs: arc(from),
        outputs: arc(to),
        inhibitors: Vec::new(),
        tests: Vec::new(),
        guard: None,
        firing,
    }
}

fn net(seed: u64, initial: &[u32], transitions: Vec<Transition>) -> Net {
    let places = initial.iter().enumerate().map(|(place, initial)| Place { name: format!("P{place}"), initial: *initial });
    Net::new(format!("random {seed}"), "s", places.collect(), transitions).expect("the net is right")
}

/// Holds an answer against the simulator at the same times; `off` is what the answer's errors do not have in them.
fn agree(net: &Net, answer: &Answer, times: &[f64], seed: u64, runs: u64, off: f64) {
    let asked = simulate::Question { instants: times.to_vec(), measures: Vec::new(), target: None, tag: None };
    let options = simulate::Options { seed, confidence: CONFIDENCE, runs, ..simulate::Options::default() };
    let simulated = simulate(net, &asked, &options).unwrap_or_else(|error| panic!("{error}: {net:?}"));
    for (place, estimates) in simulated.places.iter().enumerate() {
        let error = answer.errors[place] + off;
        for (row, (time, estimate)) in times.iter().zip(estimates).enumerate() {
            let value = answer.values[row.min(answer.values.len() - 1)][place];
            let agree = estimate.low - error <= value && value <= estimate.high + error;
            assert!(agree, "net {seed}, P{place} at {time}: {estimate:?} beside {value} +- {error:e} by {:?}\n{net:?}", answer.method);
        }
    }
}

/// A ring of three places, in which two tokens go around by clocks of both kinds, several at once; some clocks are stopped by inhibitors.
fn ring(seed: u64) -> Net {
    let mut dice = Dice::of(seed);
    let mut transitions = Vec::new();
    for from in 0..3 {
        // Two general ones: a third would take a test minutes.
        let law = if from < 2 { dice.general() } else { dice.stages() };
        let memory = if dice.one_in(3) { Memory::Age } else { Memory::Enabling };
        let mut transition = timed(&format!("t{from}"), law, dice.servers(), memory, from, (from + 1) % 3);
        if dice.one_in(3) {
            transition.inhibitors.push(Arc { place: (from + 1) % 3, weight: 2 });
        }
        transitions.push(transition);
    }
    net(seed, &[2, 0, 0], transitions)
}

#[test]
fn several_general_clocks_agree_with_the_simulator() {
    let times = [0.625, 1.375, 2.625];
    let (mut solved, mut refused) = (0, Vec::new());
    for seed in 0..24 {
        let net = ring(seed);
        match solve(&Question { error: 1e-2, states_max: 200_000, ..Question::new(&net, When::At(times.to_vec())) }) {
            Ok(answer) => {
                assert_eq!(answer.method, Method::Lattice, "{net:?}");
                agree(&net, &answer, &times, seed, 10_000, 1e-9);
                solved += 1;
            }
            // Curves that jump at fixed times are not always had to the error: that is told, and nothing wrong is.
            Err(error) => refused.push(format!("{seed}: {error}")),
        }
    }
    assert!(solved >= 16, "{solved} nets were solved; refused: {refused:#?}");
}

/// A place that two clocks or three leave at once, one of them without density; then the same again. Times lie beside the grid of the
/// delays, some close to a jump.
fn races(seed: u64, tokens: u32, atoms: impl Fn(&mut Dice) -> Distribution) -> (Net, Vec<f64>) {
    let mut dice = Dice::of(seed);
    let mut transitions = Vec::new();
    for from in 0..2 {
        let mut race = vec![atoms(&mut dice), Distribution::Exponential(Exponential::new(dice.halves(4)).expect("a law"))];
        if from == 0 && dice.one_in(3) {
            race.push(Distribution::Uniform(Uniform::new(0.0, dice.halves(3)).expect("a law")));
        }
        for (number, law) in race.into_iter().enumerate() {
            let to = if number == 0 { from + 1 } else { 2 + dice.below(2) };
            transitions.push(timed(&format!("t{from}{number}"), law, dice.servers(), Memory::Enabling, from, to));
        }
    }
    // Not at a jump: there the simulator's sums of tenths are before or after it by rounding.
    let times = vec![0.313, 0.5001, 0.79, 1.4999, 1.5001, 1.734, 2.71];
    (net(seed, &[tokens, tokens - 1, 0, 0], transitions), times)
}

#[test]
fn races_of_delays_without_density_agree_with_the_simulator_off_the_grid() {
    let (mut solved, mut refused) = (0, Vec::new());
    for seed in 400..430 {
        let (net, times) = races(seed, 1 + (seed % 2) as u32, Dice::atoms);
        match solve(&Question { error: 1e-3, ..Question::new(&net, When::At(times.clone())) }) {
            Ok(answer) => {
                assert_eq!(answer.method, Method::Lattice, "{net:?}");
                assert!(answer.values.iter().flatten().all(|value| *value >= -answer.error()), "{:?}", answer.values);
                agree(&net, &answer, &times, seed, 4_000, 1e-9);
                solved += 1;
            }
            Err(error) => refused.push(format!("{seed}: {error}")),
        }
    }
    assert!(solved >= 25, "{solved} nets were solved; refused: {refused:#?}");
}

/// Stages of a fixed delay: with more and more of them a smooth expectation is a series in their number's inverse.
const STAGES: [u32; 5] = [8, 16, 24, 32, 48];

/// Where everything has ended the outcome of one token's races against exponential delays is smooth in a fixed delay: Erlang's law with more and
/// more stages comes to it, and is extrapolated to infinitely many (Lagrange, in the inverse of the number of stages).
#[test]
fn outcomes_of_races_are_those_of_erlang_laws_extrapolated() {
    let late = vec![60.0];
    for seed in 500..515 {
        let fixed = |dice: &mut Dice| Distribution::Deterministic(Deterministic::new(dice.halves(4)).expect("a law"));
        // The generator draws alike in both: only the fixed laws are others.
        let staged = |stages: u32| {
            move |dice: &mut Dice| {
                let mean = dice.halves(4);
                Distribution::Erlang(Erlang::new(stages, f64::from(stages) / mean).expect("a law"))
            }
        };
        let (net, _) = races(seed, 1, fixed);
        if net.transitions().len() > 4 {
            // A uniform delay is not made of stages.
            continue;
        }
        let answer = |net: &Net| solve(&Question { error: 1e-7, ..Question::new(net, When::At(late.clone())) });
        let exact = answer(&net).unwrap_or_else(|error| panic!("{error}: {net:?}"));
        assert_eq!(exact.method, Method::Lattice, "{net:?}");
        let by_stages: Vec<Vec<f64>> =
            STAGES.iter().map(|stages| answer(&races(seed, 1, staged(*stages)).0).expect("a Markov chain").values[0].clone()).collect();
        for place in 0..net.places().len() {
            let extrapolated = |stages: &[u32], values: &[Vec<f64>]| -> f64 {
                let weight = |own: &u32| {
                    let others = stages.iter().filter(|other| *other != own);
                    others.map(|other| f64::from(*own) / (f64::from(*own) - f64::from(*other))).product::<f64>()
                };
                stages.iter().zip(values).map(|(own, values)| weight(own) * values[place]).sum()
            };
            let (all, fewer) = (extrapolated(&STAGES, &by_stages), extrapolated(&STAGES[1..], &by_stages[1..]));
            let off = (exact.values[0][place] - all).abs();
            let allowed = exact.errors[place] + 2.0 * (all - fewer).abs() + 1e-5;
            assert!(off <= allowed, "net {seed}, P{place}: {} beside {all}, {off:e} of {allowed:e}\n{net:?}", exact.values[0][place]);
        }
    }
}

/// Delays of any law, one behind the other, with choices between them.
#[test]
fn delays_one_behind_the_other_agree_with_the_simulator() {
    let times = [0.8, 2.0, 4.5];
    for seed in 100..130 {
        let mut dice = Dice::of(seed);
        let count = 3 + dice.below(3);
        let mut transitions = Vec::new();
        for from in 0..count - 1 {
            let law = match dice.below(3) {
                0 => dice.stages(),
                1 => Distribution::Lognormal(Lognormal::new(-0.3, 0.5).expect("a law")),
                _ => dice.general(),
            };
            transitions.push(timed(&format!("t{from}"), law, Servers::SINGLE, Memory::Enabling, from, from + 1));
        }
        let mut initial = vec![0; count];
        initial[0] = 1;
        let net = net(seed, &initial, transitions);
        let question = Question { error: 1e-6, ..Question::new(&net, When::At(times.to_vec())) };
        let answer = solve(&question).unwrap_or_else(|error| panic!("{error}: {net:?}"));
        assert!(matches!(answer.method, Method::Sequential | Method::Markov), "{net:?}");
        agree(&net, &answer, &times, seed, 4_000, 1e-9);
    }
}

/// A queue of some room whose service has any law, and a machine that breaks and is repaired: one general clock at a time.
#[test]
fn the_long_run_of_one_general_clock_agrees_with_the_simulator() {
    for seed in 200..220 {
        let mut dice = Dice::of(seed);
        let exponential = |rate| Distribution::Exponential(Exponential::new(rate).expect("a law"));
        let arrive = timed("arrive", exponential(dice.halves(3)), Servers::SINGLE, Memory::Enabling, 0, 1);
        let mut serve = timed("serve", dice.general(), Servers::SINGLE, Memory::Enabling, 1, 0);
        let fail = timed("fail", exponential(0.2), Servers::SINGLE, Memory::Enabling, 2, 3);
        let repair = timed("repair", exponential(dice.halves(4)), Servers::SINGLE, Memory::Enabling, 3, 2);
        if dice.one_in(2) {
            // What has begun is lost when the machine breaks.
            serve.inhibitors.push(Arc { place: 3, weight: 1 });
        }
        let net = net(seed, &[1 + dice.below(4) as u32, 0, 1, 0], vec![arrive, serve, fail, repair]);
        let question = Question { error: 1e-6, ..Question::new(&net, When::Steady) };
        let answer = solve(&question).unwrap_or_else(|error| panic!("{error}: {net:?}"));
        assert_eq!(answer.method, Method::Regenerative);
        // As late as this the slowest of them is as good as settled: repairs and failures are over a hundred times.
        agree(&net, &answer, &[400.0], seed, 4_000, 1e-6);
    }
}

/// Every law that is made of exponential stages, in nets of several clocks.
#[test]
fn every_law_of_stages_agrees_with_the_simulator() {
    let times = [0.4, 1.5, 5.0];
    for seed in 300..330 {
        let mut dice = Dice::of(seed);
        let mut transitions = Vec::new();
        for from in 0..3 {
            let memory = if dice.one_in(3) { Memory::Age } else { Memory::Enabling };
            let mut transition = timed(&format!("t{from}"), dice.stages(), dice.servers(), memory, from, (from + 1) % 3);
            if dice.one_in(3) {
                transition.inhibitors.push(Arc { place: (from + 1) % 3, weight: 2 });
            }
            transitions.push(transition);
        }
        let net = net(seed, &[2, 1, 0], transitions);
        let question = Question { error: 1e-7, ..Question::new(&net, When::At(times.to_vec())) };
        let answer = solve(&question).unwrap_or_else(|error| panic!("{error}: {net:?}"));
        assert_eq!(answer.method, Method::Markov);
        agree(&net, &answer, &times, seed, 4_000, 1e-9);
    }
}

#[test]
fn what_is_refused_says_why() {
    let mut dice = Dice::of(7);
    let law = dice.general();
    let mut stopped =
        timed("stopped", Distribution::Uniform(Uniform::new(0.0, 1.0).expect("a law")), Servers::SINGLE, Memory::RepeatIdentical, 0, 1);
    stopped.inhibitors.push(Arc { place: 2, weight: 1 });
    let other = timed("other", law, Servers::SINGLE, Memory::Enabling, 1, 2);
    let net = net(0, &[1, 1, 0], vec![stopped, other]);
    let error = solve(&Question::new(&net, When::At(vec![1.0]))).expect_err("only simulation remembers the delay");
    assert!(matches!(error, SolveError::Explore(_)) && error.to_string().contains("only simulation remembers one"), "{error}");
    let question = Question { method: Some(Method::Regenerative), ..Question::new(&net, When::At(vec![1.0])) };
    let error = solve(&question).expect_err("it is for the long run").to_string();
    assert!(error.contains("regenerative computes the long run; use lattice for values at given times"), "{error}");
    let question = Question { method: Some(Method::Lattice), ..Question::new(&net, When::Steady) };
    assert!(solve(&question).is_err(), "the lattice has no long run");
}
