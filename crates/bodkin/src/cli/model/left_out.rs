//! What a calibration knows of its own reach: each of its loads as a net of the other loads predicts it.

use bodkin_petri::deployment::{
    Durations, EventRun, Graph, GraphPrediction, GraphRun, LEFT_OUT_LOADS_MIN, LeftOut, OrchestrationRun, Prediction,
};
use serde::{Deserialize, Serialize};

use super::{calibrate::load_text, graph::load_text as graph_load_text};

/// The loads of a calibration that were left out in turn; of each kind none where there are too few.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutLoads {
    /// Of events.
    pub events: Vec<LeftOutLoad>,
    /// Of orchestrations.
    pub orchestration: Vec<LeftOutLoad>,
    /// Of orchestrations that another cloud answers.
    pub intercloud: Vec<LeftOutLoad>,
    /// Of the graph.
    pub graph: Vec<LeftOutLoad>,
}

/// A load that was left out.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutLoad {
    /// The load, as it is typed.
    pub load: String,
    /// What a net of the other loads makes of it: once, or by level.
    pub by_others: ByOthers,
}

/// What a net of the other loads makes of one.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ByOthers {
    /// Of events and orchestrations one figure, of a graph one of each level, the most urgent first.
    Predicted(Vec<Off>),
    /// Nothing, and why.
    Nothing(String),
}

/// How far a prediction is off.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Off {
    /// The level of a graph's results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// The predicted mean in us.
    pub mean_us: f64,
    /// How much more than the measured one that is.
    pub mean_off_percent: f64,
    /// The predicted 99th percentile in us.
    pub p99_us: f64,
    /// How much more than the measured one that is.
    pub p99_off_percent: f64,
}

impl Off {
    fn of(level: Option<u8>, measured: &Durations, predicted: &Prediction) -> Self {
        let (mean_us, p99_us) = (predicted.mean_us.value, predicted.quantile_us(0.99));
        let off = |predicted: f64, measured: f64| 100.0 * (predicted / measured - 1.0);
        Self {
            level,
            mean_us,
            mean_off_percent: off(mean_us, measured.mean_us()),
            p99_us,
            p99_off_percent: off(p99_us, measured.quantile_us(0.99)),
        }
    }

    /// As it is told.
    pub fn text(&self) -> String {
        format!("mean {:+.0} %, p99 {:+.0} %", self.mean_off_percent, self.p99_off_percent)
    }
}

impl LeftOutLoad {
    /// A load of events.
    pub fn of_events(LeftOut { run, by_others }: &LeftOut<EventRun, Prediction>) -> Self {
        Self::of(load_text(run), by_others, |predicted| vec![Off::of(None, &run.latency, predicted)])
    }

    /// A load of orchestrations.
    pub fn of_orchestrations(LeftOut { run, by_others }: &LeftOut<OrchestrationRun, Prediction>) -> Self {
        Self::of(run.consumers.to_string(), by_others, |predicted| vec![Off::of(None, &run.latency, predicted)])
    }

    /// A load of a graph.
    pub fn of_graph(graph: &Graph, LeftOut { run, by_others }: &LeftOut<GraphRun, Vec<GraphPrediction>>) -> Self {
        let off = |GraphPrediction { level, response, .. }: &GraphPrediction| Off::of(Some(*level), &run.of_level(graph, *level), response);
        Self::of(graph_load_text(run), by_others, |predicted| predicted.iter().map(off).collect())
    }

    fn of<P>(load: String, by_others: &Result<P, String>, off: impl Fn(&P) -> Vec<Off>) -> Self {
        let by_others = match by_others {
            Ok(predicted) => ByOthers::Predicted(off(predicted)),
            Err(why) => ByOthers::Nothing(why.clone()),
        };
        Self { load, by_others }
    }

    /// The figure of the level, or the only one, whose mean is furthest off.
    pub fn furthest(&self) -> Result<&Off, &str> {
        match &self.by_others {
            ByOthers::Predicted(off) => {
                Ok(off.iter().max_by(|a, b| a.mean_off_percent.abs().total_cmp(&b.mean_off_percent.abs())).expect("there is a figure"))
            }
            ByOthers::Nothing(why) => Err(why),
        }
    }

    /// The figure at a place: by level of a graph.
    pub fn figure(&self, place: usize) -> Result<&Off, &str> {
        match &self.by_others {
            ByOthers::Predicted(off) => Ok(&off[place]),
            ByOthers::Nothing(why) => Err(why),
        }
    }

    fn text(&self) -> String {
        self.furthest().map_or_else(|why| format!("nothing is told of it ({why})"), Off::text)
    }
}

/// What is known of how far a prediction may be off, for what was asked.
#[derive(Debug, Serialize)]
pub struct Reach<'a> {
    /// Recorded loads.
    recorded: Vec<String>,
    /// That of them whose costs speak of what was asked; none: all do.
    nearest: Option<String>,
    /// What a net of the other loads makes of it.
    nearest_by_others: Option<&'a LeftOutLoad>,
    /// Of all loads that were left out the one that is furthest off.
    furthest: Option<&'a LeftOutLoad>,
    /// Whether it is further from every recorded load than these are from each other, or on another number of processors.
    is_beyond: bool,
}

