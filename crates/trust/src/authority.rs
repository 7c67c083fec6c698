//! What issues certificates: the root, which issues the cloud's, which issues the systems'.

use std::{net::IpAddr, time::Duration};

use aws_lc_rs::rand;
use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    utc::UtcTime,
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber, SubjectPublicKeyInfo,
};
use time::OffsetDateTime;

use crate::{
    certificate::{Certificate, CertificateError, KeyKind},
    identity::{Identity, IdentityError},
    key::{KeyError, KeySize, PrivateKey},
};

/// The root's common name.
pub const ROOT_NAME: &str = "arrowhead.eu";
/// Shortest RSA key that is certified.
pub const RSA_BITS_MIN: usize = 2048;
/// Clocks of other machines may be behind by so much.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(300);
/// Bytes of a serial number: RFC 5280 allows 20; random ones do not tell how many there are.
const SERIAL_BYTES: usize = 16;

/// Why a certificate was not issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The issuer's certificate must not issue.
    #[error("the certificate of {0} is no authority's")]
    NoAuthority(String),
    /// A name that no certificate can be made out for.
    #[error("{0:?} is neither a host name nor an IP address")]
    AlternativeName(String),
    /// A key that is too weak.
    #[error("a key of the kind {0} is not certified: RSA of {RSA_BITS_MIN} bits or more, or an elliptic curve of 256, is expected")]
    WeakKey(KeyKind),
    /// The public key cannot be read.
    #[error("the public key cannot be read: {0}")]
    PublicKey(String),
    /// The library has refused.
    #[error("the certificate could not be made: {0}")]
    Library(#[from] rcgen::Error),
    /// What was made is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No key could be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Certificate and key do not belong together.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// What a system's certificate says.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Whose it is.
    pub name: String,
    /// DNS names and IP addresses that it counts for as a server.
    pub alternative_names: Vec<String>,
    /// When it is issued; it counts from [`CLOCK_TOLERANCE`] before.
    pub now: UtcTime,
    /// How long it counts.
    pub lifetime: Duration,
}

impl Profile {
    /// A system's. The name itself is always one of those that it counts for.
    pub fn system(name: &SystemCommonName, alternative_names: &[String], now: UtcTime, lifetime: Duration) -> Self {
        let name = name.to_string();
        let mut all = vec![name.clone()];
        all.extend(alternative_names.iter().filter(|other| **other != name).cloned());
        Self { name, alternative_names: all, now, lifetime }
    }
}

/// An authority: its chain (the own certificate first, the root's last) and its key.
#[derive(Debug)]
pub struct Authority(Identity);

impl Authority {
    /// Takes an authority's identity.
    pub fn new(identity: Identity) -> Result<Self, IssueError> {
        if identity.certificate().is_authority() {
            Ok(Self(identity))
        } else {
            Err(IssueError::NoAuthority(identity.certificate().common_name().unwrap_or("no name").to_owned()))
        }
    }

    /// Makes a root, which signs itself.
    pub fn root(now: UtcTime, lifetime: Duration) -> Result<Self, IssueError> {
        let key = PrivateKey::generate(KeySize::Bits3072)?;
        let certificate = authority_params(ROOT_NAME, 1, now, lifetime)?.self_signed(key.pair())?;
        Self::new(Identity::new(vec![Certificate::from_der(certificate.der())?], key)?)
    }

    /// Makes a cloud's authority, which issues for systems only.
    pub fn issue_cloud(&self, name: &CloudCommonName, now: UtcTime, lifetime: Duration) -> Result<Self, IssueError> {
        let key = PrivateKey::generate(KeySize::Bits3072)?;
        let certificate = authority_params(&name.to_string(), 0, now, lifetime)?.signed_by(key.pair(), &self.issuer()?)?;
        Self::new(Identity::new(self.chain_of(Certificate::from_der(certificate.der())?), key)?)
    }

    /// Makes a key and its certificate.
    pub fn issue(&self, profile: &Profile) -> Result<Identity, IssueError> {
        let key = PrivateKey::generate(KeySize::Bits2048)?;
        let certificate = self.certify(profile, &key.public_key_info())?;
        Ok(Identity::new(self.chain_of(certificate), key)?)
    }

    /// Makes a certificate for a public key (SubjectPublicKeyInfo in DER), whose owner has shown to have the private one.
    pub fn certify(&self, profile: &Profile, public_key_info: &[u8]) -> Result<Certificate, IssueError> {
        let public_key = SubjectPublicKeyInfo::from_der(public_key_info).map_err(|error| IssueError::PublicKey(error.to_string()))?;
        let certificate = Certificate::from_der(system_params(profile)?.signed_by(&public_key, &self.issuer()?)?.der())?;
        match certificate.key_kind() {
            KeyKind::Rsa(RSA_BITS_MIN..) | KeyKind::EllipticCurve(256..) => Ok(certificate),
            weak => Err(IssueError::WeakKey(weak)),
        }
    }

    /// A certificate of this authority's, and those that lead from it to the root.
    pub fn chain_of(&self, certificate: Certificate) -> Vec<Certificate> {
        std::iter::once(certificate).chain(self.0.chain().iter().cloned()).collect()
    }

    /// The authority's own certificate: what a trust store holds.
    pub fn certificate(&self) -> &Certificate {
        self.0.certificate()
    }

    /// The authority's own chain and key.
    pub fn identity(&self) -> &Identity {
        &self.0
    }

    /// What signs for it.
    pub(crate) fn issuer(&self) -> Result<Issuer<'static, &KeyPair>, IssueError> {
        Ok(Issuer::from_ca_cert_der(self.certificate().der(), self.0.key().pair())?)
    }
}

fn authority_params(name: &str, path_length: u8, now: UtcTime, lifetime: Duration) -> Result<CertificateParams, IssueError> {
    let mut params = base_params(name, now, lifetime)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(path_length));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn system_params(profile: &Profile) -> Result<CertificateParams, IssueError> {
    let mut params = base_params(&profile.name, profile.now, profile.lifetime)?;
    params.is_ca = IsCa::ExplicitNoCa;
    // Key encipherment: tokens are sealed to the key.
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.subject_alt_names = profile.alternative_names.iter().map(|name| alternative_name(name)).collect::<Result<_, _>>()?;
    Ok(params)
}

fn base_params(name: &str, now: UtcTime, lifetime: Duration) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(now.minus(CLOCK_TOLERANCE));
    params.not_after = date(now.plus(lifetime));
    params.serial_number = Some(serial()?);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// A random serial number that is positive in DER.
fn serial() -> Result<SerialNumber, IssueError> {
    let mut bytes = [0; SERIAL_BYTES];
    rand::fill(&mut bytes).map_err(|_| KeyError::NotMade("the system gives no random numbers".to_owned()))?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

pub(crate) fn date(time: UtcTime) -> OffsetDateTime {
    let seconds = i64::try_from(time.unix_seconds()).expect("years end at 9999");
    OffsetDateTime::from_unix_timestamp(seconds).expect("years end at 9999")
}

fn alternative_name(name: &str) -> Result<SanType, IssueError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let is_host_name = !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|part| !part.is_empty() && part.len() <= 63)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'*'));
    let refused = || IssueError::AlternativeName(name.to_owned());
    if !is_host_name {
        return Err(refused());
    }
    Ok(SanType::DnsName(name.try_into().map_err(|_| refused())?))
}
