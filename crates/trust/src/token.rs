//! Tokens: made by Authorization, sealed for a provider, verified by it (reference section 12).

use std::time::Duration;

use aws_lc_rs::rand;
use bodkin_arrowhead::{
    authorization::token::{Grant, TokenClaims, TokenExpectation, TokenFault},
    common_name::SystemCommonName,
    utc::UtcTime,
};

use crate::{
    base64,
    jose::{self, OpeningKey, SealingKey, SigningKey, UnusableKey, VerifyingKey},
    key::PrivateKey,
};

/// Bytes of a token; a longer one is refused unread. Ours have about 1300 with keys of 2048 bits.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a token's identity, drawn at random.
const ID_BYTES: usize = 16;

/// Makes tokens. Authorization has it.
#[derive(Debug)]
pub struct TokenSigner {
    key: SigningKey,
    authentication_info: String,
}

impl TokenSigner {
    /// Takes Authorization's key.
    pub fn new(key: &PrivateKey) -> Result<Self, UnusableKey> {
        Ok(Self { key: SigningKey::new(key)?, authentication_info: base64::encode(&key.public_key_info()) })
    }

    /// Base64 of the public key that providers verify with.
    pub fn authentication_info(&self) -> &str {
        &self.authentication_info
    }

    /// Makes a token that only `provider` can open. It counts for `lifetime` from `now` on, in whole seconds.
    pub fn issue(
        &self,
        grant: &Grant,
        provider: &SealingKey,
        now: UtcTime,
        lifetime: impl Into<Option<Duration>>,
    ) -> Result<String, UnusableKey> {
        let mut id = [0; ID_BYTES];
        rand::fill(&mut id).expect("the system gives random bytes");
        jose::seal_claims(&TokenClaims::new(base64::encode_url_safe(&id), grant, now, lifetime), &self.key, provider)
    }
}

/// A token that does not count. The text is always the same and may be shown to the caller; [`Self::fault`] is for the own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is refused")]
pub struct TokenRefused(TokenFault);

impl TokenRefused {
    /// What is wrong with it. Of a token that Authorization has not made for this provider nothing is known.
    pub fn fault(&self) -> TokenFault {
        self.0
    }
}

/// Verifies tokens. Every provider of a service that is secured by token has one.
///
/// A token counts when it is sealed for the provider's key and signed by Authorization, names the caller, and its time is
/// neither over nor yet to come, give or take
/// [`CLOCK_TOLERANCE`](bodkin_arrowhead::authorization::token::CLOCK_TOLERANCE). It may be shown any number of times.
#[derive(Debug)]
pub struct TokenVerifier {
    key: OpeningKey,
    authorization: VerifyingKey,
    expectation: TokenExpectation,
}

impl TokenVerifier {
    /// Takes the provider's own key, which its certificate is for, and what `GET /authorization/publickey` answers.
    pub fn new(own: &PrivateKey, authorization_key: &str) -> Result<Self, UnusableKey> {
        let authorization = VerifyingKey::from_authentication_info(authorization_key.trim().trim_matches('"'))?;
        Ok(Self { key: OpeningKey::new(own)?, authorization, expectation: TokenExpectation::default() })
    }

    /// Refuses tokens for other services.
    pub fn for_service(mut self, service_definition: &str) -> Self {
        self.expectation.service = Some(service_definition.trim().to_lowercase());
        self
    }

    /// Refuses tokens for other interfaces.
    pub fn over_interface(mut self, interface: &str) -> Self {
        self.expectation.interface = Some(interface.trim().to_uppercase());
        self
    }

    /// Takes tokens that never end too: other Authorizations than Bodkin's make such ones by default.
    pub fn allowing_endless(mut self) -> Self {
        self.expectation.allows_endless = true;
        self
    }

