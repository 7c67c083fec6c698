//! `bodkin model sweep`: one question for many values of a net's parameters.

mod grid;
mod sheet;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    thread::available_parallelism,
};

use bodkin_petri::{
    expression::Expression,
    format::json,
    measure::Measure,
    net::Net,
    simulate,
    solve::{self, When, passage::passage},
};
use clap::Args;

use self::grid::{Grid, Vary};
use super::{
    Form,
    expressions::{condition, measure},
    file::{read_net, read_text},
    progress::Progress,
    solve::sheet::name,
};
use crate::{DONE, FAILED, USAGE};

/// Options of `bodkin model sweep`.
#[derive(Args, Clone, Debug)]
#[command(
    allow_negative_numbers = true,
    after_help = "A net's file names its parameters, as in \"parameters\": {\"pool\": 4}; docs/formats/net.md says where they are used. All points are \
                        computed side by side. A simulation has the same luck at every point, so that differences are those of the parameters. \
                        Of each point it is told by which method its values were found, and whether what they may be off is a bound, an estimate or an interval.\n\
                        Exit codes: 0 done, 1 no point has an answer or the plot cannot be written, 2 the net or an option has a mistake."
)]
pub struct SweepOptions {
    /// File of the net, with parameters: docs/formats/net.md
    #[arg(value_name = "NET.json")]
    net: PathBuf,
    /// A parameter and its values, as NAME=V,V,... or NAME=FROM:STEP:TO; of several every combination is taken
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    vary: Vec<Vary>,
    #[command(flatten)]
    when: WhenOptions,
    /// What is asked at each point: an expression over places, throughput(TRANSITION) or firings(TRANSITION); of a condition its probability
    #[arg(long = "measure", value_name = "EXPR", required_unless_present = "quantile")]
    measures: Vec<String>,
    /// Do not leave markings where this holds; with --quantile, the time until it does
    #[arg(long, value_name = "EXPR", required_unless_present = "measures")]
    until: Option<String>,
    /// What values may be off at most
    #[arg(long, value_name = "E", default_value_t = 1e-6)]
    error: f64,
    /// Simulate
    #[arg(long, requires = "at")]
    simulate: bool,
    /// Runs of a simulation at each point
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "simulate")]
    runs: u64,
    /// Decides all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, requires = "simulate")]
    seed: u64,
    /// Draw into this file, .svg or .html: curves over one parameter, surfaces over two; a page has a table of all points, too
    #[arg(long, value_name = "OUT")]
    plot: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct WhenOptions {
    /// At this time, in the net's unit
    #[arg(long, value_name = "T")]
    at: Option<f64>,
    /// In the long run
    #[arg(long)]
    steady: bool,
    /// The time by which --until holds with this probability
    #[arg(long, value_name = "P")]
    quantile: Option<f64>,
}

/// A value and where it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// What was found at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// One for each thing asked.
    pub values: Vec<Value>,
    /// The method's name.
    pub method: &'static str,
    /// Whether where the values may be is a bound, an estimate or an interval.
    pub certainty: String,
}

/// What was found at a point, or why nothing was.
pub type Point = Result<Found, String>;

/// Computes, prints and draws; gives the exit code.
pub fn run(options: &SweepOptions, form: Form) -> anyhow::Result<u8> {
    let asked = read_text(&options.net).and_then(|text| Ok((options.grid()?, options.check(&text)?, text)));
    let (grid, net, text) = match asked {
        Ok(asked) => asked,
        Err(mistake) => {
            eprintln!("bodkin: {mistake}");
            return Ok(USAGE);
        }
    };
    let points = side_by_side(grid.len(), |index| options.point(&text, &grid.set(index)));
    sheet::print(options, &net, &grid, &points, form)?;
    if let Some(out) = &options.plot
        && let Err(mistake) = sheet::draw(out, options, &net, &grid, &points)
    {
        eprintln!("bodkin: {mistake}");
        return Ok(FAILED);
    }
    Ok(if points.iter().any(Result::is_ok) { DONE } else { FAILED })
}

