//! Laws of orchestrations that the own cloud answers, where the processor time of either side is known.
//!
//! All consumers are one thread, which keeps its processor while it has something to do; the cloud's threads have the others, and now and then that one. So a cloud with two processors serves orchestrations one after the other
//! for the most part, while the consumers are at the next ones (decision 145).

use super::{
    Beside, Effort, HeldUp, OrchestrationError, OrchestrationLaws, OrchestrationRun, OrchestrationStep, Passed, Places, Sides,
    WAIT_PART_MIN, Whose,
    fitting::{WORK_PART_MAX, few, fitted, squares, with_what_is_held, with_who_is_held_up},
    laws::waking,
};
use crate::{
    deployment::{calibration::USUAL, costs::Work},
    distribution::{DistributionError, Form},
};

/// How likely the cloud's work goes to the consumers' processor beside 1 for each other one: what is tried. At 1 any processor is as likely.
const SHARED: [f64; 10] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0];
/// Variance over squared mean that the cloud's work has at most.
const SQUARED_VARIATION_MAX: f64 = 1.0;
/// Part of their work that consumers do between an answer and the next request, at most; the rest is in halves in front of the cloud's and behind it.
const BETWEEN_PART_MAX: f64 = 0.5;

/// The laws of loads, that with the fewest consumers first, of each of which it is known what either side had of the processors. How long steps take is told by the first load, how much is worked by each; how often the cloud's work
/// goes to the consumers' processor is what brings the means of all loads nearest to the measured ones. One consumer alone does not tell that: then it does not.
pub fn fit(loads: &[OrchestrationRun], sides: &[Sides], effort: &Effort) -> Result<OrchestrationLaws, OrchestrationError> {
    let alone = &loads[0];
    let least = alone.consumers;
    let (_, slowness) = alone.deployment().left();
    let of_each = |of: fn(&Sides) -> f64| -> Vec<(u32, f64)> {
        loads.iter().zip(sides).map(|(load, sides)| (load.consumers, of(sides) / load.orchestrations as f64)).collect()
    };
    let of_consumers = Beside::nearest(&of_each(|sides| sides.consumers_us), waking);
    let of_cloud = Beside::nearest(&of_each(|sides| sides.clouds_us), waking);
    let answer_us = f64::from(least) * sides[0].elapsed_us / alone.orchestrations as f64;
    let between_us = ((answer_us - alone.latency.mean_us()) / slowness).clamp(0.0, BETWEEN_PART_MAX * of_consumers.many);
    let asking = Beside { alone: of_consumers.alone - between_us, many: of_consumers.many - between_us };
    let steps = without(alone.passed()?, slowness * asking.with(least));
    let working_us: f64 = steps.iter().map(|step| step.mean_us).sum();
    let room_us = WORK_PART_MAX * working_us / slowness;
    let way_us = room_us.min(of_cloud.many);
    let lonely_us = (of_cloud.alone - of_cloud.many).clamp(0.0, (room_us - way_us) / waking(least));
    let way = Beside { alone: way_us + lonely_us, many: way_us };
    // Who asks alone waits for nobody, so that the answers vary as the work does.
    let spread_us2 = alone.latency.squared_variation(USUAL) * alone.latency.mean_us().powi(2);
    let squared_variation = (spread_us2 / (slowness * way.with(least)).powi(2)).min(SQUARED_VARIATION_MAX);
    let tried = if loads.len() == 1 && least == 1 { &SHARED[..1] } else { &SHARED[..] };
    let few = few(effort);
    let mut best: Option<(f64, OrchestrationLaws)> = None;
    for shared in tried {
        let laws = |held_us: f64| -> Result<OrchestrationLaws, DistributionError> {
            let worked_us = way.with(least);
            let of_cloud = fitted(&steps, working_us, way, worked_us, (slowness - 1.0) * worked_us + held_us)?;
            let [asks, hears] = ["consumer asks", "consumer hears"].map(|name| half(name, asking));
            Ok(OrchestrationLaws {
                consumers: loads.iter().map(|load| load.consumers).collect(),
                steps: std::iter::once(asks?).chain(of_cloud).chain([hears?]).collect(),
                beside_us: Beside { alone: 0.0, many: 0.0 },
                held_up: HeldUp::default(),
                places: Some(Places { shared: *shared, between_us, squared_variation }),
                mean_off_percent: 0.0,
            })
        };
        let laws = with_what_is_held(alone, &few, laws)?;
        let laws = with_who_is_held_up(loads.last().expect("there is one"), &few, laws)?;
        let squares = squares(&laws, loads, &few)?;
        if best.as_ref().is_none_or(|(least, _)| squares < *least) {
            best = Some((squares, laws));
        }
    }
    Ok(best.expect("some were tried").1)
}

impl Beside {
    /// Of each of so many consumers, where two threads sleep on the way of one.
    fn with(self, consumers: u32) -> f64 {
        self.many + (self.alone - self.many) * waking(consumers)
    }
}

/// Half of what consumers work.
fn half(name: &str, work: Beside) -> Result<OrchestrationStep, DistributionError> {
    let (work_us, alone_us) = (0.5 * work.many, 0.5 * (work.alone - work.many));
    let waits = Form::from(&Work::default().law()?);
    Ok(OrchestrationStep { name: name.to_owned(), work_us, alone_us, waits, whose: Whose::Consumers })
}

