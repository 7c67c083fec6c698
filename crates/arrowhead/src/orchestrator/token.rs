//! The tokens that go with an orchestration's results (reference 5.2, step 6).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Orchestration, OrchestrationResponse, OrchestrationResult};
use crate::{
    authorization::token::{Grant, TokenOrder, no_usable_key},
    common_name::{CloudCommonName, SystemCommonName},
    error::ArrowheadError,
    name::SystemName,
    record::{DefinitionId, Security},
    system::SystemKey,
};

impl Orchestration {
    /// Whom tokens for this orchestration are made for: the requester, which is of the own cloud if it is not said to be of another, or the own system that carries
    /// what it says.
    pub fn consumer(&self, own_cloud: &CloudCommonName) -> Result<SystemCommonName, ArrowheadError> {
        if let Some(deputy) = &self.deputy {
            return Ok(SystemCommonName { system: deputy.clone(), cloud: own_cloud.clone() });
        }
        let name = SystemName::parse(&self.requester.name);
        let refused =
            |error| ArrowheadError::invalid_parameter(format!("A token cannot be made for the requester: its system name {error}"));
        Ok(SystemCommonName { system: name.map_err(refused)?, cloud: self.requester_cloud.as_ref().unwrap_or(own_cloud).clone() })
    }
}

impl OrchestrationResponse {
    /// The tokens to be made: one for each interface of each result that is secured by token.
    pub fn token_orders(&self, consumer: &SystemCommonName, lifetime: Duration) -> Vec<TokenOrder> {
        let secured = self.response.iter().filter(|result| result.needs_tokens());
        secured.flat_map(|result| result.token_orders(consumer, lifetime)).collect()
    }

    /// Whether any result is secured by token.
    pub fn needs_tokens(&self) -> bool {
        self.response.iter().any(OrchestrationResult::needs_tokens)
    }

    /// Puts the tokens, made for [`Self::token_orders`], to their results in this order.
    ///
    /// A provider whose key cannot be used stays among the results, without tokens. Where no provider of a service has a usable key,
    /// the orchestration fails, as upstream's does.
    pub fn with_tokens(mut self, tokens: impl IntoIterator<Item = Option<Arc<str>>>) -> Result<Self, ArrowheadError> {
        let mut tokens = tokens.into_iter();
        let mut has_some = BTreeMap::<DefinitionId, bool>::new();
        for result in self.response.iter_mut().filter(|result| result.needs_tokens()) {
            let made = result.interfaces.iter().zip(&mut tokens);
            let made: BTreeMap<_, _> = made.filter_map(|(interface, token)| Some((interface.interface_name.clone(), token?))).collect();
            *has_some.entry(result.service.id).or_default() |= !made.is_empty();
            result.authorization_tokens = (!made.is_empty()).then_some(made);
        }
        match has_some.into_iter().find(|(_, has_some)| !has_some) {
            Some((definition, _)) => Err(self.without_tokens(definition)),
            None => Ok(self),
        }
    }

    fn without_tokens(&self, definition: DefinitionId) -> ArrowheadError {
        let results = || self.response.iter().filter(|result| result.service.id == definition && result.needs_tokens());
        let service = results().next().map_or("", |result| result.service.service_definition.as_str());
        no_usable_key(service, results().map(|result| result.provider.system_name.as_str()))
    }
}

impl OrchestrationResult {
    /// Of a service whose last interface was deleted there is nothing to make a token for.
    fn needs_tokens(&self) -> bool {
        self.secure == Security::Token && !self.interfaces.is_empty()
    }

