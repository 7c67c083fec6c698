//! Where a cloud keeps its certificates and keys: `DATA/trust`.
//!
//! ```text
//! root.crt  root.key          signs the cloud's authority; the key may be kept elsewhere
//! cloud.crt cloud.key         issues to systems; the chain leads to the root
//! revoked.crl                 what was revoked, signed by the cloud
//! systems/NAME.crt NAME.key   the core systems' and the operator's (sysop), chain and key
//! ```
//!
//! Keys are readable to their owner only, or are not used.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    name::SystemName,
    utc::UtcTime,
};

use crate::{
    authority::{Authority, IssueError, Profile},
    certificate::{Certificate, CertificateError},
    identity::{Identity, IdentityError},
    key::{KeyError, PrivateKey},
    revocation::{RevocationError, Revocations},
};

/// Largest file that is read: a chain, a key, a key store.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Largest revocation list: some 20,000 certificates.
pub const LIST_BYTES_MAX: u64 = 1 << 20;
/// Rights that others must not have on a key.
const OTHERS_RIGHTS: u32 = 0o077;

/// How long the root counts.
pub const ROOT_LIFETIME: Duration = Duration::from_secs(20 * 365 * 86_400);
/// How long a cloud's authority counts.
pub const CLOUD_LIFETIME: Duration = Duration::from_secs(10 * 365 * 86_400);

/// What is wrong in the directory. The text names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A key is readable to others.
    #[error("{path} holds a private key that others may read (its rights are {mode:03o}): chmod 600 {path}")]
    Rights {
        /// Which.
        path: PathBuf,
        /// Its rights.
        mode: u32,
    },
    /// A file is larger than any such file.
    #[error("{path} is larger than {max} bytes")]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// What was expected at most.
        max: u64,
    },
    /// There is one already.
    #[error("{0} holds a cloud's certificates already")]
    Exists(PathBuf),
    /// A file holds something else.
    #[error("{path}: {why}")]
    Content {
        /// Which.
        path: PathBuf,
        /// What was expected, what came.
        why: String,
    },
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

type Result<T> = std::result::Result<T, DirectoryError>;

/// The directory of a cloud's certificates and keys.
#[derive(Clone, Debug)]
pub struct TrustDirectory {
    path: PathBuf,
}

impl TrustDirectory {
    /// The directory at `path`, whether it is there or not.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a cloud's certificates are in it.
    pub fn exists(&self) -> bool {
        self.cloud_certificate().exists()
    }

    /// Makes root and cloud authority. The cloud's certificate is written last: with it the directory exists.
    pub fn init(&self, cloud: &CloudCommonName, now: UtcTime) -> Result<Authority> {
        if self.exists() {
            return Err(DirectoryError::Exists(self.path.clone()));
        }
        let systems = self.path.join("systems");
        make_directory(&systems)?;
        let root = Authority::root(now, ROOT_LIFETIME)?;
        let authority = root.issue_cloud(cloud, now, CLOUD_LIFETIME)?;
        write_identity(&self.path.join("root.crt"), &self.path.join("root.key"), root.identity())?;
        write_identity(&self.cloud_certificate(), &self.path.join("cloud.key"), authority.identity())?;
        Ok(authority)
    }

    /// The cloud's authority, to issue with.
    pub fn authority(&self) -> Result<Authority> {
        let path = self.cloud_certificate();
        let identity = read_identity(&path, &self.path.join("cloud.key"))?;
        Ok(Authority::new(identity)?)
    }

    /// The cloud's name: that of its authority.
    pub fn cloud(&self) -> Result<CloudCommonName> {
        let path = self.cloud_certificate();
        let anchor = self.anchor()?;
        CloudCommonName::parse(anchor.common_name().unwrap_or_default()).map_err(content(&path))
    }

    /// The certificate that the cloud's systems trust.
    pub fn anchor(&self) -> Result<Certificate> {
        let path = self.cloud_certificate();
        let mut chain = read_certificates(&path)?;
        Ok(chain.swap_remove(0))
    }