/// The steps without what consumers work: it is in the first one, which has what no other one has.
fn without(mut steps: Vec<Passed>, consumers_us: f64) -> Vec<Passed> {
    let transit = &mut steps[0];
    let least_us = WAIT_PART_MIN * transit.mean_us;
    transit.values.iter_mut().for_each(|value| *value = (*value - consumers_us).max(least_us));
    transit.mean_us = (transit.mean_us - consumers_us).max(least_us);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::{Durations, OrchestrationDeployment, Prediction, predict_orchestrations};

    const EFFORT: Effort = Effort { events: 20_000, seed: 1, threads: 1 };

    /// 20 us of the consumers' work, 2 of them between, and 30 of the cloud's; who is alone has 10 and 6 more. 4 us without a processor.
    fn truth(shared: f64) -> OrchestrationLaws {
        let asking = Beside { alone: 28.0, many: 18.0 };
        let [asks, hears] = ["consumer asks", "consumer hears"].map(|name| half(name, asking).expect("a law"));
        let waits = Form::Deterministic { value: 4.0 };
        let serves = OrchestrationStep { name: "transit".to_owned(), work_us: 30.0, alone_us: 6.0, waits, whose: Whose::Cloud };
        OrchestrationLaws {
            consumers: vec![1],
            steps: vec![asks, serves, hears],
            beside_us: Beside { alone: 0.0, many: 0.0 },
            held_up: HeldUp::default(),
            places: Some(Places { shared, between_us: 2.0, squared_variation: 0.0 }),
            mean_off_percent: 0.0,
        }
    }

    fn predict(laws: &OrchestrationLaws, consumers: u32, cores: u32) -> Prediction {
        predict_orchestrations(laws, &OrchestrationDeployment { cores, others: 0.0, consumers }, &EFFORT).expect("it can be predicted")
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64, part: f64) {
        assert!((found / expected - 1.0).abs() < part, "{found} instead of {expected}");
    }

    #[test]
    fn a_cloud_beside_its_consumers_serves_one_after_the_other() {
        let laws = truth(0.0);
        assert_near(predict(&laws, 1, 2).mean_us.value, 28.0 + 36.0 + 4.0, 1e-3);
        assert_near(predict(&laws, 1, 2).per_second, 1e6 / 70.0, 0.01);
        for consumers in [4, 8] {
            let found = predict(&laws, consumers, 2);
            let works_us = 30.0 + 6.0 * waking(consumers);
            assert_near(found.per_second, 1e6 / works_us, 0.01);
            assert_near(found.mean_us.value, f64::from(consumers) * works_us - 2.0, 0.02);
            assert!(predict(&laws, consumers, 3).per_second > 1.3 * found.per_second, "a third processor is the cloud's");
        }
        // On one processor everybody waits for everybody's work.
        assert_near(predict(&laws, 8, 1).per_second, 1e6 / (20.0 + 10.0 * waking(8) + 30.0 + 6.0 * waking(8)), 0.01);
        assert!(predict(&truth(0.15), 8, 2).per_second > 1.05 * predict(&laws, 8, 2).per_second, "now and then two work for the cloud");
    }

    /// What a recorder has of the net itself.
    fn run(laws: &OrchestrationLaws, consumers: u32) -> (OrchestrationRun, Sides) {
        const COUNT: u64 = 10_000;
        let found = predict(laws, consumers, 2);
        let rising = found.curve.windows(2).map(|pair| (pair[1].0, ((pair[1].1 - pair[0].1) * COUNT as f64).round() as u64));
        let counts: Vec<(f64, u64)> = rising.filter(|(_, count)| *count > 0).collect();
        let count: u64 = counts.iter().map(|(_, count)| count).sum();
        let all = |each_us: f64| each_us * count as f64;
        let sides = Sides {
            elapsed_us: all(1e6 / found.per_second),
            consumers_us: all(20.0 + 10.0 * waking(consumers)),
            clouds_us: all(30.0 + 6.0 * waking(consumers)),
        };
        let run = OrchestrationRun {
            cores: 2,
            others: 0.0,
            consumers,
            orchestrations: count,
            latency: Durations { sum_us: all(found.mean_us.value), counts },
            before: vec![("send".to_owned(), Durations { counts: vec![(10.0, count)], sum_us: all(10.0) })],
            dialogues: Vec::new(),
            after: Vec::new(),
            processor_us: Some(sides.consumers_us + sides.clouds_us),
            sides: Some(sides),
        };
        (run, sides)
    }

    #[test]
    fn other_numbers_of_consumers_are_told_by_two_loads() {
        for shared in [0.0, 0.25] {
            let truth = truth(shared);
            let (runs, sides): (Vec<_>, Vec<_>) = [1, 4].map(|consumers| run(&truth, consumers)).into_iter().unzip();
            let found = fit(&runs, &sides, &EFFORT).expect("laws");
            for consumers in [2, 8] {
                let [told, is] = [&found, &truth].map(|laws| predict(laws, consumers, 2).mean_us.value);
                assert_near(told, is, 0.08);
            }
        }
    }

    #[test]
    fn who_asks_alone_does_not_tell_who_shares() {
        let (run, sides) = run(&truth(0.5), 1);
        let places = fit(&[run], &[sides], &EFFORT).expect("laws").places.expect("the sides are known");
        assert_eq!(places.shared, 0.0);
        assert_near(places.between_us, 2.0, 0.1);
    }
}
