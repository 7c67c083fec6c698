//! Figures that others published, and those of the Java peer, to stand beside ours.

use serde::Serialize;

use crate::operation::Operation;
use crate::options::{Mode, Scenario};

const DELIORMAN: &str = include_str!("../published/load_deliorman.csv");
const ORCHESTRATION: &str = include_str!("../published/orchestration_rocha.csv");
const EVENTS: &str = include_str!("../published/event_handler.csv");
const FRAME_LOSS: &str = include_str!("../published/frame_loss.csv");
const FRAME_LATENCY: &str = include_str!("../published/frame_latency.csv");
const FRAME_OTHER: &str = include_str!("../published/frame_other.csv");
const ARREC: &str = include_str!("../published/arrec.csv");
const CPEP_LATENCY: &str = include_str!("../published/cpep_latency.csv");
const CPEP_OTHER: &str = include_str!("../published/cpep_other.csv");
const JAVA_PEER: &str = include_str!("../published/java_peer.csv");
const ZMTP: &str = include_str!("../published/zmtp.csv");

/// One figure of somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Work and section, or how it was measured.
    pub source: String,
    /// What was measured, on what.
    pub what: String,
    /// The figures with their units.
    pub figures: String,
}

/// A table whose first lines tell its source, the next its columns.
struct Table {
    source: String,
    rows: Vec<Vec<(&'static str, &'static str)>>,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut lines = text.lines();
        let source = lines.next().unwrap_or_default().trim_start_matches(['#', ' ']).to_string();
        let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let rows = lines.map(|line| columns.iter().copied().zip(line.split(',')).collect()).collect();
        Self { source, rows }
    }

    /// The rows for which `wanted` says what they are: what, and the columns with their units to show.
    fn matching(&self, wanted: impl Fn(&dyn Fn(&str) -> &'static str) -> Option<String>, shown: &[(&str, &str)]) -> Vec<Published> {
        let mut matching = Vec::new();
        for row in &self.rows {
            let cell = |column: &str| row.iter().find(|(name, _)| *name == column).map_or("", |(_, value)| *value);
            let Some(what) = wanted(&cell) else { continue };
            let figures: Vec<String> = shown
                .iter()
                .filter(|(column, _)| !cell(column).is_empty())
                .map(|(column, unit)| format!("{unit} {}", cell(column)))
                .collect();
            matching.push(Published { source: self.source.clone(), what, figures: figures.join(", ") });
        }
        matching
    }
}

/// What stands beside a load.
pub fn of_load(operation: Operation, mode: Mode) -> Vec<Published> {
    let mut published = Vec::new();
    let name = operation.name();
    if let Mode::Simultaneous { .. } = mode {
        published.extend(deliorman(&|test: &str| match operation {
            Operation::Orchestrate => test.starts_with("orchestrate intracloud"),
            _ => test.split(' ').next() == Some(name),
        }));
    }
    if let (Mode::OpenLoop { .. }, Operation::Orchestrate | Operation::Query) = (mode, operation) {
        let wanted = if operation == Operation::Orchestrate { "intracloud orchestration" } else { "intracloud service-registry query" };
        let shown = [("mean_ms", "mean ms"), ("sd_ms", "sd ms"), ("max_ms", "max ms")];
        published.extend(Table::read(ORCHESTRATION).matching(|cell| (cell("what") == wanted).then(|| wanted.to_string()), &shown));
    }
    let manner = if matches!(mode, Mode::Sequential { .. }) { "sequential" } else { "simultaneous" };
    published.extend(java_peer(name, manner));
    published
}

/// What stands beside orchestrations that lead to another cloud.
pub fn of_intercloud() -> Vec<Published> {
    let shown = [("mean_ms", "mean ms"), ("sd_ms", "sd ms"), ("max_ms", "max ms")];
    let described = |cell: &dyn Fn(&str) -> &'static str| cell("what").starts_with("intercloud").then(|| cell("what").to_owned());
    let mut published = Table::read(ORCHESTRATION).matching(described, &shown);
    published.extend(deliorman(&|test: &str| test.starts_with("orchestrate intercloud")));
    published
}

