//! Nets of deployments whose answers can be reckoned, and calibrations from runs that a net has made.

use super::*;
use crate::distribution::Form;

fn fixed(mean_us: f64) -> Work {
    Work { mean_us, squared_variation: 0.0 }
}

/// Costs that do not vary.
fn costs() -> Costs {
    let wake = Wake { usual_us: 10.0, held_up: 0.0, held_up_us: 0.0, held_up_busy: 0.0 };
    Costs {
        publisher_switch: fixed(1.25),
        take: fixed(2.0),
        publish: fixed(5.0),
        turn: fixed(1.0),
        receive: fixed(2.0),
        execute: fixed(3.0),
        execute_each_us: 0.5,
        write: fixed(6.0),
        log: fixed(1.5),
        answer: fixed(4.0),
        subscriber_switch: fixed(0.75),
        read: fixed(3.0),
        note: fixed(0.25),
        wake,
        subscriber_wake: wake,
    }
}

fn load(cores: u32, publishers: u32, subscribers: u32) -> Deployment {
    Deployment { cores, publishers, subscribers, rate_per_s: None }
}

const EFFORT: Effort = Effort { events: 20_000, seed: 1, threads: 1 };

fn predict(costs: &Costs, deployment: &Deployment) -> Prediction {
    predict_events(costs, deployment, &EFFORT).expect("it can be predicted")
}

#[track_caller]
fn assert_near(found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() < part, "{found} instead of {expected}");
}

#[test]
fn where_nothing_waits_a_latency_is_the_sum_of_its_steps() {
    // publish, wake, turn, receive, execute, write, wake, switch, read.
    let alone = 5.0 + 10.0 + 1.0 + 2.0 + 3.5 + 6.0 + 10.0 + 0.75 + 3.0;
    let one = predict(&costs(), &load(3, 1, 1));
    assert_near(one.mean_us.value, alone, 0.01);
    assert_near(one.quantile_us(0.5), alone, 0.02);
    // An answer has log and answer in place of the subscriber's part, and brings the next event.
    let answered = 5.0 + 10.0 + 1.0 + 2.0 + 3.5 + 6.0 + 1.5 + 4.0 + 10.0 + 1.25 + 2.0;
    assert_near(one.per_second, 1e6 / answered, 0.01);
    assert_near(predict_answers(&costs(), &load(3, 1, 1), &EFFORT).expect("it can be predicted").mean_us.value, answered, 0.01);
    // The second write ends before the first stream is read, whose reader then goes on: read, note, read.
    let two = predict(&costs(), &load(3, 1, 2));
    assert_near(two.mean_us.value, 0.5 + alone + 0.5 * (3.0 + 0.25), 0.01);
}

#[test]
fn on_one_processor_nobody_is_woken_up_and_all_wait_for_the_broker() {
    let one = predict(&costs(), &load(1, 1, 2));
    let (publisher, broker, subscribers) = (1.25 + 2.0 + 5.0, 1.0 + 2.0 + 4.0 + 12.0 + 1.5 + 4.0, 0.75 + 3.0 + 0.25 + 3.0 + 0.25);
    assert_near(one.per_second, 2e6 / (publisher + broker + subscribers), 0.01);
    // Behind the broker's turn half of the time the publisher is first; then its next event waits until the last one is read.
    assert_near(one.mean_us.value, 5.0 + broker + 0.75 + 3.0 + 0.5 * 3.25 + 0.5 * (publisher + subscribers), 0.02);
    let (one, two) = (predict(&costs(), &load(1, 4, 4)), predict(&costs(), &load(2, 4, 4)));
    assert!(one.per_second < two.per_second && one.mean_us.value > two.mean_us.value);
}

#[test]
fn many_publishers_share_the_turns_and_the_writes() {
    let (one, many) = (predict(&costs(), &load(2, 1, 4)), predict(&costs(), &load(2, 10, 4)));
    assert!(many.per_second > 2.0 * one.per_second, "{} and {}", many.per_second, one.per_second);
    assert!(many.mean_us.value < 10.0 * one.mean_us.value);
}

#[test]
fn a_rate_is_kept_or_refused() {
    let at = |rate_per_s| Deployment { rate_per_s: Some(rate_per_s), ..load(2, 2, 2) };
    let slow = predict(&costs(), &at(500.0));
    assert_near(slow.per_second, 2_000.0, 0.01);
    let error = predict_events(&costs(), &at(50_000.0), &EFFORT).expect_err("it is more than can be served");
    assert!(matches!(error, PredictionError::Overload { .. } | PredictionError::Silent(_)), "{error}");
    for wrong in [load(0, 1, 1), load(1, 0, 1), load(1, 1, 0), load(1, 1, EVENT_PATH_SUBSCRIBERS_MAX + 1), at(0.0), at(f64::NAN)] {
        assert!(matches!(predict_events(&costs(), &wrong, &EFFORT), Err(PredictionError::Deployment(_))), "{wrong:?}");
    }
}

