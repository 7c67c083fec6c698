//! The certificates of the bench's own secure cloud, and of every system that its load calls as.
//!
//! This same program makes them, `bodkin cert`, and they are kept for the next run. All systems of the load have one key,
//! because ten thousand take minutes to make; what a handshake costs does not depend on that.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::fcntl::{Flock, FlockArg};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::wire::Caller;

/// Name of the cloud.
const CLOUD: &str = "bench";
/// Who runs it.
const CLOUD_OPERATOR: &str = "bodkin";
/// What the systems of the load are called as servers.
pub const HOST: &str = "localhost";
/// Who may use management.
const OPERATOR: &str = "sysop";
/// The only protocol that is spoken.
const PROTOCOL: &[u8] = b"http/1.1";
/// Sessions that a client keeps to resume.
const SESSIONS_MAX: usize = 2;

/// Certificates are made anew after half of the 90 days that they count.
const KEPT_MAX: Duration = Duration::from_secs(45 * 86_400);
/// Whose key stands for that of every provider.
pub const PROVIDER: &str = "bench-provider";

/// Keys by what is in their files: those that many share are read once.
type Keys = HashMap<Vec<u8>, Arc<dyn SigningKey>>;

/// A directory of certificates: those of a cloud in `trust`, those of the load's systems in `systems`.
pub struct Certificates {
    directory: PathBuf,
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    resume: bool,
}

impl Certificates {
    /// Where they are kept by default.
    ///
    /// # Errors
    /// The environment names no home directory.
    pub fn default_directory() -> anyhow::Result<PathBuf> {
        let variable = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        Ok(cache.context("no home directory to keep certificates in: give --certificates DIR")?.join("bodkin/bench"))
    }

    /// Makes the cloud's, if it is not there. `resume` lets clients resume sessions.
    ///
    /// # Errors
    /// They cannot be made or read.
    pub fn open(directory: &Path, resume: bool) -> anyhow::Result<Self> {
        Self::open_of(directory, CLOUD, resume)
    }

