//! Certificates, read once.

use std::{fmt, net::IpAddr};

use aws_lc_rs::digest;
use bodkin_arrowhead::{
    common_name::{CommonNameError, SystemCommonName},
    utc::UtcTime,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
    public_key::PublicKey,
    time::ASN1Time,
    x509::SubjectPublicKeyInfo,
};

use crate::authority::RSA_BITS_MIN;

/// Certificates that one file or one chain may hold.
pub const CERTIFICATES_MAX: usize = 64;
/// Smallest elliptic curve; in bits.
const CURVE_BITS_MIN: usize = 256;

/// What is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The bytes are no X.509 certificate.
    #[error("this is no X.509 certificate: {0}")]
    Malformed(String),
    /// Bytes follow it.
    #[error("{0} bytes follow the certificate")]
    TrailingBytes(usize),
    /// There is none.
    #[error("there is no certificate (\"-----BEGIN CERTIFICATE-----\") in it")]
    Missing,
    /// There are more than [`CERTIFICATES_MAX`].
    #[error("there are more than {CERTIFICATES_MAX} certificates in it")]
    TooMany,
}

/// SHA-256 of a certificate's DER form, or of a public key's: names a certificate wherever one is told or listed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, bytes);
        Self(hash.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The kind of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA with a modulus of so many bits. Tokens can be sealed to it.
    Rsa(usize),
    /// On an elliptic curve of so many bits.
    EllipticCurve(usize),
    /// Anything else.
    Other,
}

impl KeyKind {
    pub(crate) fn of(key: &SubjectPublicKeyInfo<'_>) -> Self {
        match key.parsed() {
            Ok(PublicKey::RSA(key)) => Self::Rsa(key.key_size()),
            Ok(PublicKey::EC(point)) => Self::EllipticCurve(point.key_size()),
            _ => Self::Other,
        }
    }

    /// Whether such a key is certified.
    pub fn is_strong(self) -> bool {
        matches!(self, Self::Rsa(RSA_BITS_MIN..) | Self::EllipticCurve(CURVE_BITS_MIN..))
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::EllipticCurve(bits) => write!(f, "EC {bits}"),
            Self::Other => f.write_str("other"),
        }
    }
}

/// An X.509 certificate and what it says. Nothing in here was verified: signatures and times are verified where a chain is
/// used ([`crate::tls`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: CertificateDer<'static>,
    facts: Facts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    common_name: Option<String>,
    issuer: Option<String>,
    subject_encoded: Vec<u8>,
    issuer_encoded: Vec<u8>,
    serial: Vec<u8>,
    not_before: UtcTime,
    not_after: UtcTime,
    alternative_names: Vec<String>,
    is_authority: bool,
    is_self_issued: bool,
    key_kind: KeyKind,
    public_key_info: Vec<u8>,
}

