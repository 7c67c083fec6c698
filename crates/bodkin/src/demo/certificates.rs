//! The operator's part of a secure cloud: who takes part gets a certificate.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use bodkin_arrowhead::{caller::OPERATOR, name::SystemName};
use bodkin_client::Security;
use bodkin_trust::{TrustDirectory, tls};

/// How long the participants' certificates count. A demo is over by then.
const LIFETIME: Duration = Duration::from_secs(86_400);
/// Under which names participants are called.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// The certificates of the cloud.
pub struct Certificates {
    directory: TrustDirectory,
}

impl Certificates {
    /// Those that the cloud has made in its data directory.
    pub fn of(data: &Path) -> Self {
        Self { directory: TrustDirectory::new(data.join("trust")) }
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What to act as the operator with.
    pub fn operator(&self) -> anyhow::Result<Security> {
        let identity = self.directory.identity(&system(OPERATOR)).context("the cloud has made no certificate for its operator")?;
        Ok(Security::new(Some(&identity), &[self.directory.anchor()?])?)
    }

    /// Issues a certificate; gives the options that tell a participant where it is.
    pub fn issue(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let hosts = HOSTS.map(str::to_owned);
        let issued = self.directory.ensure_identity(&system(name), &hosts, tls::now(), LIFETIME);
        issued.with_context(|| format!("no certificate for {name}"))?;
        let [cert, key, ca] = self.files(name);
        let options = [("--cert", cert), ("--key", key), ("--ca", ca)];
        Ok(options.into_iter().flat_map(|(option, file)| [option.to_owned(), file.to_string_lossy().into_owned()]).collect())
    }

    /// Certificate and key of a system, and the authority's certificate.
    pub fn files(&self, name: &str) -> [PathBuf; 3] {
        let (cert, key) = self.directory.system_files(&system(name));
        [cert, key, self.path().join("cloud.crt")]
    }
}

fn system(name: &str) -> SystemName {
    SystemName::parse(name).expect("the demo's names are names")
}
