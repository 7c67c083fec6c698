//! Charts drawn, and the page around them.

use std::fmt::Write;

use super::{Chart, Mark, axis::Axis};
use crate::format::xml::escaped;

/// Of a chart, in pixels, at least: long or many names take more.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;

/// Edges of the field in which marks are: left, right, top, bottom.
const FIELD: (f64, f64, f64, f64) = (70.0, 570.0, 40.0, 360.0);

/// From the field to the names of the legend, from one name to the next, and the width of a letter of theirs at the most, in the mean of a name.
const TO_NAMES: f64 = 42.0;
const NAME_HEIGHT: f64 = 16.0;
const LETTER_WIDTH: f64 = 7.0;

/// Colours that the colour-blind can tell apart (Okabe and Ito, 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Dashes of lines; with the colours they are different for the first 35.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "9 3 2 3", "4 2"];

/// The chart as an SVG document.
pub fn svg(chart: &Chart) -> String {
    let (left, right, top, bottom) = FIELD;
    let x = Axis::over(chart.marks.iter().flat_map(xs), (left, right));
    let y = Axis::over(chart.marks.iter().flat_map(ys).chain([0.0]), (bottom, top));
    let longest = chart.marks.iter().filter_map(Mark::name).map(|name| name.chars().count()).max().unwrap_or(0);
    let names = chart.marks.iter().filter_map(Mark::name).count();
    let width = WIDTH.max((right + TO_NAMES + LETTER_WIDTH * longest as f64).ceil());
    let height = HEIGHT.max(top + NAME_HEIGHT * (names as f64 + 1.0));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{left}\" y=\"24\" font-size=\"15\">{title}</text>\n",
        title = escaped(&chart.title)
    );
    grid(&mut out, chart, x, y);
    let mut names = Vec::new();
    for mark in &chart.marks {
        draw(&mut out, mark, names.len(), x, y);
        if let Some(name) = mark.name() {
            names.push((name, matches!(mark, Mark::Line { .. })));
        }
    }
    legend(&mut out, &names);
    out.push_str("</svg>\n");
    out
}

/// A page of charts with what is said of each below it.
pub fn page(title: &str, charts: &[(Chart, String)]) -> String {
    let figures: Vec<(String, &str)> = charts.iter().map(|(chart, said)| (svg(chart), said.as_str())).collect();
    document(title, &figures, "")
}

/// A page of drawings with what is said of each below it, and behind them `rest`, which is HTML.
pub fn document(title: &str, figures: &[(String, &str)], rest: &str) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{title}</title>\n\
         <style>body{{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}}\
         figure{{margin:2em 0}}svg{{width:100%;height:auto}}figcaption{{color:#555}}table{{border-collapse:collapse}}\
         td,th{{padding:.2em .6em;border-bottom:1px solid #ddd;text-align:left}}</style>\n<h1>{title}</h1>\n",
        title = escaped(title)
    );
    for (drawing, said) in figures {
        let _ = write!(out, "<figure>\n{drawing}<figcaption>{}</figcaption>\n</figure>\n", escaped(said));
    }
    out.push_str(rest);
    out.push_str("</html>\n");
    out
}

fn xs(mark: &Mark) -> Box<dyn Iterator<Item = f64> + '_> {
    match mark {
        Mark::Line { points, .. } | Mark::Dots { points, .. } => Box::new(points.iter().map(|(x, _)| *x)),
        Mark::Band { points } => Box::new(points.iter().map(|(x, _, _)| *x)),
        Mark::Bars { bars, .. } => Box::new(bars.iter().flat_map(|(from, to, _)| [*from, *to])),
    }
}

fn ys(mark: &Mark) -> Box<dyn Iterator<Item = f64> + '_> {
    match mark {
        Mark::Line { points, .. } | Mark::Dots { points, .. } => Box::new(points.iter().map(|(_, y)| *y)),
        Mark::Band { points } => Box::new(points.iter().flat_map(|(_, low, high)| [*low, *high])),
        Mark::Bars { bars, .. } => Box::new(bars.iter().map(|(_, _, height)| *height)),
    }
}

fn grid(out: &mut String, chart: &Chart, x: Axis, y: Axis) {
    let (left, right, top, bottom) = FIELD;
    for (value, text) in x.ticks() {
        let at = x.place(value);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#dddddd\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            bottom + 18.0
        );
    }
    for (value, text) in y.ticks() {
        let at = y.place(value);
        let _ = writeln!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#dddddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 8.0,
            at + 4.0
        );
    }
    let middle = 0.5 * (top + bottom);
    let _ = write!(
        out,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#444444\"/>\n\
         <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        0.5 * (left + right),
        bottom + 40.0,
        escaped(&chart.x_label),
        escaped(&chart.y_label)
    );
}