/// What stands beside a start.
pub fn of_start() -> Vec<Published> {
    let mut published = deliorman(&|test: &str| test.starts_with("start-up"));
    published.extend(java_peer("start", "each system"));
    published
}

/// What stands beside a scenario of events.
pub fn of_scenario(scenario: Scenario) -> Vec<Published> {
    let name = format!("{scenario:?}");
    let shown = [("mean_ms", "mean ms"), ("sd_ms", "sd ms"), ("max_ms", "max ms"), ("note", "note:")];
    let describe = |cell: &dyn Fn(&str) -> &'static str| {
        let threads = if cell("threads").is_empty() { String::new() } else { format!(", {} threads", cell("threads")) };
        let what = || format!("scenario {name}, {} Event Handler{threads}", cell("system"));
        (cell("scenario") == name).then(what)
    };
    let mut published = Table::read(EVENTS).matching(describe, &shown);
    if scenario == Scenario::A {
        published.extend(java_peer("event", "improved Event Handler"));
    }
    published
}

/// What stands beside Wang's chapter 4.
pub fn of_arrec() -> Vec<Published> {
    let describe = |cell: &dyn Fn(&str) -> &'static str| Some(format!("{}, {}, {}", cell("what"), cell("config"), cell("unit")));
    Table::read(ARREC).matching(describe, &[("value", "")])
}

/// What stands beside workloads of so many topics of Wang's, besides his tables.
pub fn of_frame(topics: &[u32]) -> Vec<Published> {
    if !topics.contains(&7525) {
        return Vec::new();
    }
    let describe = |cell: &dyn Fn(&str) -> &'static str| Some(format!("{}, {}, {}", cell("what"), cell("config"), cell("unit")));
    Table::read(FRAME_OTHER).matching(describe, &[("value", "")])
}

/// What stands beside Wang's chapter 2, besides his table.
pub fn of_cpep() -> Vec<Published> {
    let describe = |cell: &dyn Fn(&str) -> &'static str| Some(format!("{}, {}, {}", cell("what"), cell("system"), cell("unit")));
    Table::read(CPEP_OTHER).matching(describe, &[("value", "")])
}

/// Of Wang's Table 2.1 the p99 in ms of a level's streams beside so many of the middle level, if it has that.
pub fn cpep_p99_ms(level: &str, system: &str, middle: u32) -> Option<f64> {
    let table = Table::read(CPEP_LATENCY);
    let wanted = [("priority", level), ("system", system), ("middle_streams", &middle.to_string())]
        .map(|(column, value)| (column, value.to_owned()));
    let is_it = |row: &&Vec<(&str, &str)>| wanted.iter().all(|(column, value)| row.contains(&(*column, value.as_str())));
    table.rows.iter().find(is_it)?.iter().find(|(column, _)| *column == "p99_ms")?.1.parse().ok()
}

/// What Wang 2019 compares in chapter 3.
pub const FRAME_CONFIGURATIONS: [&str; 4] = ["FRAME+", "FRAME", "FCFS", "FCFS-"];
/// Topics in its experiments.
const FRAME_TOPICS: [u32; 5] = [1525, 4525, 7525, 10_525, 13_525];

/// Its two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameTable {
    /// Table 3.4.
    Loss,
    /// Table 3.5.
    Latency,
}

impl FrameTable {
    fn text(self) -> &'static str {
        match self {
            Self::Loss => FRAME_LOSS,
            Self::Latency => FRAME_LATENCY,
        }
    }

    /// Where it is from and what it says.
    pub fn title(self) -> &'static str {
        self.text().lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// The percents of a category, in the order of [`FRAME_CONFIGURATIONS`]. Numbers of topics below those that the table lists had 100 everywhere.
    pub fn paper(self, topics: u32, category: usize) -> [Option<f64>; 4] {
        if !FRAME_TOPICS.contains(&topics) {
            return [None; 4];
        }
        let table = Table::read(self.text());
        let number = |row: &[(&str, &str)], column| row.iter().find(|(name, _)| *name == column)?.1.parse::<f64>().ok();
        // The rows of a number of topics are in the order of the categories.
        let row = table.rows.iter().filter(|row| number(row, "topics") == Some(f64::from(topics))).nth(category);
        row.map_or([Some(100.0); 4], |row| ["frame_plus", "frame", "fcfs", "fcfs_minus"].map(|column| number(row, column)))
    }
}

