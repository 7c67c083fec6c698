//! The thesis' tables with what was measured here beside them, and what it took.

use super::configuration::{Configuration, UseCase};
use super::run::Run;
use crate::options::Form;
use crate::published::{ThesisRow, thesis_rows, thesis_source};
use crate::report::{ComparedRow, Comparison};

/// What a figure is called, and where it is.
type Column = (&'static str, fn(&Run) -> f64);

/// The runs of a configuration.
#[derive(Debug)]
pub struct Measured {
    pub configuration: Configuration,
    pub runs: Vec<Run>,
}

impl Measured {
    fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }

    /// The mean of what the thesis measures.
    pub fn total_s(&self) -> f64 {
        self.mean(Run::total_s)
    }

    /// The mean of that without the connection.
    pub fn work_s(&self) -> f64 {
        self.mean(|run| run.work_s)
    }

    /// Mean, standard deviation of a sample, and that in percent of the mean; of a single run the mean alone.
    fn spread(&self) -> [Option<f64>; 3] {
        let (mean, count) = (self.total_s(), self.runs.len() as f64);
        let variance = (count > 1.0).then(|| self.mean(|run| (run.total_s() - mean).powi(2)) * count / (count - 1.0));
        let deviation = variance.map(f64::sqrt);
        [Some(mean), deviation, deviation.map(|deviation| 100.0 * deviation / mean)]
    }
}

/// What has been measured.
#[derive(Debug, Default)]
pub struct Results(pub Vec<Measured>);

impl Results {
    fn find(&self, use_case: UseCase, form: Form, workers: u32) -> Option<&Measured> {
        let wanted = Configuration { use_case, form, workers };
        self.0.iter().find(|measured| measured.configuration == wanted && !measured.runs.is_empty())
    }

    /// How much sooner the same is over than with one worker, by one of the times.
    pub fn speed_up(&self, of: &Measured, time: fn(&Measured) -> f64) -> Option<f64> {
        let Configuration { use_case, form, .. } = of.configuration;
        Some(time(self.find(use_case, form, 1)?) / time(of))
    }

    /// Tables 5.1 to 5.5, as far as they were measured.
    pub fn thesis_tables(&self, forms: &[Form]) -> Vec<Comparison> {
        let tables = ["5.1", "5.2", "5.3", "5.4", "5.5"].map(|number| self.thesis_table(number, forms));
        tables.into_iter().flatten().collect()
    }

    fn thesis_table(&self, number: &str, forms: &[Form]) -> Option<Comparison> {
        let (what, is_speed_up) = match number {
            "5.1" => ("prime count, run time in seconds", false),
            "5.2" => ("prime count, strong scaling: speed-up", true),
            "5.3" => ("prime count, weak scaling: run time in seconds", false),
            "5.4" => ("word and line count, run time in seconds", false),
            _ => ("word and line count, strong scaling: speed-up", true),
        };
        let of_figures: &[&str] = if is_speed_up { &["speed-up", "efficiency %"] } else { &["s", "sd", "CV %"] };
        let column = |who: &str| of_figures.iter().map(|figure| format!("{who} {figure}")).collect::<Vec<_>>();
        let forms: Vec<Form> = forms.iter().copied().filter(|form| *form != Form::Joined || number < "5.4").collect();
        let columns = std::iter::once("thesis").chain(forms.iter().map(|form| form.name())).flat_map(column).collect();
        let ours = |row: &ThesisRow, form: Form| {
            let measured = self.find(use_case(row, form), form, row.workers);
            match measured {
                Some(measured) if is_speed_up => gain(self.speed_up(measured, Measured::total_s), row.workers),
                Some(measured) => measured.spread().to_vec(),
                None => vec![None; of_figures.len()],
            }
        };
        let of = |row: &ThesisRow| {
            let theirs = if is_speed_up { gain(row.speed_up, row.workers) } else { row.seconds().to_vec() };
            let measured: Vec<Option<f64>> = forms.iter().flat_map(|form| ours(row, *form)).collect();
            let is_measured = measured.iter().any(Option::is_some);
            is_measured.then(|| ComparedRow { what: describe(row), figures: theirs.into_iter().chain(measured).collect() })
        };
        let rows: Vec<_> = thesis_rows(number).iter().filter_map(of).collect();
        (!rows.is_empty()).then(|| Comparison { title: format!("Table {number}, {what}. Theirs: {}", thesis_source()), columns, rows })
    }

