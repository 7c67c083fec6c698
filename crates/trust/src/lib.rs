//! Who is who: certificates and their authority, key stores, and what a TLS connection is configured with.
//!
//! A [`Certificate`] is the one type that reads X.509; an [`Identity`] is a chain and the key that belongs to it, from PEM
//! files or a PKCS#12 key store; an [`Authority`] issues. [`tls`] makes rustls' configurations of them and nothing else does.
//! [`jose`] signs and seals messages; a [`TokenSigner`] makes tokens of them, and a [`TokenVerifier`] reads these.
//! Names in certificates are [`bodkin_arrowhead::common_name`]'s.

pub mod authority;
pub mod base64;
pub mod certificate;
pub mod directory;
pub mod identity;
pub mod jose;
pub mod key;
pub mod revocation;
pub mod tls;
pub mod token;

pub use crate::{
    authority::{Authority, IssueError, Profile},
    certificate::{Certificate, CertificateError, Fingerprint, KeyKind},
    directory::{DirectoryError, TrustDirectory},
    identity::{Identity, IdentityError},
    key::{KeyError, KeySize, PrivateKey},
    revocation::{Revocations, Revoked},
    token::{TokenRefused, TokenSigner, TokenVerifier},
};
