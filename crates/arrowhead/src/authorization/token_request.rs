//! Tokens that another core system asks for, and the answer to it (reference section 4).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;

use super::token::{Grant, TokenLifetimes, TokenOrder, no_usable_key};
use crate::{
    common_name::{CloudCommonName, SystemCommonName},
    error::ArrowheadError,
    form::{CloudRequest, TokenGenerationRequest, TokenProviderRequest},
    name::{CloudName, InterfaceName, NamingRules, ServiceDefinition, SystemName},
    system::{SystemReference, not_blank},
};

/// A checked request: a consumer, a service, and providers with the tokens that are to be made for them.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRequest {
    consumer: SystemReference,
    service: ServiceDefinition,
    providers: Vec<AskedProvider>,
}

#[derive(Clone, Debug, PartialEq)]
struct AskedProvider {
    system: SystemReference,
    /// One for each interface.
    orders: Vec<TokenOrder>,
}

impl TokenRequest {
    /// Checks a form. A consumer without a cloud is of the own one.
    pub fn parse(
        form: TokenGenerationRequest,
        own_cloud: &CloudCommonName,
        lifetimes: TokenLifetimes,
        origin: &str,
    ) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let consumer = SystemReference::parse(form.consumer.as_ref(), "Consumer", origin)?;
        let name = SystemName::parse(&consumer.name).map_err(|error| refused(format!("Consumer name {error}")))?;
        let cloud = form.consumer_cloud.map_or_else(|| Ok(own_cloud.clone()), |cloud| parse_cloud(cloud, origin))?;
        let rules = NamingRules::default().lenient_definition();
        let service = ServiceDefinition::parse(form.service.as_deref().unwrap_or_default(), &rules);
        let service = service.map_err(|error| refused(format!("Service {error}")))?;
        let consumer_name = SystemCommonName { system: name, cloud };
        let grant = |interface| Grant { consumer: consumer_name.clone(), service: service.clone(), interface };
        let asked = form.providers.filter(|list| !list.is_empty()).ok_or_else(|| refused("Provider list is null or empty.".into()))?;
        let parse = |form: Option<TokenProviderRequest>| AskedProvider::parse(form.unwrap_or_default(), grant, lifetimes, origin);
        let providers = asked.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(Self { consumer, service, providers })
    }

    /// The tokens to be made.
    pub fn orders(&self) -> impl Iterator<Item = &TokenOrder> {
        self.providers.iter().flat_map(|provider| &provider.orders)
    }

    /// The answer, of the tokens that were made for [`Self::orders`] in their order. Providers whose key cannot be used have none
    /// and are left out; that must not be all of them.
    pub fn response(&self, tokens: &mut impl Iterator<Item = Option<Arc<str>>>) -> Result<TokenGenerationResponse, ArrowheadError> {
        let token_data = self.token_data(tokens);
        if token_data.is_empty() {
            let names = self.providers.iter().map(|provider| provider.system.name.as_str());
            return Err(no_usable_key(self.service.as_str(), names));
        }
        Ok(TokenGenerationResponse { token_data })
    }

    /// The part of the answer to several requests. Here all of a request's providers may be left out: the others' tokens count.
    pub fn tokens_of_service(&self, tokens: &mut impl Iterator<Item = Option<Arc<str>>>) -> TokensOfService {
        TokensOfService {
            service: self.service.clone(),
            consumer_name: self.consumer.name.clone(),
            consumer_adress: self.consumer.address.clone(),
            consumer_port: self.consumer.port,
            token_data: self.token_data(tokens),
        }
    }

    fn token_data(&self, tokens: &mut impl Iterator<Item = Option<Arc<str>>>) -> Vec<TokenData> {
        let mut data = Vec::with_capacity(self.providers.len());
        for AskedProvider { system, orders } in &self.providers {
            let made = orders.iter().zip(&mut *tokens);
            let tokens: BTreeMap<_, _> = made.filter_map(|(order, token)| Some((order.grant.interface.clone(), token?))).collect();
            if !tokens.is_empty() {
                let (provider_name, provider_address) = (system.name.clone(), system.address.clone());
                data.push(TokenData { provider_name, provider_address, provider_port: system.port, tokens });
            }
        }
        data
    }
}