    /// What was revoked; nothing where nothing was.
    pub fn revocations(&self) -> Result<Revocations> {
        let path = self.path.join("revoked.crl");
        if !path.exists() {
            return Ok(Revocations::default());
        }
        let text = read(&path, LIST_BYTES_MAX)?;
        Revocations::from_pem(&text, &[self.anchor()?]).map_err(|error: RevocationError| content(&path)(error))
    }

    /// The identity of a core system or the operator that is kept here.
    pub fn identity(&self, system: &SystemName) -> Result<Identity> {
        let (certificate, key) = self.system_files(system);
        read_identity(&certificate, &key)
    }

    /// The kept identity of a core system or the operator, made if it is not there.
    pub fn ensure_identity(&self, system: &SystemName, alternative_names: &[String], now: UtcTime, lifetime: Duration) -> Result<Identity> {
        let (certificate, key) = self.system_files(system);
        if certificate.exists() {
            return read_identity(&certificate, &key);
        }
        let name = SystemCommonName { system: system.clone(), cloud: self.cloud()? };
        let identity = self.authority()?.issue(&Profile::system(&name, alternative_names, now, lifetime))?;
        write_identity(&certificate, &key, &identity)?;
        Ok(identity)
    }

    /// Where a system's chain and key are kept.
    pub fn system_files(&self, system: &SystemName) -> (PathBuf, PathBuf) {
        let systems = self.path.join("systems");
        (systems.join(format!("{system}.crt")), systems.join(format!("{system}.key")))
    }

    fn cloud_certificate(&self) -> PathBuf {
        self.path.join("cloud.crt")
    }
}

/// Reads a chain and its key, which others must not be able to read.
pub fn read_identity(certificates: &Path, key: &Path) -> Result<Identity> {
    let chain = read_certificates(certificates)?;
    let key_text = zeroize::Zeroizing::new(read_private(key)?);
    let private_key = PrivateKey::from_pem(&key_text).map_err(|error: KeyError| content(key)(error))?;
    Identity::new(chain, private_key).map_err(|error: IdentityError| content(certificates)(error))
}

/// Reads the certificates of a PEM file, at least one.
pub fn read_certificates(path: &Path) -> Result<Vec<Certificate>> {
    Certificate::from_pem(&read(path, FILE_BYTES_MAX)?).map_err(|error: CertificateError| content(path)(error))
}

/// Reads a file that holds a secret: only its owner may have rights on it.
pub fn read_private(path: &Path) -> Result<Vec<u8>> {
    let metadata = fs::metadata(path).map_err(file(path))?;
    let mode = metadata.mode() & 0o777;
    if mode & OTHERS_RIGHTS != 0 {
        return Err(DirectoryError::Rights { path: path.to_owned(), mode });
    }
    read(path, FILE_BYTES_MAX)
}

/// Writes a file that holds a secret: readable to its owner only, whole or not at all.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    write_whole(path, content, 0o600)
}

/// Writes a file that everybody may read, whole or not at all.
pub fn write_public(path: &Path, content: &[u8]) -> Result<()> {
    write_whole(path, content, 0o644)
}

/// The key first: a certificate without its key would be taken for an identity.
fn write_identity(certificates: &Path, key: &Path, identity: &Identity) -> Result<()> {
    write_private(key, identity.key().to_pem().as_bytes())?;
    write_public(certificates, identity.chain_to_pem().as_bytes())
}

/// Writes beside the file, syncs, and renames.
fn write_whole(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // What an interrupted attempt has left would keep its own rights.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(file(&beside)(error)),
        _ => {}
    }
    let write = || {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        new.write_all(content)?;
        new.sync_all()?;
        fs::rename(&beside, path)?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    };
    write().map_err(file(path))
}

fn make_directory(path: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(file(path))
}

fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    let metadata = fs::metadata(path).map_err(file(path))?;
    if metadata.len() > max {
        return Err(DirectoryError::TooLarge { path: path.to_owned(), max });
    }
    fs::read(path).map_err(file(path))
}

fn file(path: &Path) -> impl Fn(io::Error) -> DirectoryError + use<> {
    let path = path.to_owned();
    move |error| DirectoryError::File { path: path.clone(), error }
}

fn content<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> DirectoryError + use<E> {
    let path = path.to_owned();
    move |error| DirectoryError::Content { path: path.clone(), why: error.to_string() }
}
