//! Certificates that no longer count.

use std::collections::BTreeSet;

use bodkin_arrowhead::utc::UtcTime;
use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};
use rustls::pki_types::{CertificateRevocationListDer, pem::PemObject};
use x509_parser::{prelude::FromDer, revocation_list::CertificateRevocationList};

use crate::{
    authority::{Authority, IssueError, date},
    certificate::{Certificate, common_name, hex, time, without_zeros},
};

/// Why a list is not believed.
#[derive(Debug, thiserror::Error)]
pub enum RevocationError {
    /// There is none.
    #[error("there is no certificate revocation list (\"-----BEGIN X509 CRL-----\") in it")]
    Missing,
    /// It is no list.
    #[error("this is no certificate revocation list: {0}")]
    Malformed(String),
    /// None of the trusted authorities has signed it.
    #[error("this revocation list of {0} is signed by no authority that is trusted")]
    NotSigned(String),
}

/// A revocation list and what it says. Its signature was not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    der: Vec<u8>,
    issuer: String,
    issuer_encoded: Vec<u8>,
    /// When it was signed.
    pub this_update: UtcTime,
    /// When there is a newer one at the latest.
    pub next_update: Option<UtcTime>,
    /// What it revokes.
    pub revoked: Vec<Revoked>,
}

impl RevocationList {
    /// Reads every list of a PEM text, at least one.
    pub fn from_pem(text: &[u8]) -> Result<Vec<Self>, RevocationError> {
        let read = |der: Result<CertificateRevocationListDer<'_>, _>| match der {
            Ok(der) => Self::from_der(&der),
            Err(error) => Err(RevocationError::Malformed(rustls::pki_types::pem::Error::to_string(&error))),
        };
        let lists = CertificateRevocationListDer::pem_slice_iter(text).map(read).collect::<Result<Vec<_>, _>>()?;
        // A file that was cut short must not count as one that revokes nothing.
        if lists.is_empty() { Err(RevocationError::Missing) } else { Ok(lists) }
    }

    /// Reads one list; nothing may follow it.
    pub fn from_der(der: &[u8]) -> Result<Self, RevocationError> {
        let malformed = |error: String| RevocationError::Malformed(error);
        let (rest, list) = CertificateRevocationList::from_der(der).map_err(|error| malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(malformed(format!("{} bytes follow it", rest.len())));
        }
        let since = |moment| time(moment).ok_or_else(|| malformed("it names a time before the year 1970".to_owned()));
        let revoked = list
            .iter_revoked_certificates()
            .map(|entry| Ok(Revoked { serial: without_zeros(entry.raw_serial()), since: since(entry.revocation_date)? }));
        Ok(Self {
            der: der.to_vec(),
            issuer: common_name(list.issuer()).unwrap_or_else(|| list.issuer().to_string()),
            issuer_encoded: list.issuer().as_raw().to_vec(),
            this_update: since(list.last_update())?,
            next_update: list.next_update().map(since).transpose()?,
            revoked: revoked.collect::<Result<_, _>>()?,
        })
    }

    /// The issuer's common name.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Whether an authority has signed it.
    pub fn is_signed_by(&self, authority: &Certificate) -> bool {
        let Ok((_, list)) = CertificateRevocationList::from_der(&self.der) else { return false };
        let Ok((_, key)) = x509_parser::parse_x509_certificate(authority.der()) else { return false };
        authority.subject_encoded() == self.issuer_encoded && list.verify_signature(key.public_key()).is_ok()
    }
}

/// What the revocation lists of the trusted authorities name: issuer (as it is encoded) and serial number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(BTreeSet<(Vec<u8>, Vec<u8>)>);

impl Revocations {
    /// Reads the lists of a PEM text, at least one; each must be signed by one of `authorities`. A list whose next one is overdue
    /// counts on: what it revokes stays revoked.
    pub fn from_pem(text: &[u8], authorities: &[Certificate]) -> Result<Self, RevocationError> {
        let mut revocations = Self::default();
        for list in RevocationList::from_pem(text)? {
            if !authorities.iter().any(|authority| list.is_signed_by(authority)) {
                return Err(RevocationError::NotSigned(list.issuer));
            }
            revocations.0.extend(list.revoked.into_iter().map(|revoked| (list.issuer_encoded.clone(), revoked.serial)));
        }
        Ok(revocations)
    }

