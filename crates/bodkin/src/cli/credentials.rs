//! Who a command acts as, and whom it believes: the cloud's own operator, a certificate that is given, or in insecure mode nobody.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bodkin_arrowhead::{caller::OPERATOR, name::SystemName};
use bodkin_client::Security;
use bodkin_trust::{Certificate, Identity, TrustDirectory, file};
use clap::Args;

use crate::settings::data_of_this_machine;

/// Where the cloud's certificates are in its data directory.
const TRUST: &str = "trust";
const HEADING: &str = "As whom";

/// Options that say as whom a command acts. Without any of them it is the operator of the cloud whose certificates are in the
/// data directory, and where there are none the cloud is taken for an insecure one.
#[derive(Args, Clone, Debug, Default)]
pub struct CredentialOptions {
    /// Data directory of the cloud on this machine [default: ./.bodkin where that is, or else what /etc/bodkin/bodkin.toml says]
    #[arg(long, global = true, help_heading = HEADING, env = "BODKIN_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The cloud's certificates; acts as its operator, sysop [default: `trust` in the data directory, where it is there]
    #[arg(long, global = true, help_heading = HEADING, env = "BODKIN_TRUST", value_name = "DIR")]
    trust: Option<PathBuf>,
    /// Certificate to act with: a PKCS#12 key store, or PEM with the authorities behind it
    #[arg(long, visible_alias = "p12", global = true, help_heading = HEADING, env = "BODKIN_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Its private key in PEM, readable to you only [default: in the same file, or beside it with the ending .key]
    #[arg(long, global = true, help_heading = HEADING, env = "BODKIN_KEY", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// File whose first line is the password of key store, trust store or key; only its owner may read it
    #[arg(long, global = true, help_heading = HEADING, env = "BODKIN_PASSWORD_FILE", value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Authorities to believe: PEM or a PKCS#12 trust store [default: the authority of the own certificate]
    #[arg(long, global = true, help_heading = HEADING, env = "BODKIN_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Speak plain HTTP, even where certificates are found
    #[arg(long, global = true, help_heading = HEADING, env = "BODKIN_INSECURE", value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    insecure: Option<bool>,
}

impl CredentialOptions {
    /// The same with the certificates of another cloud.
    pub fn with_trust(&self, trust: &Path) -> Self {
        Self { trust: Some(trust.to_owned()), cert: None, key: None, ca: None, ..self.clone() }
    }

    /// What to call a cloud with; `None` is plain HTTP.
    ///
    /// # Errors
    /// A file cannot be read or holds something else; the error names it.
    pub fn security(&self) -> anyhow::Result<Option<Security>> {
        if self.insecure == Some(true) {
            return Ok(None);
        }
        let password = self.password_file.as_deref().map(file::read_password).transpose()?;
        let password = password.as_ref().map(|password| password.as_str());
        let ca = self.ca.as_deref().map(|ca| file::read_anchors(ca, password)).transpose()?;
        // Whoever shows a certificate of his own need not be able to look into the cloud's.
        let directory = if self.cert.is_none() { self.trust_directory()? } else { None };
        let (identity, anchors) = match (&self.cert, directory) {
            (Some(cert), _) => {
                let identity = self.given(cert, password)?;
                let anchors = ca.unwrap_or_else(|| authority(&identity));
                if anchors.is_empty() {
                    bail!(
                        "{} holds no authority's certificate behind the own one, and so does not say whom to believe: give --ca FILE",
                        cert.display()
                    );
                }
                (identity, anchors)
            }
            (None, Some(directory)) => (operator(&directory)?, ca.map_or_else(|| Ok(vec![directory.anchor()?]), anyhow::Ok)?),
            (None, None) if ca.is_some() => bail!("--ca says whom to believe, but nothing says as whom to act: give --cert, or --trust"),
            (None, None) => return Ok(None),
        };
        Security::new(Some(&identity), &anchors).map(Some).context("the certificate cannot be used")
    }

    fn given(&self, cert: &Path, password: Option<&str>) -> anyhow::Result<Identity> {
        Ok(match &self.key {
            Some(key) => file::read_identity(cert, key, password)?,
            None => Identity::read(cert, password)?,
        })
    }