    fn token_orders(&self, consumer: &SystemCommonName, lifetime: Duration) -> impl Iterator<Item = TokenOrder> {
        self.interfaces.iter().map(move |interface| TokenOrder {
            grant: Grant {
                consumer: consumer.clone(),
                service: self.service.service_definition.clone(),
                interface: interface.interface_name.clone(),
            },
            provider: SystemKey::of(&self.provider),
            provider_key: self.provider.public_key().cloned().unwrap_or_default(),
            lifetime,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        address::Address,
        name::{InterfaceName, ServiceDefinition},
        record::{Definition, Entry, EntryId, EntryView, Interface, InterfaceId, System, SystemId, Timestamps},
        utc::UtcTime,
    };

    /// A provider's service over as many of two interfaces.
    fn result(definition: i64, provider: i64, key: Option<&str>, secure: Security, interfaces: usize) -> OrchestrationResult {
        let now = UtcTime::from_unix_seconds(1_900_000_000);
        let timestamps = Timestamps { created_at: now, updated_at: now };
        let interface =
            |id: i64, name: &str| Arc::new(Interface { id: InterfaceId(id), interface_name: InterfaceName::from_stored(name), timestamps });
        let view = EntryView {
            entry: Arc::new(Entry {
                id: EntryId(provider),
                definition: DefinitionId(definition),
                provider: SystemId(provider),
                service_uri: "/".into(),
                end_of_validity: None,
                secure,
                metadata: None,
                version: 1,
                interfaces: Vec::new(),
                timestamps,
            }),
            definition: Arc::new(Definition {
                id: DefinitionId(definition),
                service_definition: ServiceDefinition::from_stored(&format!("service-{definition}")),
                timestamps,
            }),
            provider: Arc::new(System {
                id: SystemId(provider),
                system_name: SystemName::from_stored(&format!("provider-{provider}")),
                address: Address::from_stored("10.0.0.1"),
                port: 8080,
                authentication_info: key.map(Arc::from),
                metadata: None,
                timestamps,
            }),
            interfaces: [interface(1, "HTTP-SECURE-JSON"), interface(2, "HTTP-SECURE-XML")].into_iter().take(interfaces).collect(),
        };
        OrchestrationResult::new(view, now)
    }

    fn orders(response: &OrchestrationResponse) -> Vec<String> {
        let consumer = SystemCommonName::parse("display.cloud.operator.arrowhead.eu").unwrap();
        let text = |order: TokenOrder| {
            assert_eq!((order.grant.consumer.in_token().as_str(), order.lifetime.as_secs()), ("display.cloud.operator", 60));
            format!("{} {} {} {}", order.provider.parts().0, order.provider_key, order.grant.service, order.grant.interface)
        };
        response.token_orders(&consumer, Duration::from_secs(60)).into_iter().map(text).collect()
    }

    fn tokens<const N: usize>(tokens: [Option<&str>; N]) -> [Option<Arc<str>>; N] {
        tokens.map(|token| token.map(Arc::from))
    }

    fn shown(response: &OrchestrationResponse) -> Vec<serde_json::Value> {
        let results = response.response.iter().map(|result| serde_json::to_value(result).unwrap());
        results.map(|mut result| result["authorizationTokens"].take()).collect()
    }

    #[test]
    fn only_results_secured_by_token_get_some_one_for_each_interface() {
        let response = OrchestrationResponse {
            response: vec![
                result(1, 1, Some("one"), Security::Token, 2),
                result(1, 2, Some("two"), Security::Certificate, 2),
                result(2, 3, None, Security::NotSecure, 1),
                result(2, 4, Some("four"), Security::Token, 1),
                result(3, 5, Some("five"), Security::Token, 0),
            ],
        };
        assert_eq!(
            orders(&response),
            [
                "provider-1 one service-1 HTTP-SECURE-JSON",
                "provider-1 one service-1 HTTP-SECURE-XML",
                "provider-4 four service-2 HTTP-SECURE-JSON"
            ]
        );
        let response = response.with_tokens(tokens([Some("a"), Some("b"), Some("c")])).unwrap();
        let null = serde_json::Value::Null;
        let first = json!({"HTTP-SECURE-JSON": "a", "HTTP-SECURE-XML": "b"});
        assert_eq!(shown(&response), [first, null.clone(), null.clone(), json!({"HTTP-SECURE-JSON": "c"}), null]);
    }

    #[test]
    fn a_provider_without_a_usable_key_stays_beside_one_with_a_key() {
        let response =
            OrchestrationResponse { response: vec![result(1, 1, None, Security::Token, 1), result(1, 2, Some("two"), Security::Token, 1)] };
        assert_eq!(orders(&response)[0], "provider-1  service-1 HTTP-SECURE-JSON");
        let response = response.with_tokens(tokens([None, Some("b")])).unwrap();
        assert_eq!(shown(&response), [serde_json::Value::Null, json!({"HTTP-SECURE-JSON": "b"})]);
    }

    #[test]
    fn a_service_without_any_usable_key_fails_the_orchestration() {
        let response = OrchestrationResponse {
            response: vec![
                result(1, 1, Some("one"), Security::Token, 1),
                result(2, 2, None, Security::Token, 1),
                result(2, 3, Some("nonsense"), Security::Token, 1),
                result(2, 4, Some("four"), Security::Certificate, 1),
            ],
        };
        let error = response.with_tokens(tokens([Some("a"), None, None])).unwrap_err();
        assert_eq!(error.error_code, 400);
        assert!(error.error_message.contains("service service-2: the authenticationInfo of provider-2, provider-3 is not"), "{error}");
    }
}