/// What a recorder would have of a load with one publisher whose events come one by one.
fn run(costs: &Costs, subscribers: u32) -> EventRun {
    const EVENTS: u64 = 10_000;
    let deployment = load(3, 1, subscribers);
    let delivered = predict(costs, &deployment);
    let answered = predict_answers(costs, &deployment, &EFFORT).expect("it can be predicted");
    let of_each = f64::from(subscribers);
    let stage = |us: f64| Durations { counts: vec![(us, EVENTS)], sum_us: us * EVENTS as f64 };
    EventRun {
        cores: 3,
        publishers: 1,
        subscribers,
        rate_per_s: None,
        events: EVENTS,
        elapsed_us: of_each * EVENTS as f64 / delivered.per_second * 1e6,
        latency: seen(&delivered, EVENTS as f64 * of_each),
        answered: seen(&answered, EVENTS as f64),
        receive: stage(costs.receive.mean_us),
        parse: stage(0.3 * costs.execute.mean_us),
        authorise: stage(0.3 * costs.execute.mean_us),
        execute: stage(0.4 * costs.execute.mean_us + of_each * costs.execute_each_us),
        send: stage(of_each * costs.write.mean_us + costs.log.mean_us + costs.answer.mean_us),
        publisher_us: (costs.publisher_switch.mean_us + costs.take.mean_us + costs.publish.mean_us) * EVENTS as f64,
        publisher_sleeps: EVENTS,
        subscriber_us: (costs.subscriber_switch.mean_us + of_each * (costs.read.mean_us + costs.note.mean_us)) * EVENTS as f64,
        subscriber_sleeps: EVENTS,
        subscriber_queued_us: Some(2.0 * EVENTS as f64),
        stream_reads: u64::from(subscribers) * EVENTS,
        broker_us: Some((costs.turn.mean_us + broker_stages_us(costs, of_each)) * EVENTS as f64),
    }
}

fn broker_stages_us(costs: &Costs, subscribers: f64) -> f64 {
    let of_each = costs.execute_each_us + costs.write.mean_us;
    [costs.receive, costs.execute, costs.log, costs.answer].iter().map(|work| work.mean_us).sum::<f64>() + subscribers * of_each
}

/// A predicted curve as a recorder would have it of so many responses.
fn seen(predicted: &Prediction, responses: f64) -> Durations {
    let rising = predicted.curve.windows(2).map(|pair| (pair[1].0, ((pair[1].1 - pair[0].1) * responses).round() as u64));
    let counts: Vec<(f64, u64)> = rising.filter(|(_, count)| *count > 0).collect();
    let count: u64 = counts.iter().map(|(_, count)| count).sum();
    Durations { counts, sum_us: predicted.mean_us.value * count as f64 }
}

#[test]
fn a_calibration_from_two_loads_predicts_a_third() {
    let mut truth = costs();
    truth.wake = Wake { usual_us: 15.0, held_up: 0.01, held_up_us: 400.0, held_up_busy: 0.02 };
    truth.subscriber_wake = Wake { usual_us: 8.0, held_up: 0.02, held_up_us: 300.0, held_up_busy: 0.02 };
    let runs = [run(&truth, 1), run(&truth, 3), run(&truth, 1)];
    // The same luck for all: with other luck 20,000 events with some hundred long wake-ups have means that differ by 5 % themselves.
    let calibration = calibrate(&runs, &Effort { threads: 2, ..EFFORT }).expect("there is everything");
    assert_eq!(calibration.loads.len(), 2, "runs of one load are one");
    for subscribers in [1, 6] {
        let (found, expected) = (
            predict(&calibration.costs.nearest(&load(3, 1, subscribers)).costs, &load(3, 1, subscribers)),
            predict(&truth, &load(3, 1, subscribers)),
        );
        assert_near(found.mean_us.value, expected.mean_us.value, 0.05);
        assert_near(found.quantile_us(0.99), expected.quantile_us(0.99), 0.15);
    }
}

/// A run in which the machine was somewhere else for a while has no say.
#[test]
fn of_three_runs_the_one_in_the_middle_counts() {
    let (usual, slow) = (run(&costs(), 1), run(&Costs { execute: Work { mean_us: 400.0, squared_variation: 0.0 }, ..costs() }, 1));
    let effort = Effort { events: 2_000, seed: 1, threads: 2 };
    let of = |runs: &[EventRun]| calibrate(runs, &effort).expect("there is everything");
    let (load, _) = &of(&[slow.clone(), usual.clone(), usual.clone()]).loads[0];
    assert_eq!(*load, usual);
    assert_eq!(load.queued_us(), Some(2.0));
    let (both, _) = &of(&[slow.clone(), usual.clone()]).loads[0];
    assert_eq!(both.events, 2 * usual.events, "of two runs neither is in the middle");
    let (middle, _) = &of(&[slow.clone(), usual.clone(), usual.clone(), usual.clone(), slow]).loads[0];
    assert_eq!((middle.events, middle.latency.mean_us()), (usual.events, usual.latency.mean_us()));
}

