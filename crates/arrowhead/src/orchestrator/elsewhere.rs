//! What other clouds are asked for a consumer of this one (reference 5.5), and what becomes of their answers.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    quality::Quality,
    request::{Flags, StoreKind, service_form},
};
use crate::{
    error::ArrowheadError,
    form::{CloudRequest, GsdQueryForm, IcnRequestForm, OrchestrationForm, ServiceQueryForm, SystemRequest},
    gatekeeper::{DiscoveryResult, FROM_OTHER_CLOUD, VIA_GATEWAY, untold},
    metadata::MetadataForm,
    record::{Cloud, EntryView, ForeignSystem},
    system::SystemKey,
};

/// A provider that the orchestration store names.
#[derive(Clone, Debug)]
pub enum StoredProvider {
    /// One of this cloud, with what it offers now.
    Here(Vec<EntryView>),
    /// One of another cloud, which is to be asked.
    Elsewhere(Arc<Cloud>, Arc<ForeignSystem>),
}

impl StoredProvider {
    /// What a provider of this cloud offers.
    pub(super) fn here(self) -> Vec<EntryView> {
        match self {
            Self::Here(offered) => offered,
            Self::Elsewhere(..) => Vec::new(),
        }
    }
}

/// When other clouds are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once (flag `triggerInterCloud`).
    AtOnce,
    /// If there is nothing for the consumer here (flag `enableInterCloud`).
    NothingHere,
    /// Where the orchestration store names one of their providers.
    ByStore,
}

/// What other clouds are asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Elsewhere {
    /// When.
    pub when: When,
    service: ServiceQueryForm,
    requester: Option<SystemRequest>,
    /// Preferred providers of other clouds, each with its cloud.
    preferred: Vec<(CloudRequest, SystemRequest)>,
    only_preferred: bool,
    matchmaking: bool,
    flags: BTreeMap<String, Option<bool>>,
    commands: Option<MetadataForm>,
    /// What is required of providers' quality of service; empty: nothing. The stores know none.
    requirements: MetadataForm,
}

impl Elsewhere {
    /// What is asked of them for a form; `None`: nothing.
    pub(super) fn parse(form: &OrchestrationForm, flags: &Flags, store: StoreKind, quality: Option<&Quality>) -> Option<Self> {
        form.requested_service.as_ref()?;
        let when = match store {
            _ if flags.set("triggerInterCloud") => When::AtOnce,
            _ if flags.set("overrideStore") => flags.set("enableInterCloud").then_some(When::NothingHere)?,
            StoreKind::Plain => When::ByStore,
            StoreKind::Flexible => return None,
        };
        let preferred = form.preferred_providers.iter().flatten().flatten();
        let preferred = preferred.filter_map(|form| Some((form.provider_cloud.clone()?, form.provider_system.clone()?)));
        let elsewhere = Self {
            when,
            preferred: preferred.collect(),
            only_preferred: flags.set("onlyPreferred"),
            matchmaking: flags.set("matchmaking"),
            flags: flags.0.clone(),
            requester: form.requester_system.clone(),
            commands: form.commands.clone(),
            requirements: quality.filter(|_| when != When::ByStore).map(Quality::as_commands).unwrap_or_default(),
            service: service_form(form.clone(), flags),
        };
        // Who wants preferred providers only, and has named none elsewhere, wants nothing from there.
        let is_vain = elsewhere.only_preferred && elsewhere.preferred.is_empty() && when != When::ByStore;
        (!is_vain).then_some(elsewhere)
    }

    /// Who is asked whether they offer it.
    pub fn discovery(&self) -> GsdQueryForm {
        GsdQueryForm {
            requested_service: Some(self.service.clone()),
            preferred_clouds: Some(self.preferred.iter().map(|(cloud, _)| Some(cloud.clone())).collect()),
            need_qos_measurements: Some(self.requires_quality()),
        }
    }

    /// The clouds that are negotiated with, in this order, until one grants something: those of preferred providers, then, unless only these are wanted, the others.
    pub fn in_order(&self, found: &DiscoveryResult) -> Vec<Arc<Cloud>> {
        let is_preferred = |cloud: &&Arc<Cloud>| self.preferred.iter().any(|(preferred, _)| names(preferred, cloud));
        let (mut clouds, others): (Vec<_>, Vec<_>) = found.clouds().partition(is_preferred);
        if !self.only_preferred {
            clouds.extend(others);
        }
        clouds.into_iter().cloned().collect()
    }

    /// Whether only providers are wanted that keep a quality of service.
    pub fn requires_quality(&self) -> bool {
        !self.requirements.is_empty()
    }

    /// Refuses where a quality is required and no cloud offers the service: one that measures nothing offers nothing then.
    pub fn check_found(&self, found: &DiscoveryResult) -> Result<(), ArrowheadError> {
        if self.requires_quality() && found.clouds().next().is_none() {
            let told = "No other cloud offers the service to this one and measures the quality of service that is required.";
            return Err(ArrowheadError::unavailable(told));
        }
        Ok(())
    }

