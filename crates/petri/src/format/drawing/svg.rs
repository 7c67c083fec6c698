//! A net as one SVG: readable without colour and without a script.

use std::fmt::Write;

use super::{Kind, arcs, caption, layout::Layout};
use crate::{
    format::xml::escaped,
    net::{Firing, Net},
};

/// Pixels from column to column, and from row to row.
const COLUMN: f64 = 130.0;
const ROW: f64 = 110.0;
const MARGIN: f64 = 70.0;
const RADIUS: f64 = 18.0;
/// Half the size of a transition.
const TALL: f64 = 18.0;
const TIMED_WIDE: f64 = 8.0;
const IMMEDIATE_WIDE: f64 = 3.0;
/// Characters of a caption in a line: a column has room for them.
const CAPTION_CHARACTERS_MAX: usize = 28;
/// Lines of captions below a transition: a row has room for them.
const CAPTION_LINES_MAX: usize = 4;
/// Radius of the ring at the end of an inhibitor arc.
const RING: f64 = 4.0;

/// Draws a net: circles are places, boxes timed transitions, bars immediate ones.
pub fn svg(net: &Net) -> String {
    let layout = Layout::of(net);
    let at = |part: usize| {
        let (column, row) = layout.cells[part];
        (MARGIN + column as f64 * COLUMN, MARGIN + row as f64 * ROW)
    };
    let width = 2.0 * MARGIN + COLUMN * layout.columns.saturating_sub(1) as f64;
    let height = 2.0 * MARGIN + ROW * layout.rows.saturating_sub(1) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"10\" text-anchor=\"middle\">\n<title>{}</title>\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        escaped(net.name())
    );
    let places = net.places().len();
    for (transition, arc, kind) in arcs(net) {
        let (place, box_at) = (at(arc.place), at(places + transition));
        // What leads back to an earlier column bends around what stands between.
        draw_arc(&mut text, place, box_at, kind, arc.weight);
    }
    for (index, place) in net.places().iter().enumerate() {
        let (x, y) = at(index);
        let _ = write!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{RADIUS}\" fill=\"white\" stroke=\"black\"/>");
        match place.initial {
            0 => {}
            1 => _ = write!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\"/>"),
            tokens => _ = write!(text, "<text x=\"{x}\" y=\"{}\" font-size=\"13\">{tokens}</text>", y + 4.5),
        }
        let _ = writeln!(text, "<text x=\"{x}\" y=\"{}\">{}</text>", y + RADIUS + 12.0, escaped(&place.name));
    }
    for (index, transition) in net.transitions().iter().enumerate() {
        let (x, y) = at(places + index);
        let (wide, fill) = match transition.firing {
            Firing::Immediate { .. } => (IMMEDIATE_WIDE, "black"),
            Firing::Timed(_) => (TIMED_WIDE, "white"),
        };
        let (left, top) = (x - wide, y - TALL);
        let _ = write!(
            text,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" stroke=\"black\"/>",
            2.0 * wide,
            2.0 * TALL
        );
        let _ = write!(text, "<text x=\"{x}\" y=\"{}\">{}</text>", y - TALL - 5.0, escaped(&transition.name));
        for (line, caption) in lines(&caption(transition, net)).iter().enumerate() {
            let below = y + TALL + 11.0 * (line as f64 + 1.0);
            let _ = write!(text, "<text x=\"{x}\" y=\"{below}\" font-size=\"8\">{}</text>", escaped(caption));
        }
        text.push('\n');
    }
    text + "</svg>\n"
}

/// Captions in lines for which there is room; an ellipsis stands for what has none.
fn lines(captions: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for caption in captions {
        lines.push(String::new());
        for word in caption.split(' ') {
            let line = lines.last_mut().expect("one was begun");
            let characters = line.chars().count() + usize::from(!line.is_empty()) + word.chars().count();
            if line.is_empty() {
                line.push_str(word);
            } else if characters <= CAPTION_CHARACTERS_MAX {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    let is_cut = lines.len() > CAPTION_LINES_MAX;
    lines.truncate(CAPTION_LINES_MAX);
    let last = lines.len().saturating_sub(1);
    for (at, line) in lines.iter_mut().enumerate() {
        let is_long = line.chars().count() > CAPTION_CHARACTERS_MAX;
        if is_long || (is_cut && at == last) {
            *line = line.chars().take(CAPTION_CHARACTERS_MAX - 1).chain(['…']).collect();
        }
    }
    lines
}

fn draw_arc(text: &mut String, place: (f64, f64), transition: (f64, f64), kind: Kind, weight: u32) {
    let (from, to) = if kind == Kind::Output { (transition, place) } else { (place, transition) };
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let from_gap = if kind == Kind::Output { TIMED_WIDE + 2.0 } else { RADIUS };
    let to_gap = match kind {
        Kind::Output => RADIUS,
        Kind::Inhibitor => TIMED_WIDE + 2.0 + 2.0 * RING,
        Kind::Input | Kind::Test => TIMED_WIDE + 2.0,
    };
    let (x1, y1) = (from.0 + ux * from_gap, from.1 + uy * from_gap);
    let (x2, y2) = (to.0 - ux * to_gap, to.1 - uy * to_gap);
    let bend = if (0.0..=1.5 * COLUMN).contains(&dx) { 0.0 } else { 0.5 * ROW };
    let inhibitor_bend = if kind == Kind::Inhibitor { 0.25 * ROW } else { 0.0 };
    let (mx, my) = ((x1 + x2) / 2.0 - uy * inhibitor_bend, (y1 + y2) / 2.0 - bend - ux.abs() * inhibitor_bend);
    let end = match kind {
        Kind::Input | Kind::Output => " marker-end=\"url(#arrow)\"",
        Kind::Inhibitor => "",
        Kind::Test => " stroke-dasharray=\"4 3\"",
    };
    let _ = writeln!(text, "<path d=\"M{x1:.1} {y1:.1}Q{mx:.1} {my:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"black\"{end}/>");
    if kind == Kind::Inhibitor {
        let _ = writeln!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{RING}\" fill=\"white\" stroke=\"black\"/>",
            x2 + ux * RING,
            y2 + uy * RING
        );
    }
    if weight > 1 {
        let _ = writeln!(text, "<text x=\"{:.1}\" y=\"{:.1}\">{weight}</text>", mx + 6.0, my - 3.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_have_lines_for_which_there_is_room() {
        let of = |captions: &[&str]| lines(&captions.iter().map(|&caption| caption.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["erlang, mean 6.226"]), ["erlang, mean 6.226"]);
        assert_eq!(of(&["[Active_Threads + Executing_Thread_Core1 < 4]"]), ["[Active_Threads +", "Executing_Thread_Core1 < 4]"]);
        let cut = of(&["priority 2", &"Executing_Thread_Core1 + ".repeat(9)]);
        assert_eq!(cut, ["priority 2", "Executing_Thread_Core1 +", "Executing_Thread_Core1 +", "Executing_Thread_Core1 +…"]);
        let long = of(&["x".repeat(99).as_str()]);
        assert!(long.len() == 1 && long[0].chars().count() == CAPTION_CHARACTERS_MAX && long[0].ends_with('…'), "{long:?}");
    }
}