    /// What every configuration has taken, and how much sooner it was over than with one worker (nothing, if none was measured): means over
    /// its runs.
    pub fn costs(&self) -> Comparison {
        const COLUMNS: [Column; 15] = [
            ("connect s", |run| run.connect_s),
            ("work s", |run| run.work_s),
            ("close s", |run| run.close_s),
            ("messages", |run| run.messages),
            ("segments", |run| run.segments),
            ("with data", |run| run.data_segments),
            ("frames", |run| run.frames),
            ("repeated", |run| run.repeated),
            ("given up", |run| run.given_up),
            ("octets", |run| run.octets),
            ("air s", |run| run.air_s),
            ("floor s", |run| run.floor_s),
            ("master mJ", |run| run.master.millijoules),
            ("worker mJ", |run| run.worker.millijoules),
            ("worker mW", |run| run.worker.milliwatts),
        ];
        let row = |measured: &Measured| {
            let gain = gain(self.speed_up(measured, Measured::total_s), measured.configuration.workers);
            let taken = COLUMNS.iter().map(|(_, of)| Some(measured.mean(of)));
            ComparedRow { what: measured.configuration.label(), figures: gain.into_iter().chain(taken).collect() }
        };
        Comparison {
            title: "What it took: means over the runs, of all stations together; octets and seconds on the air with acknowledgements; speed-up and \
                    efficiency against one worker, connections included"
                .into(),
            columns: ["speed-up", "efficiency %"].into_iter().chain(COLUMNS.iter().map(|(name, _)| *name)).map(String::from).collect(),
            rows: self.0.iter().filter(|measured| !measured.runs.is_empty()).map(row).collect(),
        }
    }
}

/// The thesis' input as ours. The farm makes its own passages, so one measurement stands beside all of theirs.
fn use_case(row: &ThesisRow, form: Form) -> UseCase {
    match (row.is_text, form) {
        (false, _) => UseCase::Primes { numbers: row.input, work_us: 0 },
        (true, Form::Original) => UseCase::Words { passages: row.input, copies: 1 },
        (true, _) => UseCase::Words { passages: 1, copies: 1 },
    }
}

fn gain(speed_up: Option<f64>, workers: u32) -> Vec<Option<f64>> {
    vec![speed_up, speed_up.map(|speed_up| 100.0 * speed_up / f64::from(workers))]
}

fn describe(row: &ThesisRow) -> String {
    let workers = if row.workers == 1 { "1 worker".to_string() } else { format!("{} workers", row.workers) };
    format!("{workers}, {} {}", row.input, if row.is_text { "passages each" } else { "numbers" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(numbers: u32, workers: u32, totals_s: &[f64]) -> Measured {
        let configuration = Configuration { use_case: UseCase::Primes { numbers, work_us: 0 }, form: Form::Farm, workers };
        let runs = totals_s.iter().map(|total_s| Run { connect_s: 0.5, work_s: total_s - 0.5, ..Run::default() }).collect();
        Measured { configuration, runs }
    }

    #[test]
    fn ours_stand_beside_the_thesis() {
        let results = Results(vec![measured(1000, 1, &[4.0, 6.0]), measured(1000, 10, &[1.0])]);
        let tables = results.thesis_tables(&[Form::Original, Form::Farm]);
        assert_eq!(tables.len(), 3, "no text was measured");
        let near = |figures: &[Option<f64>], expected: &[Option<f64>]| {
            figures.len() == expected.len()
                && figures.iter().zip(expected).all(|(a, b)| a.zip(*b).map_or(a.is_none() && b.is_none(), |(a, b)| (a - b).abs() < 0.01))
        };
        let first = &tables[0].rows[0];
        assert_eq!((first.what.as_str(), tables[0].rows.len()), ("1 worker, 1000 numbers", 2));
        let expected = [Some(287.4), Some(8.4), Some(2.85), None, None, None, Some(5.0), Some(1.414), Some(28.28)];
        assert!(near(&first.figures, &expected), "{first:?}");
        let strong = tables[1].rows.iter().find(|row| row.what == "10 workers, 1000 numbers").unwrap();
        assert!(near(&strong.figures, &[Some(2.09), Some(20.9), None, None, Some(5.0), Some(50.0)]), "{strong:?}");
    }

    #[test]
    fn every_configuration_tells_how_it_scales() {
        let results = Results(vec![measured(100_000, 1, &[4.0, 6.0]), measured(100_000, 16, &[2.0]), measured(2000, 4, &[1.0])]);
        let costs = results.costs();
        assert_eq!(costs.columns[..3], ["speed-up", "efficiency %", "connect s"]);
        let told: Vec<_> = costs.rows.iter().map(|row| (row.figures.len() == costs.columns.len(), &row.figures[..3])).collect();
        let expected = [[Some(1.0), Some(100.0), Some(0.5)], [Some(2.5), Some(15.625), Some(0.5)], [None, None, Some(0.5)]];
        assert_eq!(told, expected.each_ref().map(|figures| (true, &figures[..])), "nothing stands for one worker among 2000");
    }
}
