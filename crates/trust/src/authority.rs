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
use x509_parser::prelude::FromDer;

use crate::{
    certificate::{Certificate, CertificateError, KeyKind},
    identity::{Identity, IdentityError},
    key::{KeyError, KeySize, PrivateKey},
};

/// The root's common name.
pub const ROOT_NAME: &str = "arrowhead.eu";
/// Shortest RSA key that is certified, or believed of a peer; in bits.
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
    /// The issuer's time is over.
    #[error("the certificate of {0} counts from {1} to {2}: it issues nothing now")]
    AuthorityExpired(String, UtcTime, UtcTime),
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
            Err(IssueError::NoAuthority(identity.certificate().told_name().to_owned()))
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

    /// Makes a certificate for a public key (SubjectPublicKeyInfo in DER), whose owner has shown to have the private one. It counts
    /// as long as the authority at the most.
    pub fn certify(&self, profile: &Profile, public_key_info: &[u8]) -> Result<Certificate, IssueError> {
        let own = self.certificate();
        if !own.is_valid_at(profile.now) {
            return Err(IssueError::AuthorityExpired(self.name(), own.not_before(), own.not_after()));
        }
        let kind = key_kind(public_key_info)?;
        if !kind.is_strong() {
            return Err(IssueError::WeakKey(kind));
        }
        let public_key = SubjectPublicKeyInfo::from_der(public_key_info).map_err(|error| IssueError::PublicKey(error.to_string()))?;
        let lifetime = profile.lifetime.min(own.not_after().since(profile.now));
        let params = system_params(&Profile { lifetime, ..profile.clone() })?;
        Ok(Certificate::from_der(params.signed_by(&public_key, &self.issuer()?)?.der())?)
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

    fn name(&self) -> String {
        self.certificate().told_name().to_owned()
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

fn key_kind(public_key_info: &[u8]) -> Result<KeyKind, IssueError> {
    match x509_parser::x509::SubjectPublicKeyInfo::from_der(public_key_info) {
        Ok((_, key)) => Ok(KeyKind::of(&key)),
        Err(error) => Err(IssueError::PublicKey(error.to_string())),
    }
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
        && name.strip_prefix("*.").unwrap_or(name).bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let refused = || IssueError::AlternativeName(name.to_owned());
    if !is_host_name {
        return Err(refused());
    }
    Ok(SanType::DnsName(name.try_into().map_err(|_| refused())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DAY, cloud, cloud_name, key, now, profile, root};

    #[test]
    fn the_chain_leads_from_the_system_to_the_root() {
        let identity = cloud().issue(&profile()).unwrap();
        let names: Vec<_> = identity.chain().iter().filter_map(Certificate::common_name).collect();
        assert_eq!(names, ["sensor.testcloud1.aitia.arrowhead.eu", "testcloud1.aitia.arrowhead.eu", ROOT_NAME]);
        for pair in identity.chain().windows(2) {
            assert!(pair[0].is_issued_by(&pair[1]) && !pair[1].is_issued_by(&pair[0]), "{pair:?}");
        }
        assert!(identity.chain()[2].is_self_issued() && !identity.certificate().is_self_issued());
        let authorities: Vec<_> = identity.chain().iter().map(Certificate::is_authority).collect();
        assert_eq!(authorities, [false, true, true]);
        assert_eq!(cloud().certificate().system().unwrap_err().name, cloud_name().to_string());
    }

    #[test]
    fn a_certificate_says_what_its_profile_says() {
        let certificate = cloud().certify(&profile(), &key().public_key_info()).unwrap();
        assert_eq!(certificate.alternative_names(), ["sensor.testcloud1.aitia.arrowhead.eu", "localhost", "127.0.0.1"]);
        assert_eq!((certificate.not_before(), certificate.not_after()), (now().minus(CLOCK_TOLERANCE), now().plus(90 * DAY)));
        assert_eq!(certificate.key_kind(), KeyKind::Rsa(2048));
        assert_eq!(certificate.public_key_info(), key().public_key_info());
        assert_eq!(certificate.serial().len(), SERIAL_BYTES);
        let other = cloud().certify(&profile(), &key().public_key_info()).unwrap();
        assert_ne!(certificate.serial(), other.serial());
    }

    #[test]
    fn nothing_counts_longer_than_what_has_issued_it() {
        let short = root().issue_cloud(&cloud_name(), now(), 10 * DAY).unwrap();
        let certificate = short.certify(&profile(), &key().public_key_info()).unwrap();
        assert_eq!(certificate.not_after(), short.certificate().not_after());
        let later = Profile { now: now().plus(11 * DAY), ..profile() };
        assert!(matches!(short.certify(&later, &key().public_key_info()), Err(IssueError::AuthorityExpired(..))));
    }

    #[test]
    fn a_system_issues_nothing() {
        let refused = Authority::new(crate::example::sensor());
        assert!(matches!(refused, Err(IssueError::NoAuthority(name)) if name == "sensor.testcloud1.aitia.arrowhead.eu"));
    }

    #[test]
    fn names_that_no_server_has_are_refused() {
        let info = key().public_key_info();
        for good in ["localhost", "a-b.example", "*.example", "under_score.example", "::1", "10.0.0.1"] {
            let profile = Profile { alternative_names: vec![good.to_owned()], ..profile() };
            assert_eq!(cloud().certify(&profile, &info).unwrap().alternative_names(), [good]);
        }
        let long = format!("{}.example", "a".repeat(64));
        for bad in ["", "a b", "a..b", ".a", "*", "a.*.b", "*a.b", "gr\u{f6}\u{df}e", "a\0b", &long] {
            let profile = Profile { alternative_names: vec![bad.to_owned()], ..profile() };
            assert!(matches!(cloud().certify(&profile, &info), Err(IssueError::AlternativeName(_))), "{bad}");
        }
    }

    #[test]
    fn weak_and_strange_keys_are_not_certified() {
        assert!(matches!(cloud().certify(&profile(), b"no key"), Err(IssueError::PublicKey(_))));
        let curve = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let info = rcgen::PublicKeyData::subject_public_key_info(&curve);
        assert!(matches!(cloud().certify(&profile(), &info), Err(IssueError::WeakKey(KeyKind::Other))));
    }
}
