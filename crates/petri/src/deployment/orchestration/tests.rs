//! Nets of orchestrations whose answers can be reckoned, and laws from runs that a net has made.

use super::{super::orchestration_path::ORCHESTRATION_CORES_MAX, fitting::fitted, laws::waking, *};
use crate::distribution::{Distribution, Form};

const EFFORT: Effort = Effort { events: 20_000, seed: 1, threads: 1 };

fn fixed(value: f64) -> Form {
    Form::Deterministic { value }
}

fn laws(beside_us: f64) -> OrchestrationLaws {
    let step = |name: &str, work_us, waits_us| OrchestrationStep {
        name: name.to_owned(),
        work_us,
        alone_us: 0.0,
        waits: fixed(waits_us),
        whose: Whose::Cloud,
    };
    OrchestrationLaws {
        consumers: vec![1],
        steps: vec![step("transit", 10.0, 30.0), step("gsd call", 40.0, 120.0)],
        beside_us: Beside { alone: beside_us, many: beside_us },
        held_up: HeldUp::default(),
        places: None,
        mean_off_percent: 0.0,
    }
}

#[track_caller]
fn mean_us(laws: &OrchestrationLaws, consumers: u32, cores: u32) -> f64 {
    mean_beside_others_us(laws, consumers, cores, 0.0)
}

#[track_caller]
fn mean_beside_others_us(laws: &OrchestrationLaws, consumers: u32, cores: u32, others: f64) -> f64 {
    let deployment = OrchestrationDeployment { cores, others, consumers };
    predict_orchestrations(laws, &deployment, &EFFORT).expect("it can be predicted").mean_us.value
}

#[track_caller]
fn assert_near(found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() < part, "{found} instead of {expected}");
}

#[test]
fn one_consumer_waits_for_every_step_and_many_for_the_processors() {
    assert_near(mean_us(&laws(0.0), 1, 2), 200.0, 1e-6);
    // What is left is done while the next step waits, and wants its turn where many ask.
    assert_near(mean_us(&laws(20.0), 1, 2), 200.0, 1e-6);
    assert_near(mean_us(&laws(20.0), 40, 2), 40.0 * 70.0 / 2.0, 0.05);
    assert_near(mean_us(&laws(0.0), 40, 1), 40.0 * 50.0, 0.03);
    let (two, four) = (mean_us(&laws(0.0), 2, 1), mean_us(&laws(0.0), 4, 1));
    assert!((199.99..250.0).contains(&two) && (199.99..300.0).contains(&four), "{two} and {four}");
    let mistakes = [(0, 1, 0.0), (1, 0, 0.0), (1, ORCHESTRATION_CORES_MAX + 1, 0.0), (1, 2, -0.1), (1, 2, 2.1), (1, 2, f64::NAN)];
    for (consumers, cores, others) in mistakes {
        assert!(predict_orchestrations(&laws(0.0), &OrchestrationDeployment { cores, others, consumers }, &EFFORT).is_err());
    }
}

/// Two on two processors: half of all steps come to the one where the other may be served, and wait for the rest of that.
#[test]
fn who_goes_on_waits_for_a_processor_although_another_one_is_idle() {
    let step = |name: &str| OrchestrationStep {
        name: name.to_owned(),
        work_us: 50.0,
        alone_us: 0.0,
        waits: Form::Exponential { rate: 0.01 },
        whose: Whose::Cloud,
    };
    let laws = OrchestrationLaws {
        consumers: vec![1],
        steps: vec![step("gsd call"), step("icn call")],
        beside_us: Beside { alone: 0.0, many: 0.0 },
        held_up: HeldUp::default(),
        places: None,
        mean_off_percent: 0.0,
    };
    let two = mean_us(&laws, 2, 2);
    assert!((303.0..330.0).contains(&two), "{two}");
    assert_near(mean_us(&laws, 1, 2), 300.0, 0.02);
}

/// Many who only work, on one processor, wait for each of the others once.
#[test]
fn who_came_first_is_served_first() {
    let mut laws = laws(0.0);
    laws.steps = vec![OrchestrationStep { name: "work".to_owned(), work_us: 50.0, alone_us: 0.0, waits: fixed(1.0), whose: Whose::Cloud }];
    laws.steps.push(OrchestrationStep { name: "other work".to_owned(), ..laws.steps[0].clone() });
    let told = predict_orchestrations(&laws, &OrchestrationDeployment { cores: 1, others: 0.0, consumers: 10 }, &EFFORT)
        .expect("it can be predicted");
    assert_near(told.mean_us.value, 1_000.0, 0.01);
    assert!(told.quantile_us(0.99) < 1_700.0, "{}", told.quantile_us(0.99));
}

fn times(us: f64, count: u64) -> Durations {
    Durations { counts: vec![(us, count)], sum_us: us * count as f64 }
}