/// One mark; `index` is that of its colour and dashes.
fn draw(out: &mut String, mark: &Mark, index: usize, x: Axis, y: Axis) {
    let colour = COLOURS[index % COLOURS.len()];
    let corner = |(at, height): (f64, f64)| format!("{:.2},{:.2}", x.place(at), y.place(height));
    match mark {
        Mark::Line { points, .. } => {
            let corners: Vec<String> = points.iter().filter(|(_, y)| y.is_finite()).copied().map(corner).collect();
            let dashes = dashes(index);
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\"/>",
                corners.join(" ")
            );
        }
        Mark::Band { points } => {
            let upper = points.iter().map(|(at, _, high)| corner((*at, *high)));
            let lower = points.iter().rev().map(|(at, low, _)| corner((*at, *low)));
            let corners: Vec<String> = upper.chain(lower).collect();
            let _ = writeln!(out, "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"0.2\"/>", corners.join(" "));
        }
        Mark::Bars { bars, .. } => {
            for (from, to, height) in bars {
                let (left, right, top, bottom) = (x.place(*from), x.place(*to), y.place(*height), y.place(0.0));
                let _ = writeln!(
                    out,
                    "<rect x=\"{left:.2}\" y=\"{top:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{colour}\" fill-opacity=\"0.3\"/>",
                    right - left,
                    bottom - top
                );
            }
        }
        Mark::Dots { points, .. } => {
            for (at, height) in points {
                let _ = writeln!(out, "<circle cx=\"{:.2}\" cy=\"{:.2}\" r=\"2.2\" fill=\"{colour}\"/>", x.place(*at), y.place(*height));
            }
        }
    }
}

fn dashes(index: usize) -> &'static str {
    DASHES[index / COLOURS.len() % DASHES.len()]
}

fn legend(out: &mut String, names: &[(&str, bool)]) {
    let (_, right, top, _) = FIELD;
    for (index, (name, is_line)) in names.iter().enumerate() {
        let at = top + 8.0 + NAME_HEIGHT * index as f64;
        let (from, colour) = (right + 14.0, COLOURS[index % COLOURS.len()]);
        let (width, opacity) = if *is_line { (1.8, 1.0) } else { (8.0, 0.4) };
        let _ = writeln!(
            out,
            "<path d=\"M{from} {at}h22\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-opacity=\"{opacity}\" stroke-dasharray=\"{}\"/>\
             <text x=\"{}\" y=\"{}\" font-size=\"11\">{}</text>",
            dashes(index),
            right + TO_NAMES,
            at + 4.0,
            escaped(name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            title: "a < b & \"c\"".to_owned(),
            x_label: "t / ms".to_owned(),
            y_label: "tokens".to_owned(),
            marks: vec![
                Mark::Bars { name: "measured".to_owned(), bars: vec![(0.0, 1.0, 0.5), (1.0, 2.0, 0.25)] },
                Mark::Band { points: vec![(0.0, 0.1, 0.3), (2.0, 0.4, 0.6)] },
                Mark::Line { name: "model".to_owned(), points: vec![(0.0, 0.2), (1.0, f64::INFINITY), (2.0, 0.5)] },
                Mark::Dots { name: "pairs".to_owned(), points: vec![(1.0, 0.1)] },
            ],
        }
    }

    #[test]
    fn a_chart_has_its_marks_where_they_belong() {
        let drawn = svg(&chart());
        assert!(drawn.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"), "{drawn}");
        assert!(drawn.contains("<polyline points=\"70.00,253.33 570.00,93.33\""), "what is infinite is left out: {drawn}");
        assert!(drawn.contains("<rect x=\"70.00\" y=\"93.33\" width=\"250.00\" height=\"266.67\""), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 1);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn long_and_many_names_have_room() {
        let line = |name: String| Mark::Line { name, points: vec![(0.0, 0.0), (1.0, 1.0)] };
        let of = |marks: Vec<Mark>| svg(&Chart { marks, ..chart() });
        assert!(of(vec![line("short".to_owned())]).contains("viewBox=\"0 0 760 420\""));
        assert!(of(vec![line("Service_Registry_Post_Query".to_owned())]).contains("viewBox=\"0 0 801 420\""));
        assert!(of((0..30).map(|number| line(number.to_string())).collect()).contains("viewBox=\"0 0 760 536\""));
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let page = page("Curves", &[(chart(), "as simulated".to_owned()), (chart(), String::new())]);
        assert_eq!(page.matches("<svg").count(), 2);
        let links = page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "");
        assert!(!links.contains("http") && !links.contains("<script") && !links.contains("src="), "{links}");
    }
}
