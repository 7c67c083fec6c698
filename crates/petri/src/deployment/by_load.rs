//! Costs for each load that was recorded, and which of them speak of another load.
//!
//! How long a thread takes to come to run is not the same everywhere: how deep an idle processor sleeps, who shares one with whom and how often a thread is held up follow from how much there is to do, and no one law
//! fits one publisher and eight, or half of a graph's rate and all of it (decisions 131, 144). So each load has wake-ups of its own, and a load that was not recorded has the costs of the nearest one.

use std::{cmp::Ordering, fmt::Display};

use serde::{Deserialize, Serialize};

use super::{
    costs::Costs,
    event_path::Deployment,
    graph::{GraphCosts, GraphDeployment},
    orchestration_path::OrchestrationDeployment,
};

/// Costs of the event path by load.
pub type EventCosts = CostsByLoad<Deployment, Costs>;
/// Costs of a graph by load.
pub type GraphCostsByLoad = CostsByLoad<GraphDeployment, GraphCosts>;

/// Fewest loads of which each may be left out, to be predicted by a net of the others: of two the other one would be all that is known.
pub const LEFT_OUT_LOADS_MIN: usize = 3;

/// Costs by load; there is one at least.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(
    try_from = "Vec<LoadCosts<L, C>>",
    into = "Vec<LoadCosts<L, C>>",
    bound(serialize = "L: Clone + Serialize, C: Clone + Serialize", deserialize = "L: Deserialize<'de>, C: Deserialize<'de>")
)]
pub struct CostsByLoad<L, C> {
    loads: Vec<LoadCosts<L, C>>,
}

/// The costs of one load, in us.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadCosts<L, C> {
    /// The load.
    pub load: L,
    /// What each step costs under it.
    pub costs: C,
}

/// A load that was left out of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut<R, P> {
    /// What was seen of it.
    pub run: R,
    /// What a net makes of it that was made from the other loads alone, or why that says nothing.
    pub by_others: Result<P, String>,
}

/// A load, which is nearer to some than to others.
pub trait Load: Copy {
    /// How far it is from another one.
    fn apart(&self, other: &Self) -> Apart;
}

/// How far two loads are from each other; one of the same kind is always nearer than one of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// Whether they are of different kinds.
    pub is_of_another_kind: bool,
    /// The sum of the logarithms of how many times as much the one has of everything.
    pub logarithm: f64,
}

impl Apart {
    /// Numbers of both.
    fn of<const N: usize>(is_of_another_kind: bool, numbers: [(f64, f64); N]) -> Self {
        Self { is_of_another_kind, logarithm: numbers.iter().map(|(a, b)| (a / b).ln().abs()).sum() }
    }

    fn compare(self, other: Self) -> Ordering {
        self.is_of_another_kind.cmp(&other.is_of_another_kind).then(self.logarithm.total_cmp(&other.logarithm))
    }
}

/// In closed loop or with a rate; then by publishers, subscribers and events a second.
impl Load for Deployment {
    fn apart(&self, other: &Self) -> Apart {
        let rates = self.rate_per_s.zip(other.rate_per_s).unwrap_or((1.0, 1.0));
        let counts =
            [(self.publishers, other.publishers), (self.subscribers, other.subscribers)].map(|(a, b)| (f64::from(a), f64::from(b)));
        Apart::of(self.rate_per_s.is_some() != other.rate_per_s.is_some(), [counts[0], counts[1], rates])
    }
}

/// By rate and workers.
impl Load for GraphDeployment {
    fn apart(&self, other: &Self) -> Apart {
        Apart::of(false, [(self.rate, other.rate), (self.workers.into(), other.workers.into())])
    }
}

/// By consumers.
impl Load for OrchestrationDeployment {
    fn apart(&self, other: &Self) -> Apart {
        Apart::of(false, [(self.consumers.into(), other.consumers.into())])
    }
}

impl<L: Load, C> CostsByLoad<L, C> {
    /// Of these loads.
    ///
    /// # Panics
    /// There are none.
    pub(super) fn new(loads: Vec<LoadCosts<L, C>>) -> Self {
        assert!(!loads.is_empty(), "one load at least");
        Self { loads }
    }

    /// The loads.
    pub fn loads(&self) -> &[LoadCosts<L, C>] {
        &self.loads
    }

    /// Those of the load that is nearest to one, and which that is.
    pub fn nearest(&self, to: &L) -> &LoadCosts<L, C> {
        nearest(&self.loads, to, |of| of.load).expect("there is one")
    }
}

impl<L, C> TryFrom<Vec<LoadCosts<L, C>>> for CostsByLoad<L, C> {
    type Error = &'static str;

    fn try_from(loads: Vec<LoadCosts<L, C>>) -> Result<Self, Self::Error> {
        if loads.is_empty() { Err("there are no costs: expected those of one load at least") } else { Ok(Self { loads }) }
    }
}

impl<L, C> From<CostsByLoad<L, C>> for Vec<LoadCosts<L, C>> {
    fn from(costs: CostsByLoad<L, C>) -> Self {
        costs.loads
    }
}

