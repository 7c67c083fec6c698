//! Where a cloud keeps its certificates and keys: `DATA/trust`.
//!
//! ```text
//! root.crt  root.key          signs the cloud's authority; the key may be kept elsewhere
//! cloud.crt cloud.key         issues to systems; the chain leads to the root
//! issued.jsonl                what was issued and revoked
//! revoked.crl                 what was revoked, signed by the cloud
//! curve.jsonl                 which CURVE key is whose
//! zmtp.curve                  the ZMTP port's own pair of CURVE keys
//! systems/NAME.crt NAME.key   the core systems' and the operator's (sysop), chain and key
//! lock                        held while something is changed
//! ```
//!
//! Keys are readable to their owner only, or are not used. The authorities' keys may be encrypted; those of the systems are not, so that
//! the cloud starts unattended.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use bodkin_arrowhead::{
    common_name::CloudCommonName,
    name::{CloudName, SystemName},
    utc::UtcTime,
};
use zeroize::Zeroizing;

use crate::{
    authority::{Authority, IssueError},
    certificate::Certificate,
    file::{self, FileError},
    identity::Identity,
    key::KeyError,
    ledger::{self, Actions, Entry, Ledger},
    lock::Lock,
    revocation::Revocations,
};

/// Largest revocation list: some 20,000 certificates.
pub const LIST_BYTES_MAX: u64 = 1 << 20;

/// How long the root counts.
pub const ROOT_LIFETIME: Duration = Duration::from_secs(20 * 365 * 86_400);
/// How long a cloud's authority counts.
pub const CLOUD_LIFETIME: Duration = Duration::from_secs(10 * 365 * 86_400);
/// How long a system's certificate counts.
pub const LEAF_LIFETIME: Duration = Duration::from_secs(90 * 86_400);
/// How long a revocation list is the newest for whoever asks for that; our own servers do not.
const LIST_LIFETIME: Duration = Duration::from_secs(365 * 86_400);

/// What is wrong in the directory. The text names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file is not as it should be.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is one already.
    #[error("{0} holds a cloud's certificates already: bodkin cert list shows them; name another directory for another cloud")]
    Exists(PathBuf),
    /// There is none.
    #[error("{0} holds no cloud's certificates: bodkin cert init makes them")]
    Missing(PathBuf),
    /// Another process does not come to an end.
    #[error("another process is changing {0} for longer than it should take: look who holds the file lock there")]
    Locked(PathBuf),
    /// A certificate at this place comes from elsewhere and is not overwritten.
    #[error("{path} is issued by {issuer}, not by this cloud's authority: move it away to have another one there")]
    Foreign {
        /// Where.
        path: PathBuf,
        /// By whom.
        issuer: String,
    },
    /// A certificate is another authority's.
    #[error("the certificate of {name} is issued by {issuer}, not by this cloud's authority")]
    NotOurs {
        /// Whose.
        name: String,
        /// By whom.
        issuer: String,
    },
    /// A certificate is revoked.
    #[error("the certificate of {0} is revoked and is not renewed: bodkin cert issue makes another one, with another key")]
    Revoked(String),
    /// There is no such certificate.
    #[error("the ledger has no certificate {0}: bodkin cert list shows what was issued")]
    Unknown(String),
    /// What was revoked is not known.
    #[error("{0} is missing, and without it revoked certificates would count: bodkin cert revoke --refresh signs it anew")]
    NoList(PathBuf),
    /// The list would be larger than what is read.
    #[error("the revocation list would be larger than {LIST_BYTES_MAX} bytes; it gets shorter as the certificates in it expire")]
    ListTooLarge,
    /// A CURVE key belongs to another system.
    #[error("this CURVE key is bound to {0} already")]
    CurveKeyTaken(SystemName),
    /// A key could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

pub(crate) type Result<T> = std::result::Result<T, DirectoryError>;

/// What a cloud is called that nobody has named.
pub fn default_cloud_name() -> CloudCommonName {
    CloudCommonName { cloud: CloudName::from_stored("local"), operator: CloudName::from_stored("bodkin") }
}

/// The directory of a cloud's certificates and keys.
#[derive(Clone)]
pub struct TrustDirectory {
    path: PathBuf,
    passphrase: Option<Zeroizing<String>>,
}

