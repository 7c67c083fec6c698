//! `bodkin model fit`.

pub(super) mod charts;
mod sheet;

use std::{path::PathBuf, thread::available_parallelism};

use bodkin_petri::fit::{Family, Options, Sample, fit};
use clap::Args;

use super::{csv, file::read_text, plot::write_charts};
use crate::{DONE, FAILED, USAGE, cli::printer::Printer};

/// Options of `bodkin model fit`.
#[derive(Args, Clone, Debug)]
#[command(
    allow_negative_numbers = true,
    after_help = "Of each family the law of the greatest likelihood, the best first by Schwarz's criterion (bic). The p-values are the \
                        share of samples drawn from the law itself, and fitted again, that are as far from it.\n\
                        Exit codes: 0 done (that no family fits is told), 1 no law could be fitted, 2 the data or an option has a \
                        mistake."
)]
pub struct FitOptions {
    /// File of measured times, a line each; of several columns the first, or --column
    #[arg(value_name = "DATA.csv")]
    data: PathBuf,
    /// The column's name or number
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Only this family; may be given several times [default: all but hypo_exponential_n and phase_type, which take long, and expolynomial, which has no likeliest law]
    #[arg(long = "family", value_name = "F", value_parser = Family::ALL.map(Family::name))]
    families: Vec<String>,
    /// Leave out values beyond Tukey's far fences, three times the distance of the quartiles away from them
    #[arg(long)]
    without_outliers: bool,
    /// Samples that are drawn and fitted again for the tests and the intervals; 0 for neither
    #[arg(long, value_name = "N", default_value_t = Options::default().resamples)]
    resamples: u32,
    /// Decides what is drawn
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// A law fits where no p-value is below this
    #[arg(long, value_name = "P", default_value_t = Options::default().level)]
    level: f64,
    /// Draw the data under the laws into this page: densities, distribution functions, quantiles against quantiles
    #[arg(long, value_name = "FILE.html")]
    plot: Option<PathBuf>,
}

/// Fits and prints; gives the exit code.
pub fn run(options: &FitOptions, printer: Printer) -> anyhow::Result<u8> {
    let sample = match options.sample() {
        Ok(sample) => sample,
        Err(mistake) => {
            eprintln!("bodkin: {}: {mistake}", options.data.display());
            return Ok(USAGE);
        }
    };
    let families: Vec<Family> = Family::ALL.into_iter().filter(|family| options.takes(*family)).collect();
    let report = fit(&sample, &families, &options.how());
    if let Some(out) = &options.plot
        && let Err(mistake) = write_charts(out, &options.data.display().to_string(), &charts::of(&sample, &report))
    {
        eprintln!("bodkin: {mistake}");
        return Ok(FAILED);
    }
    sheet::print(&sample, &report, options.level, printer)?;
    Ok(if report.fits.is_empty() { FAILED } else { DONE })
}

impl FitOptions {
    fn sample(&self) -> Result<Sample, String> {
        let text = read_text(&self.data)?;
        let told = |error: bodkin_petri::fit::SampleError| error.to_string();
        let sample = Sample::new(csv::column(&text, self.column.as_deref())?).map_err(told)?;
        if self.without_outliers { sample.without_outliers().map_err(told) } else { Ok(sample) }
    }

    fn takes(&self, family: Family) -> bool {
        if self.families.is_empty() { family.is_usual() } else { self.families.iter().any(|name| name == family.name()) }
    }

    fn how(&self) -> Options {
        let threads = available_parallelism().map_or(1, usize::from);
        Options { resamples: self.resamples, seed: self.seed, level: self.level, threads }
    }
}
