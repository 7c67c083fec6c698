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
};

/// Certificates that one file or one chain may hold.
pub const CERTIFICATES_MAX: usize = 64;

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

/// SHA-256 of a certificate's DER form: names a certificate wherever one is told or listed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
        let hash = digest::digest(&digest::SHA256, &self.der);
        Fingerprint(hash.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    /// The subject's common name, as it stands there.
    pub fn common_name(&self) -> Option<&str> {
        self.facts.common_name.as_deref()
    }

    /// The system that it names.
    pub fn system(&self) -> Result<SystemCommonName, CommonNameError> {
        SystemCommonName::parse(self.common_name().unwrap_or_default())
    }

    /// The issuer's common name.
    pub fn issuer(&self) -> Option<&str> {
        self.facts.issuer.as_deref()
    }

    /// The issuer's whole name in DER.
    pub(crate) fn issuer_encoded(&self) -> &[u8] {
        &self.facts.issuer_encoded
    }

    /// The serial number's bytes, the greatest first, without leading zeros.
    pub fn serial(&self) -> &[u8] {
        &self.facts.serial
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
        write!(f, "Certificate({} {})", self.common_name().unwrap_or("without a common name"), self.fingerprint())
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
            issuer_encoded: parsed.issuer().as_raw().to_vec(),
            serial: parsed.raw_serial().iter().copied().skip_while(|byte| *byte == 0).collect(),
            not_before: time(parsed.validity().not_before).ok_or_else(|| malformed("it begins before the year 1970"))?,
            not_after: time(parsed.validity().not_after).ok_or_else(|| malformed("it ends before the year 1970"))?,
            alternative_names: alternative_names.map_or_else(Vec::new, |names| names.value.general_names.iter().filter_map(text).collect()),
            is_authority: constraints.is_some_and(|constraints| constraints.value.ca),
            is_self_issued: parsed.subject().as_raw() == parsed.issuer().as_raw(),
            key_kind: match parsed.public_key().parsed() {
                Ok(PublicKey::RSA(key)) => KeyKind::Rsa(key.key_size()),
                Ok(PublicKey::EC(point)) => KeyKind::EllipticCurve(point.key_size()),
                _ => KeyKind::Other,
            },
            public_key_info: parsed.public_key().raw.to_vec(),
        })
    }
}

/// The last common name: the most specific one.
fn common_name(name: &x509_parser::x509::X509Name<'_>) -> Option<String> {
    let last = name.iter_common_name().last()?;
    last.as_str().ok().map(str::to_owned)
}

fn time(time: ASN1Time) -> Option<UtcTime> {
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