/// A row of Müller's Tables 5.1 to 5.5.
#[derive(Debug, Clone, PartialEq)]
pub struct ThesisRow {
    /// Whether it is of word and line count, not of prime count.
    pub is_text: bool,
    /// How many workers.
    pub workers: u32,
    /// Numbers, or passages for each worker.
    pub input: u32,
    mean_min: f64,
    sd_min: f64,
    cv_percent: f64,
    /// Where the table has one.
    pub speed_up: Option<f64>,
}

impl ThesisRow {
    /// Mean and standard deviation in seconds, and that in percent.
    pub fn seconds(&self) -> [Option<f64>; 3] {
        [Some(self.mean_min * 60.0), Some(self.sd_min * 60.0), Some(self.cv_percent)]
    }
}

/// Where those tables are from.
pub fn thesis_source() -> String {
    Table::read(ZMTP).source
}

/// The rows of one of them, as "5.1".
pub fn thesis_rows(number: &str) -> Vec<ThesisRow> {
    let is_text = number > "5.3";
    let row = |row: &Vec<(&str, &str)>| {
        let cell = |column: &str| row.iter().find(|(name, _)| *name == column).and_then(|(_, value)| value.parse::<f64>().ok());
        let count = |column| cell(column).map(|value| value as u32);
        Some(ThesisRow {
            is_text,
            workers: count("workers")?,
            input: count("input")?,
            mean_min: cell("mean_min")?,
            sd_min: cell("sd_min")?,
            cv_percent: cell("cv_pct")?,
            speed_up: cell("speedup"),
        })
    };
    Table::read(ZMTP).rows.iter().filter(|cells| cells.first().is_some_and(|(_, table)| *table == number)).filter_map(row).collect()
}

fn deliorman(wanted: &dyn Fn(&str) -> bool) -> Vec<Published> {
    let shown = [("mean_s", "mean s"), ("errors", "errors"), ("heap_mb", "peak heap MB")];
    let describe = |cell: &dyn Fn(&str) -> &'static str| {
        let count = if cell("simultaneous").is_empty() { String::new() } else { format!(", {} simultaneous", cell("simultaneous")) };
        wanted(cell("test")).then(|| format!("{}{count}, {}, {}", cell("test"), cell("hardware"), cell("jvm")))
    };
    Table::read(DELIORMAN).matching(describe, &shown)
}

