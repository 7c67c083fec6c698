//! Finding services.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    address::AddressKind,
    error::ArrowheadError,
    explanation::{Criterion, Step, Unwatched, Witness},
    form::{ServiceQueryForm, ServiceQueryFormList},
    metadata::{Metadata, MetadataRequirement},
    record::{Entry, EntryView, Security},
    snapshot::Snapshot,
};

/// What a query asks for. An empty list is no filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The service definition, in any case.
    pub definition: String,
    address_kinds: Vec<AddressKind>,
    interfaces: Vec<String>,
    securities: Vec<Security>,
    version: Option<i64>,
    version_range: (i64, i64),
    metadata: MetadataRequirement,
    /// Whether only providers that accept a TCP connection are wanted; connecting is the host's part.
    pub ping_providers: bool,
}

impl Query {
    /// Checks a form.
    pub fn parse(form: &ServiceQueryForm, origin: &str) -> Result<Self, ArrowheadError> {
        let definition = form.service_definition_requirement.as_deref().unwrap_or_default().trim();
        if definition.is_empty() {
            return Err(ArrowheadError::bad_payload("Service definition requirement is null or blank.", origin));
        }
        let interfaces = form.interface_requirements.iter().flatten().flatten();
        Ok(Self {
            definition: definition.to_lowercase(),
            address_kinds: form.provider_address_type_requirements.iter().flatten().flatten().copied().collect(),
            interfaces: interfaces.map(|text| text.trim().to_uppercase()).filter(|text| !text.is_empty()).collect(),
            securities: form.security_requirements.iter().flatten().flatten().copied().collect(),
            version: form.version_requirement,
            version_range: (form.min_version_requirement.unwrap_or(1), form.max_version_requirement.unwrap_or(i64::MAX)),
            metadata: form
                .metadata_requirements
                .as_ref()
                .map_or(Ok(MetadataRequirement::default()), |m| MetadataRequirement::parse(m, origin))?,
            ping_providers: form.ping_providers.unwrap_or(false),
        })
    }

    fn versions_match(&self, entry: &Entry) -> bool {
        let version = i64::from(entry.version);
        match (self.version, self.version_range) {
            (Some(exact), _) => version == exact,
            (None, (1, i64::MAX)) => true,
            (None, (min, max)) => (min..=max).contains(&version),
        }
    }

    /// The entry's view with the asked interfaces, if it is of the asked kind. The definition is not looked at.
    pub(crate) fn select(&self, snapshot: &Snapshot, entry: &Arc<Entry>, witness: &mut impl Witness) -> Option<EntryView> {
        let mut view = snapshot.view(entry);
        let unmet = self.unmet(&mut view);
        witness.see(|| self.step(unmet, &snapshot.view(entry)));
        unmet.is_none().then_some(view)
    }

    /// The first requirement that the service does not meet. If it meets all, its view is narrowed to the asked interfaces.
    fn unmet(&self, view: &mut EntryView) -> Option<Criterion> {
        if !(self.address_kinds.is_empty() || self.address_kinds.contains(&view.provider.address.kind())) {
            return Some(Criterion::AddressType);
        }
        if !(self.securities.is_empty() || self.securities.contains(&view.entry.secure)) {
            return Some(Criterion::Security);
        }
        if !self.versions_match(&view.entry) {
            return Some(Criterion::Version);
        }
        if !view.has_metadata(&self.metadata) {
            return Some(Criterion::Metadata);
        }
        (!self.narrow(view)).then_some(Criterion::Interface)
    }

    fn step(&self, unmet: Option<Criterion>, view: &EntryView) -> Step {
        let (asked, found) = match unmet {
            Some(Criterion::AddressType) => {
                (joined(self.address_kinds.iter().map(|kind| kind.as_str())), view.provider.address.kind().as_str().to_owned())
            }
            Some(Criterion::Security) => {
                (joined(self.securities.iter().map(|security| security.as_str())), view.entry.secure.as_str().to_owned())
            }
            Some(Criterion::Version) => (self.told_version(), view.entry.version.to_string()),
            Some(Criterion::Metadata) => {
                (self.metadata.to_string(), view.entry.metadata.as_ref().map_or("none".to_owned(), Metadata::to_string))
            }
            Some(_) => (self.interfaces.join(", "), view.interface_names()),
            None => ("what the request wants of a service".to_owned(), "all of it".to_owned()),
        };
        Step::new(unmet.unwrap_or(Criterion::Requirements), unmet.is_none(), asked, found).of(view.entry.id)
    }

    fn told_version(&self) -> String {
        match (self.version, self.version_range) {
            (Some(exact), _) => exact.to_string(),
            (None, (min, i64::MAX)) => format!("{min} or above"),
            (None, (min, max)) => format!("{min} to {max}"),
        }
    }

    /// Narrows the view to the asked interfaces; false if none is left.
    fn narrow(&self, view: &mut EntryView) -> bool {
        if self.interfaces.is_empty() {
            return true;
        }
        view.interfaces.retain(|interface| self.interfaces.iter().any(|wanted| wanted == interface.interface_name.as_str()));
        !view.interfaces.is_empty()
    }
}

/// The answer to a query. Serialised it is `ServiceQueryResult`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryResult {
    /// What matches, by provider id, then service URI; interfaces are narrowed to the asked ones.
    pub service_query_data: Vec<EntryView>,
    /// Entries of the definition before any filter.
    pub unfiltered_hits: usize,
}

/// The answers to several queries, in their order. Serialised it is `ServiceQueryResultList`.
#[derive(Debug, Serialize)]
pub struct QueryResults {
    /// One for each.
    pub results: Vec<QueryResult>,
}

/// Checks the forms of several queries. No form at all is no fault, no list of them is.
pub fn parse_queries(list: &ServiceQueryFormList, origin: &str) -> Result<Vec<Query>, ArrowheadError> {
    let forms = list.forms.as_ref().ok_or_else(|| ArrowheadError::bad_payload("Form list is null.", origin))?;
    let missing = || ArrowheadError::bad_payload("A form is null.", origin);
    forms.iter().map(|form| Query::parse(form.as_ref().ok_or_else(missing)?, origin)).collect()
}

/// Answers several queries, in their order, about the same instant.
pub fn query_each(snapshot: &Snapshot, queries: &[Query]) -> Vec<QueryResult> {
    queries.iter().map(|one| query(snapshot, one, &mut Unwatched)).collect()
}

/// Answers a query; pinging what is left is the host's part. Expired entries are answered too, as upstream does.
pub fn query(snapshot: &Snapshot, query: &Query, witness: &mut impl Witness) -> QueryResult {
    let mut result = QueryResult::default();
    if let Some(definition) = snapshot.definition_by_name(&query.definition) {
        for entry in snapshot.entries_of(definition.id) {
            result.unfiltered_hits += 1;
            result.service_query_data.extend(query.select(snapshot, entry, witness));
        }
    }
    witness.see(|| offered_step(&query.definition, result.unfiltered_hits));
    result
}

/// Whether anybody offers a service.
pub(crate) fn offered_step(definition: &str, hits: usize) -> Step {
    let found = if hits == 0 { format!("nobody offers {definition}") } else { format!("{hits} are registered") };
    Step::new(Criterion::ServiceDefinition, hits > 0, format!("services {definition}"), found)
}

fn joined(words: impl Iterator<Item = &'static str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
