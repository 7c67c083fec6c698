//! As whom the clients and the operator of a campaign call, and what the nodes of a secure pair start on.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use bodkin_zmtp::{ClientSecurity, KeyPair, PublicKey, SecretKey};
use rustls::ServerConfig;
use tempfile::TempDir;

use super::plan::{DEALER_SYSTEM, Plan};
use super::plant::{Site, VIEWER};
use super::rights;
use crate::certificates::{Certificates, PROVIDER};
use crate::wire::Caller;

/// System of the required subscriber.
pub const REQUIRED_SYSTEM: &str = "crashviewer";
/// System of the event streams.
pub const STREAM_SYSTEM: &str = "crashstream";
/// System of the HTTP callbacks.
pub const CALLBACK_SYSTEM: &str = "crashcallback";
/// System of the SUB.
pub const SUB_SYSTEM: &str = "crashsub";
/// Name of the cloud in secure mode.
const CLOUD: &str = "crash";
/// Systems of the nodes whose names the Primary does not issue by itself.
const NODES: [&str; 2] = ["bodkin-witness", "bodkin-backup"];

/// Identities of the clients, and of the operator. Without certificates the pair is insecure.
#[derive(Clone, Default)]
pub struct Access {
    secure: Option<Arc<Secure>>,
}

struct Secure {
    certificates: Certificates,
    keys: BTreeMap<String, Arc<KeyPair>>,
    /// Public key of the nodes' ZMTP ports.
    server: PublicKey,
    /// Removed with the last client.
    _directory: TempDir,
}

impl Access {
    /// Makes the certificates and keys of a secure pair and of all systems of the plan.
    ///
    /// # Errors
    /// Returns an error if `bodkin cert` fails, or a file cannot be written.
    pub fn secure(program: &Path, plan: &Plan) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("bodkin-crash-").tempdir()?;
        let trust = directory.path().join("trust");
        let cert = |arguments: &[&str]| cert(program, arguments, &trust);
        cert(&["init", "--cloud", CLOUD, "--operator", "bodkin"])?;
        let mut systems: Vec<&str> = plan.rounds.iter().flat_map(|round| rights::publishers(&round.settings)).collect();
        systems.extend([DEALER_SYSTEM, REQUIRED_SYSTEM, STREAM_SYSTEM, CALLBACK_SYSTEM, SUB_SYSTEM, PROVIDER]);
        systems.sort_unstable();
        systems.dedup();
        issue(directory.path(), &systems, &cert)?;
        for node in NODES {
            cert(&["issue", "--system", node])?;
        }
        let mut keys = BTreeMap::new();
        for system in systems {
            let pair = key_pair()?;
            cert(&["curve", "--system", system, "--public-key", &pair.public().to_string()])?;
            keys.insert(system.to_owned(), Arc::new(pair));
        }
        let server = key_pair()?;
        write_pair(&trust.join("zmtp.curve"), &server)?;
        let certificates = Certificates::open_of(directory.path(), CLOUD, true)?;
        let secure = Secure { certificates, keys, server: server.public().clone(), _directory: directory };
        Ok(Self { secure: Some(Arc::new(secure)) })
    }

    /// Returns true if the pair runs in secure mode.
    pub fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// Returns as whom a system calls by HTTP.
    ///
    /// # Errors
    /// Returns an error if the system has no certificate.
    pub fn caller(&self, system: &str) -> anyhow::Result<Caller> {
        self.secure.as_ref().map_or(Ok(Caller::Nobody), |secure| secure.certificates.caller(system))
    }

    /// Returns as whom management is called.
    ///
    /// # Errors
    /// Returns an error if the operator has no certificate.
    pub fn operator(&self) -> anyhow::Result<Caller> {
        self.secure.as_ref().map_or(Ok(Caller::Nobody), |secure| secure.certificates.operator())
    }

    /// Returns as whom a system connects by ZMTP.
    ///
    /// # Errors
    /// Returns an error if the system has no key.
    pub fn curve(&self, system: &str) -> anyhow::Result<ClientSecurity> {
        let Some(secure) = &self.secure else { return Ok(ClientSecurity::Null) };
        let own = secure.keys.get(system).with_context(|| format!("{system} has no CURVE key"))?;
        Ok(ClientSecurity::Curve { own: Arc::clone(own), server: secure.server.clone() })
    }

    /// Returns as whom a system accepts connections. `None`: without TLS.
    ///
    /// # Errors
    /// Returns an error if the system has no certificate.
    pub fn serving(&self, system: &str) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        self.secure.as_ref().map(|secure| secure.certificates.serving(system)).transpose()
    }

    /// Returns the interface of the publishers' service.
    pub fn interface(&self) -> &'static str {
        if self.is_secure() { "HTTP-SECURE-JSON" } else { "HTTP-INSECURE-JSON" }
    }

    /// Returns the public key of the clients' systems. `None`: the pair is insecure.
    ///
    /// # Errors
    /// Returns an error if there is no key.
    pub fn authentication_info(&self) -> anyhow::Result<Option<String>> {
        self.secure.as_ref().map(|secure| secure.certificates.authentication_info()).transpose()
    }

    /// Returns the query parameters by which an event stream names its system.
    pub fn stream_query(&self) -> String {
        if !self.is_secure() {
            return String::new();
        }
        let system = rights::system(STREAM_SYSTEM);
        let text = |member: &str| system[member].as_str().unwrap_or_default().to_owned();
        format!("&system_name={STREAM_SYSTEM}&address={}&port={}", text("address"), system["port"])
    }

    /// Writes the trust directory of a node into its data directory, if the pair is secure.
    ///
    /// # Errors
    /// Returns an error if a file cannot be copied.
    pub fn equip(&self, site: Site, data: &Path) -> anyhow::Result<()> {
        let Some(secure) = &self.secure else { return Ok(()) };
        let (from, to) = (secure.certificates.trust(), data.join("trust"));
        // The witness has no more than its own name needs, and the standby no root key.
        let is_given = |name: &str| match site {
            Site::Witness => ["cloud.crt", "revoked.crl", "bodkin-witness.crt", "bodkin-witness.key"].contains(&name),
            Site::Second => name != "root.key",
            _ => true,
        };
        copy(&from, &to, &is_given).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    }
}