/// 100 orchestrations whose steps never vary: 3 + (50 + 70) + (60 + 110) + 7 of 400 us.
fn run(consumers: u32, latency_us: f64, processor_us: Option<f64>) -> OrchestrationRun {
    let stage = |name: &str, us| (name.to_owned(), times(us, 100));
    let dialogue = |name: &str, call, answer, decide| Dialogue {
        name: name.to_owned(),
        call: times(call, 100),
        answer: times(answer, 100),
        decide: times(decide, 100),
    };
    OrchestrationRun {
        cores: 2,
        others: 0.0,
        consumers,
        orchestrations: 100,
        latency: times(latency_us, 100),
        before: vec![stage("parse", 3.0), ("queue".to_owned(), Durations::default())],
        dialogues: vec![dialogue("gsd", 50.0, 70.0, 20.0), dialogue("icn", 60.0, 110.0, 45.0)],
        after: vec![stage("send", 7.0)],
        processor_us: processor_us.map(|us| us * 100.0),
        sides: None,
    }
}

fn fit(runs: &[OrchestrationRun]) -> OrchestrationLaws {
    fit_orchestrations(runs, &EFFORT).expect("laws").laws
}

fn works_us(laws: &OrchestrationLaws) -> f64 {
    laws.steps.iter().map(|step| step.work_us).sum()
}

#[test]
fn steps_of_the_lightest_load_and_work_of_each_make_the_laws() {
    // What the consumers of the second load find is as much work as two processors do.
    let laws = fit(&[run(1, 400.0, Some(100.0)), run(8, 400.0, Some(100.0)), run(1, 400.0, Some(100.0))]);
    assert_eq!(laws.consumers, [1, 8]);
    let names: Vec<&str> = laws.steps.iter().map(|step| step.name.as_str()).collect();
    let expected =
        ["transit", "parse", "gsd call", "gsd there and back", "gsd decides", "icn call", "icn there and back", "icn decides", "send"];
    assert_eq!(names, expected);
    for (step, us) in laws.steps.iter().zip([100.0, 3.0, 50.0, 50.0, 20.0, 60.0, 65.0, 45.0, 7.0]) {
        let waits_us = Distribution::try_from(step.waits.clone()).expect("a law").mean();
        assert!(waits_us > 0.0 && step.work_us + waits_us < us * (1.0 + 1e-9), "{step:?}");
    }
    assert_eq!(laws.steps[0].work_us, 0.0, "the consumer's way is none of the clouds' work");
    assert_near(works_us(&laws) + laws.beside_us.many, 100.0, 1e-9);
    assert_near(mean_us(&laws, 1, 2), 400.0, 0.01);
    assert_near(mean_us(&laws, 100, 2), 100.0 * 100.0 / 2.0, 0.03);
    // More work than an orchestration has time for is done beside it.
    let laws = fit(&[run(1, 400.0, Some(500.0))]);
    assert_near(works_us(&laws), 0.95 * 300.0, 1e-9);
    assert_near(laws.beside_us.many, 500.0 - 0.95 * 300.0, 1e-9);
    // Where it is not known what works, everything does.
    let laws = fit(&[run(1, 400.0, None)]);
    assert_near(works_us(&laws), 0.95 * 300.0, 1e-9);
    assert_eq!(laws.beside_us, Beside { alone: 0.0, many: 0.0 });
}

#[test]
fn what_is_worked_for_each_is_less_where_many_ask() {
    let beside = Beside::nearest(&[(1, 14.0), (4, 11.0)], Beside::unshared);
    assert_near(beside.of(1), 14.0, 1e-9);
    assert_near(beside.of(4), 11.0, 1e-9);
    assert_near(beside.of(9), 10.0, 1e-9);
    assert_eq!(Beside::nearest(&[(3, 5.0)], waking), Beside { alone: 5.0, many: 5.0 });
}

/// One whom nobody else keeps threads awake for works more, all of it on the way; where two ask, a quarter of that is left.
#[test]
fn who_is_alone_wakes_the_threads_that_it_waits_for() {
    let own =
        |consumers, latency_us, processor_us| OrchestrationRun { dialogues: Vec::new(), ..run(consumers, latency_us, Some(processor_us)) };
    let mut truth = laws(0.0);
    truth.steps =
        vec![OrchestrationStep { name: "transit".to_owned(), work_us: 100.0, alone_us: 160.0, waits: fixed(140.0), whose: Whose::Cloud }];
    for (consumers, works_us) in [(1, 260.0), (2, 140.0), (4, 110.0)] {
        assert_near(truth.steps[0].work_of_us(consumers), works_us, 1e-9);
    }
    assert_near(mean_us(&truth, 1, 2), 400.0, 1e-6);
    let laws = fit(&[own(1, 400.0, 260.0), own(4, mean_us(&truth, 4, 2), 110.0)]);
    assert_eq!(laws.beside_us.alone, laws.beside_us.many, "what is saved is on the way");
    let works_us = |consumers| laws.steps.iter().map(|step| step.work_of_us(consumers)).sum::<f64>() + laws.beside_us.many;
    assert_near(works_us(1), 260.0, 0.01);
    assert_near(works_us(4), 110.0, 0.01);
    for consumers in [2, 8] {
        assert_near(mean_us(&laws, consumers, 2), mean_us(&truth, consumers, 2), 0.05);
    }
}

