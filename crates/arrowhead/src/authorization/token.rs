//! What a token says, and whether it counts (reference section 12).

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    common_name::SystemCommonName,
    error::ArrowheadError,
    name::{InterfaceName, ServiceDefinition},
    system::SystemKey,
    utc::UtcTime,
};

/// Who issues tokens: the claim `iss`.
pub const ISSUER: &str = "Authorization";
/// A token counts from so long before it was issued: the provider's clock may be behind.
pub const COUNTS_BEFORE: Duration = Duration::from_secs(60);
/// A provider takes a token for so long before and behind its time: clocks differ.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

/// What a token allows: a consumer may use a service over an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Who.
    pub consumer: SystemCommonName,
    /// What.
    pub service: ServiceDefinition,
    /// Over what.
    pub interface: InterfaceName,
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenOrder {
    /// What it allows.
    pub grant: Grant,
    /// At whom.
    pub provider: SystemKey,
    /// The provider's `authenticationInfo`, which the token is sealed for; empty if it has none.
    pub provider_key: Arc<str>,
    /// How long it counts.
    pub lifetime: Duration,
}

/// What the audit log keeps of tokens that were given out (those that could not be made are `None`), without the tokens.
///
/// `is_endless` says which tokens have no expiry; their `seconds` are `null`.
pub fn account(orders: &[&TokenOrder], tokens: &[Option<Arc<str>>], is_endless: impl Fn(&TokenOrder) -> bool) -> Map<String, Value> {
    let given = |order: &TokenOrder| {
        json!({
            "consumer": order.grant.consumer.to_string(),
            "provider": order.provider.as_str(),
            "service": order.grant.service.as_str(),
            "interface": order.grant.interface.as_str(),
            "seconds": (!is_endless(order)).then_some(order.lifetime.as_secs()),
        })
    };
    let given: Vec<Value> = orders.iter().zip(tokens).filter(|(_, token)| token.is_some()).map(|(order, _)| given(order)).collect();
    Map::from_iter([("given".to_owned(), given.into())])
}

/// How long tokens count. Unlike upstream's every one ends, unless its provider is configured to get tokens without expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLifetimes {
    /// Where none is asked for.
    pub default: Duration,
    /// At the most, whatever is asked for.
    pub maximum: Duration,
}

impl Default for TokenLifetimes {
    fn default() -> Self {
        Self { default: Duration::from_secs(10 * 60), maximum: Duration::from_secs(24 * 3600) }
    }
}

impl TokenLifetimes {
    /// What is given for an asked number of seconds; 0 and less, which upstream takes for ever, is the default.
    pub fn of(&self, asked_seconds: Option<i64>) -> Duration {
        let asked = asked_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        asked.map_or(self.default, Duration::from_secs).min(self.maximum)
    }
}

/// The claims of a token. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenClaims {
    /// The token's identity.
    pub jti: String,
    /// Who issued it: [`ISSUER`].
    pub iss: String,
    /// When.
    pub iat: u64,
    /// From when on it counts.
    pub nbf: u64,
    /// From when on it does not any more; without it, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// The consumer: `<consumer>.<cloud>.<operator>`, lower-case.
    pub cid: String,
    /// The service definition, lower-case.
    pub sid: String,
    /// The interface, upper-case.
    pub iid: String,
}

impl TokenClaims {
    /// What a token says that is issued now. No two tokens may have the same `id`. Without a lifetime the token never expires.
    pub fn new(id: String, grant: &Grant, now: UtcTime, lifetime: impl Into<Option<Duration>>) -> Self {
        Self {
            jti: id,
            iss: ISSUER.to_owned(),
            iat: now.unix_seconds(),
            nbf: now.minus(COUNTS_BEFORE).unix_seconds(),
            exp: lifetime.into().map(|lifetime| now.plus(lifetime).unix_seconds()),
            cid: grant.consumer.in_token(),
            sid: grant.service.as_str().to_owned(),
            iid: grant.interface.as_str().to_owned(),
        }
    }
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It is no token, not sealed for this provider, or not signed by Authorization.
    #[error("it is not one that Authorization has made for this provider")]
    Unreadable,
    /// It has no identity.
    #[error("it has no jti")]
    Identity,
    /// Somebody else says to have issued it.
    #[error("its issuer is not {ISSUER}")]
    Issuer,
    /// Its time has not come.
    #[error("it does not count yet: are the clocks of this machine and Authorization's right?")]
    NotYet,
    /// Its time is over.
    #[error("it is expired: the consumer has to orchestrate again")]
    Expired,
    /// Its time never ends.
    #[error("it never expires, which this provider does not allow")]
    Endless,
    /// It was made for another consumer than the caller.
    #[error("it was made for another consumer")]
    Consumer,
    /// It was made for another service.
    #[error("it was made for another service")]
    Service,
    /// It was made for another interface.
    #[error("it was made for another interface")]
    Interface,
}

/// What a provider asks of a token that Authorization has made for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenExpectation {
    /// The service definition, lower-case; `None` is any.
    pub service: Option<String>,
    /// The interface, upper-case; `None` is any.
    pub interface: Option<String>,
    /// Whether a token may be one that never ends.
    pub allows_endless: bool,
}

