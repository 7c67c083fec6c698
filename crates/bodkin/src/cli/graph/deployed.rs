//! `bodkin graph deploy|list|remove`: the graphs of a running cloud.

use std::path::Path;

use bodkin_client::{Monitor, answer::GraphState};
use serde_json::json;

use crate::{
    DONE, USAGE,
    cli::{printer::Printer, table::Table},
    graph_file,
};

/// Has a graph run, in the place of the one of its name, or tells why it cannot.
pub(super) async fn deploy(monitor: &Monitor, path: &Path, force: bool, printer: Printer) -> anyhow::Result<u8> {
    let text = match graph_file::read_with_text(path) {
        Ok((_, text)) => text,
        Err(mistakes) => {
            eprintln!("bodkin: {mistakes}");
            return Ok(USAGE);
        }
    };
    let graph = monitor.deploy_graph(&text, force).await?;
    let states = |operators: &[String], what: &str| match operators {
        [] => String::new(),
        operators => format!("; {what}: {}", operators.join(", ")),
    };
    let (kept, anew) = (states(&graph.states_kept, "with their states"), states(&graph.states_anew, "anew"));
    printer.done(&graph, &format!("deployed: graph {} runs{kept}{anew}", graph.name))?;
    Ok(DONE)
}

/// Lists them.
pub(super) async fn list(monitor: &Monitor, printer: Printer) -> anyhow::Result<u8> {
    let graphs = monitor.graphs().await?;
    let mut table = Table::new(&[
        "GRAPH",
        "DECLARED BY",
        "OPERATORS",
        "TAKEN",
        "PUBLISHED",
        "MARKED",
        "SHED",
        "REPLACED",
        "LATE",
        "LOST",
        "FAILED",
        "STATE",
    ]);
    for graph in &graphs.data {
        let GraphState { taken, published, marked, shed, replaced, late, lost, failed, .. } = graph;
        let counts = [taken, published, marked, shed, replaced, late, lost, failed].map(u64::to_string);
        let down = graph.links.iter().find(|link| link.down.is_some());
        let state = match (&graph.suspended, &graph.moving, down) {
            (Some(_), ..) => "stands still".to_owned(),
            (None, Some(moving), _) => moving.clone(),
            (None, None, Some(link)) => format!("inputs late: no {} from {}", link.topic, link.edge),
            (None, None, None) => "runs".to_owned(),
        };
        let operators = graph.operators.to_string();
        let head = [graph.name.clone(), graph.declared_by.clone(), operators];
        table.push(head.into_iter().chain(counts).chain([state]));
    }
    printer.rows(&graphs, &table, "no graphs")?;
    for graph in graphs.data.iter().filter(|graph| !graph.placement.is_empty()) {
        let places: Vec<String> = graph.placement.iter().map(|place| format!("{} on {}", place.operator, place.edge)).collect();
        printer.remark(&format!("{} ({}): {}", graph.name, graph.digest, places.join(", ")))?;
    }
    for GraphState { name, excess, restarts, .. } in &graphs.data {
        if *excess > 0 {
            printer.remark(&format!("{name}: {excess} events arrived faster than their supplier's declared period"))?;
        }
        if *restarts > 0 {
            printer.remark(&format!("{name}: operators restarted {restarts} times because their state was no longer finite"))?;
        }
    }
    for (graph, link) in
        graphs.data.iter().flat_map(|graph| graph.links.iter().map(move |link| (graph, link))).filter(|(_, link)| link.lost > 0)
    {
        let exceeded = match link.exceeded {
            0 => String::new(),
            1 => ", 1 time more in a row than the link tolerates".to_owned(),
            times => format!(", {times} times more in a row than the link tolerates"),
        };
        printer.remark(&format!("{}: {} events of {} from {} are lost{exceeded}", graph.name, link.lost, link.topic, link.edge))?;
    }
    Ok(DONE)
}

/// Stops one.
pub(super) async fn remove(monitor: &Monitor, name: &str, force: bool, printer: Printer) -> anyhow::Result<u8> {
    monitor.remove_graph(name, force).await?;
    printer.done(&json!({"name": name}), &format!("removed: graph {name} runs no more"))?;
    Ok(DONE)
}
