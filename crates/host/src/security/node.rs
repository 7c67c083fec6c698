//! What a node of a reliable pair shows the other two, and whom it believes: it is a system of the own cloud.

use std::{path::PathBuf, sync::Arc};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, CommonNameError},
    name::SystemName,
    utc::UtcTime,
};
use bodkin_trust::{
    Certificate, Identity, TrustDirectory,
    directory::{LEAF_LIFETIME, read_revocations},
    file::{self, FileError},
    revocation::Revocations,
    tls::PeerCheck,
};

use super::{KeyStores, SecurityConfig, SecurityError, material, trust::check_identity};

/// What was read in one look.
pub(crate) struct NodeMaterial {
    /// Whose node it is.
    pub cloud: CloudCommonName,
    /// Whose systems are believed.
    pub anchors: Vec<Certificate>,
    /// What no longer counts.
    pub revocations: Arc<Revocations>,
    /// What it shows; or why it shows nothing: its certificate is revoked. The text says what to do.
    pub identity: Result<Arc<Identity>, String>,
    /// Where it was read.
    pub files: Vec<PathBuf>,
}

impl NodeMaterial {
    /// Reads it for the node that is the system `name`. Its identity is issued, and renewed when that is due, where the key of the cloud's authority is there. A
    /// certificate that is revoked is not replaced: only an operator issues another one.
    ///
    /// # Errors
    /// A file is wrong or missing; the certificate is not this system's or does not count.
    pub fn read(config: &SecurityConfig, name: &'static str, now: UtcTime) -> Result<Self, SecurityError> {
        let material = match &config.key_stores {
            Some(stores) => Self::of_key_stores(stores, name)?,
            None => Self::of_directory(config, name, now)?,
        };
        config.expect_cloud(&material.cloud)?;
        if let Ok(identity) = &material.identity {
            let check = PeerCheck { revocations: material.revocations.clone(), pinned: None };
            check_identity(identity, name, &material.cloud, &check, now)?;
        }
        Ok(material)
    }

    fn of_directory(config: &SecurityConfig, name: &str, now: UtcTime) -> Result<Self, SecurityError> {
        let (directory, system) = (&config.directory, SystemName::from_stored(name));
        let identity = match directory.find_revoked(&system, now)? {
            Some(serial) => Err(revoked(name, &serial, &of_directory(directory, name))),
            None => {
                let ensured = directory.ensure_identity(&system, &[], now, LEAF_LIFETIME);
                Ok(Arc::new(ensured.or_else(|error| material::kept(directory, &system, error, now))?))
            }
        };
        let (certificate, key) = directory.system_files(&system);
        Ok(Self {
            cloud: directory.cloud()?,
            anchors: vec![directory.anchor()?],
            revocations: Arc::new(directory.revocations(now)?),
            identity,
            files: material::files_of_all(directory).into_iter().chain([certificate, key]).collect(),
        })
    }

    fn of_key_stores(stores: &KeyStores, name: &str) -> Result<Self, SecurityError> {
        let password = stores.password_file.as_deref().map(file::read_password).transpose()?;
        let password = password.as_ref().map(|password| password.as_str());
        let path = stores.folder.join(format!("{name}.p12"));
        let identity = Identity::read(&path, password)?;
        let anchors = file::read_anchors(&stores.trust_store, password)?;
        let list = material::revocation_list(stores);
        let revocations = Arc::new(read_revocations(&list, &anchors)?);
        let cloud = identity.certificate().system().map_err(|error: CommonNameError| FileError::content(&path, error))?.cloud;
        let files = vec![path, stores.trust_store.clone(), list];
        let identity = if revocations.contains(identity.certificate()) {
            let instead = format!("put another certificate of {name} into {}", files[0].display());
            Err(revoked(name, &identity.certificate().serial_text(), &instead))
        } else {
            Ok(Arc::new(identity))
        };
        Ok(Self { cloud, anchors, revocations, identity, files })
    }
}

/// What an operator does to give a node another certificate.
fn of_directory(directory: &TrustDirectory, name: &str) -> String {
    let path = directory.path().display();
    if directory.has_key() {
        format!("bodkin cert issue --system {name} --trust {path}")
    } else {
        format!("bodkin cert issue --system {name} where cloud.key is, then copy systems/{name}.key and .crt to {path}/systems")
    }
}

fn revoked(name: &str, serial: &str, instead: &str) -> String {
    format!(
        "the certificate of this node ({name}, {serial}) is revoked: the node neither leads, follows, nor votes, and issues itself no other \
         certificate. If the node is to return: {instead}"
    )
}

impl SecurityConfig {
    /// Whether there are certificates; without any a cloud is made where it may be.
    pub(crate) fn has_certificates(&self) -> bool {
        self.key_stores.is_some() || self.directory.exists()
    }

    /// Makes a cloud where there is none.
    pub(crate) fn found_cloud(&self, now: UtcTime) -> Result<(), SecurityError> {
        if self.key_stores.is_none() {
            self.ensure_authority(now)?;
        }
        Ok(())
    }
}
