//! Place invariants: weighted sums of tokens that no firing changes.
//!
//! Farkas's algorithm (Colom and Silva, Advances in Petri Nets 1990) on the incidence matrix: transitions are eliminated one by one by
//! non-negative combinations of rows that cancel each other. The number of minimal invariants may grow exponentially with the net, so
//! rows are limited.

use super::Net;

/// Most rows that the elimination may hold.
const ROWS_MAX: usize = 5_000;

/// A sum of tokens that every reachable marking keeps: `sum(weight * tokens) = total`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Place and weight; weights are 1 or more and have no common divisor.
    pub terms: Vec<(usize, u64)>,
    /// The sum at time 0.
    pub total: u64,
}

/// What is left of one combination of places: its effect on each transition, and the places' weights.
struct Row {
    effect: Vec<i64>,
    weights: Vec<i64>,
}

impl Net {
    /// All minimal invariants with weights of 0 or more. None where there are too many, or their weights too large, to find them.
    pub fn invariants(&self) -> Option<Vec<Invariant>> {
        let places = self.places.len();
        let mut rows: Vec<Row> = (0..places)
            .map(|place| Row {
                effect: self.transitions.iter().map(|transition| transition.effect(place)).collect(),
                weights: (0..places).map(|other| i64::from(other == place)).collect(),
            })
            .collect();
        for transition in 0..self.transitions.len() {
            rows = eliminate(rows, transition)?;
        }
        rows.iter().map(|row| self.invariant(&row.weights)).collect()
    }

    fn invariant(&self, weights: &[i64]) -> Option<Invariant> {
        let terms: Vec<(usize, u64)> =
            weights.iter().enumerate().filter(|(_, weight)| **weight > 0).map(|(place, weight)| (place, weight.unsigned_abs())).collect();
        let total = terms
            .iter()
            .try_fold(0_u64, |total, (place, weight)| total.checked_add(weight.checked_mul(u64::from(self.places[*place].initial))?))?;
        Some(Invariant { terms, total })
    }
}

/// Rows that leave `transition` alone: those of `rows` that do, and the combinations of two that cancel each other there.
fn eliminate(rows: Vec<Row>, transition: usize) -> Option<Vec<Row>> {
    let (mut kept, others): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.effect[transition] == 0);
    let (givers, takers): (Vec<Row>, Vec<Row>) = others.into_iter().partition(|row| row.effect[transition] > 0);
    for giver in &givers {
        for taker in &takers {
            let row = combine(giver, taker, transition)?;
            if !kept.iter().any(|other| is_within(&other.weights, &row.weights)) {
                kept.retain(|other| !is_within(&row.weights, &other.weights));
                kept.push(row);
            }
            if kept.len() > ROWS_MAX {
                return None;
            }
        }
    }
    Some(kept)
}

fn combine(giver: &Row, taker: &Row, transition: usize) -> Option<Row> {
    let (up, down) = (giver.effect[transition], -taker.effect[transition]);
    let sum = |a: &[i64], b: &[i64]| -> Option<Vec<i64>> {
        a.iter().zip(b).map(|(a, b)| a.checked_mul(down)?.checked_add(b.checked_mul(up)?)).collect()
    };
    let (mut effect, mut weights) = (sum(&giver.effect, &taker.effect)?, sum(&giver.weights, &taker.weights)?);
    let divisor = weights.iter().chain(&effect).fold(0, |divisor, number| common_divisor(divisor, number.unsigned_abs()));
    let divisor = i64::try_from(divisor).ok().filter(|divisor| *divisor > 1);
    if let Some(divisor) = divisor {
        effect.iter_mut().chain(&mut weights).for_each(|number| *number /= divisor);
    }
    Some(Row { effect, weights })
}

/// Whether every place of `inner` is one of `outer`.
fn is_within(inner: &[i64], outer: &[i64]) -> bool {
    inner.iter().zip(outer).all(|(inner, outer)| *inner == 0 || *outer > 0)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