    /// Verifies the token that `caller` has shown, whose name is that of its certificate.
    pub fn verify(&self, token: &str, caller: &SystemCommonName, now: UtcTime) -> Result<TokenClaims, TokenRefused> {
        let claims = jose::open_claims::<TokenClaims>(token, &self.key, &self.authorization, TOKEN_BYTES_MAX);
        let claims = claims.map_err(|_| TokenRefused(TokenFault::Unreadable))?;
        self.expectation.check(&claims, caller, now).map_err(TokenRefused)?;
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use bodkin_arrowhead::{
        authorization::token::CLOCK_TOLERANCE,
        name::{InterfaceName, ServiceDefinition},
    };

    use super::*;
    use crate::key::KeySize;

    static AUTHORIZATION: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());
    static PROVIDER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());
    static OTHER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).unwrap());

    const LIFETIME: Duration = Duration::from_secs(600);

    fn at(seconds: u64) -> UtcTime {
        UtcTime::from_unix_seconds(1_900_000_000 + seconds)
    }

    fn consumer(name: &str) -> SystemCommonName {
        SystemCommonName::parse(&format!("{name}.cloud.operator.arrowhead.eu")).unwrap()
    }

    fn token() -> String {
        let grant = Grant {
            consumer: consumer("Display"),
            service: ServiceDefinition::from_stored("temperature"),
            interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
        };
        let provider = SealingKey::new(&PROVIDER.public_key_info()).unwrap();
        TokenSigner::new(&AUTHORIZATION).unwrap().issue(&grant, &provider, at(0), LIFETIME).unwrap()
    }

    fn verifier(own: &PrivateKey, authorization: &PrivateKey) -> TokenVerifier {
        TokenVerifier::new(own, TokenSigner::new(authorization).unwrap().authentication_info()).unwrap()
    }

    fn fault(verifier: &TokenVerifier, token: &str, caller: &str, now: UtcTime) -> Option<TokenFault> {
        verifier.verify(token, &consumer(caller), now).err().map(|refused| refused.fault())
    }

    #[test]
    fn a_token_counts_for_its_consumer_at_its_provider_in_its_time() {
        let token = token();
        assert!((1000..1600).contains(&token.len()), "{} bytes", token.len());
        let verifier = verifier(&PROVIDER, &AUTHORIZATION);
        let claims = verifier.verify(&token, &consumer("DISPLAY"), at(0)).unwrap();
        assert_eq!(
            (claims.iss.as_str(), claims.cid.as_str(), claims.sid.as_str(), claims.iid.as_str()),
            ("Authorization", "display.cloud.operator", "temperature", "HTTP-SECURE-JSON")
        );
        assert_eq!((claims.iat - claims.nbf, claims.exp), (60, Some(claims.iat + 600)));
        assert_eq!(base64::decode_url_safe(&claims.jti).unwrap().len(), ID_BYTES);
        assert_eq!(fault(&verifier, &token, "display", at(599)), None);
        assert_eq!(fault(&verifier, &token, "display", at(600 + CLOCK_TOLERANCE.as_secs())), Some(TokenFault::Expired));
        assert_eq!(fault(&verifier, &token, "other", at(0)), Some(TokenFault::Consumer));
    }

    #[test]
    fn a_token_of_another_provider_or_another_authorization_is_unreadable() {
        let token = token();
        for verifier in [verifier(&OTHER, &AUTHORIZATION), verifier(&PROVIDER, &OTHER)] {
            assert_eq!(fault(&verifier, &token, "display", at(0)), Some(TokenFault::Unreadable));
        }
        let tampered = token.replacen("eyJ", "eyK", 1);
        assert_eq!(fault(&verifier(&PROVIDER, &AUTHORIZATION), &tampered, "display", at(0)), Some(TokenFault::Unreadable));
    }

    #[test]
    fn a_provider_may_ask_for_its_service_and_interface() {
        let token = token();
        let verifier = || verifier(&PROVIDER, &AUTHORIZATION);
        let asked = verifier().for_service(" Temperature ").over_interface("http-secure-json");
        assert_eq!(fault(&asked, &token, "display", at(0)), None);
        assert_eq!(fault(&verifier().for_service("humidity"), &token, "display", at(0)), Some(TokenFault::Service));
        assert_eq!(fault(&verifier().over_interface("HTTP-SECURE-XML"), &token, "display", at(0)), Some(TokenFault::Interface));
    }

    #[test]
    fn every_refusal_reads_the_same() {
        let verifier = verifier(&PROVIDER, &AUTHORIZATION);
        let texts = [("", "display"), ("a.b.c.d.e", "display"), (&token(), "other")]
            .map(|(token, caller)| verifier.verify(token, &consumer(caller), at(0)).unwrap_err().to_string());
        assert_eq!(texts, ["the token is refused"; 3]);
    }

    #[test]
    fn the_public_key_is_taken_as_the_endpoint_answers_it() {
        let signer = TokenSigner::new(&AUTHORIZATION).unwrap();
        let quoted = format!("\"{}\"\n", signer.authentication_info());
        assert!(TokenVerifier::new(&PROVIDER, &quoted).is_ok());
        assert_eq!(TokenVerifier::new(&PROVIDER, "").err(), Some(UnusableKey));
    }
}
