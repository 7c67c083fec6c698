//! How new systems come to their certificates.

use serde::{Deserialize, Serialize};

answer! {
    /// Who may come to a certificate.
    OnboardingGrant {
        /// Its number.
        id: i64,
        /// A system's name, or the beginning of names with `*` behind it.
        system_name: String,
        /// Common name of the device's certificate; `None` where it takes a secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
        /// How often it can still be used.
        uses_left: u32,
        /// Until when (UTC).
        expires_at: String,
        /// What else the certificate counts for.
        #[serde(default)]
        alternative_names: Vec<String>,
        /// When it was made (UTC).
        created_at: String,
        /// Only in the answer that makes the grant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
    }
}

answer! {
    /// A new system's certificate.
    Onboarded {
        /// Whose.
        system_name: String,
        /// The chain in PEM, the own certificate first.
        certificate: String,
        /// Until when it counts (UTC).
        not_after: String,
    }
}