impl Certificate {
    /// Reads one certificate; nothing may follow it.
    pub fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|error| CertificateError::Malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(CertificateError::TrailingBytes(rest.len()));
        }
        let facts = Facts::read(&parsed)?;
        Ok(Self { der: CertificateDer::from(der.to_vec()), facts })
    }

    /// Reads every certificate of a PEM text, at least one; other sections are passed over.
    pub fn from_pem(text: &[u8]) -> Result<Vec<Self>, CertificateError> {
        let mut certificates = Vec::new();
        for der in CertificateDer::pem_slice_iter(text) {
            if certificates.len() == CERTIFICATES_MAX {
                return Err(CertificateError::TooMany);
            }
            certificates.push(Self::from_der(&der.map_err(|error| CertificateError::Malformed(error.to_string()))?)?);
        }
        if certificates.is_empty() { Err(CertificateError::Missing) } else { Ok(certificates) }
    }

    /// The DER form.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The PEM form.
    pub fn to_pem(&self) -> String {
        pem::encode_config(&pem::Pem::new("CERTIFICATE", self.der.as_ref()), crate::key::PEM_LINES)
    }

    /// SHA-256 of the DER form.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.der)
    }

    /// SHA-256 of the public key: the same for a certificate and its renewed one, and for its private key.
    pub fn public_key_fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.public_key_info())
    }

    /// The subject's common name, as it stands there.
    pub fn common_name(&self) -> Option<&str> {
        self.facts.common_name.as_deref()
    }

    /// The common name as messages tell it.
    pub fn told_name(&self) -> &str {
        self.common_name().unwrap_or("nobody")
    }

    /// The system that it names.
    pub fn system(&self) -> Result<SystemCommonName, CommonNameError> {
        SystemCommonName::parse(self.common_name().unwrap_or_default())
    }

    /// The issuer's common name.
    pub fn issuer(&self) -> Option<&str> {
        self.facts.issuer.as_deref()
    }

    /// The subject's whole name in DER.
    pub(crate) fn subject_encoded(&self) -> &[u8] {
        &self.facts.subject_encoded
    }

    /// The issuer's whole name in DER.
    pub(crate) fn issuer_encoded(&self) -> &[u8] {
        &self.facts.issuer_encoded
    }

    /// The serial number's bytes, the greatest first, without leading zeros.
    pub fn serial(&self) -> &[u8] {
        &self.facts.serial
    }

    /// The serial number as it is told and listed.
    pub fn serial_text(&self) -> String {
        hex(self.serial())
    }

    /// First second in which it counts.
    pub fn not_before(&self) -> UtcTime {
        self.facts.not_before
    }

    /// Last second in which it counts.
    pub fn not_after(&self) -> UtcTime {
        self.facts.not_after
    }

    /// Whether it counts at a time.
    pub fn is_valid_at(&self, time: UtcTime) -> bool {
        (self.facts.not_before..=self.facts.not_after).contains(&time.whole_seconds())
    }

    /// When two thirds of its life are over: whoever runs its owner renews it from then on.
    pub fn renewal_due(&self) -> UtcTime {
        self.not_before().plus(self.not_after().since(self.not_before()) * 2 / 3)
    }

    /// DNS names and IP addresses that it counts for.
    pub fn alternative_names(&self) -> &[String] {
        &self.facts.alternative_names
    }

    /// Whether it may issue others.
    pub fn is_authority(&self) -> bool {
        self.facts.is_authority
    }

    /// Whether its issuer has its own name.
    pub fn is_self_issued(&self) -> bool {
        self.facts.is_self_issued
    }

    /// Whether an authority has issued it: the names are the same, and the signature is right. Neither times nor rights are looked at.
    pub fn is_issued_by(&self, authority: &Self) -> bool {
        let (Ok((_, own)), Ok((_, authority_read))) = (X509Certificate::from_der(&self.der), X509Certificate::from_der(&authority.der))
        else {
            return false;
        };
        self.issuer_encoded() == authority.subject_encoded() && own.verify_signature(Some(authority_read.public_key())).is_ok()
    }

    /// Whether it stands for the same authority as another: it has its name and its key, as one that was renewed.
    pub fn is_same_authority(&self, other: &Self) -> bool {
        self.subject_encoded() == other.subject_encoded() && self.public_key_info() == other.public_key_info()
    }

    /// The kind of its key.
    pub fn key_kind(&self) -> KeyKind {
        self.facts.key_kind
    }

    /// Its public key as X.509 SubjectPublicKeyInfo in DER. Base64 of it is Arrowhead's `authenticationInfo`.
    pub fn public_key_info(&self) -> &[u8] {
        &self.facts.public_key_info
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({} {})", self.told_name(), self.fingerprint())
    }
}

