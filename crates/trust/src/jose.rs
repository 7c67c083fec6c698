//! Messages that are signed and then sealed: a compact JWS (RFC 7515) inside a compact JWE (RFC 7516).
//!
//! There is one form and no choice: `RS512` inside `RSA-OAEP-256` with `A256CBC-HS512`, `cty` `JWT`. Arrowhead's tokens have it, and
//! so have the messages of gatekeepers and gateways (reference sections 9.3 and 12); what they say is the caller's to define.
//!
//! ```text
//! claims ─> JSON ─> sign ─> header.payload.signature ─> seal ─> header.key.iv.ciphertext.tag
//! claims <─ JSON <─ verify <──────────────────────────── open <─ (length, form, algorithms, tag: in this order)
//! ```
//!
//! Whoever sends a message that is not right learns nothing from the answer: every fault is the same [`Refused`], and a key
//! that cannot be unwrapped is replaced by a random one, so that the message fails where one with a wrong tag does (RFC 7516, 11.5).

mod encryption;
mod header;
mod key;
mod signature;

use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    encryption::{ContentKey, open, open_by, seal, seal_by},
    key::{KeyIdentity, OpeningKey, SealingKey, SigningKey, UnusableKey, VerifyingKey},
    signature::{sign, verify},
};

/// A message that is not what it should be, whatever is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is refused: it is not sealed for this key, or not signed by the one that should have signed it")]
pub struct Refused;

/// Signs claims and seals them.
pub fn seal_claims(claims: &impl Serialize, signer: &SigningKey, recipient: &SealingKey) -> Result<String, UnusableKey> {
    let claims = serde_json::to_vec(claims).expect("claims have text keys and finite numbers");
    seal(sign(&claims, signer)?.as_bytes(), recipient)
}

/// Opens a message of at most `bytes_max` bytes and reads what was signed. Unknown claims are passed over.
pub fn open_claims<T: DeserializeOwned>(
    message: &str,
    recipient: &OpeningKey,
    signer: &VerifyingKey,
    bytes_max: usize,
) -> Result<T, Refused> {
    if message.len() > bytes_max {
        return Err(Refused);
    }
    let signed = open(message, recipient)?;
    let claims = verify(std::str::from_utf8(&signed).map_err(|_| Refused)?, signer)?;
    bodkin_arrowhead::json::parse_object(std::str::from_utf8(&claims).map_err(|_| Refused)?).map_err(|_| Refused)
}

#[cfg(test)]
mod tests;