impl TrustDirectory {
    /// The directory at `path`, whether it is there or not; its authorities' keys are not encrypted.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), passphrase: None }
    }

    /// With the passphrase that opens the authorities' keys, and encrypts them when they are made.
    pub fn with_passphrase(self, passphrase: Option<Zeroizing<String>>) -> Self {
        Self { passphrase, ..self }
    }

    /// Whether there is one.
    pub fn has_passphrase(&self) -> bool {
        self.passphrase.is_some()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a cloud's certificates are in it.
    pub fn exists(&self) -> bool {
        self.cloud_certificate().exists()
    }

    /// As [`Self::exists`]; who may not look is told so.
    pub fn try_exists(&self) -> std::io::Result<bool> {
        self.cloud_certificate().try_exists()
    }

    /// Makes root and cloud authority. The cloud's certificate is written last: with it the directory exists.
    pub fn init(&self, cloud: &CloudCommonName, now: UtcTime) -> Result<Authority> {
        make_directory(&self.systems())?;
        let _lock = Lock::take(&self.path)?;
        if self.exists() {
            return Err(DirectoryError::Exists(self.path.clone()));
        }
        let root = Authority::root(now, ROOT_LIFETIME)?;
        let authority = root.issue_cloud(cloud, now, CLOUD_LIFETIME)?;
        self.found(&root, &authority, now)?;
        Ok(authority)
    }

    pub(crate) fn found(&self, root: &Authority, authority: &Authority, now: UtcTime) -> Result<()> {
        let list = authority.revocation_list(&[], now, now.plus(LIST_LIFETIME))?;
        self.write_authority("root", root.identity())?;
        file::write_public(&self.issued(), b"")?;
        file::write_public(&self.revoked(), list.as_bytes())?;
        self.write_authority("cloud", authority.identity())
    }

    /// The key first: a certificate without its key would be taken for an authority's.
    fn write_authority(&self, name: &str, identity: &Identity) -> Result<()> {
        let key = match &self.passphrase {
            Some(passphrase) => identity.key().to_encrypted_pem(passphrase).map_err(IssueError::Key)?,
            None => identity.key().to_pem(),
        };
        file::write_private(&self.path.join(format!("{name}.key")), key.as_bytes())?;
        Ok(file::write_public(&self.path.join(format!("{name}.crt")), identity.chain_to_pem().as_bytes())?)
    }

    /// The cloud's authority, to issue with. Its key may need the passphrase.
    pub fn authority(&self) -> Result<Authority> {
        let passphrase = self.passphrase.as_ref().map(|passphrase| passphrase.as_str());
        self.expect()?;
        Ok(Authority::new(file::read_identity(&self.cloud_certificate(), &self.path.join("cloud.key"), passphrase)?)?)
    }

    /// Whether the key of the cloud's authority is kept here.
    pub fn has_key(&self) -> bool {
        self.path.join("cloud.key").exists()
    }

    /// The cloud's name: that of its authority.
    pub fn cloud(&self) -> Result<CloudCommonName> {
        let anchor = self.anchor()?;
        let name = CloudCommonName::parse(anchor.common_name().unwrap_or_default());
        Ok(name.map_err(|error| FileError::content(&self.cloud_certificate(), error))?)
    }

    /// The certificate that the cloud's systems trust.
    pub fn anchor(&self) -> Result<Certificate> {
        Ok(self.chain()?.swap_remove(0))
    }

    /// The cloud's certificate and those that lead from it to the root.
    pub fn chain(&self) -> Result<Vec<Certificate>> {
        self.expect()?;
        Ok(file::read_certificates(&self.cloud_certificate())?)
    }

    /// What was revoked: what the list names, and what the ledger does, which may be ahead of it (a list is signed by who has the authority's key). The
    /// list is as old as the directory: one that is missing was lost, and does not revoke nothing.
    pub fn revocations(&self, now: UtcTime) -> Result<Revocations> {
        let (anchor, list) = (self.anchor()?, self.revoked());
        let read = revocations_in(&list, std::slice::from_ref(&anchor))?;
        let mut revocations = read.ok_or(DirectoryError::NoList(list))?;
        revocations.extend(&anchor, self.ledger()?.revoked(now));
        Ok(revocations)
    }

    /// What was issued.
    pub fn ledger(&self) -> Result<Ledger> {
        Ok(Ledger::read(&self.issued())?)
    }

    /// What was issued and revoked behind a place in the ledger, a part of it at a time; `None` if the ledger does not reach so far.
    pub fn actions_behind(&self, place: u64) -> Result<Option<Actions>> {
        Ok(ledger::actions_behind(&self.issued(), place)?)
    }

    /// The identity of a core system or the operator that is kept here.
    pub fn identity(&self, system: &SystemName) -> Result<Identity> {
        let (certificate, key) = self.system_files(system);
        Ok(file::read_identity(&certificate, &key, None)?)
    }

    /// Where the identities of core systems and the operator are kept.
    pub fn systems(&self) -> PathBuf {
        self.path.join("systems")
    }

    /// Where a system's chain and key are kept.
    pub fn system_files(&self, system: &SystemName) -> (PathBuf, PathBuf) {
        files_in(&self.systems(), system)
    }

    /// Writes certificates into the ledger. Nobody may have them before.
    pub(crate) fn record(&self, _lock: &Lock, certificates: &[&Certificate], now: UtcTime) -> Result<()> {
        let entries: Vec<Entry> = certificates.iter().map(|certificate| Entry::issue(certificate, now)).collect();
        Ok(ledger::append(&self.issued(), &entries)?)
    }

    /// Revokes what the ledger names by these serial numbers, and signs the list anew; without any, only that.
    pub fn revoke(&self, serials: &[String], now: UtcTime) -> Result<()> {
        let authority = self.authority()?;
        let lock = Lock::take(&self.path)?;
        let (ledger, entries) = self.to_revoke(serials, now)?;
        self.revoke_all(&lock, &ledger, &entries, &authority, now)
    }

    /// As [`Self::revoke`] where the authority's key may be kept elsewhere: then the ledger alone says so, and who has the key signs the list when the
    /// line comes there.
    pub fn note_revoked(&self, serials: &[String], now: UtcTime) -> Result<()> {
        let authority = self.authority();
        let lock = Lock::take(&self.path)?;
        let (ledger, entries) = self.to_revoke(serials, now)?;
        match authority {
            Ok(authority) => self.revoke_all(&lock, &ledger, &entries, &authority, now),
            Err(_) => Ok(ledger::append(&self.issued(), &entries)?),
        }
    }

    /// The lines that revoke these, and the ledger with them.
    fn to_revoke(&self, serials: &[String], now: UtcTime) -> Result<(Ledger, Vec<Entry>)> {
        let mut ledger = self.ledger()?;
        let mut entries = Vec::new();
        for serial in serials {
            let issued = ledger.find(serial).ok_or_else(|| DirectoryError::Unknown(serial.clone()))?;
            if issued.revoked_at.is_none() {
                let entry = Entry::revoke(&issued.serial, now);
                entries.push(entry.clone());
                ledger.take(entry).expect("it was found");
            }
        }
        Ok((ledger, entries))
    }

    /// Puts lines into the ledger, and signs the list of what `ledger`, which has them, revokes.
    pub(crate) fn revoke_all(&self, _lock: &Lock, ledger: &Ledger, entries: &[Entry], authority: &Authority, now: UtcTime) -> Result<()> {
        let list = authority.revocation_list(&ledger.revoked(now), now, now.plus(LIST_LIFETIME))?;
        if list.len() as u64 > LIST_BYTES_MAX {
            return Err(DirectoryError::ListTooLarge);
        }
        // If only this much is done, the ledger revokes it, and the next list has it all the same.
        ledger::append(&self.issued(), entries)?;
        Ok(file::write_public(&self.revoked(), list.as_bytes())?)
    }

    /// The ZMTP port's own pair of CURVE keys.
    pub fn server_pair(&self) -> PathBuf {
        self.path.join("zmtp.curve")
    }

    /// Which CURVE key is whose.
    pub fn curve(&self) -> PathBuf {
        self.path.join("curve.jsonl")
    }

    fn cloud_certificate(&self) -> PathBuf {
        self.path.join("cloud.crt")
    }

    pub(crate) fn issued(&self) -> PathBuf {
        self.path.join("issued.jsonl")
    }

    fn revoked(&self) -> PathBuf {
        self.path.join("revoked.crl")
    }

    fn expect(&self) -> Result<()> {
        if self.exists() { Ok(()) } else { Err(DirectoryError::Missing(self.path.clone())) }
    }
}

