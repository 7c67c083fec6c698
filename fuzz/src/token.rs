//! A token that somebody shows to a provider.

use std::sync::LazyLock;
use std::time::Duration;

use bodkin_arrowhead::{
    authorization::token::{CLOCK_TOLERANCE, Grant},
    common_name::SystemCommonName,
    name::{InterfaceName, ServiceDefinition},
    utc::UtcTime,
};
use bodkin_trust::{
    KeySize, PrivateKey, TokenSigner, TokenVerifier,
    jose::{SealingKey, SigningKey, seal, sign},
};

/// Authorization, a provider, and what it verifies with.
struct Cast {
    signing: SigningKey,
    sealing: SealingKey,
    verifier: TokenVerifier,
    right: String,
}

static CAST: LazyLock<Cast> = LazyLock::new(|| {
    let key = || PrivateKey::generate(KeySize::Bits2048).expect("a key");
    let (authorization, provider) = (key(), key());
    let signer = TokenSigner::new(&authorization).expect("an RSA key");
    let sealing = SealingKey::new(&provider.public_key_info()).expect("an RSA key");
    let grant = Grant {
        consumer: caller(),
        service: ServiceDefinition::from_stored("temperature"),
        interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
    };
    let right = signer.issue(&grant, &sealing, now(), Duration::from_secs(600)).expect("a token");
    let verifier = TokenVerifier::new(&provider, signer.authentication_info()).expect("RSA keys");
    Cast { signing: SigningKey::new(&authorization).expect("an RSA key"), sealing, verifier, right }
});

fn now() -> UtcTime {
    UtcTime::from_unix_seconds(1_900_000_000)
}

fn caller() -> SystemCommonName {
    SystemCommonName::parse("display.cloud.operator.arrowhead.eu").expect("a name")
}

/// A byte that says what is done for the sender, then what it sends: a token; what it has sealed; claims that
/// Authorization has signed; or changes of a right token (two bytes of place, then what is laid over it there).
pub fn token(bytes: &[u8]) {
    let Some((&help, bytes)) = bytes.split_first() else { return };
    let cast = &*CAST;
    let is_signed = help % 4 == 2;
    let token = match help % 4 {
        0 => String::from_utf8_lossy(bytes).into_owned(),
        1 => seal(bytes, &cast.sealing).expect("an RSA key seals"),
        2 => seal(sign(bytes, &cast.signing).expect("an RSA key signs").as_bytes(), &cast.sealing).expect("an RSA key seals"),
        _ => changed(&cast.right, bytes),
    };
    match cast.verifier.verify(&token, &caller(), now()) {
        Ok(_) if token == cast.right => {}
        Ok(claims) => {
            assert!(is_signed, "a token that Authorization has not made counts: {token}");
            let end = claims.exp.expect("what never ends is refused");
            assert!(
                end > now().minus(CLOCK_TOLERANCE).unix_seconds() && claims.nbf <= now().plus(CLOCK_TOLERANCE).unix_seconds(),
                "{claims:?}"
            );
            assert!(claims.cid.eq_ignore_ascii_case("display.cloud.operator") && claims.iss == "Authorization", "{claims:?}");
        }
        Err(refused) => {
            assert_ne!(token, cast.right, "the right token counts");
            assert_eq!(refused.to_string(), "the token is refused");
        }
    }
}

fn changed(right: &str, bytes: &[u8]) -> String {
    let Some((place, laid_over)) = bytes.split_first_chunk::<2>() else { return right.to_owned() };
    let place = usize::from(u16::from_le_bytes(*place)) % right.len();
    let laid_over = String::from_utf8_lossy(laid_over);
    let behind = right.get(place + laid_over.len()..).unwrap_or_default();
    format!("{}{laid_over}{behind}", &right[..place])
}
