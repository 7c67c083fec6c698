//! An orchestration in one cloud as a net: a consumer's request passes the stages of the Orchestrator on one of its workers.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{
    draft::{Around, Draft},
    durations::{Durations, likeliest},
};
use crate::{
    distribution::{Distribution, DistributionError, Form},
    net::{Net, Servers},
    simulate::{Tag, TagStart},
};

/// The fitted laws of an orchestration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrchestrationLaws {
    /// Name and law of each stage, in the order of an answer's making; in us.
    pub stages: Vec<(String, Form)>,
    /// From the consumer's request to the first stage, and from the last one back: what no stage has.
    pub transit: Form,
}

/// Least part of the mean transit that a single one takes.
const TRANSIT_PART_MIN: f64 = 0.05;

/// Fits the stages of orchestrations that were asked for one after the other, and what is left of their response times. A stage that nothing passed
/// is left out.
///
/// # Errors
/// Nothing was recorded, or the stages took longer than the responses.
pub fn fit_orchestration(stages: &[(String, Durations)], latency: &Durations) -> Result<OrchestrationLaws, DistributionError> {
    let passed = || stages.iter().filter(|(_, durations)| durations.count() > 0);
    let of_answer = |durations: &Durations| durations.sum_us / latency.count().max(1) as f64;
    let staged_us: f64 = passed().map(|(_, durations)| of_answer(durations)).sum();
    let transit_us = latency.mean_us() - staged_us;
    let values = latency.spread(|value| (value - staged_us).max(TRANSIT_PART_MIN * transit_us));
    let law = |(name, durations): &(String, Durations)| Ok((name.clone(), Form::from(&durations.law(of_answer(durations))?)));
    Ok(OrchestrationLaws {
        stages: passed().map(law).collect::<Result<_, DistributionError>>()?,
        transit: Form::from(&likeliest(values, transit_us)?),
    })
}

/// The net of so many consumers, each of which asks again when it has its answer, and so many workers; whose times in it are response
/// times; and what one orchestration takes on average.
///
/// # Errors
/// A law that is none.
pub fn orchestration(laws: &OrchestrationLaws, consumers: u32, workers: u32) -> Result<(Net, Tag, f64), DistributionError> {
    let mut draft = Draft::default();
    let free = draft.place("workers", workers);
    let asking = draft.place("asking", consumers);
    let waiting = draft.place("waiting", 0);
    let answered = draft.place("answered", 0);
    let transit = Distribution::try_from(laws.transit.clone())?;
    let mut mean_us = transit.mean();
    let request = draft.timed("transit", &transit, Servers::Infinite, Around::from(&[asking]).to(&[waiting]));
    let servers = Servers::Count(NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN));
    let mut at = draft.place("taken", 0);
    draft.immediate("worker takes it", 1, Around::from(&[waiting, free]).to(&[at]));
    for (index, (name, form)) in laws.stages.iter().enumerate() {
        let law = Distribution::try_from(form.clone())?;
        mean_us += law.mean();
        let is_last = index + 1 == laws.stages.len();
        let next = if is_last { answered } else { draft.place(format!("behind {name}"), 0) };
        let around = Around::from(&[at]).to(&[next]);
        draft.timed(name, &law, servers, if is_last { around.to(&[free]) } else { around });
        at = next;
    }
    draft.immediate("next one", 1, Around::from(&[answered]).to(&[asking]));
    let net = draft.net(format!("orchestration, {consumers} consumers, {workers} workers")).expect("stages have names of their own");
    Ok((net, Tag::new(TagStart::Service(request), answered), mean_us))
}