    /// Adds certificates of an authority that its list need not name yet.
    pub fn extend(&mut self, authority: &Certificate, revoked: Vec<Revoked>) {
        self.0.extend(revoked.into_iter().map(|revoked| (authority.subject_encoded().to_vec(), revoked.serial)));
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
    /// Serial number, the greatest byte first, without leading zeros.
    pub serial: Vec<u8>,
    /// Since when.
    pub since: UtcTime,
}

impl Revoked {
    /// Reads a serial number in hexadecimal digits; `None` if the text is not one.
    pub fn parse(serial: &str, since: UtcTime) -> Option<Self> {
        let digits = |at: usize| u8::from_str_radix(serial.get(at..at + 2)?, 16).ok();
        let serial: Option<Vec<u8>> = (0..serial.len()).step_by(2).map(digits).collect();
        Some(Self { serial: serial.filter(|serial| !serial.is_empty())?, since })
    }

    /// The serial number as it is told and listed.
    pub fn serial_text(&self) -> String {
        hex(&self.serial)
    }
}

impl Authority {
    /// Signs the whole list of what it has revoked, in PEM. Its number is the time, so that it grows from list to list.
    pub fn revocation_list(&self, revoked: &[Revoked], now: UtcTime, next: UtcTime) -> Result<String, IssueError> {
        let params = CertificateRevocationListParams {
            this_update: date(now),
            next_update: date(next),
            crl_number: SerialNumber::from(now.unix_nanos()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DAY, cloud, now, root, sensor};

    fn revoking(certificates: &[&Certificate]) -> String {
        let revoked: Vec<_> = certificates.iter().map(|one| Revoked { serial: one.serial().to_vec(), since: now() }).collect();
        cloud().revocation_list(&revoked, now(), now().plus(DAY)).unwrap()
    }

    #[test]
    fn only_what_is_listed_is_revoked() {
        let (bad, good) = (sensor(), sensor());
        let list = revoking(&[bad.certificate()]);
        let revocations = Revocations::from_pem(list.as_bytes(), &[cloud().certificate().clone()]).unwrap();
        assert!(revocations.contains(bad.certificate()) && !revocations.contains(good.certificate()));
        assert_eq!(revocations.len(), 1);
        let read = RevocationList::from_pem(list.as_bytes()).unwrap().remove(0);
        assert_eq!((read.issuer(), read.this_update, read.next_update), ("testcloud1.aitia.arrowhead.eu", now(), Some(now().plus(DAY))));
        assert_eq!(read.revoked, [Revoked { serial: bad.certificate().serial().to_vec(), since: now() }]);
    }

    #[test]
    fn an_empty_list_revokes_nothing_and_an_empty_file_is_no_list() {
        let anchors = [cloud().certificate().clone()];
        assert!(Revocations::from_pem(revoking(&[]).as_bytes(), &anchors).unwrap().is_empty());
        for no_list in ["", "nothing", &cloud().certificate().to_pem()] {
            assert!(matches!(Revocations::from_pem(no_list.as_bytes(), &anchors), Err(RevocationError::Missing)), "{no_list}");
        }
        let whole = revoking(&[]);
        assert!(Revocations::from_pem(&whole.as_bytes()[..whole.len() - 40], &anchors).is_err());
    }

    #[test]
    fn a_list_of_somebody_else_is_not_believed() {
        let list = revoking(&[sensor().certificate()]);
        let namesake = root().issue_cloud(&crate::example::cloud_name(), now(), DAY).unwrap();
        for other in [root(), &namesake] {
            let refused = Revocations::from_pem(list.as_bytes(), &[other.certificate().clone()]);
            assert!(matches!(refused, Err(RevocationError::NotSigned(name)) if name == "testcloud1.aitia.arrowhead.eu"));
        }
    }
}