impl std::fmt::Debug for TrustDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrustDirectory({})", self.path.display())
    }
}

/// Reads a revocation list that one of `authorities` has signed; where there is none nothing is revoked.
pub fn read_revocations(path: &Path, authorities: &[Certificate]) -> std::result::Result<Revocations, FileError> {
    Ok(revocations_in(path, authorities)?.unwrap_or_default())
}

fn revocations_in(path: &Path, authorities: &[Certificate]) -> std::result::Result<Option<Revocations>, FileError> {
    match file::read(path, LIST_BYTES_MAX) {
        Ok(text) => Revocations::from_pem(&text, authorities).map(Some).map_err(|error| FileError::content(path, error)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a system's chain and key are in a folder.
pub fn files_in(folder: &Path, system: &SystemName) -> (PathBuf, PathBuf) {
    (folder.join(format!("{system}.crt")), folder.join(format!("{system}.key")))
}

/// Makes a directory that only its owner may look into.
pub fn make_directory(path: &Path) -> Result<()> {
    Ok(fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::system(path))?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use tempfile::TempDir;

    use super::*;
    use crate::example::{DAY, cloud_name, directory, now};

    fn rights(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn init_makes_a_chain_whose_keys_nobody_else_reads() {
        let place = TempDir::new().unwrap();
        let directory = TrustDirectory::new(place.path().join("trust"));
        assert!(!directory.exists());
        assert!(matches!(directory.anchor(), Err(DirectoryError::Missing(_))));
        directory.init(&cloud_name(), now()).unwrap();
        assert_eq!(directory.cloud().unwrap(), cloud_name());
        assert_eq!(directory.chain().unwrap().len(), 2);
        assert!(directory.authority().unwrap().certificate() == &directory.anchor().unwrap());
        assert!(directory.revocations(now()).unwrap().is_empty() && directory.ledger().unwrap().issued().is_empty());
        assert_eq!((rights(directory.path()), rights(&directory.systems())), (0o700, 0o700));
        for (file, expected) in [("root.key", 0o600), ("cloud.key", 0o600), ("root.crt", 0o644), ("cloud.crt", 0o644)] {
            assert_eq!(rights(&directory.path().join(file)), expected, "{file}");
        }
        assert!(matches!(directory.init(&cloud_name(), now()), Err(DirectoryError::Exists(_))));
    }

    #[test]
    fn an_encrypted_authority_issues_by_its_passphrase_only() {
        let place = TempDir::new().unwrap();
        let path = place.path().join("trust");
        let with = |passphrase: &str| TrustDirectory::new(&path).with_passphrase(Some(Zeroizing::new(passphrase.to_owned())));
        let directory = with("correct horse");
        make_directory(&directory.systems()).unwrap();
        directory.found(crate::example::root(), crate::example::cloud(), now()).unwrap();
        for key in ["root.key", "cloud.key"] {
            assert!(fs::read_to_string(path.join(key)).unwrap().contains("ENCRYPTED"), "{key}");
        }
        directory.authority().unwrap();
        for (closed, told) in [(TrustDirectory::new(&path), "no passphrase"), (with("battery"), "passphrase does not open")] {
            let error = closed.authority().unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("cloud.key"), "{error}");
            assert!(closed.anchor().is_ok(), "what is public needs no passphrase");
        }
    }

    #[test]
    fn a_key_that_others_may_read_is_not_used() {
        let (_place, directory) = directory();
        let key = directory.path().join("cloud.key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let error = directory.authority().unwrap_err().to_string();
        assert!(error.contains("640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn what_is_revoked_stays_revoked_until_it_expires() {
        let (_place, directory) = directory();
        let issue = |name: &str| {
            let system = SystemName::parse(name).unwrap();
            directory.ensure_identity(&system, &[], now(), 90 * DAY).unwrap().certificate().clone()
        };
        let (one, other) = (issue("one"), issue("other"));
        directory.revoke(&[one.serial_text()], now()).unwrap();
        directory.revoke(&[one.serial_text(), other.serial_text()], now().plus(DAY)).unwrap();
        let revocations = directory.revocations(now()).unwrap();
        assert!(revocations.contains(&one) && revocations.contains(&other));
        assert_eq!(directory.ledger().unwrap().find(&one.serial_text()).unwrap().revoked_at, Some(now()));
        directory.revoke(&[], now().plus(200 * DAY)).unwrap();
        assert!(directory.revocations(now().plus(200 * DAY)).unwrap().is_empty());
        assert!(matches!(directory.revoke(&["4f".to_owned()], now()), Err(DirectoryError::Unknown(serial)) if serial == "4f"));
    }

    #[test]
    fn a_lost_or_damaged_list_is_an_error_and_is_signed_anew_from_the_ledger() {
        let (_place, directory) = directory();
        let system = SystemName::parse("lost").unwrap();
        let lost = directory.ensure_identity(&system, &[], now(), 90 * DAY).unwrap().certificate().clone();
        directory.revoke(&[lost.serial_text()], now()).unwrap();
        let list = directory.path().join("revoked.crl");
        fs::write(&list, "").unwrap();
        assert!(matches!(directory.revocations(now()), Err(DirectoryError::File(FileError::Content { .. }))));
        fs::remove_file(&list).unwrap();
        let error = directory.revocations(now()).unwrap_err().to_string();
        assert!(error.contains("revoked.crl") && error.contains("--refresh"), "{error}");
        directory.revoke(&[], now()).unwrap();
        assert!(directory.revocations(now()).unwrap().contains(&lost));
        // In a folder of key stores there need be none.
        assert!(read_revocations(Path::new("nowhere.crl"), &[]).unwrap().is_empty());
    }
}
