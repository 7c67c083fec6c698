//! Values over two parameters, as coloured cells.

use std::fmt::Write;

use crate::format::xml::escaped;

/// Values over two parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// Above it.
    pub title: String,
    /// The parameter from left to right, and its values.
    pub x: (String, Vec<f64>),
    /// The parameter from bottom to top, and its values.
    pub y: (String, Vec<f64>),
    /// `[y, x]`; where a value is missing the cell is empty.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Of a drawing, in pixels, and the field in it: left, right, top, bottom.
const SIZE: (f64, f64) = (760.0, 420.0);
const FIELD: (f64, f64, f64, f64) = (90.0, 640.0, 40.0, 360.0);

/// Cells as small as this have no room for their value.
const CELL_WITH_TEXT: (f64, f64) = (44.0, 16.0);

/// From the least value to the greatest: ever lighter, so that the order is seen without colours, too.
const COLOURS: [(f64, f64, f64); 5] =
    [(33.0, 20.0, 82.0), (46.0, 86.0, 140.0), (33.0, 145.0, 140.0), (122.0, 200.0, 90.0), (250.0, 230.0, 60.0)];

impl Surface {
    /// The surface as an SVG document.
    pub fn svg(&self) -> String {
        let (left, right, top, bottom) = FIELD;
        let (width, height) = SIZE;
        let title = escaped(&self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{left}\" y=\"24\" font-size=\"15\">{title}</text>\n"
        );
        let known = || self.values.iter().flatten().flatten().copied().filter(|value| value.is_finite());
        let range = known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let cell = ((right - left) / self.x.1.len().max(1) as f64, (bottom - top) / self.y.1.len().max(1) as f64);
        for (row, values) in self.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let corner = (left + column as f64 * cell.0, bottom - (row + 1) as f64 * cell.1);
                draw(&mut out, value, range, corner, cell);
            }
        }
        self.axes(&mut out, cell);
        if range.0 <= range.1 {
            scale(&mut out, range);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, cell: (f64, f64)) {
        let (left, right, top, bottom) = FIELD;
        for (index, value) in self.x.1.iter().enumerate() {
            let at = left + (index as f64 + 0.5) * cell.0;
            let _ = writeln!(out, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>", bottom + 18.0);
        }
        for (index, value) in self.y.1.iter().enumerate() {
            let at = bottom - (index as f64 + 0.5) * cell.1 + 4.0;
            let _ = writeln!(out, "<text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\">{value}</text>", left - 8.0);
        }
        let (middle, height) = (0.5 * (left + right), 0.5 * (top + bottom));
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(22 {height}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            bottom + 40.0,
            escaped(&self.x.0),
            escaped(&self.y.0)
        );
    }
}

fn draw(out: &mut String, value: f64, range: (f64, f64), corner: (f64, f64), cell: (f64, f64)) {
    let share = share(value, range);
    let _ = writeln!(
        out,
        "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"><title>{value}</title></rect>",
        corner.0,
        corner.1,
        cell.0,
        cell.1,
        colour(share)
    );
    if cell.0 >= CELL_WITH_TEXT.0 && cell.1 >= CELL_WITH_TEXT.1 {
        let (x, y) = (corner.0 + 0.5 * cell.0, corner.1 + 0.5 * cell.1 + 4.0);
        let ink = if share < 0.6 { "#ffffff" } else { "#000000" };
        let _ =
            writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{ink}\">{}</text>", short(value));
    }
}

/// What the colours mean.
fn scale(out: &mut String, range: (f64, f64)) {
    let (_, right, top, bottom) = FIELD;
    const STEPS: usize = 40;
    let height = (bottom - top) / STEPS as f64;
    for step in 0..STEPS {
        let y = bottom - (step + 1) as f64 * height;
        let fill = colour((step as f64 + 0.5) / STEPS as f64);
        let _ = writeln!(out, "<rect x=\"{}\" y=\"{y:.2}\" width=\"14\" height=\"{:.2}\" fill=\"{fill}\"/>", right + 24.0, height + 0.5);
    }
    for (value, y) in [(range.0, bottom), (0.5 * (range.0 + range.1), 0.5 * (top + bottom)), (range.1, top)] {
        let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\">{}</text>", right + 44.0, y + 4.0, short(value));
    }
}

/// Where a value is between the least and the greatest.
fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    if high > low { (value - low) / (high - low) } else { 0.5 }
}

fn colour(share: f64) -> String {
    let position = share.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let index = (position as usize).min(COLOURS.len() - 2);
    let (from, to, part) = (COLOURS[index], COLOURS[index + 1], position - index as f64);
    let mixed = |from: f64, to: f64| (from + part * (to - from)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mixed(from.0, to.0), mixed(from.1, to.1), mixed(from.2, to.2))
}

/// Four digits.
fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-3..1e5).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let digits = if magnitude >= 1.0 { 3 - (magnitude.log10().floor() as i32).clamp(0, 3) } else { 4 };
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_has_a_cell_for_each_value_that_is_known() {
        let values = vec![vec![Some(1.0), Some(2.0)], vec![None, Some(3.0)]];
        let surface =
            Surface { title: "<p99>".to_owned(), x: ("cores".to_owned(), vec![1.0, 2.0]), y: ("pool".to_owned(), vec![4.0, 8.0]), values };
        let drawn = surface.svg();
        assert!(drawn.contains("<title>&lt;p99&gt;</title>"), "{drawn}");
        assert!(drawn.contains("<rect x=\"90.00\" y=\"200.00\" width=\"275.00\" height=\"160.00\" fill=\"#211452\">"), "{drawn}");
        assert_eq!(drawn.matches("<rect x").count(), 3 + 40, "three cells and the scale");
        assert!(drawn.contains(">2.000</text>"), "{drawn}");
    }

    #[test]
    fn values_have_four_digits() {
        let texts = [0.0, 0.25, 8.962_356, 27.652, 1_653.11, 2e-9, 3e7].map(short);
        assert_eq!(texts, ["0.0000", "0.2500", "8.962", "27.65", "1653", "2.00e-9", "3.00e7"]);
    }
}
