//! Where the nodes of a graph without cycles stand: in layers, from left to right, with few crossings (Sugiyama, Tagawa and Toda 1981).

/// Sweeps over the layers that look for an order with fewer crossings, and for straighter lines.
const SWEEPS: usize = 24;

/// A node's place: its layer, and how far down its middle is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub layer: usize,
    pub y: f64,
}

/// Where everything stands.
#[derive(Debug)]
pub struct Layout {
    /// Of each node.
    pub nodes: Vec<Place>,
    /// The way of each line, from node to node, with a point in each layer between them.
    pub lines: Vec<Vec<Place>>,
    pub layers: usize,
    pub height: f64,
}

/// How much room nodes take.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Height of a node.
    pub node: f64,
    /// Height of a line that passes a layer.
    pub line: f64,
    /// Between any two.
    pub gap: f64,
}

/// Places so many nodes with lines between them, each from the first to the second. Nodes of `last` stand in the last layer.
///
/// # Panics
/// If the lines make a cycle.
pub fn layout(nodes: usize, lines: &[(usize, usize)], last: &[usize], room: Room) -> Layout {
    let layer_of = layers(nodes, lines, last);
    let net = Net::new(&layer_of, lines);
    let count = layer_of.iter().max().map_or(0, |last| last + 1);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); count];
    (0..net.layer.len()).for_each(|point| layers[net.layer[point]].push(point));
    let mut best = (net.crossings(&layers), layers.clone());
    for sweep in 0..SWEEPS {
        net.sweep(&mut layers, sweep % 2 == 0);
        let crossings = net.crossings(&layers);
        if crossings < best.0 {
            best = (crossings, layers.clone());
        }
    }
    let y = net.rows(&best.1, nodes, room);
    let place = |point: usize| Place { layer: net.layer[point], y: y[point] };
    let lowest = (0..y.len()).map(|point| y[point] + net.height(point, nodes, room) / 2.0).fold(0.0, f64::max);
    Layout {
        nodes: (0..nodes).map(place).collect(),
        lines: net.ways.iter().map(|way| way.iter().copied().map(place).collect()).collect(),
        layers: count,
        height: lowest,
    }
}

/// The layer of each node: behind all that lead to it.
fn layers(nodes: usize, lines: &[(usize, usize)], last: &[usize]) -> Vec<usize> {
    let mut layers = vec![0; nodes];
    for round in 0..=nodes {
        let before = layers.clone();
        lines.iter().for_each(|(from, to)| layers[*to] = layers[*to].max(layers[*from] + 1));
        if layers == before {
            break;
        }
        assert!(round < nodes, "the lines make a cycle");
    }
    let end = layers.iter().max().copied().unwrap_or_default();
    last.iter().for_each(|node| layers[*node] = end);
    layers
}

/// Nodes, and a point for every layer that a line passes.
struct Net {
    layer: Vec<usize>,
    /// Neighbours one layer to the left, and to the right.
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    ways: Vec<Vec<usize>>,
}

impl Net {
    fn new(layers: &[usize], lines: &[(usize, usize)]) -> Self {
        let mut layer = layers.to_vec();
        let ways: Vec<Vec<usize>> = lines
            .iter()
            .map(|(from, to)| {
                let passed = layers[*from] + 1..layers[*to];
                let first = layer.len();
                layer.extend(passed.clone());
                [*from].into_iter().chain(first..first + passed.len()).chain([*to]).collect()
            })
            .collect();
        let (mut left, mut right) = (vec![Vec::new(); layer.len()], vec![Vec::new(); layer.len()]);
        for step in ways.iter().flat_map(|way| way.windows(2)) {
            right[step[0]].push(step[1]);
            left[step[1]].push(step[0]);
        }
        Self { layer, left, right, ways }
    }

    /// Sorts each layer by the mean place of its neighbours in the layer in front.
    fn sweep(&self, layers: &mut [Vec<usize>], to_the_right: bool) {
        let count = layers.len();
        let order: Vec<usize> = if to_the_right { (1..count).collect() } else { (0..count.saturating_sub(1)).rev().collect() };
        for at in order {
            let (neighbours, other) = if to_the_right { (&self.left, at - 1) } else { (&self.right, at + 1) };
            let places = places(&layers[other], self.layer.len());
            let mean = |point: &usize, stays: usize| match neighbours[*point].len() {
                0 => stays as f64,
                count => neighbours[*point].iter().map(|other| places[*other] as f64).sum::<f64>() / count as f64,
            };
            let mut keyed: Vec<(f64, usize)> = layers[at].iter().enumerate().map(|(stays, point)| (mean(point, stays), *point)).collect();
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            layers[at] = keyed.into_iter().map(|(_, point)| point).collect();
        }
    }