impl AskedProvider {
    fn parse(
        form: TokenProviderRequest,
        grant: impl Fn(InterfaceName) -> Grant,
        lifetimes: TokenLifetimes,
        origin: &str,
    ) -> Result<Self, ArrowheadError> {
        let refused = |message: String| ArrowheadError::bad_payload(message, origin);
        let system = SystemReference::parse(form.provider.as_ref(), "Provider", origin)?;
        let key = not_blank(form.provider.and_then(|provider| provider.authentication_info));
        let key: Arc<str> = key.ok_or_else(|| refused(format!("Provider {}: authenticationInfo is null or blank.", system.name)))?.into();
        let parse = |text: Option<String>| InterfaceName::parse(text.as_deref().unwrap_or_default(), &NamingRules::default());
        let interfaces: Result<BTreeSet<_>, _> = form.service_interfaces.into_iter().flatten().map(parse).collect();
        let interfaces = interfaces.map_err(|error| refused(format!("Service interface {error}")))?;
        if interfaces.is_empty() {
            return Err(refused(format!("Provider {}: service interface list is null or empty.", system.name)));
        }
        let lifetime = lifetimes.of(form.token_duration);
        let order = |interface| TokenOrder { grant: grant(interface), provider: system.key.clone(), provider_key: key.clone(), lifetime };
        let orders = interfaces.into_iter().map(order).collect();
        Ok(Self { system, orders })
    }
}

fn parse_cloud(form: CloudRequest, origin: &str) -> Result<CloudCommonName, ArrowheadError> {
    let parse = |text: Option<String>, what: &str| {
        let refused = |error| ArrowheadError::bad_payload(format!("Consumer cloud: {what} {error}"), origin);
        CloudName::parse(text.as_deref().unwrap_or_default()).map_err(refused)
    };
    Ok(CloudCommonName { operator: parse(form.operator, "operator")?, cloud: parse(form.name, "name")? })
}

/// The answer to one request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenGenerationResponse {
    token_data: Vec<TokenData>,
}

/// A provider's tokens by interface.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenData {
    provider_name: String,
    provider_address: String,
    provider_port: u16,
    tokens: BTreeMap<InterfaceName, Arc<str>>,
}

/// The answer to one of several requests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokensOfService {
    service: ServiceDefinition,
    consumer_name: String,
    /// Upstream's spelling.
    consumer_adress: String,
    consumer_port: u16,
    token_data: Vec<TokenData>,
}

/// The answer to several requests, in their order.
#[derive(Debug, Serialize)]
pub struct TokenGenerationMultiResponse {
    /// One for each.
    pub data: Vec<TokensOfService>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ORIGIN: &str = "/authorization/token";

    fn request() -> Value {
        json!({"consumer": {"systemName": "Display", "address": "10.0.0.1", "port": 80}, "consumerCloud": null, "service": " Temperature ",
            "providers": [
                {"provider": {"systemName": "One", "address": "HOST", "port": 8080, "authenticationInfo": "key"},
                    "serviceInterfaces": ["http-secure-json", "HTTP-SECURE-JSON", "HTTP-SECURE-XML"], "tokenDuration": -1},
                {"provider": {"systemName": "two", "address": "host", "port": 8081, "authenticationInfo": "other"},
                    "serviceInterfaces": ["HTTP-SECURE-JSON"], "tokenDuration": 60}]})
    }

    fn parse(request: &Value) -> Result<TokenRequest, ArrowheadError> {
        let form = crate::json::parse_object(&request.to_string()).unwrap();
        TokenRequest::parse(form, &CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap(), TokenLifetimes::default(), ORIGIN)
    }

