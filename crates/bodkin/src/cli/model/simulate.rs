//! `bodkin model simulate`.

mod rare;
mod sheet;

use std::{num::NonZeroU64, thread::available_parallelism};

use bodkin_petri::{
    expression::Expression,
    net::Net,
    simulate::{Counters, Options, Question, SimulationError, Tag, TagStart, simulate},
};
use clap::Args;

use super::{
    Form,
    expressions::condition,
    file::NetFile,
    times::{Grid, Times},
};
use crate::{DONE, FAILED, USAGE, cli::printer::Printer};

/// Exit code: the intervals are wider than was asked.
const TOO_WIDE: u8 = 4;

/// Options of `bodkin model simulate`.
#[derive(Args, Clone, Debug)]
#[command(
    allow_negative_numbers = true,
    after_help = "Values are expected tokens of every place, then the measures, each with the interval that holds the true one with the \
                        asked probability (each by itself). The same seed gives the same answer on any machine with any number of \
                        threads; nets that differ in a parameter are best compared under one seed.\n\
                        Exit codes: 0 done, 1 the net cannot be simulated, 2 the net or an option has a mistake, 4 the intervals are \
                        wider than was asked when all runs were made."
)]
pub struct SimulateOptions {
    #[command(flatten)]
    net: NetFile,
    #[command(flatten)]
    when: WhenOptions,
    /// Another value to expect: an expression over places and over how often a transition has fired, firings(TRANSITION); of a
    /// condition, as "A + B > 2", its probability
    #[arg(long = "measure", value_name = "EXPR")]
    measures: Vec<String>,
    /// End a run where this holds, and tell the distribution of the time until then
    #[arg(long, value_name = "EXPR")]
    until: Option<String>,
    /// Tell how long a token takes from FROM to the place TO; FROM is a place, whose reaching begins the time, or a transition, the
    /// start of whose clock does. The times asked for are those of its distribution, too
    #[arg(long, value_name = "FROM:TO")]
    response: Option<String>,
    #[command(flatten)]
    rare: rare::RareOptions,
    /// Make runs until no interval of a measure (without measures, of a place) reaches further to one side than this. A condition that depends
    /// most on a sum of delays of known law is compared with it, which takes fewer runs; the answer says so
    #[arg(long, value_name = "H")]
    half_width: Option<f64>,
    /// Runs; with --half-width the most
    #[arg(
        long,
        value_name = "N",
        default_value = "100000",
        default_value_if("half_width", clap::builder::ArgPredicate::IsPresent, "100000000")
    )]
    runs: NonZeroU64,
    /// Decides all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Probability with which an interval is to hold the true value
    #[arg(long, value_name = "P", default_value_t = 0.99)]
    confidence: f64,
    /// Threads; without it one for each core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct WhenOptions {
    /// At these times, in the net's unit
    #[arg(long, value_name = "T,T,...", allow_hyphen_values = true)]
    at: Option<Times>,
    /// At times from T0 to T1, STEP apart
    #[arg(long, value_name = "T0:STEP:T1", allow_hyphen_values = true)]
    transient: Option<Grid>,
}

/// Simulates and prints; gives the exit code.
pub fn run(options: &SimulateOptions, form: Form) -> anyhow::Result<u8> {
    let asked = options.net.read().and_then(|net| {
        let counters = Counters::new(&net);
        let question = options.question(&net, &counters)?;
        let event = options.rare.event(&net, &question)?;
        let with_counts = counters.net();
        Ok((net, with_counts, question, event))
    });
    let (net, with_counts, question, event) = match asked {
        Ok(asked) => asked,
        Err(mistake) => {
            eprintln!("bodkin: {mistake}");
            return Ok(USAGE);
        }
    };
    if let Some(event) = event {
        return rare::run(&net, &event, &options.rare, &options.how(), Printer::new(form == Form::Json));
    }
    match simulate(&with_counts, &question, &options.how()) {
        Ok(mut answer) => {
            // Behind the net's own are those that count.
            answer.places.truncate(net.places().len());
            sheet::print(&net, &question, &options.measures, options.seed, &answer, form)?;
            if !answer.is_narrow {
                eprintln!("bodkin: the widest interval reaches {:.1e} to one side; more --runs make it narrower", answer.half_width);
            }
            Ok(if answer.is_narrow { DONE } else { TOO_WIDE })
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(if matches!(error, SimulationError::Option(_) | SimulationError::Instants) { USAGE } else { FAILED })
        }
    }
}

/// `--measure`, with counts of firings.
fn counted(counters: &Counters<'_>, text: &str) -> Result<Expression, String> {
    counters.expression(text).map_err(|error| format!("--measure {text}: {error}"))
}

/// `FROM:TO` of `--response`.
fn tag(net: &Net, text: &str) -> Result<Tag, String> {
    let refused = |reason: String| format!("--response {text}: {reason}");
    let (from, to) = text.split_once(':').ok_or_else(|| refused("FROM:TO is expected".to_owned()))?;
    let place = |name: &str| net.place(name).ok_or_else(|| refused(format!("{name} is no place")));
    let from = match net.transition(from) {
        Some(transition) => TagStart::Service(transition),
        None => TagStart::Arrival(place(from).map_err(|error| format!("{error} and no transition"))?),
    };
    Ok(Tag::new(from, place(to)?))
}

impl SimulateOptions {
    fn question(&self, net: &Net, counters: &Counters<'_>) -> Result<Question, String> {
        let mut instants = match (&self.when.at, &self.when.transient) {
            (Some(Times(times)), _) | (None, Some(Grid(times))) => times.clone(),
            (None, None) => unreachable!("one of the group is required"),
        };
        instants.dedup();
        Ok(Question {
            instants,
            measures: self.measures.iter().map(|text| counted(counters, text)).collect::<Result<_, _>>()?,
            target: self.until.as_ref().map(|text| condition(net, "--until", text)).transpose()?,
            tag: self.response.as_ref().map(|text| tag(net, text)).transpose()?,
        })
    }

    fn how(&self) -> Options {
        Options {
            seed: self.seed,
            confidence: self.confidence,
            half_width: self.half_width,
            runs: self.runs.get(),
            threads: self.threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
        }
    }
}
