//! Certificates that no longer count.

use std::collections::BTreeSet;

use bodkin_arrowhead::utc::UtcTime;
use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};
use rustls::pki_types::{CertificateRevocationListDer, pem::PemObject};
use x509_parser::{prelude::FromDer, revocation_list::CertificateRevocationList};

use crate::{
    authority::{Authority, IssueError, date},
    certificate::Certificate,
};

/// Why a list is not believed.
#[derive(Debug, thiserror::Error)]
pub enum RevocationError {
    /// It is no list.
    #[error("this is no certificate revocation list: {0}")]
    Malformed(String),
    /// None of the trusted authorities has signed it.
    #[error("this revocation list of {0} is signed by no authority that is trusted")]
    NotSigned(String),
}

/// What the revocation lists of the trusted authorities name: issuer (as it is encoded) and serial number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(BTreeSet<(Vec<u8>, Vec<u8>)>);

impl Revocations {
    /// Reads the lists of a PEM text; each must be signed by one of `authorities`. A list whose next one is overdue counts on:
    /// what it revokes stays revoked.
    pub fn from_pem(text: &[u8], authorities: &[Certificate]) -> Result<Self, RevocationError> {
        let mut revocations = Self::default();
        for der in CertificateRevocationListDer::pem_slice_iter(text) {
            let der = der.map_err(|error| RevocationError::Malformed(error.to_string()))?;
            revocations.add(&der, authorities)?;
        }
        Ok(revocations)
    }

    fn add(&mut self, der: &[u8], authorities: &[Certificate]) -> Result<(), RevocationError> {
        let malformed = |error: String| RevocationError::Malformed(error);
        let (rest, list) = CertificateRevocationList::from_der(der).map_err(|error| malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(malformed(format!("{} bytes follow it", rest.len())));
        }
        if !authorities.iter().any(|authority| has_signed(authority, &list)) {
            return Err(RevocationError::NotSigned(list.issuer().to_string()));
        }
        let issuer = list.issuer().as_raw();
        self.0.extend(list.iter_revoked_certificates().map(|revoked| (issuer.to_vec(), without_zeros(revoked.raw_serial()))));
        Ok(())
    }

    /// Whether a certificate no longer counts.
    pub fn contains(&self, certificate: &Certificate) -> bool {
        // Nobody looks for a key that is not there.
        !self.0.is_empty() && self.0.contains(&(certificate.issuer_encoded().to_vec(), certificate.serial().to_vec()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A certificate that its authority revokes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// Serial number, the greatest byte first.
    pub serial: Vec<u8>,
    /// Since when.
    pub since: UtcTime,
}

impl Authority {
    /// Signs the whole list of what it has revoked, in PEM. `number` must grow from list to list.
    pub fn revocation_list(&self, revoked: &[Revoked], number: u64, now: UtcTime, next: UtcTime) -> Result<String, IssueError> {
        let params = CertificateRevocationListParams {
            this_update: date(now),
            next_update: date(next),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .iter()
                .map(|revoked| RevokedCertParams {
                    serial_number: SerialNumber::from_slice(&revoked.serial),
                    revocation_time: date(revoked.since),
                    reason_code: None,
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(params.signed_by(&self.issuer()?)?.pem()?)
    }
}

fn has_signed(authority: &Certificate, list: &CertificateRevocationList<'_>) -> bool {
    let Ok((_, authority)) = x509_parser::parse_x509_certificate(authority.der()) else { return false };
    authority.subject().as_raw() == list.issuer().as_raw() && list.verify_signature(authority.public_key()).is_ok()
}

fn without_zeros(serial: &[u8]) -> Vec<u8> {
    serial.iter().copied().skip_while(|byte| *byte == 0).collect()
}