impl Facts {
    fn read(parsed: &X509Certificate<'_>) -> Result<Self, CertificateError> {
        let malformed = |what: &str| CertificateError::Malformed(what.to_owned());
        let alternative_names = parsed.subject_alternative_name().map_err(|error| CertificateError::Malformed(error.to_string()))?;
        let constraints = parsed.basic_constraints().map_err(|error| CertificateError::Malformed(error.to_string()))?;
        Ok(Self {
            common_name: common_name(parsed.subject()),
            issuer: common_name(parsed.issuer()),
            subject_encoded: parsed.subject().as_raw().to_vec(),
            issuer_encoded: parsed.issuer().as_raw().to_vec(),
            serial: without_zeros(parsed.raw_serial()),
            not_before: time(parsed.validity().not_before).ok_or_else(|| malformed("it begins before the year 1970"))?,
            not_after: time(parsed.validity().not_after).ok_or_else(|| malformed("it ends before the year 1970"))?,
            alternative_names: alternative_names.map_or_else(Vec::new, |names| names.value.general_names.iter().filter_map(text).collect()),
            is_authority: constraints.is_some_and(|constraints| constraints.value.ca),
            is_self_issued: parsed.subject().as_raw() == parsed.issuer().as_raw(),
            key_kind: KeyKind::of(parsed.public_key()),
            public_key_info: parsed.public_key().raw.to_vec(),
        })
    }
}

/// A serial number as it is compared.
pub(crate) fn without_zeros(serial: &[u8]) -> Vec<u8> {
    serial.iter().copied().skip_while(|byte| *byte == 0).collect()
}

/// Two small letters or digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last common name: the most specific one.
pub(crate) fn common_name(name: &x509_parser::x509::X509Name<'_>) -> Option<String> {
    let last = name.iter_common_name().last()?;
    last.as_str().ok().map(str::to_owned)
}

pub(crate) fn time(time: ASN1Time) -> Option<UtcTime> {
    u64::try_from(time.timestamp()).ok().map(UtcTime::from_unix_seconds)
}

fn text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::{DAY, cloud, now, root, sensor};

    #[test]
    fn pem_is_read_back_whatever_stands_around_it() {
        let chain = sensor().chain().to_vec();
        let text: String = chain.iter().map(|certificate| format!("Subject: somebody\n{}\nmore\n", certificate.to_pem())).collect();
        assert_eq!(Certificate::from_pem(text.as_bytes()).unwrap(), chain);
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let certificate = sensor().certificate().clone();
        let mut longer = certificate.der().to_vec();
        longer.push(0);
        assert!(matches!(Certificate::from_der(&longer), Err(CertificateError::TrailingBytes(1))));
        assert!(matches!(Certificate::from_der(b""), Err(CertificateError::Malformed(_))));
        assert!(matches!(Certificate::from_pem(b"nothing"), Err(CertificateError::Missing)));
        let cut = &certificate.to_pem()[..500];
        assert!(matches!(Certificate::from_pem(cut.as_bytes()), Err(CertificateError::Malformed(_))));
        let many = certificate.to_pem().repeat(CERTIFICATES_MAX + 1);
        assert!(matches!(Certificate::from_pem(many.as_bytes()), Err(CertificateError::TooMany)));
    }

    #[test]
    fn it_counts_from_its_first_second_to_its_last() {
        let certificate = sensor().certificate().clone();
        let (from, to) = (certificate.not_before(), certificate.not_after());
        let second = std::time::Duration::from_secs(1);
        for (time, counts) in [(from.minus(second), false), (from, true), (to, true), (to.plus(second / 2), true), (to.plus(second), false)]
        {
            assert_eq!(certificate.is_valid_at(time), counts, "{time}");
        }
        let due = certificate.renewal_due();
        assert!(now().plus(59 * DAY) < due && due < now().plus(61 * DAY), "{due}");
    }

    #[test]
    fn only_the_key_of_the_issuer_has_issued_it() {
        let namesake = root().issue_cloud(&crate::example::cloud_name(), now(), DAY).unwrap();
        assert!(sensor().certificate().is_issued_by(cloud().certificate()));
        assert!(!sensor().certificate().is_issued_by(namesake.certificate()));
        let (own, other) = (cloud().certificate(), namesake.certificate());
        assert!(own.is_same_authority(own) && !own.is_same_authority(other) && !own.is_same_authority(root().certificate()));
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_read_or_refused(at in 0usize..1000, value: u8) {
            let mut der = sensor().certificate().der().to_vec();
            let at = at % der.len();
            der[at] = value;
            if let Ok(read) = Certificate::from_der(&der) {
                prop_assert_eq!(read.der().as_ref(), der.as_slice());
                let _ = (read.system(), read.renewal_due(), read.is_issued_by(cloud().certificate()));
            }
        }
    }
}
