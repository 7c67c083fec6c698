//! Options of what goes over TLS.

use std::path::PathBuf;

use clap::Args;

use crate::certificates::Certificates;

/// Where certificates are.
#[derive(Debug, Clone, Default, Args)]
pub struct CertificateOptions {
    /// Where the certificates of the own secure cloud and of the load's systems are kept, and made where they are missing [default: bodkin/bench in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    certificates: Option<PathBuf>,
}

impl CertificateOptions {
    /// The certificates; `resume` lets clients resume TLS sessions.
    ///
    /// # Errors
    /// They cannot be made or read.
    pub fn open(&self, resume: bool) -> anyhow::Result<Certificates> {
        let directory = self.certificates.clone().map_or_else(Certificates::default_directory, Ok)?;
        Certificates::open(&directory, resume)
    }

    /// Those of another cloud, beside the ones of [`Self::open`].
    ///
    /// # Errors
    /// They cannot be made or read.
    pub fn open_of(&self, cloud: &str) -> anyhow::Result<Certificates> {
        let directory = self.certificates.clone().map_or_else(Certificates::default_directory, Ok)?;
        Certificates::open_of(&directory.join(cloud), cloud, false)
    }
}

/// Whether the secure mode is measured beside the insecure one.
#[derive(Debug, Clone, Default, Args)]
pub struct SecureOptions {
    /// Alternate runs in insecure and in secure mode (mutual TLS, a certificate for each system) and give the ratio of the two
    #[arg(long, conflicts_with = "target")]
    pub secure: bool,
    /// With --secure: clients resume a TLS session that they had before; without this every handshake is a full one
    #[arg(long, requires = "secure")]
    pub resume: bool,
    #[command(flatten)]
    /// Where certificates are.
    pub certificates: CertificateOptions,
}

/// TLS alone.
#[derive(Debug, Clone, Args)]
pub struct HandshakeOptions {
    /// Handshakes of a run
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,
    /// Runs whose figures count
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    /// Where certificates are.
    pub certificates: CertificateOptions,
}
