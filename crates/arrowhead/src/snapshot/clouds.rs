//! Clouds, relays, intercloud rules and foreign systems in a snapshot.

use std::sync::Arc;

use imbl::OrdMap;

use super::Snapshot;
use crate::{name::CloudName, record::*, shared_event::Share};

/// The maps of other clouds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clouds {
    clouds: OrdMap<CloudId, Arc<Cloud>>,
    cloud_by_name: OrdMap<(CloudName, CloudName), CloudId>,
    relays: OrdMap<RelayId, Arc<Relay>>,
    relay_by_place: OrdMap<(Arc<str>, u16), RelayId>,
    rules: OrdMap<InterCloudRuleId, Arc<InterCloudRule>>,
    rule_by_cloud: OrdMap<(CloudId, SystemId, DefinitionId), InterCloudRuleId>,
    foreign_systems: OrdMap<ForeignSystemId, Arc<ForeignSystem>>,
}

impl Clouds {
    pub(super) fn put_cloud(&mut self, cloud: Arc<Cloud>) {
        if let Some(former) = self.clouds.insert(cloud.id, cloud.clone()) {
            self.cloud_by_name.remove(&(former.operator.clone(), former.name.clone()));
        }
        self.cloud_by_name.insert((cloud.operator.clone(), cloud.name.clone()), cloud.id);
    }

    pub(super) fn put_relay(&mut self, relay: Arc<Relay>) {
        if let Some(former) = self.relays.insert(relay.id, relay.clone()) {
            self.relay_by_place.remove(&(former.address.clone(), former.port));
        }
        self.relay_by_place.insert((relay.address.clone(), relay.port), relay.id);
    }

    pub(super) fn remove_relay(&mut self, id: RelayId) {
        let Some(relay) = self.relays.remove(&id) else { return };
        self.relay_by_place.remove(&(relay.address.clone(), relay.port));
        let clouds: Vec<Arc<Cloud>> = self.clouds.values().filter(|cloud| cloud.relays.contains(&id)).cloned().collect();
        for mut cloud in clouds {
            Arc::make_mut(&mut cloud).relays.retain(|relay| *relay != id);
            self.clouds.insert(cloud.id, cloud);
        }
    }

    pub(super) fn put_rule(&mut self, rule: Arc<InterCloudRule>) {
        self.rule_by_cloud.insert((rule.cloud, rule.provider, rule.definition), rule.id);
        self.rules.insert(rule.id, rule);
    }

    pub(super) fn put_foreign_system(&mut self, system: Arc<ForeignSystem>) {
        self.foreign_systems.insert(system.id, system);
    }

    pub(super) fn remove_cloud(&mut self, id: CloudId) {
        let Some(cloud) = self.clouds.remove(&id) else { return };
        self.cloud_by_name.remove(&(cloud.operator.clone(), cloud.name.clone()));
        self.remove_rules(|rule| rule.cloud == id);
        let systems = self.foreign_systems.values().filter(|system| system.cloud == id);
        let systems: Vec<ForeignSystemId> = systems.map(|system| system.id).collect();
        systems.iter().for_each(|system| drop(self.foreign_systems.remove(system)));
    }

    pub(super) fn remove_rule(&mut self, id: InterCloudRuleId) {
        if let Some(rule) = self.rules.remove(&id) {
            self.rule_by_cloud.remove(&(rule.cloud, rule.provider, rule.definition));
        }
    }

    /// Removes what named a row that is gone.
    pub(super) fn remove_rules(&mut self, names_it: impl Fn(&InterCloudRule) -> bool) {
        let rules: Vec<InterCloudRuleId> = self.rules.values().filter(|rule| names_it(rule)).map(|rule| rule.id).collect();
        rules.into_iter().for_each(|rule| self.remove_rule(rule));
    }

    pub(super) fn remove_interface(&mut self, id: InterfaceId) {
        let rules: Vec<Arc<InterCloudRule>> = self.rules.values().filter(|rule| rule.interfaces.contains(&id)).cloned().collect();
        for mut rule in rules {
            Arc::make_mut(&mut rule).interfaces.retain(|interface| *interface != id);
            self.rules.insert(rule.id, rule);
        }
    }
}

/// Questions about other clouds.
impl Snapshot {
    /// All clouds, the own one among them.
    pub fn clouds(&self) -> impl ExactSizeIterator<Item = &Arc<Cloud>> {
        self.clouds.clouds.values()
    }

    /// A cloud by id.
    pub fn cloud(&self, id: CloudId) -> Option<&Arc<Cloud>> {
        self.clouds.clouds.get(&id)
    }

    /// A cloud by operator and name in any case.
    pub fn cloud_by_name(&self, operator: &str, name: &str) -> Option<&Arc<Cloud>> {
        let stored = |text: &str| CloudName::from_stored(&text.trim().to_lowercase());
        self.cloud(*self.clouds.cloud_by_name.get(&(stored(operator), stored(name)))?)
    }

    /// All relays.
    pub fn relays(&self) -> impl ExactSizeIterator<Item = &Arc<Relay>> {
        self.clouds.relays.values()
    }

    /// A relay by id.
    pub fn relay(&self, id: RelayId) -> Option<&Arc<Relay>> {
        self.clouds.relays.get(&id)
    }

    /// The relay at an address, in any case, and port.
    pub fn relay_at(&self, address: &str, port: u16) -> Option<&Arc<Relay>> {
        self.relay(*self.clouds.relay_by_place.get(&(address.trim().to_lowercase().into(), port))?)
    }

    /// The relays that are assigned to a cloud, by id.
    pub fn relays_of<'s>(&'s self, cloud: &'s Cloud) -> impl Iterator<Item = &'s Arc<Relay>> {
        cloud.relays.iter().map(|id| self.relay(*id).expect("a relay that is assigned is there"))
    }

    /// All intercloud rules.
    pub fn inter_cloud_rules(&self) -> impl ExactSizeIterator<Item = &Arc<InterCloudRule>> {
        self.clouds.rules.values()
    }

    /// An intercloud rule by id.
    pub fn inter_cloud_rule(&self, id: InterCloudRuleId) -> Option<&Arc<InterCloudRule>> {
        self.clouds.rules.get(&id)
    }

    /// The intercloud rule for this cloud, provider and definition.
    pub fn inter_cloud_rule_for(&self, cloud: CloudId, provider: SystemId, definition: DefinitionId) -> Option<&Arc<InterCloudRule>> {
        self.inter_cloud_rule(*self.clouds.rule_by_cloud.get(&(cloud, provider, definition))?)
    }

    /// Whether any intercloud rule lets the cloud of a share use any service of `provider`: what decides about events that are shared.
    pub fn may_be_shared(&self, share: &Share, provider: SystemId) -> bool {
        let Some(cloud) = self.cloud_by_name(share.operator.as_str(), share.name.as_str()).filter(|cloud| !cloud.own_cloud) else {
            return false;
        };
        let first = (cloud.id, provider, DefinitionId(i64::MIN));
        self.clouds.rule_by_cloud.range(first..).next().is_some_and(|(key, _)| key.0 == cloud.id && key.1 == provider)
    }

    /// A system of another cloud by id.
    pub fn foreign_system(&self, id: ForeignSystemId) -> Option<&Arc<ForeignSystem>> {
        self.clouds.foreign_systems.get(&id)
    }
}
