//! A chart as inline SVG: curves over two axes, coloured by classes of the page's style sheet.

use std::fmt::Write;

use super::axis::Axis;
use super::html::escape;

const WIDTH: f64 = 720.0;
const MARGIN_LEFT: f64 = 64.0;
const MARGIN_RIGHT: f64 = 28.0;
const MARGIN_TOP: f64 = 10.0;
const MARGIN_BOTTOM: f64 = 40.0;
/// Colours of the style sheet; further curves begin again.
const COLOURS: usize = 8;

/// Curves over two axes.
pub struct Chart {
    /// What a screen reader says it is.
    pub title: String,
    /// Height in the units in which it is 720 wide.
    pub height: f64,
    /// To the right.
    pub x: Axis,
    /// What it counts.
    pub x_label: &'static str,
    /// Upwards.
    pub y: Axis,
    /// What it counts.
    pub y_label: &'static str,
    /// Drawn one over the other.
    pub curves: Vec<Curve>,
}

/// One line, or the area below it.
pub struct Curve {
    /// Its name, shown where the pointer rests on it.
    pub label: String,
    /// Which colour of the page.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Values in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// A line.
    Line,
    /// A line that stands back.
    Thin,
    /// A line and what is below it.
    Area,
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n",
            self.height,
            escape(&format!("{}: {} over {}", self.title, self.y_label, self.x_label))
        );
        self.grid(&mut out);
        self.curves.iter().for_each(|curve| self.curve(&mut out, curve));
        out.push_str("</svg>\n");
        out
    }

    fn left(&self, place: f64) -> f64 {
        MARGIN_LEFT + place * (WIDTH - MARGIN_LEFT - MARGIN_RIGHT)
    }

    fn top(&self, place: f64) -> f64 {
        self.height - MARGIN_BOTTOM - place * (self.height - MARGIN_TOP - MARGIN_BOTTOM)
    }

    fn grid(&self, out: &mut String) {
        let (left, right, top, bottom) = (self.left(0.0), self.left(1.0), self.top(1.0), self.top(0.0));
        for (value, text) in self.x.marks() {
            let x = self.left(self.x.place(value));
            put(out, format_args!("<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>"));
            let y = bottom + 15.0;
            put(out, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escape(&text)));
        }
        for (value, text) in self.y.marks() {
            let y = self.top(self.y.place(value));
            put(out, format_args!("<line class=\"grid\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>"));
            let (x, y) = (left - 7.0, y + 4.0);
            put(out, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>", escape(&text)));
        }
        let (x, y) = (f64::midpoint(left, right), self.height - 6.0);
        put(out, format_args!("<text class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escape(self.x_label)));
    }

    fn curve(&self, out: &mut String, curve: &Curve) {
        let place = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", self.left(self.x.place(*x)), self.top(self.y.place(*y)));
        let points: Vec<String> = curve.points.iter().map(place).collect();
        let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return };
        let colour = curve.colour % COLOURS;
        let title = format!("<title>{}</title>", escape(&curve.label));
        if curve.stroke == Stroke::Area {
            let (from, to, bottom) = (self.left(self.x.place(first.0)), self.left(self.x.place(last.0)), self.top(0.0));
            let points = points.join(" ");
            put(
                out,
                format_args!(
                    "<polygon class=\"area c{colour}\" points=\"{from:.1},{bottom:.1} {points} {to:.1},{bottom:.1}\">{title}</polygon>"
                ),
            );
        }
        let thin = if curve.stroke == Stroke::Thin { " thin" } else { "" };
        put(out, format_args!("<polyline class=\"line c{colour}{thin}\" points=\"{}\">{title}</polyline>", points.join(" ")));
    }
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("text takes text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::axis::count;

    #[test]
    fn points_lie_between_the_axes() {
        let curve = Curve { label: "a < b".into(), colour: 9, stroke: Stroke::Area, points: vec![(0.0, 0.0), (10.0, 10.0)] };
        let (x, y) = (Axis::linear(10.0, count), Axis::linear(10.0, count));
        let chart = Chart { title: "t".into(), height: 200.0, x, x_label: "s", y, y_label: "n", curves: vec![curve] };
        let svg = chart.svg();
        assert!(svg.contains("class=\"line c1\" points=\"64.0,160.0 692.0,10.0\""), "{svg}");
        assert!(svg.contains("<title>a &lt; b</title>") && svg.contains("class=\"area c1\""));
    }
}