impl TokenExpectation {
    /// Whether a token counts that `caller` shows now.
    pub fn check(&self, claims: &TokenClaims, caller: &SystemCommonName, now: UtcTime) -> Result<(), TokenFault> {
        let is = |expected: &Option<String>, said: &str| expected.as_ref().is_none_or(|expected| expected == said);
        let must = |holds: bool, fault: TokenFault| if holds { Ok(()) } else { Err(fault) };
        must(!claims.jti.is_empty(), TokenFault::Identity)?;
        must(claims.iss == ISSUER, TokenFault::Issuer)?;
        must(claims.nbf <= now.plus(CLOCK_TOLERANCE).unix_seconds(), TokenFault::NotYet)?;
        match claims.exp {
            Some(end) => must(now.minus(CLOCK_TOLERANCE).unix_seconds() < end, TokenFault::Expired)?,
            None => must(self.allows_endless, TokenFault::Endless)?,
        }
        must(claims.cid.eq_ignore_ascii_case(&caller.in_token()), TokenFault::Consumer)?;
        must(is(&self.service, &claims.sid.to_lowercase()), TokenFault::Service)?;
        must(is(&self.interface, &claims.iid.to_uppercase()), TokenFault::Interface)
    }
}

/// None of the providers of a service has a key that a token could be sealed for.
pub(crate) fn no_usable_key<'p>(service: &str, providers: impl Iterator<Item = &'p str>) -> ArrowheadError {
    let providers: Vec<&str> = providers.collect();
    ArrowheadError::invalid_parameter(format!(
        "No token could be made for service {service}: the authenticationInfo of {} is not the Base64 of an RSA public key of 2048 to \
         8192 bits (SubjectPublicKeyInfo). The provider has to register again with that of its certificate.",
        providers.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUED: u64 = 1_900_000_000;

    fn system(name: &str) -> SystemCommonName {
        SystemCommonName::parse(name).unwrap()
    }

    fn claims() -> TokenClaims {
        let grant = Grant {
            consumer: system("Display.Cloud.Operator.arrowhead.eu"),
            service: ServiceDefinition::from_stored("temperature"),
            interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
        };
        TokenClaims::new("id".into(), &grant, UtcTime::from_unix_seconds(ISSUED), Duration::from_secs(600))
    }

    fn check(expectation: &TokenExpectation, claims: &TokenClaims, caller: &str, now: u64) -> Option<TokenFault> {
        expectation.check(claims, &system(caller), UtcTime::from_unix_seconds(now)).err()
    }

    #[test]
    fn claims_have_upstreams_names_and_case() {
        let json = serde_json::to_value(claims()).unwrap();
        let expected = serde_json::json!({"jti": "id", "iss": "Authorization", "iat": ISSUED, "nbf": ISSUED - 60, "exp": ISSUED + 600,
            "cid": "display.cloud.operator", "sid": "temperature", "iid": "HTTP-SECURE-JSON"});
        assert_eq!(json, expected);
    }

    #[test]
    fn a_token_counts_in_its_time_for_its_caller() {
        let any = TokenExpectation::default();
        let caller = "display.cloud.operator.arrowhead.eu";
        let tolerance = CLOCK_TOLERANCE.as_secs();
        for (now, fault) in [
            (ISSUED - 60 - tolerance - 1, Some(TokenFault::NotYet)),
            (ISSUED - 60 - tolerance, None),
            (ISSUED, None),
            (ISSUED + 599 + tolerance, None),
            (ISSUED + 600 + tolerance, Some(TokenFault::Expired)),
        ] {
            assert_eq!(check(&any, &claims(), caller, now), fault, "{now}");
        }
        for (caller, fault) in [
            ("DISPLAY.cloud.operator.arrowhead.eu", None),
            ("displays.cloud.operator.arrowhead.eu", Some(TokenFault::Consumer)),
            ("display.other.operator.arrowhead.eu", Some(TokenFault::Consumer)),
            ("display.cloud.other.arrowhead.eu", Some(TokenFault::Consumer)),
        ] {
            assert_eq!(check(&any, &claims(), caller, ISSUED), fault, "{caller}");
        }
    }

    #[test]
    fn every_claim_is_asked_for() {
        let any = TokenExpectation::default();
        let caller = "display.cloud.operator.arrowhead.eu";
        let strict = TokenExpectation { service: Some("temperature".into()), interface: Some("HTTP-SECURE-JSON".into()), ..any.clone() };
        assert_eq!(check(&strict, &claims(), caller, ISSUED), None);
        for (claims, fault) in [
            (TokenClaims { jti: String::new(), ..claims() }, TokenFault::Identity),
            (TokenClaims { iss: "authorization".into(), ..claims() }, TokenFault::Issuer),
            (TokenClaims { exp: None, ..claims() }, TokenFault::Endless),
            (TokenClaims { sid: "humidity".into(), ..claims() }, TokenFault::Service),
            (TokenClaims { iid: "HTTP-SECURE-XML".into(), ..claims() }, TokenFault::Interface),
        ] {
            assert_eq!(check(&strict, &claims, caller, ISSUED), Some(fault));
        }
        let lenient = TokenExpectation { allows_endless: true, ..any };
        assert_eq!(check(&lenient, &TokenClaims { exp: None, ..claims() }, caller, ISSUED), None);
    }

    #[test]
    fn an_asked_lifetime_is_honoured_up_to_the_maximum() {
        let lifetimes = TokenLifetimes::default();
        for (asked, seconds) in [(None, 600), (Some(-1), 600), (Some(0), 600), (Some(1), 1), (Some(3600), 3600), (Some(86_401), 86_400)] {
            assert_eq!(lifetimes.of(asked), Duration::from_secs(seconds), "{asked:?}");
        }
        assert_eq!(lifetimes.of(Some(i64::MAX)), lifetimes.maximum);
    }
}
