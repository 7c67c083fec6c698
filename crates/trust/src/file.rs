//! Files of certificates and keys: read with a limit, and if a key is in it only where nobody else may read it; written whole or
//! not at all.

use std::{
    env, fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use crate::{
    certificate::{Certificate, CertificateError},
    identity::Identity,
    key::PrivateKey,
    keystore,
};

/// Largest file that is read: a chain, a key, a key store.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Rights that others must not have on a file with a secret.
const OTHERS_RIGHTS: u32 = 0o077;

/// What a file of systemd's may have beside its owner's: systemd hands a credential to the service's user by an access control list, whose mask shows as
/// the group's right to read (systemd.exec(5), *Credentials*). The group itself, root's, has none.
const CREDENTIAL_RIGHTS: u32 = 0o040;
/// The environment variable by which systemd tells a service where its credentials are.
const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// What is wrong with a file. The text names it and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    System {
        /// Which.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// It has a secret in it and is readable to others.
    #[error("{path} holds a secret that others may read (its rights are {mode:03o}): chmod 600 {path}")]
    Rights {
        /// Which.
        path: PathBuf,
        /// Its rights.
        mode: u32,
    },
    /// It is larger than any such file.
    #[error("{path} is larger than {max} bytes")]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// What was expected at most.
        max: u64,
    },
    /// It holds something else.
    #[error("{path}: {why}")]
    Content {
        /// Which.
        path: PathBuf,
        /// What was expected, what came.
        why: String,
    },
}

impl FileError {
    /// It holds something else.
    pub fn content(path: &Path, why: impl fmt::Display) -> Self {
        Self::Content { path: path.to_owned(), why: why.to_string() }
    }

    pub(crate) fn system(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::System { path: path.clone(), error }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::System { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

type Result<T> = std::result::Result<T, FileError>;

/// Reads a chain and its key, which others must not be able to read. The passphrase opens an encrypted key.
pub fn read_identity(certificates: &Path, key: &Path, passphrase: Option<&str>) -> Result<Identity> {
    let chain = read_certificates(certificates)?;
    Identity::new(chain, read_key(key, passphrase)?).map_err(|error| FileError::content(certificates, error))
}

/// Reads a key in PEM, which others must not be able to read. The passphrase opens an encrypted one.
pub fn read_key(path: &Path, passphrase: Option<&str>) -> Result<PrivateKey> {
    PrivateKey::from_pem_with(&read_private(path)?, passphrase).map_err(|error| FileError::content(path, error))
}

/// Reads the certificates of a PEM file, at least one.
pub fn read_certificates(path: &Path) -> Result<Vec<Certificate>> {
    Certificate::from_pem(&read(path, FILE_BYTES_MAX)?).map_err(|error| FileError::content(path, error))
}

/// Reads what is to be trusted: certificates in PEM or one in DER, or a PKCS#12 trust store, which the password opens.
pub fn read_anchors(path: &Path, password: Option<&str>) -> Result<Vec<Certificate>> {
    let content = read(path, FILE_BYTES_MAX)?;
    let told = |error: &dyn fmt::Display| FileError::content(path, error);
    if keystore::is_key_store(&content) {
        let password = password.ok_or_else(|| told(&"it is a trust store: give its password"))?;
        return keystore::read_anchors(&content, password).map_err(|error| told(&error));
    }
    match Certificate::from_pem(&content) {
        Err(CertificateError::Missing) => match Certificate::from_der(&content) {
            Ok(certificate) => Ok(vec![certificate]),
            Err(_) => Err(told(&"neither PEM nor DER certificates nor a PKCS#12 trust store is in it")),
        },
        read => read.map_err(|error| told(&error)),
    }
}

/// Whether there is a key, encrypted or not, in a PEM text.
pub fn holds_pem_key(content: &[u8]) -> bool {
    content.windows(KEY_LABEL_END.len()).any(|window| window == KEY_LABEL_END)
}

/// What the first line of every key in PEM ends with.
const KEY_LABEL_END: &[u8] = b"PRIVATE KEY-----";

/// Reads a file that may hold a key or not. If it does, only its owner may have rights on it.
pub fn read_any(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let (content, mode) = read_with_rights(path, FILE_BYTES_MAX)?;
    let content = Zeroizing::new(content);
    let is_secret = keystore::is_key_store(&content) || holds_pem_key(&content);
    if is_secret { private(path, mode).map(|()| content) } else { Ok(content) }
}

/// Reads a file that holds a secret: only its owner may have rights on it.
pub fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let (content, mode) = read_with_rights(path, FILE_BYTES_MAX)?;
    let content = Zeroizing::new(content);
    private(path, mode).map(|()| content)
}

/// Reads a password or a passphrase: the first line of a file on which only its owner has rights.
pub fn read_password(path: &Path) -> Result<Zeroizing<String>> {
    let content = read_private(path)?;
    let text = std::str::from_utf8(&content).map_err(|_| FileError::content(path, "the password is no UTF-8 text"))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Zeroizing::new(line.to_owned())),
        _ => Err(FileError::content(path, "there is no password in its first line")),
    }
}

