//! Nets that nobody has chosen: simulation and numerical methods have to agree on them.

use std::num::NonZeroU32;

use bodkin_petri::{
    distribution::{Distribution, Erlang, Exponential},
    expression::{Expression, Operator},
    net::{Arc, Delay, Firing, Memory, Net, Place, Servers, Timed, Transition},
    random::{self, Draws},
    simulate::{self, simulate},
    solve::{Question, When, solve},
};

const NETS: u64 = 40;
const TIMES: [f64; 3] = [0.4, 1.5, 5.0];

/// What an interval of a million misses once is allowed beside the error of the numerical method.
const CONFIDENCE: f64 = 1.0 - 1e-6;
const ERROR: f64 = 1e-6;

/// Numbers for one net.
struct Dice(Draws);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.uniform() * limit as f64) as usize
    }

    fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }
}

/// Three to five places with up to four tokens, which timed transitions move anywhere and immediate ones only to later places, so that
/// no time-less circle arises; with inhibitors, tests, guards, priorities, weights and servers here and there.
fn net(seed: u64) -> Net {
    let mut dice = Dice(Draws::at(seed, random::Place { run: 0, stream: 0, draw: 0 }));
    let count = 3 + dice.below(3);
    let initial = |place: usize, dice: &mut Dice| if place == 0 { 2 } else { dice.below(2) as u32 };
    let places = (0..count).map(|place| Place { name: format!("P{place}"), initial: initial(place, &mut dice) }).collect();
    let timed = (0..count + 1).map(|index| {
        let from = index % count;
        let to = (from + 1 + dice.below(count - 1)) % count;
        transition(format!("timed{index}"), from, to, count, firing(&mut dice), &mut dice)
    });
    let mut transitions: Vec<Transition> = timed.collect();
    for index in 0..dice.below(3) {
        let from = dice.below(count - 1);
        let to = from + 1 + dice.below(count - from - 1);
        let firing = Firing::Immediate { priority: dice.below(2) as u32, weight: 1.0 + dice.below(3) as f64 };
        let mut immediate = transition(format!("immediate{index}"), from, to, count, firing, &mut dice);
        // Only where tokens heap up: or no place before the last would ever hold one.
        immediate.inputs[0].weight = 2;
        immediate.outputs[0].weight = 2;
        transitions.push(immediate);
    }
    Net::new(format!("random {seed}"), "s", places, transitions).expect("the net is right")
}

fn transition(name: String, from: usize, to: usize, places: usize, firing: Firing, dice: &mut Dice) -> Transition {
    let arc = |place, weight| Arc { place, weight };
    let mut some = |weight| if dice.one_in(5) { vec![arc(dice.below(places), weight)] } else { Vec::new() };
    // An inhibitor or a test of the input itself might contradict it.
    let (inhibitors, tests) = (some(3), some(1));
    let elsewhere = |arcs: Vec<Arc>| arcs.into_iter().filter(|arc| arc.place != from).collect();
    let guard = dice.one_in(5).then(|| {
        let sum = Expression::Binary(Operator::Add, Box::new(Expression::Place(from)), Box::new(Expression::Place(to)));
        Expression::Binary(Operator::Less, Box::new(sum), Box::new(Expression::Number(4.0)))
    });
    let (inputs, outputs) = (vec![arc(from, 1)], vec![arc(to, 1)]);
    Transition { name, inputs, outputs, inhibitors: elsewhere(inhibitors), tests: elsewhere(tests), guard, firing }
}

fn firing(dice: &mut Dice) -> Firing {
    let rate = 0.5 + dice.below(4) as f64;
    let delay = match dice.below(3) {
        0 => Delay::Distribution(Distribution::Erlang(Erlang::new(2 + dice.below(2) as u32, 2.0 * rate).expect("a law"))),
        _ => Delay::Distribution(Distribution::Exponential(Exponential::new(rate).expect("a law"))),
    };
    let servers = match dice.below(3) {
        0 => Servers::SINGLE,
        1 => Servers::Count(NonZeroU32::new(2).expect("it is not 0")),
        _ => Servers::Infinite,
    };
    Firing::Timed(Timed { delay, servers, memory: Memory::Enabling, priority: 0, weight: 1.0 })
}

#[test]
fn simulation_and_numerical_methods_agree() {
    for seed in 0..NETS {
        let net = net(seed);
        let question = Question { error: ERROR, ..Question::new(&net, When::At(TIMES.to_vec())) };
        let solved = solve(&question).unwrap_or_else(|error| panic!("{error}: {net:?}"));
        let asked = simulate::Question { instants: TIMES.to_vec(), measures: Vec::new(), target: None, tag: None };
        let options = simulate::Options { seed, confidence: CONFIDENCE, runs: 3_000, ..simulate::Options::default() };
        let simulated = simulate(&net, &asked, &options).unwrap_or_else(|error| panic!("{error}: {net:?}"));
        // Every transition takes as many tokens as it gives.
        let tokens = f64::from(net.initial().iter().sum::<u32>());
        for values in &solved.values {
            let found: f64 = values.iter().sum();
            assert!((found - tokens).abs() <= ERROR * values.len() as f64, "net {seed}: {found} tokens of {tokens}\n{net:?}");
        }
        for (place, estimates) in simulated.places.iter().enumerate() {
            for ((time, estimate), values) in TIMES.iter().zip(estimates).zip(&solved.values) {
                let value = values[place];
                let agree = estimate.low - ERROR <= value && value <= estimate.high + ERROR;
                assert!(agree, "net {seed}, P{place} at {time}: {estimate:?} beside {value} by {:?}\n{net:?}", solved.method);
            }
        }
    }
}
