//! Laws whose density is, piece by piece, a sum of polynomials times exponentials.

use serde::{Deserialize, Serialize};

use super::{
    DistributionError, Law,
    checked::{Check, PARTS_MAX},
};
use crate::special::{gamma_p, gamma_q, ln_gamma};

/// Largest power of a term.
const POWER_MAX: u32 = 64;

/// Points of each piece where the density is looked at.
const LOOKS: u32 = 1_024;

/// Most that the terms' masses may be together, each taken as positive: they cancel to 1, and what is lost with them is this much
/// times the error of one.
const CANCELLING_MAX: f64 = 1e3;

/// `coefficient x^power e^(-rate x)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Any number.
    pub coefficient: f64,
    /// 0 to 64.
    pub power: u32,
    /// At least 0.
    pub rate: f64,
}

/// The density of one interval: the sum of its terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Where it begins, at least 0.
    pub min: f64,
    /// Where it ends; perhaps infinite, then all rates are above 0.
    pub max: f64,
    /// What it is the sum of.
    pub terms: Vec<Term>,
}

/// Sums of polynomials times exponentials, piece by piece. Error of its functions: 1e-10, absolutely.
#[derive(Clone, Debug, PartialEq)]
pub struct Expolynomial {
    pieces: Vec<Piece>,
    mean: f64,
    variance: f64,
}

impl Expolynomial {
    /// Pieces in rising order that do not overlap. Their mass is 1 within 1e-9, the density is at least 0 at 1,025 points of each
    /// piece, and the terms do not cancel to less than a thousandth of their sizes.
    pub fn new(pieces: Vec<Piece>) -> Result<Self, DistributionError> {
        let check = Check { law: "expolynomial" };
        check.parts("pieces", pieces.len())?;
        let mut end = 0.0;
        for piece in &pieces {
            piece.check(check, end)?;
            end = piece.max;
        }
        let sizes: f64 = pieces.iter().flat_map(|piece| piece.terms.iter().map(|term| term.mass(piece.min, piece.max, 0).abs())).sum();
        check.hold("terms", sizes, sizes <= CANCELLING_MAX, "at most 1000 when each term's mass is taken as positive")?;
        let moment = |order| -> f64 { pieces.iter().map(|piece| piece.mass(piece.min, piece.max, order)).sum() };
        let (mass, mean, square) = (moment(0), moment(1), moment(2));
        check.hold("pieces", mass, (mass - 1.0).abs() <= 1e-9, "a mass of 1")?;
        Ok(Self { mean, variance: (square - mean * mean).max(0.0), pieces })
    }

    /// The pieces in rising order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Probability of `from` to `to`.
    fn between(&self, from: f64, to: f64) -> f64 {
        let cut = self.pieces.iter().map(|piece| (piece, from.max(piece.min), to.min(piece.max)));
        cut.filter(|(_, from, to)| from < to).map(|(piece, from, to)| piece.mass(from, to, 0)).sum::<f64>().clamp(0.0, 1.0)
    }
}

impl Piece {
    fn check(&self, check: Check, after: f64) -> Result<(), DistributionError> {
        check.hold("min", self.min, self.min >= after && self.min.is_finite(), "at or behind the end of the piece before")?;
        check.above("max", self.max, self.min)?;
        if self.terms.is_empty() || self.terms.len() > PARTS_MAX {
            return Err(check.error("terms", format!("a list of {}", self.terms.len()), format!("a list of 1 to {PARTS_MAX}")));
        }
        for term in &self.terms {
            check.finite("coefficient", term.coefficient)?;
            check.not_negative("rate", term.rate)?;
            check.hold("power", f64::from(term.power), term.power <= POWER_MAX, "0 to 64")?;
            check.hold("rate", term.rate, self.max.is_finite() || term.rate > 0.0, "above 0 in a piece without an end")?;
        }
        let reach = |term: &Term| self.min + 40.0 * f64::from(term.power + 1) / term.rate;
        let last = if self.max.is_finite() { self.max } else { self.terms.iter().map(reach).fold(self.min, f64::max) };
        for look in 0..=LOOKS {
            let x = self.min + (last - self.min) * f64::from(look) / f64::from(LOOKS);
            let sizes: f64 = self.terms.iter().map(|term| term.at(x).abs()).sum();
            let density = self.at(x);
            check.hold("terms", density, density >= -1e-12 * sizes, "a density of at least 0 everywhere")?;
        }
        Ok(())
    }

    fn at(&self, x: f64) -> f64 {
        self.terms.iter().map(|term| term.at(x)).sum()
    }

    /// Integral of `x^order` times the density over `from` to `to`.
    fn mass(&self, from: f64, to: f64, order: u32) -> f64 {
        self.terms.iter().map(|term| term.mass(from, to, order)).sum()
    }
}

impl Term {
    fn at(&self, x: f64) -> f64 {
        self.coefficient * x.powi(self.power as i32) * (-self.rate * x).exp()
    }

    /// Integral of `x^order` times the term over `from` to `to`.
    pub(crate) fn mass(&self, from: f64, to: f64, order: u32) -> f64 {
        let shape = f64::from(self.power + order + 1);
        if self.rate == 0.0 {
            return self.coefficient * (to.powf(shape) - from.powf(shape)) / shape;
        }
        let (from, to) = (self.rate * from, self.rate * to);
        let share = if from > shape { gamma_q(shape, from) - gamma_q(shape, to) } else { gamma_p(shape, to) - gamma_p(shape, from) };
        self.coefficient * (ln_gamma(shape) - shape * self.rate.ln()).exp() * share
    }
}

impl Law for Expolynomial {
    fn mean(&self) -> f64 {
        self.mean
    }

    fn variance(&self) -> f64 {
        self.variance
    }

    fn support(&self) -> (f64, f64) {
        (self.pieces[0].min, self.pieces[self.pieces.len() - 1].max)
    }

    fn pdf(&self, x: f64) -> Option<f64> {
        let piece = self.pieces.iter().find(|piece| (piece.min..=piece.max).contains(&x));
        Some(piece.map_or(0.0, |piece| piece.at(x).max(0.0)))
    }

    fn cdf(&self, x: f64) -> f64 {
        self.between(0.0, x)
    }

    fn survival(&self, x: f64) -> f64 {
        self.between(x, f64::INFINITY)
    }

    fn laplace(&self, _: f64) -> Option<f64> {
        None
    }
}