/// Writes a file that holds a secret: readable to its owner only, whole or not at all.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    write_whole(path, content, 0o600, Sync::Now)
}

/// Writes a file that everybody may read, whole or not at all.
pub fn write_public(path: &Path, content: &[u8]) -> Result<()> {
    write_whole(path, content, 0o644, Sync::Now)
}

/// Whether a file has to outlive a loss of power from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Yes.
    Now,
    /// No: after a loss of power it may be empty, and is made again then.
    Later,
}

/// Writes a chain and its key. The key first: a certificate without its key would be taken for an identity.
pub fn write_identity(certificates: &Path, key: &Path, identity: &Identity) -> Result<()> {
    write_identity_with(certificates, key, identity, Sync::Now)
}

pub(crate) fn write_identity_with(certificates: &Path, key: &Path, identity: &Identity, sync: Sync) -> Result<()> {
    write_whole(key, identity.key().to_pem().as_bytes(), 0o600, sync)?;
    write_whole(certificates, identity.chain_to_pem().as_bytes(), 0o644, sync)
}

/// Writes beside the file, syncs, and renames.
fn write_whole(path: &Path, content: &[u8], mode: u32, sync: Sync) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // What an interrupted attempt has left would keep its own rights.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(FileError::system(&beside)(error)),
        _ => {}
    }
    let write = || {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        new.write_all(content)?;
        if sync == Sync::Now {
            new.sync_all()?;
        }
        fs::rename(&beside, path)?;
        if sync == Sync::Now { sync_folder(path) } else { Ok(()) }
    };
    write().map_err(FileError::system(path))
}

/// Makes a rename in the folder of `path` outlive a loss of power.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Reads a file of at most `max` bytes.
pub(crate) fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    read_with_rights(path, max).map(|(content, _)| content)
}

/// The rights are those of the file that was read, not of another that has taken its place meanwhile.
fn read_with_rights(path: &Path, max: u64) -> Result<(Vec<u8>, u32)> {
    let read = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode() & 0o777;
        let mut content = Vec::new();
        // Some files do not know their length.
        file.take(max + 1).read_to_end(&mut content)?;
        Ok((content, mode))
    };
    let (content, mode) = read().map_err(FileError::system(path))?;
    if content.len() as u64 > max { Err(FileError::TooLarge { path: path.to_owned(), max }) } else { Ok((content, mode)) }
}

fn private(path: &Path, mode: u32) -> Result<()> {
    private_beside(path, mode, env::var_os(CREDENTIALS_DIRECTORY).as_deref().map(Path::new))
}

/// Whether only its owner has rights on a file or, of a credential of systemd's, he and whom it is for.
fn private_beside(path: &Path, mode: u32, credentials: Option<&Path>) -> Result<()> {
    let others = mode & OTHERS_RIGHTS;
    match others == 0 || (others == CREDENTIAL_RIGHTS && credentials.is_some_and(|directory| is_in(path, directory))) {
        true => Ok(()),
        false => Err(FileError::Rights { path: path.to_owned(), mode }),
    }
}

