//! `bodkin model simulate --rare`: the probability of what hardly ever happens.

use bodkin_petri::{
    net::Net,
    simulate::{Options, Question, RareEvent, Rarity, Splitting, split},
};
use clap::Args;
use serde_json::json;

use super::TOO_WIDE;
use crate::{
    DONE, FAILED,
    cli::{
        details::Details,
        model::{
            expressions::{condition, expression},
            times::Grid,
        },
        printer::Printer,
    },
};

/// Options of rare events.
#[derive(Args, Clone, Debug)]
pub struct RareOptions {
    /// The probability that --until holds up to the last time, however small, by splitting: EXPR says how near a marking is to it
    #[arg(long, value_name = "EXPR", requires_all = ["until", "levels"])]
    rare: Option<String>,
    /// Values of --rare on the way, from FROM to TO: whoever reaches one is continued many times
    #[arg(long, value_name = "FROM:STEP:TO", requires = "rare")]
    levels: Option<Grid>,
    /// Where this holds, a run has missed the event
    #[arg(long, value_name = "EXPR", requires = "rare")]
    stop: Option<String>,
    /// Runs that start at each level
    #[arg(long, value_name = "N", default_value_t = Splitting::default().particles, requires = "rare")]
    particles: u32,
    /// Independent repetitions of the whole, 10 to 60,000; with --within the fewest
    #[arg(long, value_name = "N", default_value_t = Splitting::default().replicates, requires = "rare")]
    replicates: u32,
    /// Add repetitions until the interval reaches no further to one side than this part of the probability, in percent
    #[arg(long, value_name = "PERCENT", requires = "rare")]
    within: Option<f64>,
}

impl RareOptions {
    /// The event that is asked for, if one is.
    pub fn event(&self, net: &Net, question: &Question) -> Result<Option<RareEvent>, String> {
        let (Some(rare), Some(target), Some(Grid(levels))) = (&self.rare, &question.target, &self.levels) else { return Ok(None) };
        Ok(Some(RareEvent {
            target: target.clone(),
            stop: self.stop.as_ref().map(|text| condition(net, "--stop", text)).transpose()?,
            horizon: question.instants.last().copied().unwrap_or_default(),
            importance: expression(net, "--rare", rare)?,
            levels: levels.clone(),
        }))
    }
}

/// Seeks the event and prints what was found; gives the exit code.
pub fn run(net: &Net, event: &RareEvent, options: &RareOptions, how: &Options, printer: Printer) -> anyhow::Result<u8> {
    let splitting = Splitting {
        seed: how.seed,
        confidence: how.confidence,
        particles: options.particles,
        replicates: options.replicates,
        within: options.within.map(|percent| percent / 100.0),
        threads: how.threads,
    };
    match split(net, event, &splitting) {
        Ok(rarity) => {
            print(net, &splitting, &rarity, printer)?;
            if !rarity.is_narrow {
                eprintln!(
                    "bodkin: the interval is wider than was asked after {} replicates; more --particles make it narrower",
                    rarity.replicates
                );
            }
            Ok(if rarity.is_narrow { DONE } else { TOO_WIDE })
        }
        Err(error) => {
            eprintln!("bodkin: {error}");
            Ok(FAILED)
        }
    }
}

fn print(net: &Net, splitting: &Splitting, rarity: &Rarity, printer: Printer) -> anyhow::Result<()> {
    let probability = rarity.probability;
    let details = Details::default()
        .with("net", net.name())
        .with("probability", format!("{:.4e}", probability.value))
        .with("interval", format!("{:.4e} to {:.4e}", probability.low, probability.high))
        .with("replicates", rarity.replicates)
        .with("particles", splitting.particles)
        .with("firings", rarity.events);
    let document = json!({
        "net": net.name(),
        "method": "splitting",
        "seed": splitting.seed,
        "probability": { "value": probability.value, "low": probability.low, "high": probability.high },
        "shares": rarity.shares,
        "replicates": rarity.replicates,
        "particles": splitting.particles,
        "firings": rarity.events,
    });
    printer.one(&document, &details)?;
    Ok(())
}
