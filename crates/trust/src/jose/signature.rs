//! Compact JWS with `RS512`: RSASSA-PKCS1-v1_5 with SHA-512 (RFC 7518, 3.3).

use aws_lc_rs::{rand::SystemRandom, signature::RSA_PKCS1_SHA512};

use super::{Refused, SigningKey, UnusableKey, VerifyingKey, header::Header};
use crate::base64;

const ALGORITHM: &str = "RS512";
const HEADER: &str = r#"{"alg":"RS512"}"#;

/// Signs: `header.payload.signature`.
pub fn sign(payload: &[u8], key: &SigningKey) -> Result<String, UnusableKey> {
    sign_under(HEADER, payload, key)
}

/// Signs under any header.
pub(super) fn sign_under(header: &str, payload: &[u8], key: &SigningKey) -> Result<String, UnusableKey> {
    let mut text = format!("{}.{}", base64::encode_url_safe(header.as_bytes()), base64::encode_url_safe(payload));
    let mut signature = vec![0; key.0.public_modulus_len()];
    key.0.sign(&RSA_PKCS1_SHA512, &SystemRandom::new(), text.as_bytes(), &mut signature).map_err(|_| UnusableKey)?;
    text.push('.');
    text.push_str(&base64::encode_url_safe(&signature));
    Ok(text)
}

/// Gives the payload of a text that was signed with the other half of `key`.
pub fn verify(text: &str, key: &VerifyingKey) -> Result<Vec<u8>, Refused> {
    let (signed, signature) = text.rsplit_once('.').ok_or(Refused)?;
    let (header, payload) = signed.split_once('.').ok_or(Refused)?;
    if Header::read(header)?.alg != ALGORITHM {
        return Err(Refused);
    }
    let signature = base64::decode_url_safe(signature).ok_or(Refused)?;
    key.0.verify_sig(signed.as_bytes(), &signature).map_err(|_| Refused)?;
    // A point is no digit: of more than three parts the second is none.
    base64::decode_url_safe(payload).ok_or(Refused)
}