/// Whether a file is in a directory or below it, whatever links and `..` its path has.
fn is_in(path: &Path, directory: &Path) -> bool {
    matches!((path.canonicalize(), directory.canonicalize()), (Ok(path), Ok(directory)) if path.starts_with(&directory))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;
    use crate::example::{cloud, key, sensor};

    fn place() -> TempDir {
        TempDir::new().unwrap()
    }

    #[test]
    fn an_identity_is_read_whichever_form_it_has() {
        let place = place();
        let identity = sensor();
        let at = |name: &str| place.path().join(name);
        write_identity(&at("own.crt"), &at("own.key"), &identity).unwrap();
        write_private(&at("both.pem"), format!("{}{}", identity.key().to_pem().as_str(), identity.chain_to_pem()).as_bytes()).unwrap();
        let sealed = identity.key().to_encrypted_pem("pass-word").unwrap();
        write_private(&at("sealed.pem"), format!("{}{}", sealed.as_str(), identity.chain_to_pem()).as_bytes()).unwrap();
        write_private(&at("store.p12"), &keystore::write_identity(&identity, "sensor", "pass-word").unwrap()).unwrap();
        for (file, password) in [("own.crt", None), ("both.pem", None), ("sealed.pem", Some("pass-word")), ("store.p12", Some("pass-word"))]
        {
            let read = Identity::read(&at(file), password).unwrap();
            assert_eq!((read.chain(), read.key().pkcs8()), (identity.chain(), identity.key().pkcs8()), "{file}");
        }
        for (file, told) in [("sealed.pem", "passphrase"), ("store.p12", "password"), ("none.pem", "No such file")] {
            let error = Identity::read(&at(file), None).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains(file), "{error}");
        }
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused_and_a_certificate_is_not() {
        let place = place();
        let at = |name: &str| place.path().join(name);
        let identity = sensor();
        write_public(&at("key.pem"), identity.key().to_pem().as_bytes()).unwrap();
        write_public(&at("store.p12"), &keystore::write_identity(&identity, "sensor", "pass-word").unwrap()).unwrap();
        write_public(&at("password"), b"pass-word\n").unwrap();
        assert!(matches!(Identity::read(&at("store.p12"), Some("pass-word")), Err(FileError::Rights { mode: 0o644, .. })));
        assert!(matches!(Identity::read(&at("key.pem"), None), Err(FileError::Rights { .. })));
        assert!(matches!(read_key(&at("key.pem"), None), Err(FileError::Rights { .. })));
        assert!(matches!(read_password(&at("password")), Err(FileError::Rights { .. })));
        fs::set_permissions(at("key.pem"), fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(read_key(&at("key.pem"), None).unwrap().pkcs8(), key().pkcs8());
    }

    #[test]
    fn a_credential_of_systemds_may_be_read_by_its_group_and_nothing_else_may() {
        let place = place();
        let credentials = place.path().join("credentials");
        fs::create_dir(&credentials).unwrap();
        let (credential, outside) = (credentials.join("passphrase"), place.path().join("passphrase"));
        for path in [&credential, &outside] {
            write_private(path, b"secret").unwrap();
        }
        std::os::unix::fs::symlink(&outside, credentials.join("link")).unwrap();
        let taken = |path: &Path, mode| private_beside(path, mode, Some(&credentials)).is_ok();
        assert!(taken(&credential, 0o440) && taken(&credential, 0o400), "as systemd puts it, with and without a list");
        for mode in [0o444, 0o460, 0o450, 0o404, 0o441] {
            assert!(!taken(&credential, mode), "{mode:03o}");
        }
        for elsewhere in [outside.as_path(), &credentials.join("../passphrase"), &credentials.join("link"), &credentials.join("missing")] {
            assert!(!taken(elsewhere, 0o440), "{}", elsewhere.display());
        }
        assert!(private_beside(&credential, 0o440, None).is_err(), "systemd has given nothing");
    }

    #[test]
    fn anchors_are_read_whichever_form_they_have() {
        let place = place();
        let at = |name: &str| place.path().join(name);
        let anchor = cloud().certificate();
        write_public(&at("pem"), anchor.to_pem().as_bytes()).unwrap();
        write_public(&at("der"), anchor.der()).unwrap();
        write_public(&at("p12"), &keystore::write_anchors(std::slice::from_ref(anchor), "pass-word").unwrap()).unwrap();
        write_public(&at("notes"), b"nothing").unwrap();
        for file in ["pem", "der", "p12"] {
            assert_eq!(read_anchors(&at(file), Some("pass-word")).unwrap(), std::slice::from_ref(anchor), "{file}");
        }
        assert!(read_anchors(&at("p12"), None).unwrap_err().to_string().contains("password"));
        assert!(read_anchors(&at("notes"), None).unwrap_err().to_string().contains("neither PEM nor DER"));
    }

    #[test]
    fn a_password_is_a_first_line() {
        let place = place();
        let path = place.path().join("password");
        for (content, password) in [("secret", "secret"), ("secret\n", "secret"), (" with blanks \r\nmore", " with blanks ")] {
            write_private(&path, content.as_bytes()).unwrap();
            assert_eq!(read_password(&path).unwrap().as_str(), password);
        }
        for content in ["", "\nsecret"] {
            write_private(&path, content.as_bytes()).unwrap();
            assert!(read_password(&path).unwrap_err().to_string().contains("first line"));
        }
    }

    #[test]
    fn what_is_larger_than_its_limit_is_not_read() {
        let place = place();
        let path = place.path().join("large");
        write_public(&path, &[b'x'; 11]).unwrap();
        assert_eq!(read(&path, 11).unwrap().len(), 11);
        assert!(matches!(read(&path, 10), Err(FileError::TooLarge { max: 10, .. })));
        assert!(matches!(read(Path::new("/dev/zero"), 10), Err(FileError::TooLarge { .. })));
    }

    #[test]
    fn a_written_file_has_its_rights_whatever_was_there() {
        let place = place();
        let path = place.path().join("key");
        write_public(&path, b"old").unwrap();
        fs::write(place.path().join("key.new"), "left over").unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!((read_private(&path).unwrap().as_slice(), fs::read_dir(place.path()).unwrap().count()), (b"new".as_slice(), 1));
    }
}