    /// The directory that is named, which must be one, or that of the data directory, where it is one.
    fn trust_directory(&self) -> anyhow::Result<Option<TrustDirectory>> {
        // Empty is what the configuration of `bodkin up` calls the default.
        if let Some(path) = self.trust.as_ref().filter(|path| !path.as_os_str().is_empty()) {
            let directory = TrustDirectory::new(path);
            if !directory.exists() {
                bail!("{} holds no cloud's certificates (cloud.crt); bodkin cert init makes them", path.display());
            }
            return Ok(Some(directory));
        }
        let data = self.data.clone().unwrap_or_else(data_of_this_machine);
        let directory = TrustDirectory::new(data.join(TRUST));
        let is_there = directory.try_exists().with_context(|| {
            let path = directory.path().display();
            format!("{path} cannot be looked into: act as the cloud's user (sudo -u bodkin bodkin ...), or with a certificate of your own (--cert)")
        })?;
        Ok(is_there.then_some(directory))
    }
}

/// What an own chain says about whom to believe: the authority that issued it.
fn authority(identity: &Identity) -> Vec<Certificate> {
    identity.chain().iter().skip(1).take(1).cloned().collect()
}

fn operator(directory: &TrustDirectory) -> anyhow::Result<Identity> {
    let operator = SystemName::parse(OPERATOR).expect("sysop is a name");
    directory.identity(&operator).with_context(|| {
        let place = directory.path().display();
        format!("no certificate to act as {OPERATOR} with in {place}: bodkin cert issue --system {OPERATOR} makes it, --cert names another")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bodkin_arrowhead::common_name::CloudCommonName;
    use bodkin_trust::tls;

    use super::*;

    fn name_of(options: &CredentialOptions) -> Option<String> {
        options.security().unwrap().map(|security| security.own_name().expect("an identity").to_string())
    }

    #[track_caller]
    fn refused(options: &CredentialOptions, part: &str) {
        let error = format!("{:#}", options.security().unwrap_err());
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn who_a_command_acts_as_follows_from_what_is_there() {
        let place = tempfile::tempdir().unwrap();
        let data = CredentialOptions { data: Some(place.path().to_owned()), ..CredentialOptions::default() };
        assert_eq!(name_of(&data), None, "an empty data directory is an insecure cloud's");
        let trust = place.path().join(TRUST);
        let named = CredentialOptions { trust: Some(trust.clone()), ..CredentialOptions::default() };
        refused(&named, "bodkin cert init makes them");

        let directory = TrustDirectory::new(&trust);
        directory.init(&CloudCommonName::parse("c.o.arrowhead.eu").unwrap(), tls::now()).unwrap();
        refused(&data, "bodkin cert issue --system sysop makes it");
        let issue =
            |name: &str| directory.ensure_identity(&SystemName::parse(name).unwrap(), &[], tls::now(), Duration::from_secs(60)).unwrap();
        issue(OPERATOR);
        for options in [&data, &named] {
            assert_eq!(name_of(options).as_deref(), Some("sysop.c.o.arrowhead.eu"));
        }
        assert_eq!(name_of(&CredentialOptions { insecure: Some(true), ..data.clone() }), None);

        issue("display");
        let (cert, key) = directory.system_files(&SystemName::parse("display").unwrap());
        let given = CredentialOptions { cert: Some(cert.clone()), key: Some(key), ..data };
        assert_eq!(name_of(&given).as_deref(), Some("display.c.o.arrowhead.eu"));
        let elsewhere = CredentialOptions { data: Some(cert.clone()), ..given.clone() };
        assert_eq!(name_of(&elsewhere).as_deref(), Some("display.c.o.arrowhead.eu"), "the cloud's own certificates are not looked for");
        refused(&CredentialOptions { data: Some(cert.clone()), ..CredentialOptions::default() }, "cannot be looked into");
        let leaf: String =
            std::fs::read_to_string(&cert).unwrap().split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().to_owned();
        std::fs::write(&cert, leaf).unwrap();
        refused(&given, "give --ca FILE");
        assert!(name_of(&CredentialOptions { ca: Some(trust.join("cloud.crt")), ..given }).is_some());
        refused(&CredentialOptions { ca: Some(cert), ..CredentialOptions::default() }, "nothing says as whom to act");
    }
}
