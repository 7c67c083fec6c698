//! An orchestration that leads to another cloud, as a net: the consumer's request passes the asking Orchestrator, a global service discovery (GSD) and
//! an inter-cloud negotiation (ICN), each with a call, a way there and back, and what the other cloud decides (Rocha 2019, Figure 5.5).
//!
//! Everybody shares the processors. Of each step a part is work, which needs one; in the rest messages are on their way and threads are woken, and
//! nobody needs any. Beside its way an orchestration has work of which it does not wait for the end: queues are put away, answers are acknowledged, both clouds look after their connections.

use serde::{Deserialize, Serialize};

use super::{
    costs::Work,
    draft::{Around, Draft},
    durations::{Durations, likeliest},
    prediction::{Effort, PredictionError, predict_intercloud},
};
use crate::{
    distribution::{Distribution, DistributionError, Form},
    net::{Net, Servers},
    simulate::{Tag, TagStart},
};

/// One load of orchestrations that another cloud answered, and what was seen of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InterCloudRun {
    /// Processors that both clouds and the consumers share.
    pub cores: u32,
    /// Consumers, each of which asks again when it has its answer.
    pub consumers: u32,
    /// Orchestrations while the steps were recorded.
    pub orchestrations: u64,
    /// From request to answer.
    pub latency: Durations,
    /// Name and times of the asking Orchestrator's stages in front of the first dialogue.
    pub before: Vec<(String, Durations)>,
    /// The dialogues in their order.
    pub dialogues: Vec<Dialogue>,
    /// As `before`, behind the last dialogue.
    pub after: Vec<(String, Durations)>,
    /// Processor time of both clouds and of the consumers in us, where it is known.
    pub processor_us: Option<f64>,
}

/// The parts of a dialogue between two clouds.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialogue {
    /// What it is about.
    pub name: String,
    /// From listening for the answer to the other cloud's acknowledgement of the call.
    pub call: Durations,
    /// From there to the answer.
    pub answer: Durations,
    /// Of that, what the other cloud took to decide.
    pub decide: Durations,
}

/// The fitted laws of an orchestration that leads to another cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterCloudLaws {
    /// Numbers of consumers of the loads from which they were made.
    pub consumers: Vec<u32>,
    /// The steps in their order.
    pub steps: Vec<InterCloudStep>,
    /// Processor time of what is done beside the way of an orchestration, in us: where nobody else asks, and where very many do.
    pub beside_us: Beside,
}

/// A processor time that is shared by those who ask at the same time: threads that are awake anyway are not woken, and what waits is done in one go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// For one consumer.
    pub alone: f64,
    /// For each of very many.
    pub many: f64,
}

impl Beside {
    /// For each of so many: what is saved goes with what each finds begun.
    fn of(self, consumers: u32) -> f64 {
        (self.many + (self.alone - self.many) / f64::from(consumers)).max(0.0)
    }

    /// The time that comes nearest to those of so many consumers each, by least squares; what is known of one number only is so for all.
    fn nearest(seen: &[(u32, f64)]) -> Self {
        let count = seen.len() as f64;
        let share = |consumers: u32| 1.0 / f64::from(consumers);
        let (x, y) = (seen.iter().map(|(n, _)| share(*n)).sum::<f64>() / count, seen.iter().map(|(_, us)| us).sum::<f64>() / count);
        let square: f64 = seen.iter().map(|(n, _)| (share(*n) - x).powi(2)).sum();
        let slope = if square > 0.0 { seen.iter().map(|(n, us)| (share(*n) - x) * (us - y)).sum::<f64>() / square } else { 0.0 };
        let many = (y - slope * x).max(0.0);
        Self { alone: (y + slope * (1.0 - x)).max(0.0), many }
    }
}

/// A step of such an orchestration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterCloudStep {
    /// Its name.
    pub name: String,
    /// Processor time in us.
    pub work_us: f64,
    /// The law of the time in which it needs no processor, in us.
    pub waits: Form,
}