    /// Whether it is of use to negotiate with a cloud that offers the service: where a quality is required, it has to have measured a provider of it.
    pub fn check_offer(&self, found: &DiscoveryResult, cloud: &Cloud) -> Result<(), ArrowheadError> {
        if self.requires_quality() && !found.is_measured(cloud.id) { Err(untold(cloud)) } else { Ok(()) }
    }

    /// What a cloud is asked for.
    pub fn negotiation(&self, cloud: &Cloud) -> IcnRequestForm {
        IcnRequestForm {
            requested_service: Some(self.service.clone()),
            target_cloud_id: Some(cloud.id.0),
            requester_system: self.requester.clone(),
            preferred_systems: Some(self.preferred_of(cloud).cloned().map(Some).collect()),
            preferred_gateway_relays: None,
            negotiation_flags: Some(self.flags.clone()),
            commands: self.sent_commands(),
        }
    }

    fn sent_commands(&self) -> Option<MetadataForm> {
        if self.requirements.is_empty() {
            return self.commands.clone();
        }
        let mut commands = self.commands.clone().unwrap_or_default();
        commands.extend(self.requirements.clone());
        Some(commands)
    }

    /// The same for one provider of a cloud, which the orchestration store names.
    pub fn of_stored(&self, cloud: &Cloud, provider: &ForeignSystem) -> Self {
        let named = CloudRequest {
            operator: Some(cloud.operator.as_str().to_owned()),
            name: Some(cloud.name.as_str().to_owned()),
            ..CloudRequest::default()
        };
        let system = SystemRequest {
            system_name: Some(provider.system_name.to_string()),
            address: Some(provider.address.to_string()),
            port: Some(provider.port.into()),
            ..SystemRequest::default()
        };
        let mut flags = self.flags.clone();
        flags.extend(["matchmaking", "onlyPreferred"].map(|flag| (flag.to_owned(), Some(true))));
        Self { preferred: vec![(named, system)], only_preferred: true, matchmaking: true, flags, ..self.clone() }
    }

    /// The same without what would have a provider kept for the consumer: for a look at what there is.
    pub fn keeping_nothing(&self) -> Self {
        Self { commands: None, ..self.clone() }
    }

    /// What the consumer gets of a cloud's answer, as the own Gatekeeper gives it: which provider is behind a tunnel was looked at before it was entered.
    pub fn results(&self, cloud: &Cloud, answered: Vec<Value>) -> Vec<Value> {
        let mut results: Vec<Value> = answered.into_iter().filter(Value::is_object).collect();
        let preferred: Vec<SystemKey> = self.preferred_of(cloud).filter_map(key).collect();
        let is_preferred = |result: &Value| through_tunnel(result) || provider(result).is_some_and(|key| preferred.contains(&key));
        if self.only_preferred {
            results.retain(is_preferred);
        }
        if self.matchmaking && results.len() > 1 {
            // The one that is preferred most, wherever it stands in the answer.
            let place = |key: &SystemKey| results.iter().position(|result| provider(result).as_ref() == Some(key));
            let chosen = preferred.iter().find_map(place).unwrap_or(0);
            results = vec![results.swap_remove(chosen)];
        }
        results.iter_mut().for_each(warn);
        results
    }

    fn preferred_of<'a>(&'a self, cloud: &'a Cloud) -> impl Iterator<Item = &'a SystemRequest> {
        self.preferred.iter().filter(|(named, _)| names(named, cloud)).map(|(_, system)| system)
    }
}

fn names(named: &CloudRequest, cloud: &Cloud) -> bool {
    let same = |text: &Option<String>, own: &str| text.as_deref().is_some_and(|text| text.trim().eq_ignore_ascii_case(own));
    same(&named.operator, cloud.operator.as_str()) && same(&named.name, cloud.name.as_str())
}

fn key(system: &SystemRequest) -> Option<SystemKey> {
    Some(SystemKey::new(system.system_name.as_deref()?, system.address.as_deref()?, u16::try_from(system.port?).ok()?))
}

/// The provider that another cloud's result names.
fn provider(result: &Value) -> Option<SystemKey> {
    let provider = result.get("provider")?;
    let port = u16::try_from(provider.get("port")?.as_u64()?).ok()?;
    Some(SystemKey::new(provider.get("systemName")?.as_str()?, provider.get("address")?.as_str()?, port))
}

/// Only the own Gatekeeper gives that warning.
fn through_tunnel(result: &Value) -> bool {
    result.get("warnings").and_then(Value::as_array).is_some_and(|warnings| warnings.iter().any(|warning| warning == VIA_GATEWAY))
}

/// Says where a result, which is an object, comes from.
fn warn(result: &mut Value) {
    match result.get_mut("warnings").and_then(Value::as_array_mut) {
        Some(warnings) => warnings.push(FROM_OTHER_CLOUD.into()),
        None => result["warnings"] = json!([FROM_OTHER_CLOUD]),
    }
}

#[cfg(test)]
mod tests;
