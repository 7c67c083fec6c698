//! `bodkin model solve`.

mod response;
pub(super) mod sheet;

use bodkin_petri::{
    net::Net,
    solve::{Method, Question, When, passage::passage, solve},
    states::STATES_MAX_DEFAULT,
};
use clap::Args;

use super::{
    Form,
    expressions::{condition, measure},
    file::NetFile,
    times::{Grid, Times},
};
use crate::{DONE, FAILED, USAGE};

/// Options of `bodkin model solve`.
#[derive(Args, Clone, Debug)]
#[command(
    allow_negative_numbers = true,
    after_help = "With --response: how long a token takes from one place to another, where all delays are made of exponential stages; it has a bound. Values are otherwise expected tokens of every place, then the measures. Each has an error; `bound` says that no value is further off, \
                        `estimate` that it was found by computing more than once.\n\
                        Exit codes: 0 done, 1 it cannot be computed to that error, 2 the net or an option has a mistake."
)]
pub struct SolveOptions {
    #[command(flatten)]
    net: NetFile,
    #[command(flatten)]
    when: WhenOptions,
    /// Another value to expect: an expression over places, as in "A + B > 2", throughput(TRANSITION), or firings(TRANSITION) since time 0
    #[arg(long = "measure", value_name = "EXPR")]
    measures: Vec<String>,
    /// Do not leave markings where this holds: its measure is then the distribution of the first time that it does
    #[arg(long, value_name = "EXPR")]
    until: Option<String>,
    /// Tell how long a token takes from its coming into the place FROM until it comes into the place TO, both in the order of their queues
    #[arg(long, value_name = "FROM:TO", conflicts_with_all = ["measures", "until", "method", "steady"])]
    response: Option<String>,
    /// Which token that is: whichever comes in the long run, with what it finds then, or the last one that is in FROM at time 0
    #[arg(long, value_name = "WHEN", value_enum, default_value = "steady", requires = "response")]
    begin: response::Beginning,
    /// What values may be off at most
    #[arg(long, value_name = "E", default_value_t = bodkin_petri::solve::ERROR_DEFAULT)]
    error: f64,
    /// Method; without it the first that fits the net is used
    #[arg(long, value_name = "M", value_parser = Method::ALL.map(Method::name))]
    method: Option<String>,
    /// Most states to explore; each takes some tens to hundreds of bytes
    #[arg(long, value_name = "N", default_value_t = STATES_MAX_DEFAULT)]
    states: usize,
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
    /// In the long run
    #[arg(long)]
    steady: bool,
    /// The times by which --until holds, or the token of --response has come, with these probabilities, and the mean time
    #[arg(long, value_name = "P,P,...", value_delimiter = ',')]
    quantile: Option<Vec<f64>>,
}

impl WhenOptions {
    fn when(&self) -> When {
        let times = self.at.as_ref().map(|times| &times.0).or(self.transient.as_ref().map(|grid| &grid.0));
        times.map_or(When::Steady, |times| When::At(times.clone()))
    }
}

/// Solves and prints; gives the exit code.
pub fn run(options: &SolveOptions, form: Form) -> anyhow::Result<u8> {
    let net = match options.net.read() {
        Ok(net) => net,
        Err(mistake) => return Ok(refused(&mistake)),
    };
    if let Some(asked) = &options.response {
        return response::run(options, &net, asked, form);
    }
    let question = match options.question(&net) {
        Ok(question) => question,
        Err(mistake) => return Ok(refused(&mistake)),
    };
    let printed = match &options.when.quantile {
        Some(shares) => passage(&question, shares, true).map(|found| sheet::print_passage(&question, &found, form)),
        None => solve(&question).map(|answer| sheet::print(&question, &options.measures, &answer, form)),
    };
    match printed {
        Ok(printed) => printed.map(|()| DONE),
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(FAILED)
        }
    }
}

fn refused(mistake: &str) -> u8 {
    eprintln!("bodkin: {mistake}");
    USAGE
}

impl SolveOptions {
    fn question<'a>(&self, net: &'a Net) -> Result<Question<'a>, String> {
        if self.when.quantile.is_some() && self.until.is_none() {
            return Err("--quantile is one of the time of --until or of --response: neither is given".to_owned());
        }
        if !(self.error > 0.0 && self.error < 1.0) {
            return Err(format!("--error is {}; expected a number above 0 and below 1", self.error));
        }
        Ok(Question {
            net,
            when: self.when.when(),
            measures: self.measures.iter().map(|text| measure(net, text)).collect::<Result<_, _>>()?,
            until: self.until.as_ref().map(|text| condition(net, "--until", text)).transpose()?,
            error: self.error,
            method: self.method.as_ref().and_then(|name| Method::ALL.into_iter().find(|method| method.name() == name)),
            states_max: self.states,
        })
    }
}