    fn tokens(tokens: &[Option<&str>]) -> impl Iterator<Item = Option<Arc<str>>> {
        tokens.iter().map(|token| token.map(Arc::from)).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn there_is_an_order_for_each_provider_and_interface() {
        let request = parse(&request()).unwrap();
        let orders: Vec<_> = request
            .orders()
            .map(|order| {
                let grant = &order.grant;
                let grant = format!("{} {} {}", grant.consumer.in_token(), grant.service, grant.interface);
                (grant, order.provider.parts().0, &*order.provider_key, order.lifetime.as_secs())
            })
            .collect();
        let grant = |interface: &str| format!("display.cloud.operator temperature {interface}");
        assert_eq!(
            orders,
            [
                (grant("HTTP-SECURE-JSON"), "one", "key", 600),
                (grant("HTTP-SECURE-XML"), "one", "key", 600),
                (grant("HTTP-SECURE-JSON"), "two", "other", 60)
            ]
        );
    }

    #[test]
    fn a_consumer_of_another_cloud_is_named_with_it() {
        let mut request = request();
        request["consumerCloud"] = json!({"operator": "Elsewhere", "name": "Far"});
        assert_eq!(parse(&request).unwrap().orders().next().unwrap().grant.consumer.in_token(), "display.far.elsewhere");
    }

    #[test]
    fn providers_without_a_token_are_left_out_and_not_all_may_be() {
        let request = parse(&request()).unwrap();
        let response = request.response(&mut tokens(&[Some("a"), Some("b"), None])).unwrap();
        let expected = json!({"tokenData": [{"providerName": "One", "providerAddress": "HOST", "providerPort": 8080,
            "tokens": {"HTTP-SECURE-JSON": "a", "HTTP-SECURE-XML": "b"}}]});
        assert_eq!(serde_json::to_value(response).unwrap(), expected);
        let error = request.response(&mut tokens(&[None, None, None])).unwrap_err();
        assert_eq!(error.error_code, 400);
        assert!(error.error_message.contains("service temperature: the authenticationInfo of One, two is not"), "{error}");
    }

    #[test]
    fn several_requests_share_the_tokens_in_their_order() {
        let request = parse(&request()).unwrap();
        let mut made = tokens(&[None, None, None, Some("a"), Some("b"), Some("c")]);
        let data = vec![request.tokens_of_service(&mut made), request.tokens_of_service(&mut made)];
        let json = serde_json::to_value(TokenGenerationMultiResponse { data }).unwrap();
        assert_eq!(json["data"][0]["tokenData"], json!([]));
        assert_eq!(json["data"][1]["tokenData"][1]["tokens"], json!({"HTTP-SECURE-JSON": "c"}));
        let common = json!({"service": "temperature", "consumerName": "Display", "consumerAdress": "10.0.0.1", "consumerPort": 80,
            "tokenData": []});
        assert_eq!(json["data"][0], common);
    }

    #[test]
    fn what_is_missing_is_told() {
        for (place, value, told) in [
            ("/consumer", Value::Null, "Consumer is null"),
            ("/consumer/systemName", json!("a.b"), "Consumer name has invalid format"),
            ("/consumer/port", Value::Null, "port is null"),
            ("/consumerCloud", json!({"operator": "x"}), "Consumer cloud: name is null or blank"),
            ("/consumerCloud", json!({"operator": "a.b", "name": "x"}), "Consumer cloud: operator has invalid format"),
            ("/service", json!(" "), "Service is null or blank"),
            ("/providers", json!([]), "Provider list is null or empty"),
            ("/providers", json!([null]), "Provider is null"),
            ("/providers/0/provider/address", json!(""), "Provider: address is null or blank"),
            ("/providers/1/provider/authenticationInfo", Value::Null, "Provider two: authenticationInfo is null or blank"),
            ("/providers/1/serviceInterfaces", json!([]), "Provider two: service interface list is null or empty"),
            ("/providers/1/serviceInterfaces", json!(["HTTP"]), "Service interface has invalid format"),
        ] {
            let mut request = request();
            *request.pointer_mut(place).unwrap() = value;
            let error = parse(&request).unwrap_err();
            assert_eq!((error.error_code, error.origin.as_deref()), (400, Some(ORIGIN)), "{place}");
            assert!(error.error_message.contains(told), "{place}: {error}");
        }
    }
}
