//! A graph as a picture: suppliers on the left, operators in layers, outputs on the right; the colour is the level.

use std::{collections::BTreeMap, fmt::Write};

use bodkin_broker::{
    graph::{OperatorId, Source, SupplierId, Use},
    topic::Level,
};
use bodkin_operators::file::GraphFile;

use super::{
    layout::{Layout, Place, Room, layout},
    report::source_name,
};

/// In pixels.
const NODE_WIDTH: f64 = 176.0;
const NODE_HEIGHT: f64 = 58.0;
const LAYER_GAP: f64 = 84.0;
const MARGIN: f64 = 28.0;
const HEAD: f64 = 44.0;
const LEGEND: f64 = 48.0;

/// Of levels 0 to 7: colours that the colour-blind can tell apart (Okabe and Ito, 2008), and a grey.
const COLOURS: [&str; Level::COUNT as usize] = ["#d55e00", "#e69f00", "#009e73", "#0072b2", "#56b4e9", "#cc79a7", "#8c6d1f", "#777777"];

/// Longest text in a node, in characters; what is longer is cut.
const TEXT_MAX: usize = 26;

/// A node as it is drawn.
struct Node {
    lines: [String; 3],
    level: Level,
    /// Corner radius: suppliers and outputs are round.
    radius: f64,
}

/// The picture as an SVG document.
pub fn svg(file: &GraphFile) -> String {
    let graph = &file.graph;
    let (suppliers, operators) = (graph.suppliers().len(), graph.operators().len());
    let index = |source: Source| match source {
        Source::Supplier(supplier) => supplier.index(),
        Source::Operator(operator) => suppliers + operator.index(),
    };
    let edges = graph
        .operators()
        .iter()
        .enumerate()
        .flat_map(|(at, operator)| operator.inputs.iter().map(move |edge| ((index(edge.from), suppliers + at), edge.usage)));
    let outputs = graph
        .outputs()
        .iter()
        .enumerate()
        .map(|(at, output)| ((suppliers + output.from.index(), suppliers + operators + at), Use::Consume));
    let (lines, uses): (Vec<(usize, usize)>, Vec<Use>) = edges.chain(outputs).unzip();
    let nodes = nodes(file);
    let last: Vec<usize> = (suppliers + operators..nodes.len()).collect();
    let layout = layout(nodes.len(), &lines, &last, Room { node: NODE_HEIGHT, line: 12.0, gap: 22.0 });
    let width = MARGIN * 2.0 + layout.layers as f64 * (NODE_WIDTH + LAYER_GAP) - LAYER_GAP;
    let height = HEAD + layout.height + LEGEND + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"16\">{title}</text>\n",
        title = escaped(&graph.name)
    );
    arrows(&mut out, &layout, &lines, &uses, &nodes);
    nodes.iter().zip(&layout.nodes).for_each(|(node, place)| draw(&mut out, node, *place));
    legend(&mut out, nodes.iter().map(|node| node.level), height - MARGIN);
    out.push_str("</svg>\n");
    out
}

/// Suppliers, operators, outputs.
fn nodes(file: &GraphFile) -> Vec<Node> {
    let graph = &file.graph;
    let suppliers = graph.suppliers().iter().enumerate().map(|(at, supplier)| Node {
        lines: [supplier.topic.clone(), supplier.shape.to_string(), format!("every {}, valid {}", supplier.period, supplier.validity)],
        level: graph.supplier_level(SupplierId::of(at)),
        radius: NODE_HEIGHT / 2.0,
    });
    let operators = graph.operators().iter().zip(&file.recipes).enumerate().map(|(at, (operator, recipe))| Node {
        lines: [operator.name.clone(), format!("{} -> {}", recipe.kind().name, operator.shape), format!("cost {}", operator.cost)],
        level: graph.level(OperatorId::of(at)),
        radius: 4.0,
    });
    let outputs = graph.outputs().iter().map(|output| Node {
        lines: [
            output.topic.clone(),
            graph.operator(output.from).shape.to_string(),
            format!("from {}", source_name(file, Source::Operator(output.from))),
        ],
        level: output.level,
        radius: NODE_HEIGHT / 2.0,
    });
    suppliers.chain(operators).chain(outputs).collect()
}