/// Whatever part of it is on the way.
#[test]
fn other_numbers_of_consumers_are_told_by_two_loads() {
    let truth = |way_us: f64, beside_us: f64| {
        let steps = fitted(&run(1, 400.0, None).passed().expect("steps"), 300.0, Beside { alone: way_us, many: way_us }, way_us, 0.0)
            .expect("laws");
        OrchestrationLaws { steps, ..laws(beside_us) }
    };
    for (way_us, beside_us) in [(250.0, 0.0), (100.0, 150.0)] {
        let truth = truth(way_us, beside_us);
        let seen = |consumers| run(consumers, mean_us(&truth, consumers, 2), Some(250.0));
        let laws = fit(&[seen(1), seen(4)]);
        for consumers in [2, 3, 8] {
            assert_near(mean_us(&laws, consumers, 2), mean_us(&truth, consumers, 2), 0.03);
        }
    }
}

#[test]
fn who_shares_processors_with_others_waits_for_what_they_leave() {
    // Of two processors one and a half: many wait by the work that is done for each.
    assert_near(mean_beside_others_us(&laws(20.0), 40, 2, 0.5), 40.0 * 70.0 / 1.5, 0.05);
    // Whatever others have, something is left.
    assert_near(mean_beside_others_us(&laws(20.0), 40, 2, 2.0), 40.0 * 70.0 / 0.1, 0.05);
    assert_near(mean_beside_others_us(&laws(0.0), 1, 2, 0.5), 150.0 + 50.0 / 0.75, 1e-6);
    let left = |cores, others| OrchestrationDeployment { cores, others, consumers: 1 }.left();
    for (others, whole) in [(0.0, 4), (0.75, 4), (0.8, 3), (1.0, 3), (3.75, 1), (4.0, 1)] {
        let (processors, slowness) = left(4, others);
        assert_eq!(processors, whole, "{others}");
        assert_near(f64::from(processors) / slowness, (4.0 - others).max(0.2), 1e-9);
    }
    assert_eq!(left(1, 0.0), (1, 1.0));
}

/// A recording beside others tells what orchestrations take without them, and beside more of them.
#[test]
fn loads_beside_others_tell_of_a_machine_that_has_nothing_else_to_do() {
    let truth = OrchestrationLaws {
        steps: fitted(&run(1, 400.0, None).passed().expect("steps"), 300.0, Beside { alone: 150.0, many: 150.0 }, 150.0, 0.0)
            .expect("laws"),
        ..laws(50.0)
    };
    let seen = |consumers, others| {
        let latency_us = mean_beside_others_us(&truth, consumers, 2, others);
        // Beside others the stages take longer, too: as much as their work does.
        let mut seen = run(consumers, latency_us, Some(200.0));
        let longer = 1.0 + 0.5 * (OrchestrationDeployment { cores: 2, others, consumers }.left().1 - 1.0);
        for (_, durations) in seen.before.iter_mut().chain(&mut seen.after) {
            *durations = times(durations.mean_us() * longer, 100);
        }
        OrchestrationRun { others, ..seen }
    };
    let laws = fit(&[seen(1, 0.9), seen(4, 0.6)]);
    for others in [0.0, 1.2] {
        let [found, expected] = [&laws, &truth].map(|laws| mean_beside_others_us(laws, 8, 2, others));
        assert_near(found, expected, 0.05);
    }
}

#[test]
fn runs_of_a_load_share_what_others_had() {
    let beside = |others| OrchestrationRun { others, ..run(1, 400.0, None) };
    assert_near(OrchestrationRun::typical(&[beside(0.2), beside(1.0)], 1).others, 0.6, 1e-9);
    assert_near(beside(2.1).deployment().others, 2.0, 1e-9);
}

#[test]
fn what_is_missing_is_told() {
    let told = |runs: &[OrchestrationRun]| fit_orchestrations(runs, &EFFORT).expect_err("nothing can be fitted").to_string();
    assert_eq!(told(&[]), "of orchestrations no runs were recorded");
    let mut silent = run(1, 400.0, None);
    silent.dialogues[1].decide = Durations::default();
    assert_eq!(told(&[silent]), "of orchestrations no decisions of icn were recorded");
    assert!(told(&[run(1, 200.0, None)]).starts_with("the steps of an orchestration took 300 us and its answer came behind 200 us"));
}
