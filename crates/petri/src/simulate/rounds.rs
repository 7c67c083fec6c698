//! The runs of a simulation: made in rounds, each divided among threads, until the answer is narrow enough.

use std::ops::ControlFlow;

use super::{
    Answer, CELLS_MAX, Estimate, Options, Passage, QUANTILES, Question, SimulationError,
    control::{Controlled, Differences, FirstRound, Pilot, Rises},
    estimate::{Interval, Sums},
    program::{Code, Program},
    stack::StackProgram,
    state::{State, Watch},
    tag::{TagPlan, Tags},
    tally::{Instants, Plan, Tally},
};
use crate::{expression::Expression, net::Net};

/// Parts into which the runs of a round are divided, whatever the number of threads: each has sums of its own.
const LANES: u64 = 64;
/// Runs of the first round.
pub(super) const FIRST_ROUND: u64 = 4_096;
/// A round has at most this many times the runs of all rounds before.
const ROUND_GROWTH: f64 = 16.0;

/// A compiled question.
pub(super) struct Simulation<'a> {
    program: Program,
    plan: Plan,
    measures: usize,
    /// Which measures are conditions.
    conditions: Vec<bool>,
    target: Option<usize>,
    tag: Option<TagPlan>,
    interval: Interval,
    options: &'a Options,
    /// Where the first round may show controls.
    pilot: Option<Pilot>,
    /// Those that it has shown.
    controls: Vec<Controlled>,
    /// Runs that were made for that, and are not counted.
    first_run: u64,
}

/// A part of the runs.
struct Lane<'a> {
    watching: Watching<'a>,
    differences: Differences<'a>,
    rises: Rises,
    events: u64,
    passages: Vec<f64>,
}

/// What watches a run.
struct Watching<'a> {
    tally: Tally<'a>,
    tags: Option<Tags<'a>>,
}

impl Watch for Watching<'_> {
    #[inline]
    fn at(&mut self, time: f64) {
        self.tally.at(time);
        if let Some(tags) = &mut self.tags {
            tags.at(time);
        }
    }

    #[inline]
    fn changed(&mut self, place: u32, before: u32, after: u32) {
        self.tally.changed(place, before, after);
    }

    #[inline]
    fn fired(&mut self, transition: u32, started: f64, older: usize) {
        self.tally.fired(transition, started, older);
        if let Some(tags) = &mut self.tags {
            tags.fired(transition, started, older);
        }
    }
}

impl<'a> Simulation<'a> {
    pub fn new(net: &Net, question: &Question, options: &'a Options) -> Result<Self, SimulationError> {
        let rising = question.instants.windows(2).all(|pair| pair[0] < pair[1]);
        let are_times = question.instants.iter().all(|instant| instant.is_finite() && *instant >= 0.0);
        if question.instants.is_empty() || !rising || !are_times {
            return Err(SimulationError::Instants);
        }
        if !(options.confidence > 0.0 && options.confidence < 1.0) {
            return Err(SimulationError::Option(format!(
                "the confidence is {}; expected a number above 0 and below 1",
                options.confidence
            )));
        }
        if let Some(half_width) = options.half_width.filter(|half_width| half_width.is_nan() || *half_width <= 0.0) {
            return Err(SimulationError::Option(format!("the half-width is {half_width}; expected a number above 0")));
        }
        if options.runs < 2 {
            return Err(SimulationError::Option(format!(
                "there {} {} run; expected at least 2",
                if options.runs == 1 { "is" } else { "are" },
                options.runs
            )));
        }
        let expressions: Vec<&Expression> = question.measures.iter().chain(&question.target).collect();
        let cells = question.instants.len() * (net.places().len() + expressions.len());
        if cells > CELLS_MAX {
            return Err(SimulationError::Cells(cells));
        }
        let program = Program::new(net);
        let plan = Plan {
            instants: Instants::new(question.instants.clone()),
            initial: net.initial(),
            measures: expressions.iter().map(|expression| StackProgram::new(expression)).collect(),
            touched: touched(&program, &expressions),
        };
        let conditions: Vec<bool> = expressions.iter().map(|expression| expression.is_boolean()).collect();
        let asked = || (0..conditions.len()).filter(|index| conditions[*index]).collect();
        let pilot = options.half_width.and_then(|_| Pilot::new(net, asked()));
        Ok(Self {
            program,
            plan,
            measures: question.measures.len(),
            conditions,
            pilot,
            controls: Vec::new(),
            first_run: 0,
            target: question.target.as_ref().map(|_| question.measures.len()),
            tag: question.tag.map(|tag| TagPlan::new(net, tag, Instants::new(question.instants.clone()))),
            interval: Interval::new(options.confidence),
            options,
        })
    }