/// Runs that no laws can be made from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InterCloudError {
    /// Something is missing.
    #[error("of orchestrations that lead to another cloud no {0} were recorded")]
    Missing(String),
    /// The steps of those who asked one after the other took longer than they waited.
    #[error(
        "the steps of an orchestration took {steps_us:.0} us and its answer came behind {latency_us:.0} us: they belong to different runs"
    )]
    Longer {
        /// All steps.
        steps_us: f64,
        /// Request to answer.
        latency_us: f64,
    },
    /// A law that is none.
    #[error(transparent)]
    Law(#[from] DistributionError),
    /// The net cannot be simulated.
    #[error(transparent)]
    Prediction(#[from] PredictionError),
}

/// Name of the step that has what no other one has: the way between consumer and cloud, and what is done between dialogues.
const TRANSIT: &str = "transit";
/// Most of a step that is work: where all of it would be, threads are woken all the same.
const WORK_PART_MAX: f64 = 0.95;
/// Least part of its mean time that a single pass of a step waits.
const WAIT_PART_MIN: f64 = 0.05;

impl InterCloudRun {
    /// Whether it is another run of the same load.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.cores, self.consumers) == (other.cores, other.consumers)
    }

    fn add(&mut self, other: &Self) {
        let each = |ours: &mut [(String, Durations)], theirs: &[(String, Durations)]| {
            for (name, durations) in ours {
                theirs.iter().filter(|(other, _)| other == name).for_each(|(_, other)| durations.add(other));
            }
        };
        self.orchestrations += other.orchestrations;
        self.latency.add(&other.latency);
        each(&mut self.before, &other.before);
        each(&mut self.after, &other.after);
        for (ours, theirs) in self.dialogues.iter_mut().zip(&other.dialogues) {
            ours.call.add(&theirs.call);
            ours.answer.add(&theirs.answer);
            ours.decide.add(&theirs.decide);
        }
        self.processor_us = self.processor_us.zip(other.processor_us).map(|(ours, theirs)| ours + theirs);
    }

    /// All runs with this many consumers as one.
    fn whole(runs: &[Self], consumers: u32) -> Self {
        let mut of_load = runs.iter().filter(|run| run.consumers == consumers);
        let mut whole = of_load.next().expect("it is one of their numbers").clone();
        of_load.for_each(|run| whole.add(run));
        whole
    }

    /// Name, mean in an orchestration, and the values that stand for the times of every step, in their order.
    fn steps(&self) -> Result<Vec<(String, f64, Vec<f64>)>, InterCloudError> {
        let of_answer = |durations: &Durations| durations.sum_us / self.orchestrations as f64;
        let stage = |(name, durations): &(String, Durations)| (name.clone(), of_answer(durations), durations.spread(|value| value));
        let passed = |stages: &[(String, Durations)]| -> Vec<_> {
            stages.iter().filter(|(_, durations)| durations.count() > 0).map(stage).collect()
        };
        let mut steps = passed(&self.before);
        for Dialogue { name, call, answer, decide } in &self.dialogues {
            for (part, durations) in [("calls", call), ("answers", answer), ("decisions", decide)] {
                if durations.count() == 0 {
                    return Err(InterCloudError::Missing(format!("{part} of {name}")));
                }
            }
            let decided_us = of_answer(decide);
            let carried_us = of_answer(answer) - decided_us;
            let carried = answer.spread(|value| (value - decided_us).max(WAIT_PART_MIN * carried_us));
            steps.push((format!("{name} call"), of_answer(call), call.spread(|value| value)));
            steps.push((format!("{name} there and back"), carried_us, carried));
            steps.push((format!("{name} decides"), decided_us, decide.spread(|value| value)));
        }
        steps.extend(passed(&self.after));
        Ok(steps)
    }
}

/// Shares of the work that may be on the way of an orchestration which are tried, the others being beside it.
const ON_THE_WAY: [f64; 7] = [1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1];