    /// Makes those of a cloud of this name, if they are not there: it shares no authority with others.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_of(directory: &Path, cloud: &str, resume: bool) -> anyhow::Result<Self> {
        let trust = directory.join("trust");
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let _lock = lock(directory)?;
        if !trust.join("cloud.crt").exists() {
            cert(&["init", "--cloud", cloud, "--operator", CLOUD_OPERATOR, "--trust"], &trust)?;
        }
        let anchor = read_chain(&trust.join("cloud.crt"))?.swap_remove(0);
        let mut roots = RootCertStore::empty();
        roots.add(anchor).context("the cloud's certificate is no authority's")?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        Ok(Self { directory: directory.to_owned(), provider, roots: Arc::new(roots), resume })
    }

    /// Where all of them are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the server is started on.
    pub fn trust(&self) -> PathBuf {
        self.directory.join("trust")
    }

    /// Whether clients resume sessions.
    pub fn resume(&self) -> bool {
        self.resume
    }

    /// Makes those of the load's systems that are not there.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn issue<'a>(&self, systems: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
        self.issue_at(systems, HOST)
    }

    /// As [`Self::issue`], for systems that are called by other names and addresses, with spaces between.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn issue_at<'a>(&self, systems: impl Iterator<Item = &'a str>, hosts: &str) -> anyhow::Result<()> {
        let _lock = lock(&self.directory)?;
        let names: BTreeSet<&str> = systems.filter(|name| !is_young(&self.files(name)[0])).collect();
        if names.is_empty() {
            return Ok(());
        }
        eprintln!("making {} certificates in {}; they are kept for the next run", names.len(), self.directory.display());
        let folder = self.directory.join("systems");
        std::fs::create_dir_all(&folder)?;
        let list = tempfile::NamedTempFile::new()?;
        std::fs::write(list.path(), names.into_iter().map(|name| format!("{name} {hosts}\n")).collect::<String>())?;
        let [list, folder] = [list.path(), &folder].map(Path::to_string_lossy);
        cert(&["issue", "--from", &list, "--shared-key", "--out", &folder, "--trust"], &self.trust())
    }

    /// As whom a system of the load calls.
    ///
    /// # Errors
    /// Its certificate is not there.
    pub fn caller(&self, system: &str) -> anyhow::Result<Caller> {
        self.config(self.certified(&self.files(system), &mut Keys::default())?)
    }

    /// As whom many systems call, in their order.
    ///
    /// # Errors
    /// The certificate of one is not there.
    pub fn callers<'a>(&self, systems: impl Iterator<Item = &'a str>) -> anyhow::Result<Vec<Caller>> {
        let mut keys = Keys::default();
        systems.map(|system| self.config(self.certified(&self.files(system), &mut keys)?)).collect()
    }

    /// What a system of the load serves with.
    ///
    /// # Errors
    /// Its certificate is not there.
    pub fn server(&self, system: &str) -> anyhow::Result<SingleCertAndKey> {
        Ok(self.certified(&self.files(system), &mut Keys::default())?.into())
    }

    /// How a system of the load serves those of the same cloud, who show their certificates too.
    ///
    /// # Errors
    /// Its certificate is not there.
    pub fn serving(&self, system: &str) -> anyhow::Result<Arc<ServerConfig>> {
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots(), self.provider()).build()?;
        let config = ServerConfig::builder_with_provider(self.provider()).with_safe_default_protocol_versions()?;
        Ok(Arc::new(config.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(self.server(system)?))))
    }

    /// As whom management is used.
    ///
    /// # Errors
    /// The cloud has no certificate for its operator.
    pub fn operator(&self) -> anyhow::Result<Caller> {
        let file = |kind: &str| self.trust().join("systems").join(format!("{OPERATOR}.{kind}"));
        self.config(self.certified(&[file("crt"), file("key")], &mut Keys::default())?)
    }

    /// Base64 of a public key of the load's systems, to which tokens are sealed: nobody opens them.
    ///
    /// # Errors
    /// There is none.
    pub fn authentication_info(&self) -> anyhow::Result<String> {
        self.issue([PROVIDER].into_iter())?;
        let certified = self.certified(&self.files(PROVIDER), &mut Keys::default())?;
        let info = certified.key.public_key().context("the key of the load's systems has no public half")?;
        let armoured = pem::encode(&pem::Pem::new("PUBLIC KEY", info.as_ref()));
        Ok(armoured.lines().filter(|line| !line.starts_with('-')).collect())
    }

    /// Certificate and key of a system of the load.
    pub fn files(&self, system: &str) -> [PathBuf; 2] {
        ["crt", "key"].map(|kind| self.directory.join("systems").join(format!("{system}.{kind}")))
    }

    /// Whom both ends believe.
    pub fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.roots)
    }

    /// The cryptography of both ends, the same as Bodkin's.
    pub fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }

    fn certified(&self, [chain, key]: &[PathBuf; 2], keys: &mut Keys) -> anyhow::Result<CertifiedKey> {
        let text = std::fs::read(key).with_context(|| format!("{} cannot be read", key.display()))?;
        let key = match keys.get(&text) {
            Some(key) => Arc::clone(key),
            None => {
                let der = PrivateKeyDer::from_pem_slice(&text).with_context(|| format!("{} holds no private key", key.display()))?;
                let read = self.provider.key_provider.load_private_key(der)?;
                Arc::clone(keys.entry(text).or_insert(read))
            }
        };
        Ok(CertifiedKey::new(read_chain(chain)?, key))
    }

    fn config(&self, certified: CertifiedKey) -> anyhow::Result<Caller> {
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.provider)).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(Arc::clone(&self.roots));
        let mut config = config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = if self.resume { Resumption::in_memory_sessions(SESSIONS_MAX) } else { Resumption::disabled() };
        Ok(Caller::Certified(Arc::new(config)))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({})", self.directory.display())
    }
}

/// Keeps other benches from making the same at the same time, until it is dropped.
fn lock(directory: &Path) -> anyhow::Result<Flock<File>> {
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error).with_context(|| format!("cannot lock {}", path.display()))
}

/// Whether a certificate is there, and counts a good while longer.
fn is_young(certificate: &Path) -> bool {
    let written = std::fs::metadata(certificate).and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age < KEPT_MAX))
}

/// The certificates of a PEM file, at least one.
fn read_chain(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.with_context(|| format!("{} cannot be read", path.display()))?;
    if chain.is_empty() {
        bail!("{} holds no certificate", path.display());
    }
    Ok(chain)
}

/// `bodkin cert ARGUMENTS... TRUST`.
fn cert(arguments: &[&str], trust: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot tell the path of this program")?;
    let mut command = Command::new(program);
    command.arg("cert").args(arguments).arg(trust).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().context("cannot start bodkin cert")?;
    if status.success() { Ok(()) } else { bail!("bodkin cert {} failed: see above", arguments.join(" ")) }
}
