//! Costs of the event path for each load that was recorded, and which of them speak of another load.
//!
//! What is worked for an event is the same wherever it can be told apart. How long a thread takes to come to run is not: how deep an idle processor sleeps, who shares one with whom and how often a thread is
//! held up follow from how much there is to do, and no one law fits one publisher and eight (decision 131). So each load has wake-ups of its own, and a load that was not recorded has those of the nearest one.

use serde::{Deserialize, Serialize};

use super::{costs::Costs, event_path::Deployment};

/// Costs by load; there is one at least.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Vec<LoadCosts>", into = "Vec<LoadCosts>")]
pub struct EventCosts {
    pub(super) loads: Vec<LoadCosts>,
}

/// The costs of one load, in us.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadCosts {
    /// The load.
    #[serde(rename = "load")]
    pub deployment: Deployment,
    /// What each step of an event costs under it.
    pub costs: Costs,
}

impl EventCosts {
    /// The loads.
    pub fn loads(&self) -> &[LoadCosts] {
        &self.loads
    }

    /// Those of the load that is nearest to one.
    pub fn nearest(&self, to: &Deployment) -> &Costs {
        &nearest(&self.loads, to, |load| load.deployment).expect("there is one").costs
    }
}

impl TryFrom<Vec<LoadCosts>> for EventCosts {
    type Error = &'static str;

    fn try_from(loads: Vec<LoadCosts>) -> Result<Self, Self::Error> {
        if loads.is_empty() { Err("there are no costs of events: expected those of one load at least") } else { Ok(Self { loads }) }
    }
}

impl From<EventCosts> for Vec<LoadCosts> {
    fn from(costs: EventCosts) -> Self {
        costs.loads
    }
}

/// The first of those whose load is nearest: among the loads in closed loop for one in closed loop, and among those with a rate for one with a rate, as long as there are such; then by how many times as many publishers,
/// subscribers and events a second there are.
pub(super) fn nearest<'l, T>(loads: &'l [T], to: &Deployment, of: impl Fn(&T) -> Deployment) -> Option<&'l T> {
    let apart = |load: Deployment| {
        let times = |a: f64, b: f64| (a / b).ln().abs();
        let rates = load.rate_per_s.zip(to.rate_per_s).map_or(0.0, |(a, b)| times(a, b));
        let counts = times(load.publishers.into(), to.publishers.into()) + times(load.subscribers.into(), to.subscribers.into());
        (load.rate_per_s.is_some() != to.rate_per_s.is_some(), counts + rates)
    };
    loads.iter().min_by(|a, b| {
        let ((a_differs, a_apart), (b_differs, b_apart)) = (apart(of(a)), apart(of(b)));
        a_differs.cmp(&b_differs).then(a_apart.total_cmp(&b_apart))
    })
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
        assert!(serde_json::from_str::<EventCosts>("[]").unwrap_err().to_string().contains("one load at least"));
    }
}
