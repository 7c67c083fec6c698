//! Lines of a certificate ledger, as the nodes of a cloud exchange them.
//!
//! The trust directory reads and writes [`LedgerLine`] in its files, and the store keeps them in the database that the nodes share.

use crate::utc::UtcTime;

/// What a line of a ledger records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A certificate was issued.
    Issue {
        /// Common name of the certificate.
        name: String,
        /// The last second in which the certificate is valid.
        not_after: UtcTime,
    },
    /// A certificate was revoked.
    Revocation,
    /// A CURVE key was bound to a system, or removed from it.
    CurveKey,
}

/// A line of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// The certificate's serial number in hexadecimal digits; of a binding of a CURVE key, the first 20 bytes of the SHA-256 of `text`.
    pub serial: String,
    /// What the line records.
    pub kind: LineKind,
    /// The line as the file has it, without its end and without the name of a node.
    pub text: String,
}

impl LedgerLine {
    /// Returns common name and last valid second of the certificate, if the line records that it was issued.
    pub fn issued(&self) -> Option<(&str, UtcTime)> {
        match &self.kind {
            LineKind::Issue { name, not_after } => Some((name, *not_after)),
            LineKind::Revocation | LineKind::CurveKey => None,
        }
    }
}
