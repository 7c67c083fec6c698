//! Tables 3.4 and 3.5 of Wang 2019 with what was measured here beside them.

use super::category::CATEGORIES;
use crate::options::Configuration;
use crate::published::{FRAME_CONFIGURATIONS, FrameTable};
use crate::report::{ComparedRow, Comparison, Outcome};

/// The name of what is run in rows and labels.
pub fn name(configuration: Configuration, is_in_cloud: bool) -> String {
    format!("{}{}", configuration.name(), if is_in_cloud { ", cloud" } else { "" })
}

/// The label of a row in the report.
pub fn label(configuration: Configuration, is_in_cloud: bool, topics: u32, is_crash: bool) -> String {
    let fault = if is_crash { "Primary killed" } else { "no fault" };
    format!("{}, {topics} topics, {fault}", name(configuration, is_in_cloud))
}

/// Loss success behind a crash and latency success without one, for what was run of it.
pub fn beside(configurations: &[Configuration], is_in_cloud: bool, topics: &[u32], outcomes: &[Outcome]) -> Vec<Comparison> {
    [FrameTable::Loss, FrameTable::Latency]
        .into_iter()
        .filter_map(|table| {
            let (is_crash, what) = match table {
                FrameTable::Loss => (true, "loss_success_percent"),
                FrameTable::Latency => (false, "latency_success_percent"),
            };
            let find = |configuration: Configuration, topics: u32| {
                let label = label(configuration, is_in_cloud, topics, is_crash);
                outcomes.iter().find(|outcome| outcome.label == label)
            };
            let run = |configuration: &&Configuration| topics.iter().any(|topics| find(**configuration, *topics).is_some());
            let run: Vec<Configuration> = configurations.iter().filter(run).copied().collect();
            let row = |topics: u32, category: usize| {
                let ours = run.iter().map(|configuration| find(*configuration, topics)?.series.summary(&format!("c{category}_{what}")));
                let figures = table.paper(topics, category).into_iter().chain(ours).collect();
                ComparedRow { what: describe(topics, category), figures }
            };
            let rows = topics.iter().flat_map(|topics| (0..CATEGORIES.len()).map(|category| row(*topics, category))).collect();
            let paper = FRAME_CONFIGURATIONS.map(|name| format!("{name} (paper)"));
            let columns = paper.into_iter().chain(run.iter().map(|configuration| configuration.name().into())).collect();
            (!run.is_empty()).then_some(Comparison { title: table.title().into(), columns, rows })
        })
        .collect()
}

fn describe(topics: u32, category: usize) -> String {
    let of = &CATEGORIES[category];
    let tolerance = of.loss_tolerance.map_or("inf".into(), |tolerance| tolerance.to_string());
    format!("{topics} topics, category {category} (D {} ms, L {tolerance})", of.period_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Figure;

    #[test]
    fn ours_stand_beside_the_papers_of_the_same_topics() {
        let configurations = [Configuration::Bodkin, Configuration::Fcfs];
        let mut outcome = Outcome::new(label(Configuration::Bodkin, false, 13_525, true));
        outcome.push(vec![Figure::median("c2_loss_success_percent", 70.0)], Default::default());
        let tables = beside(&configurations, false, &[13_525], &[outcome]);
        assert_eq!(tables.len(), 1, "nothing was run without a fault");
        assert_eq!(tables[0].columns, ["FRAME+ (paper)", "FRAME (paper)", "FCFS (paper)", "FCFS- (paper)", "bodkin"]);
        let row = &tables[0].rows[2];
        assert_eq!(row.what, "13525 topics, category 2 (D 100 ms, L 0)");
        assert_eq!(row.figures, [Some(100.0), Some(73.2), Some(0.0), Some(78.4), Some(70.0)]);
        assert_eq!(tables[0].rows[4].figures[4], None, "a category that was not told has no figure");
    }
}
