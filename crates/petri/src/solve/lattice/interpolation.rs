//! Values between the times of the grid, from times that have no corner and no jump between them.

use std::collections::BTreeMap;

/// Cells between the times of one interpolation, at most; a piece without corners has at least as many.
pub const CELLS: usize = 8;

/// Times that a change by the farthest node is taken where a corner may be between the nodes.
pub const CORNER_FACTOR: f64 = 16.0;

/// A time of the grid, before or after what fires on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Cells from time 0.
    pub number: usize,
    /// After what fires at this time.
    pub is_after: bool,
}

/// Where a query time is among the times of the grid: one of them, or between several with Lagrange's weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// With the weight of the interpolation through all, and of the one that leaves out the farthest.
    nodes: Vec<(Node, f64, f64)>,
}

impl Place {
    /// Of a time among times that are `tick` apart; those with a corner are `piece` cells apart, none have one where it is 0.
    pub fn of(time: f64, tick: f64, piece: usize) -> Self {
        let position = time / tick;
        if super::grid::is_multiple(time, tick) {
            return Self { nodes: vec![(Node { number: position.round() as usize, is_after: true }, 1.0, 1.0)] };
        }
        let cell = position.floor() as usize;
        let start = cell.checked_div(piece).map_or(0, |number| number * piece);
        let last_first = if piece == 0 { usize::MAX } else { start + piece - CELLS };
        let first = cell.saturating_sub(CELLS / 2).clamp(start, last_first);
        let numbers: Vec<usize> = (first..=first + CELLS).collect();
        let middle = first as f64 + 0.5 * CELLS as f64;
        // Leave out the end that is farther away.
        let fewer = if position < middle { &numbers[..CELLS] } else { &numbers[1..] };
        let node = |number: &usize| {
            let node = Node { number: *number, is_after: piece == 0 || *number < start + piece };
            let less = if fewer.contains(number) { weight(position, *number, fewer) } else { 0.0 };
            (node, weight(position, *number, &numbers), less)
        };
        Self { nodes: numbers.iter().map(node).collect() }
    }

    /// The times of the grid that it needs.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.nodes.iter().map(|(node, ..)| *node)
    }

    /// How often an error of the values at the grid's times may count.
    pub fn enlargement(&self) -> f64 {
        self.nodes.iter().map(|(_, weight, _)| weight.abs()).sum()
    }

    /// The values at the time, and by how much they change without the farthest node, from the rows of values at nodes.
    pub fn values(&self, rows: &[Vec<f64>], by_node: &BTreeMap<Node, usize>) -> (Vec<f64>, Vec<f64>) {
        let columns = rows.first().map_or(0, Vec::len);
        let (mut values, mut changes) = (vec![0.0; columns], vec![0.0; columns]);
        for (node, weight, less) in &self.nodes {
            for (column, value) in rows[by_node[node]].iter().enumerate() {
                values[column] += weight * value;
                changes[column] += (weight - less) * value;
            }
        }
        changes.iter_mut().for_each(|change| *change = change.abs());
        (values, changes)
    }
}

/// Lagrange's weight of a node.
fn weight(position: f64, own: usize, nodes: &[usize]) -> f64 {
    let others = nodes.iter().filter(|other| **other != own).map(|other| *other as f64);
    others.map(|other| (position - other) / (own as f64 - other)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: &Place, f: impl Fn(Node) -> f64) -> (f64, f64) {
        let nodes: Vec<Node> = place.nodes().collect();
        let rows: Vec<Vec<f64>> = nodes.iter().map(|node| vec![f(*node)]).collect();
        let by_node = nodes.into_iter().enumerate().map(|(index, node)| (node, index)).collect();
        let (values, changes) = place.values(&rows, &by_node);
        (values[0], changes[0])
    }

    #[test]
    fn interpolation_is_exact_for_polynomials() {
        let cubic = |x: f64| 1.0 + x - 0.5 * x * x + 0.1 * x * x * x;
        for time in [0.3, 2.75, 9.95] {
            for piece in [0, 8, 20] {
                let (value, change) = at(&Place::of(time, 0.5, piece), |node| cubic(0.5 * node.number as f64));
                assert!((value - cubic(time)).abs() < 1e-9 && change < 1e-9, "{time}: {value} +- {change:e}");
            }
        }
        assert_eq!(Place::of(2.0, 0.5, 8).nodes().collect::<Vec<_>>(), [Node { number: 4, is_after: true }]);
    }

    /// 0 before a jump at 4 and 1 from there on.
    #[test]
    fn interpolation_does_not_cross_a_jump() {
        let jump = |node: Node| f64::from(u8::from(node.number > 8 || (node.number == 8 && node.is_after)));
        for (time, expected) in [(0.1, 0.0), (3.9, 0.0), (3.999, 0.0), (4.0, 1.0), (4.001, 1.0), (7.7, 1.0)] {
            let (value, change) = at(&Place::of(time, 0.5, 8), jump);
            assert!((value - expected).abs() < 1e-12 && change < 1e-12, "{time}: {value} +- {change:e}");
        }
    }

    #[test]
    fn what_the_farthest_node_changes_shows_a_corner() {
        let corner = |node: Node| (0.5 * node.number as f64 - 2.2).abs();
        let (value, change) = at(&Place::of(2.3, 0.5, 0), corner);
        assert!((value - 0.1).abs() < CORNER_FACTOR * change && change > 1e-3, "{value} +- {change:e}");
    }
}
