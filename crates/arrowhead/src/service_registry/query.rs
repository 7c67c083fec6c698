//! Finding services.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    address::AddressKind,
    error::ArrowheadError,
    form::{ServiceQueryForm, ServiceQueryFormList},
    metadata::MetadataRequirement,
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

    fn matches(&self, view: &EntryView) -> bool {
        (self.address_kinds.is_empty() || self.address_kinds.contains(&view.provider.address.kind()))
            && (self.securities.is_empty() || self.securities.contains(&view.entry.secure))
            && self.versions_match(&view.entry)
            && view.has_metadata(&self.metadata)
    }

    /// The entry's view with the asked interfaces, if it is of the asked kind. The definition is not looked at.
    pub(crate) fn select(&self, snapshot: &Snapshot, entry: &Arc<Entry>) -> Option<EntryView> {
        let mut view = snapshot.view(entry);
        (self.matches(&view) && self.narrow(&mut view)).then_some(view)
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
    queries.iter().map(|one| query(snapshot, one)).collect()
}

/// Answers a query; pinging what is left is the host's part. Expired entries are answered too, as upstream does.
pub fn query(snapshot: &Snapshot, query: &Query) -> QueryResult {
    let Some(definition) = snapshot.definition_by_name(&query.definition) else { return QueryResult::default() };
    let mut result = QueryResult::default();
    for entry in snapshot.entries_of(definition.id) {
        result.unfiltered_hits += 1;
        result.service_query_data.extend(query.select(snapshot, entry));
    }
    result
}