    /// The same simulation, with controls that its first round has shown.
    pub fn compared(mut self, controls: Vec<Controlled>) -> Self {
        controls.iter().for_each(|controlled| self.program.count_delays(controlled.slot, controlled.control.delays));
        Self { controls, pilot: None, first_run: self.options.runs.min(FIRST_ROUND), ..self }
    }

    /// Makes runs until the answer is narrow enough, or all are made; or gives controls with which fewer do.
    pub fn answered(&self) -> Result<ControlFlow<Answer, Vec<Controlled>>, SimulationError> {
        let most = self.options.runs - self.first_run;
        let mut total = self.new_lane();
        let mut round = match self.options.half_width {
            Some(_) => most.min(FIRST_ROUND),
            None => most,
        };
        loop {
            self.round(&mut total, round)?;
            self.check_numbers(&total)?;
            let answer = self.answer(&mut total);
            let left = most - answer.runs;
            if answer.is_narrow || left == 0 {
                return Ok(ControlFlow::Break(answer));
            }
            let controls = self.shown(&answer, std::mem::take(&mut total.rises));
            if !controls.is_empty() {
                return Ok(ControlFlow::Continue(controls));
            }
            round = further_runs(&answer, self.options).min(left);
        }
    }

    /// Of what is no number, or whose square is none, there is no interval.
    fn check_numbers(&self, total: &Lane<'_>) -> Result<(), SimulationError> {
        let places = self.plan.initial.len();
        let is_told = |sums: &Sums| sums.value.is_finite() && sums.square.is_finite();
        let untold = |sums: &Vec<Sums>| !sums.iter().all(is_told);
        match total.watching.tally.sums().iter().skip(places).position(untold) {
            Some(measure) => Err(SimulationError::NoNumber { number: measure + 1 }),
            None => Ok(()),
        }
    }

    /// Controls, if this was the first round and it shows some.
    fn shown(&self, answer: &Answer, rises: Rises) -> Vec<Controlled> {
        let Some(pilot) = self.pilot.as_ref().filter(|_| !rises.is_empty()) else { return Vec::new() };
        let aims = answer.measures.iter().chain(answer.passage.as_ref().map(|passage| &passage.cdf));
        let widths: Vec<f64> = aims.map(|estimates| widest(estimates)).collect();
        let (program, instants) = (&self.program, &self.plan.instants);
        pilot.chosen(&rises, &FirstRound { program, seed: self.options.seed, instants, interval: self.interval }, &widths)
    }