/// Fits the steps. How long they take is told by the load with the fewest consumers, where nobody is in another one's way; how much is worked, on the way and beside it, by the processor time of each load. How
/// much of that is on the way is what brings the means of the other loads nearest to the measured ones.
///
/// # Errors
/// Something was not recorded, or the steps took longer than the orchestrations.
pub fn fit_intercloud(runs: &[InterCloudRun], effort: &Effort) -> Result<InterCloudLaws, InterCloudError> {
    let mut consumers: Vec<u32> = runs.iter().map(|run| run.consumers).collect();
    consumers.sort_unstable();
    consumers.dedup();
    let loads: Vec<InterCloudRun> = consumers.iter().map(|number| InterCloudRun::whole(runs, *number)).collect();
    let Some(alone) = loads.first() else { return Err(InterCloudError::Missing("runs".to_owned())) };
    if loads.iter().any(|load| load.latency.count() == 0 || load.orchestrations == 0) {
        return Err(InterCloudError::Missing("answers".to_owned()));
    }
    let latency_us = alone.latency.mean_us();
    let steps = alone.steps()?;
    let steps_us: f64 = steps.iter().map(|(_, mean_us, _)| mean_us).sum();
    if steps_us >= latency_us {
        return Err(InterCloudError::Longer { steps_us, latency_us });
    }
    let worked: Vec<(u32, f64)> =
        loads.iter().filter_map(|load| Some((load.consumers, load.processor_us? / load.orchestrations as f64))).collect();
    let worked = if worked.is_empty() { Beside { alone: steps_us, many: steps_us } } else { Beside::nearest(&worked) };
    let most_us = (WORK_PART_MAX * steps_us).min(worked.many);
    let parts = if loads.len() == 1 { &ON_THE_WAY[..1] } else { &ON_THE_WAY[..] };
    let mut best: Option<(f64, InterCloudLaws)> = None;
    for part in parts {
        let way_us = part * most_us;
        let beside_us = if loads.iter().all(|load| load.processor_us.is_none()) {
            Beside { alone: 0.0, many: 0.0 }
        } else {
            Beside { alone: (worked.alone - way_us).max(0.0), many: worked.many - way_us }
        };
        let laws = InterCloudLaws { consumers: consumers.clone(), steps: fitted(alone, &steps, way_us / steps_us)?, beside_us };
        let mut off = 0.0;
        for load in &loads[1..] {
            let predicted = predict_intercloud(&laws, load.consumers, load.cores, effort)?;
            off += (predicted.mean_us.value / load.latency.mean_us()).ln().powi(2);
        }
        if best.as_ref().is_none_or(|(least, _)| off < *least) {
            best = Some((off, laws));
        }
    }
    Ok(best.expect("some share was tried").1)
}

/// The steps with this part of each as work. What no step has is a wait: the consumer's way, and whatever holds up an orchestration as a whole.
fn fitted(alone: &InterCloudRun, steps: &[(String, f64, Vec<f64>)], work_part: f64) -> Result<Vec<InterCloudStep>, DistributionError> {
    let steps_us: f64 = steps.iter().map(|(_, mean_us, _)| mean_us).sum();
    let transit_us = alone.latency.mean_us() - steps_us;
    let transits = alone.latency.spread(|value| (value - steps_us).max(WAIT_PART_MIN * transit_us));
    let transit = InterCloudStep { name: TRANSIT.to_owned(), work_us: 0.0, waits: Form::from(&waits(transits, transit_us, 0.0)?) };
    let step = |(name, mean_us, values): &(String, f64, Vec<f64>)| {
        let work_us = work_part * mean_us;
        Ok(InterCloudStep { name: name.clone(), work_us, waits: Form::from(&waits(values.clone(), *mean_us, work_us)?) })
    };
    std::iter::once(Ok(transit)).chain(steps.iter().map(step)).collect()
}

/// The law of what is left of such times, whose mean is `mean_us`, without the work.
fn waits(mut values: Vec<f64>, mean_us: f64, work_us: f64) -> Result<Distribution, DistributionError> {
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let left_us = mean_us - work_us;
    let scale = mean_us / mean_of(&values);
    values.iter_mut().for_each(|value| *value = (*value * scale - work_us).max(WAIT_PART_MIN * left_us));
    let scale = left_us / mean_of(&values);
    values.iter_mut().for_each(|value| *value *= scale);
    likeliest(values, left_us)
}

