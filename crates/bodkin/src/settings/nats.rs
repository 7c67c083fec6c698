//! What `[fleet]` and the options of events between nodes share: how NATS servers are verified, and how this node
//! authenticates to them.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use bodkin_host::{
    fleet::{Credentials, Signer},
    nats::{CertificateFiles, CertificateSettings, NatsTls},
};
use bodkin_trust::{
    file::{read_anchors, read_password},
    nkey::Nkey,
};

use super::given;

/// Names of the settings, for error texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// The servers, which may be `tls://`.
    pub servers: &'static str,
    /// The CA certificates.
    pub trust: &'static str,
    /// The client certificate and its key.
    pub certificate: CertificateSettings,
}

/// Files that TLS to NATS servers needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsFiles<'a> {
    /// CA certificates (PEM).
    pub trust: &'a Option<PathBuf>,
    /// Client certificate (PEM).
    pub certificate: &'a Option<PathBuf>,
    /// Its private key (PEM).
    pub key: &'a Option<PathBuf>,
}

impl TlsFiles<'_> {
    /// Reads the files for servers of which at least one is `tls://` (`has_tls`); `None` without a trust file.
    ///
    /// # Errors
    /// Names the setting that is missing, or whose file cannot be used.
    pub fn read(self, names: Names, has_tls: bool) -> anyhow::Result<Option<Arc<NatsTls>>> {
        let Names { servers, trust, certificate: CertificateSettings { certificate, key } } = names;
        let files = match (given(self.certificate), given(self.key)) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(CertificateFiles { certificate, key }),
            _ => bail!("{certificate} and {key} go together: set both, or neither"),
        };
        if files.is_some() && !has_tls {
            bail!("{certificate} needs a server in TLS: write tls://HOST:PORT in {servers}, and set {trust}");
        }
        let Some(path) = given(self.trust) else {
            if has_tls {
                bail!("{trust} is missing: the CA certificates (PEM) that verify tls:// servers");
            }
            return Ok(None);
        };
        let anchors = read_anchors(&path, None).context(trust)?;
        Ok(Some(Arc::new(NatsTls::new(anchors, files, names.certificate)?)))
    }
}

/// Reads the first line of a file that only its owner may read; `None` if `path` names none.
///
/// # Errors
/// Names the setting whose file cannot be used.
pub(super) fn secret(path: &Option<PathBuf>, setting: &'static str) -> anyhow::Result<Option<String>> {
    let read = given(path).map(|path| read_password(&path)).transpose().context(setting)?;
    Ok(read.map(|secret| secret.to_string()))
}

/// Credentials of the nkey whose seed is in this file; `None` if `path` names none.
///
/// # Errors
/// Names the setting whose file cannot be used.
pub(super) fn key_credentials(path: &Option<PathBuf>, setting: &'static str) -> anyhow::Result<Option<Credentials>> {
    let Some(seed) = secret(path, setting)? else { return Ok(None) };
    let key = Nkey::of_seed(&seed).context(setting)?;
    Ok(Some(Credentials::Key { public_key: key.public_key(), signer: Signer::new(move |nonce| key.sign(nonce)) }))
}

#[cfg(test)]
mod tests;