/// Every index once, on all cores; results stand in the order of the indices.
fn side_by_side(count: usize, work: impl Fn(usize) -> Point + Sync) -> Vec<Point> {
    let (next, progress) = (AtomicUsize::new(0), Progress::new(count));
    let (next, progress, work) = (&next, &progress, &work);
    let share = move || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return found;
            }
            found.push((index, work(index)));
            progress.one_more();
        }
    };
    let mut found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..available_parallelism().map_or(1, usize::from).min(count)).map(|_| scope.spawn(share)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a panic of a thread is one of the whole")).collect::<Vec<_>>()
    });
    found.sort_unstable_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, point)| point).collect()
}

impl SweepOptions {
    /// What is asked for at each point.
    pub fn names(&self) -> Vec<String> {
        match (self.when.quantile, &self.until) {
            (Some(share), Some(until)) => vec![format!("time until {until} with probability {share}")],
            _ => self.measures.clone(),
        }
    }

    fn grid(&self) -> Result<Grid, String> {
        let grid = Grid::of(&self.vary)?;
        match (&self.plot, grid.parameters().len()) {
            (Some(_), parameters @ 3..) => Err(format!(
                "--plot is for one parameter or two, and there are {parameters}; their points are listed by --output csv or json"
            )),
            _ => Ok(grid),
        }
    }

    /// The net as the file has it; what is asked is right of any, if it is of this one.
    fn check(&self, text: &str) -> Result<Net, String> {
        if self.net.extension().is_none_or(|end| end != "json") {
            return Err(format!("{}: only nets in the own form have parameters; expected a name that ends with .json", self.net.display()));
        }
        let net = read_net(&self.net, None)?;
        let set: Vec<(String, f64)> = self.vary.iter().map(|vary| (vary.name.clone(), vary.values[0])).collect();
        json::read_with(text, &set).map_err(|error| format!("{}: {error}", self.net.display()))?;
        self.measures.iter().try_for_each(|text| measure(&net, text).map(|_| ()))?;
        self.condition(&net).map(|_| net)
    }

    fn condition(&self, net: &Net) -> Result<Option<Expression>, String> {
        self.until.as_ref().map(|text| condition(net, "--until", text)).transpose()
    }

    fn point(&self, text: &str, set: &[(String, f64)]) -> Point {
        let net = json::read_with(text, set).map_err(|error| error.to_string())?;
        let measures = self.measures.iter().map(|text| measure(&net, text)).collect::<Result<Vec<_>, _>>()?;
        let until = self.condition(&net)?;
        if self.simulate {
            return self.simulated(&net, measures, until);
        }
        let when = self.when.at.map_or(When::Steady, |time| When::At(vec![time]));
        let question = solve::Question { measures, until, error: self.error, ..solve::Question::new(&net, when) };
        if let Some(share) = self.when.quantile {
            let passage = passage(&question, &[share], false).map_err(|error| error.to_string())?;
            let found = passage.quantiles[0];
            let values = vec![Value { value: 0.5 * (found.low + found.high), low: found.low, high: found.high }];
            return Ok(Found { values, method: passage.method.name(), certainty: name(passage.certainty).to_owned() });
        }
        let answer = solve::solve(&question).map_err(|error| error.to_string())?;
        let columns = answer.values[0].iter().zip(&answer.errors).skip(net.places().len());
        let values = columns.map(|(value, error)| Value { value: *value, low: value - error, high: value + error }).collect();
        Ok(Found { values, method: answer.method.name(), certainty: name(answer.certainty).to_owned() })
    }

    fn simulated(&self, net: &Net, measures: Vec<Measure>, target: Option<Expression>) -> Point {
        let expression = |measure| match measure {
            Measure::Reward(expression) => Ok(expression),
            Measure::Throughput(_) | Measure::Firings(_) => {
                Err("throughputs and firings are computed in a sweep, not simulated; leave --simulate out".to_owned())
            }
        };
        let measures = measures.into_iter().map(expression).collect::<Result<Vec<_>, _>>()?;
        let question = simulate::Question { instants: self.when.at.into_iter().collect(), measures, target, tag: None };
        // Points are side by side already.
        let how = simulate::Options { seed: self.seed, runs: self.runs, threads: 1, ..simulate::Options::default() };
        let answer = simulate::simulate(net, &question, &how).map_err(|error| error.to_string())?;
        let value =
            |estimates: &Vec<simulate::Estimate>| Value { value: estimates[0].value, low: estimates[0].low, high: estimates[0].high };
        let certainty = format!("interval of {} %", 100.0 * how.confidence);
        Ok(Found { values: answer.measures.iter().map(value).collect(), method: "simulation", certainty })
    }
}
