//! Why a decision came out as it did, told by the decision itself.
//!
//! A decision tells a [`Witness`] of every rule it asks. Mostly nobody listens ([`Unwatched`]), and nothing is written; an
//! [`Explanation`] is made of what a list of [`Step`]s has seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde::Serialize;

use crate::{
    record::{EntryId, EntryView, Interface},
    snapshot::Snapshot,
};

/// Services that are explained one by one; of more, the first ones are.
const SERVICES_MAX: usize = 1000;

/// What a step asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// Does the certificate name a system of this cloud?
    Certificate,
    /// Is the operation for it?
    Operation,
    /// Is what the request says its to say?
    Request,
    /// Is the consumer registered?
    Consumer,
    /// Does anybody offer the service?
    ServiceDefinition,
    /// Does the orchestration store name a provider that offers it?
    StoreEntry,
    /// Does a rule of the flexible store give the service to the consumer?
    FlexibleRule,
    /// Is it the provider that was asked about?
    Provider,
    /// Has the provider an address of a wanted kind?
    AddressType,
    /// Has the service a wanted interface?
    Interface,
    /// Is it secured as wanted?
    Security,
    /// Has it a wanted version?
    Version,
    /// Has it the wanted pairs?
    Metadata,
    /// Does it meet all of these?
    Requirements,
    /// Does the provider accept a connection?
    Ping,
    /// Does the provider keep the required quality of service?
    Quality,
    /// Does an authorization rule let the consumer use it?
    AuthorizationRule,
    /// Does nobody else keep it?
    Reservation,
    /// Is the provider one of the preferred?
    PreferredProvider,
    /// Is it the one that is chosen?
    Matchmaking,
    /// Does another cloud offer and grant it?
    OtherCloud,
}

impl Criterion {
    /// Whether it is about what the consumer wants, and not about what it may.
    fn is_requirement(self) -> bool {
        (Self::Provider..=Self::Requirements).contains(&self)
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How a step, or a service, came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The decision goes on.
    Passed,
    /// It ends here.
    Refused,
}

impl Verdict {
    fn of(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Refused }
    }
}

/// One rule that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Which.
    pub criterion: Criterion,
    /// The registered service it was asked of; `None`: of the request as a whole.
    #[serde(skip)]
    pub entry: Option<EntryId>,
    /// Id of the row that decided: an authorization rule, an entry of the orchestration store, a reservation, a flexible rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<i64>,
    /// What was asked for.
    pub asked: String,
    /// What was found.
    pub found: String,
    /// How it came out.
    pub verdict: Verdict,
}

impl Step {
    /// A step about the request as a whole.
    pub fn new(criterion: Criterion, passed: bool, asked: impl Into<String>, found: impl Into<String>) -> Self {
        Self { criterion, entry: None, row: None, asked: asked.into(), found: found.into(), verdict: Verdict::of(passed) }
    }

    /// About a registered service.
    pub(crate) fn of(self, entry: EntryId) -> Self {
        Self { entry: Some(entry), ..self }
    }

    /// Decided by a row.
    pub(crate) fn by(self, row: Option<i64>) -> Self {
        Self { row, ..self }
    }

    fn is_refused(&self) -> bool {
        self.verdict == Verdict::Refused
    }
}

/// Whom a decision tells what it asks and finds.
pub trait Witness {
    /// A rule was asked. The step is made only if somebody listens.
    fn see(&mut self, step: impl FnOnce() -> Step);
}

/// Nobody listens.
pub struct Unwatched;

impl Witness for Unwatched {
    fn see(&mut self, _: impl FnOnce() -> Step) {}
}

impl Witness for Vec<Step> {
    fn see(&mut self, step: impl FnOnce() -> Step) {
        self.push(step());
    }
}

/// What a decision comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The consumer may use something.
    Granted,
    /// Something fits, and no authorization rule lets the consumer use it.
    Denied,
    /// Nothing fits, or what fits is left out for other reasons.
    Nothing,
}

