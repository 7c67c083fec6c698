//! Where the parts of a net stand: in columns by how far they are from the first tokens, in each column by where their neighbours are.

use std::collections::VecDeque;

use super::{Kind, arcs};
use crate::net::Net;

/// Sweeps that bring neighbours to the same height.
const SWEEPS: usize = 12;

/// Columns and rows of all parts: places first, transitions behind them.
pub(super) struct Layout {
    /// For each part its column and row.
    pub cells: Vec<(usize, usize)>,
    pub columns: usize,
    pub rows: usize,
}

impl Layout {
    pub fn of(net: &Net) -> Self {
        let places = net.places().len();
        let count = places + net.transitions().len();
        // Tokens move along these; inhibitor and test arcs do not order anything.
        let moves: Vec<(usize, usize)> = arcs(net)
            .filter_map(|(transition, arc, kind)| match kind {
                Kind::Input => Some((arc.place, places + transition)),
                Kind::Output => Some((places + transition, arc.place)),
                Kind::Inhibitor | Kind::Test => None,
            })
            .collect();
        let column = columns(net, count, &moves);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); column.iter().max().map_or(0, |last| last + 1)];
        (0..count).for_each(|part| members[column[part]].push(part));
        let mut height = vec![0.0; count];
        for part in members.iter().flat_map(|members| members.iter().enumerate()) {
            height[*part.1] = part.0 as f64;
        }
        for sweep in 0..SWEEPS {
            let order: Vec<usize> = if sweep % 2 == 0 { (0..members.len()).collect() } else { (0..members.len()).rev().collect() };
            for index in order {
                sort(&mut members[index], &mut height, &moves);
            }
        }
        let mut cells = vec![(0, 0); count];
        for (column, members) in members.iter().enumerate() {
            members.iter().enumerate().for_each(|(row, part)| cells[*part] = (column, row));
        }
        Self { cells, columns: members.len(), rows: members.iter().map(Vec::len).max().unwrap_or(1) }
    }
}

/// Steps from the nearest place with a token, or of what no token reaches from any part without a way in.
fn columns(net: &Net, count: usize, moves: &[(usize, usize)]) -> Vec<usize> {
    let mut column = vec![usize::MAX; count];
    let marked = (0..net.places().len()).filter(|place| net.places()[*place].initial > 0);
    let sources = (0..count).filter(|part| moves.iter().all(|(_, to)| to != part));
    for start in marked.chain(sources).chain(0..count) {
        if column[start] != usize::MAX {
            continue;
        }
        column[start] = 0;
        let mut queue = VecDeque::from([start]);
        while let Some(part) = queue.pop_front() {
            for (_, to) in moves.iter().filter(|(from, _)| *from == part) {
                if column[part] + 1 < column[*to] {
                    column[*to] = column[part] + 1;
                    queue.push_back(*to);
                }
            }
        }
    }
    column
}

/// Sorts a column's parts by the mean height of their neighbours.
fn sort(members: &mut [usize], height: &mut [f64], moves: &[(usize, usize)]) {
    let mean = |part: usize| {
        let neighbours = moves.iter().filter_map(|(from, to)| match part {
            part if part == *from => Some(height[*to]),
            part if part == *to => Some(height[*from]),
            _ => None,
        });
        let (sum, count) = neighbours.fold((0.0, 0), |(sum, count), height| (sum + height, count + 1));
        if count == 0 { height[part] } else { sum / f64::from(count) }
    };
    let means: Vec<(usize, f64)> = members.iter().map(|part| (*part, mean(*part))).collect();
    members.sort_by(|a, b| {
        let of = |part: &usize| means.iter().find(|(other, _)| other == part).map_or(0.0, |(_, mean)| *mean);
        of(a).total_cmp(&of(b)).then(a.cmp(b))
    });
    members.iter().enumerate().for_each(|(row, part)| height[*part] = row as f64);
}
