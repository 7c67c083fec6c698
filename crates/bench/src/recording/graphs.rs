//! Runs with a graph.

use super::GraphRecording;
use crate::options::RecordOptions;
use crate::realtime::cpep::recorded::GraphRig;

/// Every load of the graph as often as the options say, in turn, each in a cloud of its own; none where there is no graph.
pub fn record(options: &RecordOptions, told: &mut dyn FnMut(String)) -> anyhow::Result<Option<GraphRecording>> {
    let Some(plan) = &options.graph_plan else { return Ok(None) };
    let mut rigs = options.graph_loads.iter().map(|load| Ok((*load, GraphRig::new(plan, *load)?))).collect::<anyhow::Result<Vec<_>>>()?;
    let mut runs = Vec::new();
    for repeat in 1..=options.repeat {
        for (load, rig) in &mut rigs {
            told(format!("graph {}, {load} % of its rate, {repeat} of {}", plan.name, options.repeat));
            runs.push(rig.run(options.seconds)?);
        }
    }
    rigs.into_iter().try_for_each(|(_, rig)| rig.close())?;
    Ok(Some(GraphRecording { file: plan.file.clone(), runs }))
}
