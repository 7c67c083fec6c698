//! Whom the provider serves: in a secure cloud who shows a token of Authorization's for the service.

use anyhow::Context;
use bodkin_arrowhead::{common_name::SystemCommonName, core_service::CoreSystem};
use bodkin_client::{CoreSystems, TokenVerifier};
use bodkin_trust::{Identity, tls};

/// The query parameter that has the token (reference section 12).
const TOKEN: &str = "token=";

/// What the provider lets through.
pub enum Gate {
    /// Insecure mode: everybody.
    Open,
    /// Secure mode: whose token is good.
    Tokens(TokenVerifier),
}

impl Gate {
    /// Fetches Authorization's public key, with which its tokens are verified.
    pub async fn of(identity: Option<&Identity>, cloud: &CoreSystems) -> anyhow::Result<Self> {
        let Some(identity) = identity else { return Ok(Self::Open) };
        let key = cloud.authorization_key().await.context("no public key of Authorization to verify tokens with")?;
        Ok(Self::Tokens(TokenVerifier::new(identity.key(), &key).context("Authorization's public key cannot be used")?))
    }

    /// Whether a caller may read a service.
    pub fn admits(&self, caller: Option<&SystemCommonName>, query: Option<&str>, service: &str) -> bool {
        match (self, caller) {
            (Self::Open, _) => true,
            (Self::Tokens(_), None) => false,
            (Self::Tokens(verifier), Some(caller)) => {
                let token = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix(TOKEN));
                let claims = token.and_then(|token| verifier.verify(token, caller, tls::now()).ok());
                claims.is_some_and(|claims| claims.sid == service)
            }
        }
    }
}

/// Whether a caller is the Event Handler, who alone has events to push.
pub fn is_event_handler(caller: &SystemCommonName) -> bool {
    caller.system.as_str() == CoreSystem::EventHandler.name()
}