/// The net of so many consumers, each of which asks again when it has its answer, on so many processors; whose times in it are response times; and
/// about what passes between two answers, in us.
///
/// # Errors
/// A law that is none.
pub fn intercloud(laws: &InterCloudLaws, consumers: u32, cores: u32) -> Result<(Net, Tag, f64), DistributionError> {
    const TAKES: u32 = 1;
    let works = |mean_us: f64| Work { mean_us, squared_variation: 0.0 }.law();
    let mut draft = Draft::default();
    let free = draft.place("cores", cores);
    let asked = draft.place("asked", consumers);
    let answered = draft.place("answered", 0);
    let works_us: f64 = laws.steps.iter().map(|step| step.work_us).sum();
    let beside_us = laws.beside_us.of(consumers);
    let (mut at, mut answer_us) = (asked, 0.0);
    for (index, InterCloudStep { name, work_us: step_us, waits }) in laws.steps.iter().enumerate() {
        let waits = Distribution::try_from(waits.clone())?;
        answer_us += step_us + waits.mean();
        let is_last = index + 1 == laws.steps.len();
        let next = if is_last { answered } else { draft.place(format!("behind {name}"), 0) };
        let left = if *step_us > 0.0 {
            let [working, left] = ["works", "waits"].map(|what| draft.place(format!("{name} {what}"), 0));
            draft.immediate(format!("{name} gets a core"), TAKES, Around::from(&[at, free]).to(&[working]));
            let mut done = vec![left, free];
            let beside = beside_us * step_us / works_us;
            if beside > 0.0 {
                let [due, doing] = ["leaves something", "is seen to"].map(|what| draft.place(format!("{name} {what}"), 0));
                draft.immediate(format!("what {name} leaves gets a core"), TAKES, Around::from(&[due, free]).to(&[doing]));
                draft.timed(format!("what {name} leaves"), &works(beside)?, Servers::Infinite, Around::from(&[doing]).to(&[free]));
                done.push(due);
            }
            draft.timed(name, &works(*step_us)?, Servers::Infinite, Around::from(&[working]).to(&done));
            left
        } else {
            at
        };
        draft.timed(format!("{name} is on its way"), &waits, Servers::Infinite, Around::from(&[left]).to(&[next]));
        at = next;
    }
    draft.immediate("next one", TAKES + 1, Around::from(&[answered]).to(&[asked]));
    let work_us = works_us + beside_us;
    let net = draft.net(format!("orchestration in another cloud, {consumers} consumers, {cores} cores"));
    let between_us = (work_us / f64::from(cores)).max(answer_us / f64::from(consumers));
    Ok((net.expect("steps have names of their own"), Tag::new(TagStart::Arrival(asked), answered), between_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: Effort = Effort { events: 20_000, seed: 1, threads: 1 };

    fn fixed(value: f64) -> Form {
        Form::Deterministic { value }
    }

    fn laws(beside_us: f64) -> InterCloudLaws {
        let step = |name: &str, work_us, waits_us| InterCloudStep { name: name.to_owned(), work_us, waits: fixed(waits_us) };
        InterCloudLaws {
            consumers: vec![1],
            steps: vec![step("transit", 10.0, 30.0), step("gsd call", 40.0, 120.0)],
            beside_us: Beside { alone: beside_us, many: beside_us },
        }
    }

    #[track_caller]
    fn mean_us(laws: &InterCloudLaws, consumers: u32, cores: u32) -> f64 {
        predict_intercloud(laws, consumers, cores, &EFFORT).expect("it can be predicted").mean_us.value
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64, part: f64) {
        assert!((found / expected - 1.0).abs() < part, "{found} instead of {expected}");
    }

    #[test]
    fn one_consumer_waits_for_every_step_and_many_for_the_processors() {
        assert_near(mean_us(&laws(0.0), 1, 2), 200.0, 1e-6);
        // What is left is done by the other processor, and wants its turn where there is none.
        assert_near(mean_us(&laws(20.0), 1, 2), 200.0, 1e-6);
        assert_near(mean_us(&laws(20.0), 40, 2), 40.0 * 70.0 / 2.0, 0.03);
        assert_near(mean_us(&laws(0.0), 40, 1), 40.0 * 50.0, 0.03);
        let (two, four) = (mean_us(&laws(0.0), 2, 1), mean_us(&laws(0.0), 4, 1));
        assert!((199.99..250.0).contains(&two) && (199.99..300.0).contains(&four), "{two} and {four}");
        assert!(predict_intercloud(&laws(0.0), 0, 1, &EFFORT).is_err() && predict_intercloud(&laws(0.0), 1, 0, &EFFORT).is_err());
    }

    fn times(us: f64, count: u64) -> Durations {
        Durations { counts: vec![(us, count)], sum_us: us * count as f64 }
    }

    /// 100 orchestrations whose steps never vary: 3 + (50 + 70) + (60 + 110) + 7 of 400 us.
    fn run(consumers: u32, latency_us: f64, processor_us: Option<f64>) -> InterCloudRun {
        let stage = |name: &str, us| (name.to_owned(), times(us, 100));
        let dialogue = |name: &str, call, answer, decide| Dialogue {
            name: name.to_owned(),
            call: times(call, 100),
            answer: times(answer, 100),
            decide: times(decide, 100),
        };
        InterCloudRun {
            cores: 2,
            consumers,
            orchestrations: 100,
            latency: times(latency_us, 100),
            before: vec![stage("parse", 3.0), ("queue".to_owned(), Durations::default())],
            dialogues: vec![dialogue("gsd", 50.0, 70.0, 20.0), dialogue("icn", 60.0, 110.0, 45.0)],
            after: vec![stage("send", 7.0)],
            processor_us: processor_us.map(|us| us * 100.0),
        }
    }

    fn fit(runs: &[InterCloudRun]) -> InterCloudLaws {
        fit_intercloud(runs, &EFFORT).expect("laws")
    }

    fn works_us(laws: &InterCloudLaws) -> f64 {
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
            assert_near(step.work_us + waits_us, us, 1e-9);
        }
        assert_eq!(laws.steps[0].work_us, 0.0, "the consumer's way is none of the clouds' work");
        assert_near(works_us(&laws) + laws.beside_us.many, 100.0, 1e-9);
        assert_near(mean_us(&laws, 1, 2), 400.0, 0.01);
        assert_near(mean_us(&laws, 100, 2), 100.0 * 100.0 / 2.0, 0.02);
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
        let beside = Beside::nearest(&[(1, 14.0), (4, 11.0)]);
        assert_near(beside.of(1), 14.0, 1e-9);
        assert_near(beside.of(4), 11.0, 1e-9);
        assert_near(beside.of(2), 12.0, 1e-9);
        assert_eq!(Beside::nearest(&[(3, 5.0)]), Beside { alone: 5.0, many: 5.0 });
    }

    /// Of two consumers on two processors each has one, and waits all the same where much is done beside the way.
    #[test]
    fn how_much_is_on_the_way_is_told_by_the_other_loads() {
        let truth = |way_us: f64, beside_us: f64| {
            let steps = fitted(&run(1, 400.0, None), &run(1, 400.0, None).steps().expect("steps"), way_us / 300.0).expect("laws");
            InterCloudLaws { consumers: vec![1], steps, beside_us: Beside { alone: beside_us, many: beside_us } }
        };
        for (way_us, beside_us) in [(250.0, 0.0), (100.0, 150.0)] {
            let truth = truth(way_us, beside_us);
            let seen = |consumers| run(consumers, mean_us(&truth, consumers, 2), Some(250.0));
            let laws = fit(&[run(1, 400.0, Some(250.0)), seen(4)]);
            assert_near(works_us(&laws), way_us, 0.2);
            for consumers in [2, 3, 8] {
                assert_near(mean_us(&laws, consumers, 2), mean_us(&truth, consumers, 2), 0.03);
            }
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        let told = |runs: &[InterCloudRun]| fit_intercloud(runs, &EFFORT).expect_err("nothing can be fitted").to_string();
        assert_eq!(told(&[]), "of orchestrations that lead to another cloud no runs were recorded");
        let mut silent = run(1, 400.0, None);
        silent.dialogues[1].decide = Durations::default();
        assert_eq!(told(&[silent]), "of orchestrations that lead to another cloud no decisions of icn were recorded");
        assert!(told(&[run(1, 200.0, None)]).starts_with("the steps of an orchestration took 300 us and its answer came behind 200 us"));
    }
}
