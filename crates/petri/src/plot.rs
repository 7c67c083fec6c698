//! Charts as SVG, and pages of them that need nothing else: no script, no font, no network.
//!
//! Lines differ in colour and in dashes, so that they can be told apart without colour. Bands are intervals, bars are what was
//! measured.

mod axis;
mod surface;
mod svg;

pub use self::{
    surface::Surface,
    svg::{document, page, svg},
};

/// Something drawn in a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A curve through points `(x, y)`.
    Line {
        /// What it is, for the legend.
        name: String,
        /// In rising order of `x`.
        points: Vec<(f64, f64)>,
    },
    /// Between two curves: points `(x, low, high)`. It has the colour of the line that follows it.
    Band {
        /// In rising order of `x`.
        points: Vec<(f64, f64, f64)>,
    },
    /// Bars `(from, to, height)`.
    Bars {
        /// What they are, for the legend.
        name: String,
        /// From left to right.
        bars: Vec<(f64, f64, f64)>,
    },
    /// Points `(x, y)` without a line.
    Dots {
        /// What they are, for the legend.
        name: String,
        /// In any order.
        points: Vec<(f64, f64)>,
    },
}

impl Mark {
    /// What it is, for the legend; a band has none of its own.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Line { name, .. } | Self::Bars { name, .. } | Self::Dots { name, .. } => Some(name),
            Self::Band { .. } => None,
        }
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis, with its unit.
    pub x_label: String,
    /// Beside the vertical axis, with its unit.
    pub y_label: String,
    /// From the back to the front.
    pub marks: Vec<Mark>,
}

/// Bars of equal width whose area is 1, beside densities: as many as Freedman and Diaconis say ("On the histogram as a density
/// estimator", 1981), at most 200, and no narrower than `resolution`. `sorted` is not empty and in rising order.
pub fn histogram(sorted: &[f64], resolution: Option<f64>) -> Vec<(f64, f64, f64)> {
    const BARS_MAX: f64 = 200.0;
    let count = sorted.len() as f64;
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    let at = |share: f64| sorted[(share * (count - 1.0)) as usize];
    let ideal = 2.0 * (at(0.75) - at(0.25)) / count.cbrt();
    let step = resolution.unwrap_or(0.0);
    let narrowest = ((most - least) / BARS_MAX).max(step).max(least.abs() * 1e-9).max(f64::MIN_POSITIVE);
    // Rounded values have bars of whole steps around them, or some bars would hold more steps than others.
    let width = if step > 0.0 { (ideal.max(narrowest) / step).round() * step } else { ideal.max(narrowest) };
    let first = if step > 0.0 { least - 0.5 * step } else { least };
    let bars = (((most - first) / width).floor() + 1.0) as usize;
    let mut heights = vec![0.0; bars];
    for value in sorted {
        let bar = (((value - first) / width) as usize).min(bars - 1);
        heights[bar] += 1.0 / (count * width);
    }
    let from = |bar: usize| first + bar as f64 * width;
    heights.into_iter().enumerate().map(|(bar, height)| (from(bar), from(bar + 1), height)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_an_area_of_one_and_bars_of_whole_steps() {
        let mut values: Vec<f64> = (0..99).map(|index| f64::from(index * index % 17)).collect();
        values.sort_unstable_by(f64::total_cmp);
        for resolution in [None, Some(1.0)] {
            let bars = histogram(&values, resolution);
            let area: f64 = bars.iter().map(|(from, to, height)| (to - from) * height).sum();
            assert!((area - 1.0).abs() < 1e-12, "{bars:?}");
            let first = bars[0].1 - bars[0].0;
            assert!(resolution.is_none() || first.fract() == 0.0, "{bars:?}");
        }
        assert_eq!(histogram(&[2.0, 2.0], None).len(), 1, "values that are the same");
    }
}
