//! How long the server spent in each stage of its work, as its monitor port tells it.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::request;

/// The stages of every system since the server's start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stages {
    unit: String,
    systems: BTreeMap<String, BTreeMap<String, Stage>>,
    /// Of a cloud that speaks with others: parts of dialogues by what they are about.
    #[serde(default)]
    dialogues: BTreeMap<String, BTreeMap<String, Stage>>,
}

/// How often a stage was passed, and how long that took.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Stage {
    /// Passes.
    pub count: u64,
    /// Time of all passes, in ns.
    pub sum_ns: u64,
    /// Upper edge in ns and passes of each bucket that holds some, ascending.
    pub buckets: Vec<(u64, u64)>,
}

impl Stages {
    /// The stages now.
    ///
    /// # Errors
    /// The monitor does not answer, or in another form.
    pub fn read(monitor: &Endpoint) -> anyhow::Result<Self> {
        let stages: Self = Client::connect(monitor)?.ask(&request::get(monitor, "/api/v1/stages", "application/json"), 200)?;
        if stages.unit != "ns" {
            bail!("the server gives its stages in {} and not in ns", stages.unit);
        }
        Ok(stages)
    }

    /// What was added since `before`; stages with nothing added are left out.
    pub fn since(&self, before: &Self) -> BTreeMap<String, BTreeMap<String, Stage>> {
        added(&self.systems, &before.systems)
    }

    /// The same of dialogues with other clouds.
    pub fn dialogues_since(&self, before: &Self) -> BTreeMap<String, BTreeMap<String, Stage>> {
        added(&self.dialogues, &before.dialogues)
    }
}

type Times = BTreeMap<String, BTreeMap<String, Stage>>;

fn added(now: &Times, before: &Times) -> Times {
    let mut added = BTreeMap::new();
    for (system, stages) in now {
        let earlier = before.get(system);
        let of_system: BTreeMap<String, Stage> = stages
            .iter()
            .map(|(name, stage)| (name.clone(), stage.since(earlier.and_then(|stages| stages.get(name)))))
            .filter(|(_, stage)| stage.count > 0)
            .collect();
        if !of_system.is_empty() {
            added.insert(system.clone(), of_system);
        }
    }
    added
}

impl Stage {
    fn since(&self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self.clone() };
        let earlier: BTreeMap<u64, u64> = before.buckets.iter().copied().collect();
        let buckets =
            self.buckets.iter().map(|(upper_ns, count)| (*upper_ns, count - earlier.get(upper_ns).copied().unwrap_or(0).min(*count)));
        Self {
            count: self.count.saturating_sub(before.count),
            sum_ns: self.sum_ns.saturating_sub(before.sum_ns),
            buckets: buckets.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Mean time of a pass in us.
    pub fn mean_us(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 / 1e3 }
    }

    /// Upper edge, in us, of the bucket that holds the pass of this percentile.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        let wanted = (self.count as f64 * percent / 100.0).ceil();
        let mut passed = 0;
        for (upper_ns, count) in &self.buckets {
            passed += count;
            if passed as f64 >= wanted {
                return *upper_ns as f64 / 1e3;
            }
        }
        0.0
    }

    /// The stage as the report has it.
    pub fn json(&self) -> Value {
        json!({
            "count": self.count, "mean_us": self.mean_us(), "p50_us": self.percentile_us(50.0), "p99_us": self.percentile_us(99.0),
            "buckets_ns": self.buckets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(text: &str) -> Stages {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_what_was_added_counts() {
        let before = stages(
            r#"{"unit":"ns","systems":{"a":{"parse":{"count":2,"sum_ns":30,"buckets":[[10,1],[20,1]]},
            "send":{"count":1,"sum_ns":5,"buckets":[[10,1]]}}}}"#,
        );
        let after = stages(
            r#"{"unit":"ns","systems":{"a":{"parse":{"count":6,"sum_ns":4030,"buckets":[[10,1],[20,3],[2000,2]]},
            "send":{"count":1,"sum_ns":5,"buckets":[[10,1]]}},"b":{"parse":{"count":1,"sum_ns":7,"buckets":[[10,1]]}}}}"#,
        );
        let added = after.since(&before);
        assert_eq!(added["a"].len(), 1, "nothing was sent between");
        let parse = &added["a"]["parse"];
        assert_eq!(parse, &Stage { count: 4, sum_ns: 4000, buckets: vec![(20, 2), (2000, 2)] });
        assert_eq!((parse.mean_us(), parse.percentile_us(50.0), parse.percentile_us(99.0)), (1.0, 0.02, 2.0));
        assert_eq!(added["b"]["parse"].count, 1);
    }
}
