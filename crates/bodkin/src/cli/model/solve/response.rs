//! `bodkin model solve --response`: how long a token takes, with a bound.

use bodkin_petri::{
    net::Net,
    solve::{
        SolveError,
        passage::Quantile,
        response::{Begin, Question, ResponseTime, Shares},
    },
};
use clap::ValueEnum;
use serde_json::json;

use super::{SolveOptions, refused};
use crate::{
    DONE, FAILED,
    cli::{details::Details, model::Form, printer::Printer, write_out},
};

/// Which token is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Beginning {
    /// One that comes in the long run.
    Steady,
    /// The last one of the first marking.
    First,
}

/// What was asked, answered.
struct Told {
    shares: Option<(Vec<f64>, Shares)>,
    quantiles: Vec<Quantile>,
    /// With what it may be off; none where it was not found.
    mean: Option<(f64, f64)>,
    rate: Option<f64>,
    states: usize,
}

/// Computes and prints; gives the exit code.
pub fn run(options: &SolveOptions, net: &Net, asked: &str, form: Form) -> anyhow::Result<u8> {
    let question = match options.followed(net, asked) {
        Ok(question) => question,
        Err(mistake) => return Ok(refused(&mistake)),
    };
    match told(options, &question) {
        Ok(told) => {
            print(net, asked, &told, form)?;
            Ok(DONE)
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(FAILED)
        }
    }
}

fn told(options: &SolveOptions, question: &Question) -> Result<Told, SolveError> {
    let found = ResponseTime::new(question)?;
    let times = options.when.at.as_ref().map(|times| &times.0).or(options.when.transient.as_ref().map(|grid| &grid.0));
    Ok(Told {
        shares: times.map(|times| found.shares(times).map(|shares| (times.clone(), shares))).transpose()?,
        quantiles: options.when.quantile.as_ref().map_or(Ok(Vec::new()), |shares| found.quantiles(shares))?,
        mean: found.mean().ok(),
        rate: found.rate,
        states: found.states(),
    })
}

impl SolveOptions {
    fn followed<'a>(&self, net: &'a Net, asked: &str) -> Result<Question<'a>, String> {
        let mistake = |reason: String| format!("--response {asked}: {reason}");
        let (from, to) = asked.split_once(':').ok_or_else(|| mistake("FROM:TO is expected".to_owned()))?;
        let place = |name: &str| match net.place(name) {
            Some(place) => Ok(place),
            None if net.transition(name).is_some() => Err(mistake(format!(
                "{name} is a transition, and a time is computed from place to place: `bodkin model simulate` takes one from a clock's start"
            ))),
            None => Err(mistake(format!("{name} is no place"))),
        };
        let begin = if self.begin == Beginning::First { Begin::First } else { Begin::LongRun };
        Ok(Question { net, from: place(from)?, to: place(to)?, begin, error: self.error, states_max: self.states })
    }
}

fn print(net: &Net, asked: &str, told: &Told, form: Form) -> anyhow::Result<()> {
    let Told { shares, quantiles, mean, rate, states } = told;
    let unit = net.time_unit();
    match form {
        Form::Json => {
            let quantile = |Quantile { share, low, high }: &Quantile| json!({ "share": share, "low": low, "high": high });
            let document = json!({
                "net": net.name(),
                "time_unit": unit,
                "response": asked,
                "method": "markov",
                "certainty": "bound",
                "states": states,
                "rate": rate,
                "mean": mean.map(|(value, error)| json!({ "value": value, "error": error })),
                "times": shares.as_ref().map(|(times, _)| times),
                "shares": shares.as_ref().map(|(_, shares)| &shares.values),
                "error": shares.as_ref().map(|(_, shares)| shares.error),
                "quantiles": quantiles.iter().map(quantile).collect::<Vec<_>>(),
            });
            Printer::new(true).document(&document)?;
        }
        Form::Csv => match shares {
            Some((times, shares)) => {
                eprintln!("bodkin: method markov, error at most {:.2e} (bound)", shares.error);
                let rows: String = times.iter().zip(&shares.values).map(|(time, share)| format!("{time},{share}\n")).collect();
                write_out(&format!("t,share\n{rows}"))?;
            }
            None => {
                let row = |Quantile { share, low, high }: &Quantile| format!("{share},{low},{high}\n");
                write_out(&format!("share,low,high\n{}", quantiles.iter().map(row).collect::<String>()))?;
            }
        },
        Form::Table => {
            let mut details = Details::default()
                .with("net", net.name())
                .with("response", asked)
                .with("method", "markov: a token is followed through states of exponential stages")
                .with("states", states)
                .with_some("tokens", rate.map(|rate| format!("{rate:.10} a {unit} come in the long run")))
                .with(
                    "mean",
                    mean.map_or("not found: it may never come, or takes far too long".to_owned(), |(value, error)| {
                        format!("{value:.10} {unit} +- {error:.1e} (bound)")
                    }),
                );
            for Quantile { share, low, high } in quantiles {
                let value = 0.5 * (low + high);
                details = details.with("quantile", format!("{share}: {value:.10} {unit} +- {:.1e} (bound)", 0.5 * (high - low)));
            }
            let mut text = details.to_string();
            if let Some((times, shares)) = shares {
                text += &format!("\n{:>12}  {:<14} +- {:.1e} (bound)\n", format!("t / {unit}"), "share", shares.error);
                text.extend(times.iter().zip(&shares.values).map(|(time, share)| format!("{time:>12}  {share:.10}\n")));
            }
            write_out(&text)?;
        }
    }
    Ok(())
}