    fn crossings(&self, layers: &[Vec<usize>]) -> usize {
        let mut crossings = 0;
        for pair in layers.windows(2) {
            let places = places(&pair[1], self.layer.len());
            let ends: Vec<usize> = pair[0]
                .iter()
                .flat_map(|from| {
                    let mut ends: Vec<usize> = self.right[*from].iter().map(|to| places[*to]).collect();
                    ends.sort_unstable();
                    ends
                })
                .collect();
            crossings += ends.iter().enumerate().map(|(at, end)| ends[..at].iter().filter(|before| *before > end).count()).sum::<usize>();
        }
        crossings
    }

    fn height(&self, point: usize, nodes: usize, room: Room) -> f64 {
        if point < nodes { room.node } else { room.line }
    }

    /// How far down each point is: as near to its neighbours as those above and below leave room.
    fn rows(&self, layers: &[Vec<usize>], nodes: usize, room: Room) -> Vec<f64> {
        let mut y = vec![0.0; self.layer.len()];
        let apart = |one: usize, other: usize| (self.height(one, nodes, room) + self.height(other, nodes, room)) / 2.0 + room.gap;
        for sweep in 0..SWEEPS {
            for layer in layers {
                let neighbours = |point: usize| match sweep % 3 {
                    0 => self.left[point].clone(),
                    1 => self.right[point].clone(),
                    _ => [self.left[point].as_slice(), &self.right[point]].concat(),
                };
                let wanted: Vec<f64> = layer
                    .iter()
                    .map(|point| match neighbours(*point) {
                        near if near.is_empty() => y[*point],
                        near => near.iter().map(|other| y[*other]).sum::<f64>() / near.len() as f64,
                    })
                    .collect();
                let offsets: Vec<f64> = layer
                    .iter()
                    .scan((0.0, None), |(offset, before), point| {
                        *offset += before.map_or(0.0, |before| apart(before, *point));
                        *before = Some(*point);
                        Some(*offset)
                    })
                    .collect();
                let free: Vec<f64> = wanted.iter().zip(&offsets).map(|(wanted, offset)| wanted - offset).collect();
                for ((point, row), offset) in layer.iter().zip(increasing(&free)).zip(offsets) {
                    y[*point] = row + offset;
                }
            }
        }
        let top = (0..y.len()).map(|point| y[point] - self.height(point, nodes, room) / 2.0).fold(f64::INFINITY, f64::min);
        y.into_iter().map(|row| row - if top.is_finite() { top } else { 0.0 }).collect()
    }
}

/// The numbers that never fall and are nearest to these (least squares; pools of adjacent violators).
fn increasing(wanted: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(wanted.len());
    for number in wanted {
        pools.push((*number, 1));
        while let [.., (below, few), (above, more)] = pools[..] {
            if below <= above {
                break;
            }
            pools.truncate(pools.len() - 2);
            pools.push(((below * few as f64 + above * more as f64) / (few + more) as f64, few + more));
        }
    }
    pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

/// The place of each point in its layer; of others 0.
fn places(layer: &[usize], points: usize) -> Vec<usize> {
    let mut places = vec![0; points];
    layer.iter().enumerate().for_each(|(place, point)| places[*point] = place);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { node: 50.0, line: 10.0, gap: 20.0 };

    #[test]
    fn a_node_is_to_the_right_of_all_that_lead_to_it() {
        let found = layout(5, &[(0, 2), (1, 2), (2, 3), (0, 3), (3, 4)], &[4], ROOM);
        assert_eq!(found.nodes.iter().map(|place| place.layer).collect::<Vec<_>>(), [0, 0, 1, 2, 3]);
        assert_eq!(found.lines[3].len(), 3, "a line over a layer has a point in it");
        assert_eq!((found.layers, layout(0, &[], &[], ROOM).layers), (4, 0));
    }

    #[test]
    fn nothing_stands_on_anything_else() {
        let lines: Vec<(usize, usize)> =
            (0..8).flat_map(|from| (8..16).filter(move |to| (from * to) % 3 != 0).map(move |to| (from, to))).collect();
        let found = layout(16, &lines, &[], ROOM);
        for (at, one) in found.nodes.iter().enumerate() {
            let clear = |other: &Place| other.layer != one.layer || (other.y - one.y).abs() >= ROOM.node + ROOM.gap - 1e-6;
            assert!(found.nodes[..at].iter().all(clear), "{found:?}");
            assert!(one.y >= ROOM.node / 2.0 - 1e-6 && one.y <= found.height);
        }
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        // 0 -> 5, 1 -> 4, 2 -> 3: the second layer is turned round.
        let found = layout(6, &[(0, 5), (1, 4), (2, 3)], &[], ROOM);
        let order = |nodes: [usize; 3]| nodes.map(|node| found.nodes[node].y);
        let [a, b, c] = order([0, 1, 2]);
        let [x, y, z] = order([5, 4, 3]);
        assert!((a < b) == (x < y) && (b < c) == (y < z), "{found:?}");
    }

    #[test]
    fn pools_are_the_nearest_numbers_that_never_fall() {
        assert_eq!(increasing(&[1.0, 3.0, 2.0, 2.0, 5.0]), [1.0, 7.0 / 3.0, 7.0 / 3.0, 7.0 / 3.0, 5.0]);
        assert_eq!(increasing(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
    }
}
