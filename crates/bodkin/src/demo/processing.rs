//! The demo's graph: what the sensors publish is processed on its way, and what comes of it are events like any.

use std::time::{Duration, Instant};

use anyhow::Context;
use bodkin_client::{Limits, Monitor};

use super::{certificates::Certificates, narrator::step};

/// The graph's file.
pub const GRAPH: &str = include_str!("processor.toml");
/// The services that it takes events of.
pub const SERVICES: [&str; 2] = ["processor-load", "processor-frequency"];
/// MHz that do something, the mean of the last four.
pub const WORK: &str = "PROCESSOR-WORK";
/// Its alarm: 0 or 1.
pub const BUSY: &str = "PROCESSOR-BUSY";

/// Plays the operator: has the graph run, if all its sensors are on this machine.
pub async fn deploy(monitor: &str, certificates: Option<&Certificates>, services: &[String]) -> anyhow::Result<()> {
    let began = Instant::now();
    if let Some(absent) = absent(services) {
        return Ok(step(Duration::ZERO, "operator", &format!("deployed no graph: this machine has no {absent}"))?);
    }
    let monitor = match certificates {
        Some(certificates) => Monitor::secure(monitor, Limits::default(), &certificates.operator()?),
        None => Monitor::new(monitor, Limits::default()),
    };
    let graph = monitor.deploy_graph(GRAPH, false).await.context("the graph was not deployed")?;
    let text = format!(
        "deployed the graph {}: {} made within 50 ms of each other become {WORK}, and the alarm {BUSY}",
        graph.name,
        SERVICES.map(str::to_uppercase).join(" and ")
    );
    Ok(step(began.elapsed(), "operator", &text)?)
}

/// A sensor of the graph that is not among these services.
pub fn absent(services: &[String]) -> Option<&'static str> {
    SERVICES.into_iter().find(|wanted| !services.iter().any(|service| service == wanted))
}

#[cfg(test)]
mod tests {
    use bodkin_broker::graph::response::Analysis;

    use super::*;

    #[test]
    fn the_graph_is_right_and_in_time() {
        let file = bodkin_host::graph::parse(GRAPH).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        assert!(Analysis::of(&file.graph, &file.workers).is_feasible());
        let suppliers: Vec<&str> = file.graph.suppliers().iter().map(|supplier| supplier.topic.as_str()).collect();
        assert_eq!(suppliers, SERVICES.map(str::to_uppercase));
        let outputs: Vec<&str> = file.graph.outputs().iter().map(|output| output.topic.as_str()).collect();
        assert_eq!(outputs, [BUSY, WORK]);
    }

    #[test]
    fn it_is_left_out_where_a_sensor_is() {
        let services = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(absent(&services(&["processor-load", "memory-used"])), Some("processor-frequency"));
        assert_eq!(absent(&services(&["processor-frequency", "processor-load"])), None);
    }
}