/// A machine that was away for a tenth of a second now and then: a search in simulations that are shorter than that does not see what such a wake-up
/// does, and may not make the net wait for it.
#[test]
fn nobody_is_held_up_for_longer_than_a_simulation_sees() {
    let away = |subscribers| {
        let mut run = run(&costs(), subscribers);
        for durations in [&mut run.latency, &mut run.answered] {
            durations.add(&Durations { counts: vec![(100_000.0, 30)], sum_us: 3e6 });
        }
        run
    };
    let runs = [away(1), away(3)];
    let few = Effort { events: 1_000, seed: 1, threads: 2 };
    let calibration = calibrate(&runs, &few).expect("there is everything");
    let costs = &calibration.costs.nearest(&load(3, 1, 1)).costs;
    let many = predict_events(costs, &load(3, 1, 1), &Effort { events: 50_000, ..few }).expect("it can be predicted");
    let (predicted, measured) = (many.mean_us.value, runs[0].latency.mean_us());
    assert!(predicted < 10.0 * measured, "{predicted} beside {measured} us, {:?} {:?}", costs.wake, costs.subscriber_wake);
}

#[test]
fn a_run_without_stages_or_deliveries_is_refused_with_what_is_missing() {
    let effort = Effort { events: 1_000, seed: 1, threads: 1 };
    assert_eq!(calibrate(&[], &effort), Err(CalibrationError::Empty));
    let whole = run(&costs(), 1);
    let without = EventRun { send: Durations::default(), ..whole.clone() };
    let told = calibrate(&[without], &effort).expect_err("it has no stage").to_string();
    assert_eq!(told, "run 1x1: no stages of the Event Handler were recorded");
    let told = calibrate(&[EventRun { stream_reads: 0, ..whole.clone() }], &effort).expect_err("nothing came").to_string();
    assert_eq!(told, "run 1x1: no deliveries were recorded");
    let told =
        calibrate(&[EventRun { answered: Durations::default(), ..whole.clone() }], &effort).expect_err("nothing was answered").to_string();
    assert_eq!(told, "run 1x1: no answers were recorded");
    assert_eq!(calibrate(&[EventRun { rate_per_s: Some(9.0), ..whole }], &effort), Err(CalibrationError::Paced));
}

/// One consumer and one stage of an exponential law behind a way of 20 us: every response is independent, and `p` of them are not above `20 - 10 ln(1 - p)`.
#[test]
fn the_intervals_of_quantiles_hold_them() {
    let step =
        |name: &str, waits: Form| OrchestrationStep { name: name.to_owned(), work_us: 0.0, alone_us: 0.0, waits, whose: Whose::Cloud };
    let laws = OrchestrationLaws {
        consumers: vec![1],
        steps: vec![step("transit", Form::Deterministic { value: 20.0 }), step("execute", Form::Exponential { rate: 0.1 })],
        beside_us: Beside { alone: 0.0, many: 0.0 },
        held_up: HeldUp::default(),
        places: None,
        mean_off_percent: 0.0,
    };
    let deployment = OrchestrationDeployment { cores: 1, others: 0.0, consumers: 1 };
    let predict =
        |seed, events| predict_orchestrations(&laws, &deployment, &Effort { events, seed, threads: 1 }).expect("it can be predicted");
    for share in [0.5, 0.9, 0.99] {
        let exact = 20.0 - 10.0 * (1.0_f64 - share).ln();
        let covers = |seed: &u64| {
            let told = predict(*seed, 4_000).told_quantile_us(share);
            assert!(told.low < told.value && told.value < told.high && told.high < 2.0 * exact, "{told:?}");
            told.covers(exact)
        };
        let covered = (1..=100).filter(covers).count();
        assert!(covered >= 95, "{covered} of 100 intervals hold the quantile of {share}");
    }
    // The mean, of 16 runs: Student's quantile and not the normal law's.
    let covered = (1..=100).filter(|seed| predict(*seed, 4_000).mean_us.covers(30.0)).count();
    assert!(covered >= 97, "{covered} of 100 intervals hold the mean");
    let width = |events| {
        let told = predict(1, events).told_quantile_us(0.9);
        told.high - told.low
    };
    assert!(width(64_000) < 0.5 * width(4_000), "more events tell more");
    let few = predict(1, 1_000).told_quantile_us(0.999);
    assert!(few.high == f64::INFINITY && few.low.is_finite(), "a thousand responses do not say what one of a thousand takes: {few:?}");
}
