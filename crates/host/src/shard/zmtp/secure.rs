//! Links in secure mode: by CURVE, each the system that its key is bound to.

use bodkin_arrowhead::{caller::Caller, common_name::SystemCommonName, record::SystemId, snapshot::Snapshot};
use bodkin_zmtp::{Credentials, KeyPair, Random, ServerSecurity, ServerSettings};

use super::{Endpoint, Shard};
use crate::security::Trust;

/// The mechanism of the port: NULL in insecure mode.
pub(in crate::shard) fn server_security(trust: Option<&Trust>) -> ServerSecurity {
    match trust.and_then(|trust| trust.curve.as_ref()) {
        Some(keys) => ServerSecurity::Curve(keys.own.clone()),
        None => ServerSecurity::Null,
    }
}

/// What a connection needs of chance; NULL needs none.
pub(super) fn random(security: &ServerSecurity) -> Result<Random, &'static str> {
    let mut octets = [0; Random::OCTETS];
    if matches!(security, ServerSecurity::Curve(_)) {
        let drawn = rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut octets);
        drawn.map_err(|_| "the system gives no random octets")?;
    }
    Ok(Random::new(&mut octets))
}

impl Endpoint {
    /// Whether a link may hear a publisher: in secure mode by the rules for the system that its key is bound to.
    pub fn may_hear(&self, slot: usize, snapshot: &Snapshot, publisher: SystemId) -> bool {
        let Some(system) = self.links[slot].caller.system() else { return true };
        let mut named = snapshot.systems_with(system);
        let (consumer, other) = (named.next(), named.next());
        consumer.filter(|_| other.is_none()).is_some_and(|consumer| snapshot.may_hear(consumer.id, publisher))
    }
}

impl Shard {
    /// Lets a link in whose key is bound to a system; the error is what it is told.
    pub(super) fn identify(&mut self, slot: usize, credentials: &Credentials<'_>) -> Result<(), String> {
        let Credentials::Curve(key) = credentials else { unreachable!("the port asks for keys only") };
        // A key counts from when it is read, and not from the shard's next look.
        let trust = self.context.security.as_ref().expect("the port asks for keys in secure mode").trust();
        let Some(system) = trust.curve.as_ref().and_then(|keys| keys.system(key)) else {
            if let Some(times) = self.endpoint.refused_links.due() {
                tracing::warn!(%key, times, "a ZMTP link was refused: its key is bound to no system");
            }
            return Err("this key is bound to no system: bodkin cert curve binds it".to_owned());
        };
        let name = SystemCommonName { system: system.clone(), cloud: trust.cloud.clone() };
        let link = &mut self.endpoint.links[slot];
        link.caller = Caller::certified(&name.to_string(), &trust.cloud);
        link.key = Some((*key).clone());
        Ok(())
    }

    /// Takes the keys over that count now, and closes links whose key is not their system's any more.
    pub(super) fn close_disbelieved_links(&mut self) {
        let Some(keys) = self.trust.as_ref().and_then(|trust| trust.curve.as_ref()) else { return };
        let is_own = |pair: &KeyPair| pair.public() == keys.own.public();
        if !matches!(&self.endpoint.settings.security, ServerSecurity::Curve(pair) if is_own(pair)) {
            let settings =
                ServerSettings { security: ServerSecurity::Curve(keys.own.clone()), ..ServerSettings::clone(&self.endpoint.settings) };
            self.endpoint.settings = settings.into();
        }
        let links = self.endpoint.links.iter();
        let disbelieved = links.filter(|(_, link)| link.key.as_ref().is_some_and(|key| keys.system(key) != link.caller.system()));
        for slot in disbelieved.map(|(slot, _)| slot).collect::<Vec<_>>() {
            tracing::info!("a ZMTP link is closed: its key is not bound to its system any more");
            self.refuse_link(slot, "this key is not bound to its system any more");
        }
    }
}