/// The first of those whose load is nearest; none where there are none.
pub(super) fn nearest<'l, T, L: Load>(loads: &'l [T], to: &L, of: impl Fn(&T) -> L) -> Option<&'l T> {
    loads.iter().min_by(|a, b| of(a).apart(to).compare(of(b).apart(to)))
}

/// Whether a load is further from each of some than each of these is from the nearest other one: what a net says of it has been held against nothing like it.
pub fn is_beyond<L: Load>(loads: &[L], asked: &L) -> bool {
    let to_nearest = |load: &L, others: &[L]| nearest(others, load, |other| *other).map(|other| other.apart(load));
    let reach = |place: usize| to_nearest(&loads[place], &[&loads[..place], &loads[place + 1..]].concat());
    let furthest = (0..loads.len()).filter_map(reach).max_by(|a, b| a.compare(*b));
    let is_further = |apart: Apart| furthest.is_none_or(|furthest| apart.compare(furthest).is_gt());
    to_nearest(asked, loads).is_none_or(is_further)
}

/// What `predict` makes of each load from all others; nothing where there are fewer than [`LEFT_OUT_LOADS_MIN`].
pub(super) fn each_left_out<R: Clone, P, E: Display>(loads: &[R], predict: impl Fn(&[R], &R) -> Result<P, E>) -> Vec<LeftOut<R, P>> {
    if loads.len() < LEFT_OUT_LOADS_MIN {
        return Vec::new();
    }
    let left_out = |(place, load): (usize, &R)| {
        let others = [&loads[..place], &loads[place + 1..]].concat();
        LeftOut { run: load.clone(), by_others: predict(&others, load).map_err(|error| error.to_string()) }
    };
    loads.iter().enumerate().map(left_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(publishers: u32, subscribers: u32, rate_per_s: Option<f64>) -> Deployment {
        Deployment { cores: 2, publishers, subscribers, rate_per_s }
    }

    #[test]
    fn the_nearest_load_has_the_most_like_numbers() {
        let loads =
            [load(1, 2, None), load(1, 4, None), load(4, 4, None), load(8, 8, None), load(4, 4, Some(100.0)), load(4, 4, Some(900.0))];
        let found = |to| *nearest(&loads, &to, |load| *load).expect("there are some");
        for (to, expected) in [
            (load(1, 1, None), loads[0]),
            (load(1, 6, None), loads[1]),
            (load(10, 10, None), loads[3]),
            (load(4, 4, None), loads[2]),
            (load(1, 2, Some(200.0)), loads[4]),
            (load(8, 8, Some(800.0)), loads[5]),
        ] {
            assert_eq!(found(to), expected, "{to:?}");
        }
        assert_eq!(*nearest(&loads[..1], &load(9, 9, Some(5.0)), |load| *load).expect("there is one"), loads[0]);
        assert_eq!(*nearest(&loads[..1], &load(9, 9, Some(f64::NAN)), |load| *load).expect("whatever is asked"), loads[0]);
        assert!(serde_json::from_str::<EventCosts>("[]").unwrap_err().to_string().contains("one load at least"));
    }

    #[test]
    fn a_graph_is_nearest_by_rate_and_workers() {
        let of = |percent: u32, workers| GraphDeployment { cores: 2, workers, rate: f64::from(percent) / 100.0 };
        let loads = [of(50, 1), of(100, 1), of(100, 4)];
        for (to, expected) in [(of(75, 1), loads[1]), (of(60, 1), loads[0]), (of(150, 2), loads[1]), (of(150, 3), loads[2])] {
            assert_eq!(*nearest(&loads, &to, |load| *load).expect("there are some"), expected, "{to:?}");
        }
    }

    #[test]
    fn a_load_is_beyond_others_that_are_nearer_to_each_other() {
        let loads = [load(1, 2, None), load(1, 4, None), load(4, 4, None), load(8, 8, None)];
        for inside in [load(1, 1, None), load(1, 6, None), load(10, 10, None), load(16, 16, None)] {
            assert!(!is_beyond(&loads, &inside), "{inside:?}: at most four times as far as 4x4 from 8x8");
        }
        for beyond in [load(16, 17, None), load(1, 100, None), load(8, 8, Some(100.0))] {
            assert!(is_beyond(&loads, &beyond), "{beyond:?}");
        }
        assert!(is_beyond(&loads[..1], &loads[0]), "one load is near nothing");
    }

    #[test]
    fn each_load_is_left_out_where_two_are_left() {
        let left_out = |loads: &[u32]| each_left_out(loads, |others, load| if *load == 3 { Err("no") } else { Ok(others.to_vec()) });
        let told = |run, by_others: Result<Vec<u32>, &str>| LeftOut { run, by_others: by_others.map_err(str::to_owned) };
        assert_eq!(left_out(&[1, 2, 3]), [told(1, Ok(vec![2, 3])), told(2, Ok(vec![1, 3])), told(3, Err("no"))]);
        assert_eq!(left_out(&[1, 2]), [], "one load says nothing of another one");
    }
}