fn left(place: Place) -> f64 {
    MARGIN + place.layer as f64 * (NODE_WIDTH + LAYER_GAP)
}

fn draw(out: &mut String, node: &Node, place: Place) {
    let (x, y) = (left(place), HEAD + place.y);
    let (top, middle, colour) = (y - NODE_HEIGHT / 2.0, x + NODE_WIDTH / 2.0, COLOURS[usize::from(node.level.get())]);
    let [first, second, third] = node.lines.each_ref().map(|line| escaped(&shortened(line)));
    let _ = writeln!(
        out,
        "<g><rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"{}\" fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"2\"/>\
         <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"bold\">{first}</text>\
         <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#444444\">{second}</text>\
         <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#444444\">{third}</text></g>",
        node.radius,
        y - 11.0,
        y + 5.0,
        y + 20.0
    );
}

/// Lines with their points; several that end at a node end apart, in the order from which they come.
fn arrows(out: &mut String, layout: &Layout, lines: &[(usize, usize)], uses: &[Use], nodes: &[Node]) {
    let mut at_end: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
    for (number, ((_, to), way)) in lines.iter().zip(&layout.lines).enumerate() {
        at_end.entry(*to).or_default().push((way[way.len() - 2].y, number));
    }
    let mut end_y = vec![0.0; lines.len()];
    for (to, mut ends) in at_end {
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let step = (NODE_HEIGHT - 20.0) / ends.len() as f64;
        for (place, (_, number)) in ends.iter().enumerate() {
            end_y[*number] = layout.nodes[to].y + (place as f64 + 0.5) * step - (NODE_HEIGHT - 20.0) / 2.0;
        }
    }
    for (number, ((from, _), way)) in lines.iter().zip(&layout.lines).enumerate() {
        let colour = COLOURS[usize::from(nodes[*from].level.get())];
        let (mut x, mut y) = (left(way[0]) + NODE_WIDTH, HEAD + way[0].y);
        let mut path = format!("M{x:.1} {y:.1}");
        for (step, place) in way.iter().enumerate().skip(1) {
            let is_end = step == way.len() - 1;
            let (to_x, to_y) = (left(*place) - if is_end { 7.0 } else { 0.0 }, HEAD + if is_end { end_y[number] } else { place.y });
            let bend = (to_x - x) / 2.0;
            let _ = write!(path, " C{:.1} {y:.1} {:.1} {to_y:.1} {to_x:.1} {to_y:.1}", x + bend, to_x - bend);
            (x, y) = (to_x, to_y);
            if !is_end {
                x += NODE_WIDTH;
                let _ = write!(path, " H{x:.1}");
            }
        }
        let dashes = if uses[number] == Use::Latest { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = write!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}/>\
             <path d=\"M{:.1} {y:.1}l-7 -4v8z\" fill=\"{colour}\"/>",
            x + 7.0
        );
        if let Use::Window { events, step } = uses[number] {
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"10\" fill=\"#444444\" stroke=\"#ffffff\" stroke-width=\"3\" \
                 paint-order=\"stroke\">window {events}, step {step}</text>",
                x + 2.0,
                y - 7.0
            );
        }
        out.push('\n');
    }
}

fn legend(out: &mut String, levels: impl Iterator<Item = Level>, y: f64) {
    let mut levels: Vec<Level> = levels.collect();
    levels.sort_unstable();
    levels.dedup();
    let mut x = MARGIN;
    for level in levels {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{y:.1}\">level {}</text>",
            y - 10.0,
            COLOURS[usize::from(level.get())],
            x + 18.0,
            level.get()
        );
        x += 78.0;
    }
    let _ = writeln!(
        out,
        "<path d=\"M{x:.1} {:.1}h30\" stroke=\"#444444\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/><text x=\"{:.1}\" y=\"{y:.1}\">latest: does not start an operator</text>",
        y - 4.0,
        x + 36.0
    );
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= TEXT_MAX { text.to_owned() } else { text.chars().take(TEXT_MAX - 1).chain(['\u{2026}']).collect() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