/// Why a consumer is given what it is given.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What the decision comes to.
    pub outcome: Outcome,
    /// The reason in a sentence.
    pub why: String,
    /// What was asked of the request as a whole, in order.
    pub steps: Vec<Step>,
    /// What was asked of each service that was looked at, at the most 1000.
    pub services: Vec<ExplainedService>,
    /// How many services were looked at.
    pub service_count: usize,
}

/// A registered service that was looked at.
#[derive(Debug, Serialize)]
pub struct ExplainedService {
    /// The service.
    pub service: EntryView,
    /// Whether the consumer may use it.
    pub verdict: Verdict,
    /// Over what.
    pub interfaces: Vec<Arc<Interface>>,
    /// What was asked of it, in order.
    pub steps: Vec<Step>,
}

impl Explanation {
    /// Of a decision that gives `usable` to the consumer named `who`, by what was seen of it. `what` is wanted, in words.
    pub fn new(snapshot: &Snapshot, (who, what): (&str, &str), steps: Vec<Step>, usable: &[EntryView]) -> Self {
        let (of_services, of_request): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(|step| step.entry.is_some());
        let given: BTreeMap<EntryId, &EntryView> = usable.iter().map(|view| (view.entry.id, view)).collect();
        let mut places: BTreeMap<EntryId, usize> = BTreeMap::new();
        let mut services: Vec<ExplainedService> = Vec::new();
        for step in of_services {
            let entry = step.entry.expect("the step is of a service");
            let place = *places.entry(entry).or_insert_with(|| {
                services.push(ExplainedService::new(snapshot, entry, given.get(&entry).copied()));
                services.len() - 1
            });
            services[place].steps.push(step);
        }
        let (outcome, why) = conclude(who, what, &of_request, &services);
        let service_count = services.len();
        services.truncate(SERVICES_MAX);
        Self { outcome, why, steps: of_request, services, service_count }
    }

    /// The same, where another cloud grants what this one does not: so many results, none where a tunnel is opened first.
    pub fn granted_by(self, cloud: &str, results: usize) -> Self {
        let why = match results {
            0 => format!(
                "cloud {cloud} offers it by a tunnel, which is opened when the consumer itself asks: only then it is granted, or not"
            ),
            count => format!("cloud {cloud} grants it: {count} results"),
        };
        Self { outcome: Outcome::Granted, why, ..self }
    }
}

impl ExplainedService {
    fn new(snapshot: &Snapshot, entry: EntryId, given: Option<&EntryView>) -> Self {
        let service = snapshot.view(snapshot.entry(entry).expect("a decision looks at entries of its snapshot"));
        let interfaces = given.map(|view| view.interfaces.clone()).unwrap_or_default();
        Self { service, verdict: Verdict::of(given.is_some()), interfaces, steps: Vec::new() }
    }

    /// What leaves the service out.
    fn refusal(&self) -> Option<&Step> {
        self.steps.iter().rev().find(|step| step.is_refused()).filter(|_| self.verdict == Verdict::Refused)
    }
}

fn conclude(who: &str, what: &str, steps: &[Step], services: &[ExplainedService]) -> (Outcome, String) {
    let given = services.iter().filter(|service| service.verdict == Verdict::Passed).count();
    if given > 0 {
        return (Outcome::Granted, format!("{who} may use {given} of {} {what} services", services.len()));
    }
    let refusals: BTreeSet<Criterion> = services.iter().filter_map(ExplainedService::refusal).map(|step| step.criterion).collect();
    if refusals.is_empty() {
        let last = steps.iter().rev().find(|step| step.is_refused()).map_or("there is none", |step| step.found.as_str());
        return (Outcome::Nothing, format!("nothing: {last}"));
    }
    if refusals.iter().all(|criterion| criterion.is_requirement()) {
        return (Outcome::Nothing, format!("nothing: none of the {} registered {what} services fits the requirements", services.len()));
    }
    let left_out: Vec<String> = refusals.iter().filter(|criterion| !criterion.is_requirement()).map(Criterion::to_string).collect();
    if left_out == [Criterion::AuthorizationRule.to_string()] {
        return (Outcome::Denied, format!("DENIED: {what} is offered, but no rule lets {who} use it"));
    }
    (Outcome::Nothing, format!("nothing: what fits of {what} is left out for {who} by {}", left_out.join(", ")))
}
