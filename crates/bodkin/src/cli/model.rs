//! `bodkin model`: stochastic Petri nets. Nothing need run, all of them work on files, but for those that record a cloud under load:
//! `calibrate` and `validate`.

mod bench;
mod calibrate;
mod calibration;
mod check;
mod convert;
mod csv;
mod expressions;
mod file;
mod fit;
mod fleet;
mod graph;
mod left_out;
mod peers;
mod plot;
mod predict;
mod progress;
mod recording;
mod reproduce;
mod simulate;
mod solve;
mod sweep;
mod times;
mod validate;

use clap::{Args, Subcommand};

use super::printer::Printer;
use crate::USAGE;

/// Options of `bodkin model`.
#[derive(Args, Clone, Debug)]
pub struct ModelOptions {
    #[command(subcommand)]
    command: ModelCommand,
}

/// What to do with a net.
#[derive(Subcommand, Clone, Debug)]
enum ModelCommand {
    /// Read a net, say what it is made of and which sums of tokens never change
    #[command(after_help = "Exit codes: 0 the net is right, 2 it has a mistake, which is told with its place.")]
    Check {
        #[command(flatten)]
        net: file::NetFile,
    },
    /// Expected tokens of every place and other measures, at given times or in the long run, with what they may be off
    Solve(solve::SolveOptions),
    /// The same values from many random runs, each with an interval; and times until something holds, or of single tokens
    Simulate(simulate::SimulateOptions),
    /// The laws that measured times may have, how well each fits, and whether any does
    Fit(fit::FitOptions),
    /// Draw a net's curves, with bands where they are simulated
    Plot(plot::PlotOptions),
    /// One question for many values of a net's parameters, printed and drawn
    Sweep(sweep::SweepOptions),
    /// The models of the thesis that Bodkin's began with: what it printed of them beside what they are, and its figures
    Reproduce(reproduce::ReproduceOptions),
    /// The same nets by Sirio and Storm, where they are there: what each takes, and how far it is off
    Peers(peers::PeersOptions),
    /// What was asked of the engine, measured: nets of the thesis and of the literature, rare events, a fit
    Bench(bench::BenchOptions),
    /// Write a net in another form, or draw it
    Convert(convert::ConvertOptions),
    /// Record a cloud under load, and fit what each step of an event and of an orchestration costs
    Calibrate(calibrate::CalibrateOptions),
    /// What another number of processors, publishers, subscribers, consumers, workers or another rate would do: mean, p99, curve
    Predict(predict::PredictOptions),
    /// Many edges that forward their events to JetStream: how long that takes, which part is full first, and what would help
    Fleet(fleet::FleetOptions),
    /// Predictions beside measurements, with how far they are off
    Validate(validate::ValidateOptions),
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// A header and a line a time.
    Csv,
}

/// Carries a command out; gives the exit code.
pub fn run(options: ModelOptions, form: Form) -> anyhow::Result<u8> {
    let printer = Printer::new(form == Form::Json);
    match options.command {
        ModelCommand::Check { .. }
        | ModelCommand::Convert(_)
        | ModelCommand::Fit(_)
        | ModelCommand::Plot(_)
        | ModelCommand::Reproduce(_)
        | ModelCommand::Peers(_)
        | ModelCommand::Bench(_)
        | ModelCommand::Calibrate(_)
        | ModelCommand::Validate(_)
        | ModelCommand::Fleet(_)
            if form == Form::Csv =>
        {
            eprintln!(
                "bodkin: --output csv is for curves and sweeps; check, fit, plot, reproduce, peers, bench, convert, calibrate, validate and fleet print none"
            );
            Ok(USAGE)
        }
        ModelCommand::Check { net } => check::run(&net, printer),
        ModelCommand::Solve(options) => solve::run(&options, form),
        ModelCommand::Simulate(options) => simulate::run(&options, form),
        ModelCommand::Fit(options) => fit::run(&options, printer),
        ModelCommand::Plot(options) => plot::run(&options, printer),
        ModelCommand::Sweep(options) => sweep::run(&options, form),
        ModelCommand::Reproduce(options) => reproduce::run(&options, printer),
        ModelCommand::Peers(options) => peers::run(&options, printer),
        ModelCommand::Bench(options) => bench::run(&options, printer),
        ModelCommand::Convert(options) => convert::run(&options, printer),
        ModelCommand::Calibrate(options) => calibrate::run(&options, printer),
        ModelCommand::Predict(options) => predict::run(&options, form),
        ModelCommand::Fleet(options) => fleet::run(&options, printer),
        ModelCommand::Validate(options) => validate::run(&options, printer),
    }
}