/// Copies files of a directory, and of those in it, for the owner alone.
fn copy(from: &Path, to: &Path, is_given: &dyn Fn(&str) -> bool) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, is_given)?;
        } else if is_given(&entry.file_name().to_string_lossy()) {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Issues the certificates of the clients' systems.
fn issue(directory: &Path, systems: &[&str], cert: &dyn Fn(&[&str]) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let (list, folder): (PathBuf, PathBuf) = (directory.join("systems.txt"), directory.join("systems"));
    fs::create_dir_all(&folder)?;
    fs::write(&list, systems.iter().map(|name| format!("{name} {VIEWER} localhost\n")).collect::<String>())?;
    let [list, folder] = [list, folder].map(|path| path.to_string_lossy().into_owned());
    cert(&["issue", "--from", &list, "--shared-key", "--out", &folder])
}

fn key_pair() -> anyhow::Result<KeyPair> {
    let mut octets = [0; 32];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets)).context("cannot read /dev/urandom")?;
    Ok(KeyPair::new(SecretKey::from_bytes(&mut octets)))
}

/// Writes a pair of keys in the form of ZeroMQ's certificates.
fn write_pair(path: &Path, pair: &KeyPair) -> anyhow::Result<()> {
    let secret = pair.secret().to_z85();
    let text = format!("metadata\ncurve\n    public-key = \"{}\"\n    secret-key = \"{}\"\n", pair.public(), *secret);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| format!("cannot write {}", path.display()))
}

/// `bodkin cert ARGUMENTS... --trust TRUST`.
fn cert(program: &Path, arguments: &[&str], trust: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.arg("cert").args(arguments).arg("--trust").arg(trust).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().with_context(|| format!("cannot start {}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("bodkin cert {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim())
}