fn java_peer(test: &str, manner: &str) -> Vec<Published> {
    let shown = [
        ("mean_low_ms", "mean ms"),
        ("mean_high_ms", "mean up to ms"),
        ("p50_ms", "p50 ms"),
        ("p99_low_ms", "p99 ms"),
        ("p99_high_ms", "p99 up to ms"),
        ("rss_mb_low", "RSS MB"),
        ("rss_mb_high", "RSS up to MB"),
    ];
    let describe = |cell: &dyn Fn(&str) -> &'static str| {
        let count = if cell("simultaneous").is_empty() { String::new() } else { format!("{} ", cell("simultaneous")) };
        (cell("test") == test && cell("note").starts_with(manner)).then(|| format!("{test}, {count}{}", cell("note")))
    };
    Table::read(JAVA_PEER).matching(describe, &shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(published: &[Published]) -> String {
        published.iter().map(|figure| format!("{} | {} | {}\n", figure.source, figure.what, figure.figures)).collect()
    }

    #[test]
    fn a_load_stands_beside_the_same_load() {
        let register = text(&of_load(Operation::Register, Mode::Simultaneous { count: 10_000 }));
        assert!(
            register.contains("Deliorman 2020, ch. 6") && register.contains("register, 10000 simultaneous, vm, hotspot | mean s 41.14")
        );
        assert!(register.contains("register insecure, 10000 simultaneous, vm, hotspot | mean s 19.57"));
        assert!(register.contains("mean ms 17000, mean up to ms 26000") && !register.contains("authorize"));
        let orchestrate = text(&of_load(Operation::Orchestrate, Mode::OpenLoop { rate_per_s: 1.0, count: 100 }));
        assert!(orchestrate.contains("Rocha 2019, ch. 5") && orchestrate.contains("mean ms 598.12, sd ms 139.46, max ms 1530"));
        let query = text(&of_load(Operation::Query, Mode::Sequential { count: 1 }));
        assert!(query.contains("p50 ms 3.6"));
    }

    #[test]
    fn orchestrations_to_another_cloud_stand_beside_both_works() {
        let told = text(&of_intercloud());
        assert!(told.contains("intercloud orchestration | mean ms 4566.6, sd ms 933.6, max ms 10103"), "{told}");
        assert!(
            told.contains(
                "orchestrate intercloud 1 (sent to the cloud under test), 1000 simultaneous, vm, hotspot | mean s 26.9, errors 591"
            ),
            "{told}"
        );
        assert!(
            told.contains(
                "orchestrate intercloud 2 (sent to the neighbour cloud), 1000 simultaneous, vm, hotspot | mean s 37.26, errors 638"
            ),
            "{told}"
        );
    }

    #[test]
    fn every_scenario_and_the_start_have_figures() {
        for scenario in [Scenario::A, Scenario::B1, Scenario::B6, Scenario::C, Scenario::D, Scenario::E] {
            assert!(text(&of_scenario(scenario)).contains("Rocha 2019, ch. 7"));
        }
        assert!(text(&of_scenario(Scenario::A)).contains("41.9 % over 100 ms"));
        assert!(text(&of_start()).contains("start-up orchestrator, vm, hotspot | mean s 24.76"));
    }

    #[test]
    fn latencies_of_levels_are_found_in_the_papers_table() {
        assert_eq!((cpep_p99_ms("low", "flink", 15), cpep_p99_ms("high", "cpep", 3)), (Some(679.8), Some(0.8)));
        assert_eq!(cpep_p99_ms("high", "cpep", 4), None);
        assert!(text(&of_cpep()).contains("max VmRSS, cpep, MB |  31.5"));
    }

    #[test]
    fn the_papers_table_stands_beside_the_same_topics() {
        assert_eq!(FrameTable::Loss.paper(13_525, 2), [Some(100.0), Some(73.2), Some(0.0), Some(78.4)]);
        assert_eq!(FrameTable::Latency.paper(13_525, 5), [Some(98.6), Some(86.1), Some(0.0), Some(100.0)]);
        assert_eq!((FrameTable::Loss.paper(4525, 0), FrameTable::Latency.paper(1525, 0)), ([Some(100.0); 4], [Some(100.0); 4]));
        assert_eq!(FrameTable::Latency.paper(100_000, 0), [None; 4]);
        assert!(FrameTable::Loss.title().starts_with("Wang 2019, Table 3.4"));
        assert!(text(&of_frame(&[7525])).contains("peak latency after a primary crash (category 2)"));
        assert!(of_frame(&[30]).is_empty());
    }

    #[test]
    fn the_thesis_has_its_tables() {
        assert_eq!(["5.1", "5.2", "5.3", "5.4", "5.5"].map(|number| thesis_rows(number).len()), [25, 25, 8, 20, 20]);
        let last = thesis_rows("5.5").pop().unwrap();
        assert_eq!((last.workers, last.input, last.is_text, last.speed_up), (10, 4, true, Some(0.68)));
        assert!((last.seconds()[0].unwrap() - 2.16 * 60.0).abs() < 1e-9);
        assert!(thesis_source().starts_with("Müller 2019"));
    }

    #[test]
    fn every_row_has_every_column() {
        for table in [DELIORMAN, ORCHESTRATION, EVENTS, FRAME_LOSS, FRAME_LATENCY, FRAME_OTHER, ARREC, JAVA_PEER, ZMTP] {
            let columns = table.lines().nth(1).unwrap().split(',').count();
            for row in table.lines().skip(2) {
                assert_eq!(row.split(',').count(), columns, "{row}");
            }
        }
    }
}