impl<'a> Reach<'a> {
    /// Of a calibration from `recorded` loads, of which `nearest` is used, and which were `left_out` in turn.
    pub fn new(recorded: Vec<String>, nearest: Option<String>, left_out: &'a [LeftOutLoad], is_beyond: bool) -> Self {
        let off = |load: &&LeftOutLoad| load.furthest().map_or(f64::INFINITY, |off| off.mean_off_percent.abs());
        let nearest_by_others = left_out.iter().find(|load| Some(&load.load) == nearest.as_ref());
        Self { recorded, nearest_by_others, nearest, furthest: left_out.iter().max_by(|a, b| off(a).total_cmp(&off(b))), is_beyond }
    }

    /// What predictions are made from.
    pub fn source_text(&self) -> String {
        let all = self.recorded.join(", ");
        match &self.nearest {
            Some(nearest) if self.recorded.len() > 1 => format!("{nearest}, the nearest of {all}"),
            _ => all,
        }
    }

    /// How far off the loads are that were left out in turn.
    pub fn off_text(&self) -> String {
        let of = |load: &LeftOutLoad| format!("{} by the others: {}", load.load, load.text());
        match (self.nearest_by_others, self.furthest) {
            (Some(nearest), Some(furthest)) if nearest.load != furthest.load => format!("{}; furthest, {}", of(nearest), of(furthest)),
            (Some(load), _) | (None, Some(load)) => format!("furthest, {}", of(load)),
            (None, None) => format!("unknown: of {LEFT_OUT_LOADS_MIN} recorded loads or more each is predicted by the others"),
        }
    }

    /// What is to be told beside the answer: that it may be further off than `within_percent`, or that nobody knows how far.
    pub fn warnings(&self, within_percent: f64) -> Vec<String> {
        let Some(doubted) = self.nearest_by_others.or(self.furthest) else { return Vec::new() };
        let is_far = doubted.furthest().map_or(true, |off| off.mean_off_percent.abs() > within_percent);
        let far = is_far.then(|| {
            format!(
                "a net of the other loads is more than {within_percent} % off for {}, from which this is predicted ({}): expect no better, or record loads nearer to what is asked while the machine has nothing else to do",
                doubted.load,
                doubted.text()
            )
        });
        let beyond = self.is_beyond.then(|| {
            let recorded = self.recorded.join(", ");
            format!("what is asked has other processors, or is further from the recorded loads ({recorded}) than they are from each other: nothing says how far off this is")
        });
        far.into_iter().chain(beyond).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(load: &str, mean_off_percent: f64) -> LeftOutLoad {
        let off = Off { level: None, mean_us: 100.0, mean_off_percent, p99_us: 200.0, p99_off_percent: 7.0 };
        LeftOutLoad { load: load.to_owned(), by_others: ByOthers::Predicted(vec![off]) }
    }

    fn reach(nearest: Option<&str>, left_out: &[LeftOutLoad], is_beyond: bool) -> (String, Vec<String>) {
        let reach = Reach::new(["1x1", "1x2", "4x4"].map(str::to_owned).into(), nearest.map(str::to_owned), left_out, is_beyond);
        (reach.off_text(), reach.warnings(25.0))
    }

    #[test]
    fn the_nearest_load_and_the_one_that_is_furthest_off_are_told() {
        let loads = [left_out("1x1", 3.0), left_out("1x2", -12.0), left_out("4x4", -40.0)];
        let (told, warnings) = reach(Some("1x2"), &loads, false);
        assert_eq!(told, "1x2 by the others: mean -12 %, p99 +7 %; furthest, 4x4 by the others: mean -40 %, p99 +7 %");
        assert_eq!(warnings, [] as [String; 0], "who asks beside 1x2 need not care for 4x4");
        let (told, warnings) = reach(Some("4x4"), &loads, true);
        assert_eq!(told, "furthest, 4x4 by the others: mean -40 %, p99 +7 %");
        assert!(warnings[0].contains("more than 25 % off for 4x4") && warnings[1].contains("(1x1, 1x2, 4x4)"), "{warnings:?}");
        let (told, warnings) = reach(None, &loads, false);
        assert!(told.starts_with("furthest, 4x4") && warnings.len() == 1, "all loads speak of it: {told}");
    }

    #[test]
    fn what_nobody_knows_is_told_so() {
        let (told, warnings) = reach(Some("1x2"), &[], true);
        assert!(told.starts_with("unknown: of 3 recorded loads") && warnings.is_empty(), "{told}, {warnings:?}");
        let silent = LeftOutLoad { load: "1x2".to_owned(), by_others: ByOthers::Nothing("no response".to_owned()) };
        let (told, warnings) = reach(Some("1x2"), &[silent, left_out("4x4", 3.0)], false);
        assert_eq!((told.as_str(), warnings.len()), ("furthest, 1x2 by the others: nothing is told of it (no response)", 1));
    }
}
