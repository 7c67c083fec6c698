//! Who is who: certificates and their authority, key stores, and what a TLS connection is configured with.
//!
//! A [`Certificate`] is the one type that reads X.509; an [`Identity`] is a chain and the key that belongs to it, from PEM
//! files or a PKCS#12 key store ([`keystore`]); an [`Authority`] issues. A [`TrustDirectory`] keeps a cloud's, with a [`Ledger`] of
//! what was issued. [`tls`] makes rustls' configurations of them and nothing else does.
//! [`jose`] signs and seals messages; a [`TokenSigner`] makes tokens of them, and a [`TokenVerifier`] reads these. What clouds say to each other is made by a
//! [`MessageSealer`] and read, once, by a [`MessageOpener`]; what their gateways carry in a tunnel by the keys of its [`TunnelSecret`].
//! Names in certificates are [`bodkin_arrowhead::common_name`]'s.

pub mod authority;
pub mod batch;
pub mod certificate;
pub mod content;
pub mod curve;
mod der;
pub mod directory;
mod encrypted_key;
#[cfg(test)]
mod example;
pub mod file;
pub mod first_contact;
pub mod identity;
pub mod issuance;
pub mod jose;
pub mod key;
pub mod keystore;
pub mod ledger;
mod lock;
pub mod nkey;
pub mod onboarding;
pub mod replay;
pub mod request;
pub mod revocation;
pub mod sealed;
pub mod shared_ledger;
pub mod tls;
pub mod token;
pub mod tunnel;

pub use bodkin_arrowhead::base64;

pub use crate::{
    authority::{Authority, IssueError, Profile},
    certificate::{Certificate, CertificateError, Fingerprint, KeyKind},
    directory::{DirectoryError, TrustDirectory},
    file::FileError,
    identity::{Identity, IdentityError},
    issuance::{Delivery, KeyChoice, Order},
    key::{KeyError, KeySize, PrivateKey},
    ledger::{Issued, Ledger},
    request::{RequestError, SigningRequest},
    revocation::{RevocationList, Revocations, Revoked},
    sealed::{MessageFault, MessageOpener, MessageSealer, ReadMessage, RelayMessage, SealError, draw_numbered_tunnel, draw_session},
    token::{TokenRefused, TokenSigner, TokenVerifier},
    tunnel::{Direction, TunnelKey, TunnelSecret},
};