    fn new_lane(&self) -> Lane<'_> {
        let watching = Watching { tally: Tally::new(&self.plan), tags: self.tag.as_ref().map(Tags::new) };
        let differences = Differences::new(&self.controls, &self.plan.instants);
        Lane { watching, differences, rises: Rises::default(), events: 0, passages: Vec::new() }
    }

    /// Makes `count` runs behind those of `total`, and adds them.
    fn round<'s>(&'s self, total: &mut Lane<'s>, count: u64) -> Result<(), SimulationError> {
        let made = total.watching.tally.runs;
        let pilot = self.pilot.as_ref().filter(|_| made == 0);
        let bound = |lane: u64| self.first_run + made + count * lane / LANES;
        let threads = (self.options.threads as u64).clamp(1, LANES);
        let share = |thread: u64| -> Result<Vec<Lane<'s>>, SimulationError> {
            (thread..LANES).step_by(threads as usize).map(|lane| self.lane(bound(lane)..bound(lane + 1), pilot)).collect()
        };
        let share = &share;
        let mut shares = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || share(thread))).collect();
            let own = share(0);
            let others = others.into_iter().map(|thread| thread.join().expect("a panic of a thread is one of the whole"));
            std::iter::once(own).chain(others).map(|lanes| lanes.map(Vec::into_iter)).collect::<Result<Vec<_>, _>>()
        })?;
        // In the order of the lanes: sums of numbers that are not whole depend on it.
        for lane in 0..LANES {
            let lane = shares[(lane % threads) as usize].next().expect("every lane was made");
            total.watching.tally.add(&lane.watching.tally);
            if let (Some(own), Some(theirs)) = (&mut total.watching.tags, &lane.watching.tags) {
                own.add(theirs);
            }
            total.differences.add(&lane.differences);
            total.rises.add(lane.rises);
            total.events += lane.events;
            total.passages.extend(lane.passages);
        }
        Ok(())
    }

    fn lane(&self, runs: std::ops::Range<u64>, pilot: Option<&Pilot>) -> Result<Lane<'_>, SimulationError> {
        let mut lane = self.new_lane();
        let Lane { watching, differences, rises, .. } = &mut lane;
        let mut state = self.program.state(self.options.seed);
        let horizon = self.plan.instants.last();
        let mut passages = Vec::new();
        for run in runs {
            watching.tally.begin(&self.program.initial);
            watching.tags.iter_mut().for_each(Tags::begin);
            differences.begin();
            pilot.into_iter().for_each(|pilot| rises.begin(pilot));
            let mut settled = |watching: &mut Watching<'_>, state: &State| {
                watching.tally.settled(&state.marking);
                differences.settled(&watching.tally);
                pilot.into_iter().for_each(|pilot| rises.settled(pilot, &watching.tally, state));
            };
            self.program.begin(&mut state, run, watching)?;
            settled(watching, &state);
            let arrived = |tally: &Tally<'_>| self.target.is_some_and(|target| tally.value(target) != 0.0);
            while !arrived(&watching.tally) && self.program.step(&mut state, horizon, watching)? {
                settled(watching, &state);
            }
            watching.tags.iter_mut().for_each(Tags::end);
            differences.end(&self.program, &state);
            if arrived(&watching.tally) {
                passages.push(state.time);
            }
        }
        (lane.events, lane.passages) = (state.events, passages);
        Ok(lane)
    }

    fn answer(&self, total: &mut Lane<'_>) -> Answer {
        let places = self.plan.initial.len();
        let tally = &total.watching.tally;
        let sums = tally.sums();
        let mut estimates: Vec<Vec<Estimate>> = sums
            .iter()
            .enumerate()
            .map(|(column, sums)| {
                let is_condition = column >= places && self.conditions[column - places];
                let range = if is_condition { (0.0, 1.0) } else { widened(tally.ranges[column], column < places) };
                sums.iter().map(|sums| self.interval.mean(*sums, range)).collect()
            })
            .collect();
        let mut controls = Vec::new();
        for (control, compared) in total.differences.estimates(self.interval) {
            estimates[places + control.condition] = compared;
            controls.push(control.clone());
        }
        let (of_places, of_measures) = estimates.split_at(places);
        let aims = if self.conditions.is_empty() { of_places } else { of_measures };
        let half_width = aims.iter().map(|estimates| widest(estimates)).fold(0.0, f64::max);
        let (runs, events) = (tally.runs, total.events);
        Answer {
            response: total.watching.tags.as_ref().and_then(|tags| tags.response(self.interval)),
            passage: self.target.map(|target| self.passage(&of_measures[target], total)),
            places: of_places.to_vec(),
            measures: of_measures[..self.measures].to_vec(),
            controls,
            runs,
            events,
            half_width,
            is_narrow: self.options.half_width.is_none_or(|wanted| half_width <= wanted),
        }
    }

    /// Runs end at the target, where the condition then holds for ever: its expectation is the distribution function.
    fn passage(&self, cdf: &[Estimate], total: &mut Lane<'_>) -> Passage {
        total.passages.sort_unstable_by(f64::total_cmp);
        let runs = total.watching.tally.runs;
        let missing = runs - total.passages.len() as u64;
        let square = total.passages.iter().map(|time| time * time).sum();
        let sums = Sums { runs: runs as f64, value: total.passages.iter().sum(), square };
        let quantile = |share: f64| Some((share, self.interval.quantile(&total.passages, runs as usize, share)?));
        Passage {
            cdf: cdf.to_vec(),
            mean: (missing == 0).then(|| self.interval.of_few((runs as f64).max(2.0)).unbounded_mean(sums)),
            quantiles: QUANTILES.into_iter().filter_map(quantile).collect(),
            missing,
        }
    }
}

/// Runs that should be enough: an interval's width falls with the root of their number.
fn further_runs(answer: &Answer, options: &Options) -> u64 {
    let wanted = options.half_width.unwrap_or(f64::INFINITY);
    let factor = (1.02 * (answer.half_width / wanted).powi(2)).clamp(1.05, ROUND_GROWTH);
    ((factor - 1.0) * answer.runs as f64).ceil() as u64
}

/// The widest of these intervals, to its wider side.
fn widest(estimates: &[Estimate]) -> f64 {
    estimates.iter().map(Estimate::half_width).fold(0.0, f64::max)
}

/// The range of a value that was seen; one that was never seen to change may do so in runs that were not made.
fn widened((low, high): (f64, f64), of_tokens: bool) -> (f64, f64) {
    match low < high {
        true => (low, high),
        false if of_tokens => ((low - 1.0).max(0.0), high + 1.0),
        false => (low - 1.0, high + 1.0),
    }
}

/// For each transition the expressions that ask for a place that its firing changes.
fn touched(program: &Program, expressions: &[&Expression]) -> Vec<Vec<u32>> {
    let asked: Vec<Vec<usize>> = expressions.iter().map(|expression| expression.places().collect()).collect();
    let touches = |index: &usize, code: &Code| code.effects.iter().any(|effect| asked[*index].contains(&(effect.place as usize)));
    let of_code = |code| (0..asked.len()).filter(|index| touches(index, code)).map(|index| index as u32).collect();
    program.codes.iter().map(of_code).collect()
}
