//! Secrets by which new systems come to their first certificate.
//!
//! ```text
//! bodkin1-17-<64 digits: the secret value>-<64 digits: SHA-256 of the cloud's certificate>
//! ```
//!
//! One text is all that a new system is given: which grant it is for, what proves that, and whom to believe. The cloud keeps
//! nothing of it but the hash of the value.

use std::fmt;

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use bodkin_arrowhead::hex;
use zeroize::Zeroizing;

use crate::{certificate::Fingerprint, key::KeyError};

/// What every secret begins with.
const PREFIX: &str = "bodkin1";

/// The part of a secret that nobody can guess: 256 random bits. It is never printed by itself, and its memory is wiped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<[u8; 32]>);

impl SecretValue {
    /// Draws a new one.
    pub fn generate() -> Result<Self, KeyError> {
        let mut value = Zeroizing::new([0; 32]);
        rand::fill(value.as_mut_slice()).map_err(|_| KeyError::NotMade("the system gives no random numbers".to_owned()))?;
        Ok(Self(value))
    }

    /// SHA-256 of it. As nobody can guess it, no slower function is needed.
    pub fn hash(&self) -> [u8; 32] {
        digest(&SHA256, self.0.as_slice()).as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

/// What a new system is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnboardingSecret {
    /// Which grant it is for.
    pub grant: i64,
    /// What proves it.
    pub value: SecretValue,
    /// The certificate of the cloud's authority, which the new system believes.
    pub anchor: Fingerprint,
}

/// A text that is no secret. What it holds is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no onboarding secret: {PREFIX}-NUMBER-DIGITS-DIGITS is expected, as `bodkin onboard secret add` prints it")]
pub struct SecretError;

impl OnboardingSecret {
    /// Reads a secret; white space around it is left out.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let mut parts = text.trim().split('-');
        let mut part = || parts.next().ok_or(SecretError);
        if part()? != PREFIX {
            return Err(SecretError);
        }
        let grant = part()?.parse().ok().filter(|grant| *grant > 0).ok_or(SecretError)?;
        let value = hex::parse(part()?).map(|value| SecretValue(Zeroizing::new(value))).ok_or(SecretError)?;
        let anchor = hex::parse(part()?).map(Fingerprint).ok_or(SecretError)?;
        if parts.next().is_some() { Err(SecretError) } else { Ok(Self { grant, value, anchor }) }
    }

    /// The whole text, to be given to the new system.
    pub fn reveal(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(160));
        // Written into one buffer, so that no copy is left behind.
        let written = fmt::Write::write_fmt(&mut *text, format_args!("{PREFIX}-{}-", self.grant));
        let written =
            written.and_then(|()| self.value.0.iter().try_for_each(|byte| fmt::Write::write_fmt(&mut *text, format_args!("{byte:02x}"))));
        written.and_then(|()| fmt::Write::write_fmt(&mut *text, format_args!("-{}", self.anchor))).expect("a string takes everything");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> OnboardingSecret {
        OnboardingSecret { grant: 17, value: SecretValue(Zeroizing::new([0xab; 32])), anchor: Fingerprint([0xcd; 32]) }
    }

    #[test]
    fn a_secret_is_read_as_it_was_written() {
        let text = secret().reveal();
        assert_eq!(*text, format!("bodkin1-17-{}-{}", "ab".repeat(32), "cd".repeat(32)));
        assert_eq!(OnboardingSecret::parse(&format!(" {}\n", *text)), Ok(secret()));
    }

    #[test]
    fn other_texts_are_none_and_are_not_told() {
        let text = secret().reveal();
        let (short, long, upper) = (&text[..text.len() - 1], format!("{}-0", *text), text.to_uppercase());
        let (nobody, signed) = (text.replace("-17-", "-0-"), text.replace("-17-", "--17-"));
        for other in ["", "bodkin1", "x", short, &long, &upper, &nobody, &signed, &text.replace("bodkin1", "bodkin2")] {
            let error = OnboardingSecret::parse(other).unwrap_err();
            assert!(!error.to_string().contains("abab"), "{error}");
        }
    }

    #[test]
    fn values_differ_and_are_never_printed() {
        let (one, other) = (SecretValue::generate().unwrap(), SecretValue::generate().unwrap());
        assert!(one != other && one.hash() != other.hash() && one.hash() == one.clone().hash());
        assert!(!format!("{:?}", secret()).contains("abab"));
    }
}
