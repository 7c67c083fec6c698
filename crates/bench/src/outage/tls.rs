//! TLS of a campaign: one authority, a certificate for PostgreSQL and the NATS servers, and one for all their clients.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context;
use nix::unistd::User;
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::wire::Caller;

/// Common name in the servers' certificate.
const SERVER: &str = "outageserver";
/// Common name in the certificate of nodes, edges, and the campaign's own clients.
const CLIENT: &str = "outageclient";
/// Name of the cloud whose authority issues both.
const CLOUD: &str = "outage";
/// Where the servers are.
const HOST: &str = "127.0.0.1";

/// Certificates of servers that accept nobody without one.
pub struct Tls {
    certificates: Certificates,
    caller: Caller,
    _directory: TempDir,
}

impl Tls {
    /// Makes new certificates.
    ///
    /// # Errors
    /// Returns an error if they cannot be made or read.
    pub fn new() -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("bodkin-outage-tls-").tempdir()?;
        // PostgreSQL's user reads the authority's certificate there.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        let certificates = Certificates::open_of(directory.path(), CLOUD, false)?;
        certificates.issue_at([SERVER, CLIENT].into_iter(), HOST)?;
        let caller = certificates.caller(CLIENT)?;
        Ok(Self { certificates, caller, _directory: directory })
    }

    /// Returns the file of the certificates that both sides trust.
    pub fn trust_file(&self) -> PathBuf {
        self.certificates.trust().join("cloud.crt")
    }

    /// Returns certificate and key of the servers.
    pub fn server_files(&self) -> [PathBuf; 2] {
        self.certificates.files(SERVER)
    }

    /// Returns certificate and key of the clients.
    pub fn client_files(&self) -> [PathBuf; 2] {
        self.certificates.files(CLIENT)
    }

    /// Returns how the campaign's own clients connect.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the `tls` block of a NATS server that accepts clients with a certificate only.
    pub fn of_nats(&self) -> String {
        let [certificate, key] = self.server_files();
        let [certificate, key, trusted] = [certificate, key, self.trust_file()].map(|path| path.display().to_string());
        format!("tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {trusted:?}, verify: true }}\n")
    }
}

/// Copies a file into a directory for this user alone: PostgreSQL refuses a key that others may read.
///
/// # Errors
/// Returns an error if the file cannot be copied or given away.
pub fn copy_for(user: Option<&User>, file: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let copy = directory.join(file.file_name().context("a file has a name")?);
    let copied = || -> io::Result<()> {
        fs::copy(file, &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o600))?;
        user.map_or(Ok(()), |user| chown(&copy, Some(user.uid.as_raw()), Some(user.gid.as_raw())))
    };
    copied().with_context(|| format!("cannot copy {} for PostgreSQL", file.display()))?;
    Ok(copy)
}
