//! The certificates and keys of the core systems, from the trust directory or from the key stores that an Arrowhead cloud has.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bodkin_arrowhead::{
    caller::OPERATOR,
    common_name::{CloudCommonName, CommonNameError},
    core_service::CoreSystem,
    name::{CloudName, SystemName},
    utc::UtcTime,
};
use bodkin_trust::{
    Certificate, Identity, TrustDirectory,
    directory::{DirectoryError, LEAF_LIFETIME, default_cloud_name, read_revocations},
    file::{self, FileError},
    revocation::Revocations,
};

use super::{CurveKeys, KeyStores, SecurityConfig, SecurityError, names};

/// A revocation list, in either place.
const REVOCATIONS: &str = "revoked.crl";

/// What was read in one look.
pub(super) struct Material {
    pub(super) cloud: CloudCommonName,
    /// Whose systems are believed.
    pub(super) anchors: Vec<Certificate>,
    /// Who certifies devices.
    pub(super) device_anchors: Vec<Certificate>,
    pub(super) revocations: Revocations,
    /// Of [`SecurityConfig::systems`], in their order.
    pub(super) identities: Vec<Arc<Identity>>,
    /// Of the ZMTP port; `None` with key stores, beside which nothing says whose a key is.
    pub(super) curve: Option<CurveKeys>,
    /// Where it was read.
    pub(super) files: Vec<PathBuf>,
}

impl Material {
    /// Reads what secure mode needs. An absent trust directory is made, and so is a core system's identity in it that is missing, is to be
    /// renewed or is not made out for the names of this machine. Key stores are only read.
    pub(super) fn read(config: &SecurityConfig, now: UtcTime) -> Result<Self, SecurityError> {
        let mut material = match &config.key_stores {
            Some(stores) => Self::of_key_stores(stores, config.systems())?,
            None => Self::of_directory(config, now)?,
        };
        if let Some(path) = &config.device_authorities {
            material.device_anchors = file::read_certificates(path)?;
            material.files.push(path.clone());
        }
        config.expect_cloud(&material.cloud)?;
        Ok(material)
    }

    fn of_directory(config: &SecurityConfig, now: UtcTime) -> Result<Self, SecurityError> {
        let directory = &config.directory;
        config.ensure_authority(now)?;
        let host_names = names::host_names(config);
        let identity = |system: CoreSystem| {
            let name = SystemName::from_stored(system.name());
            let ensured = directory.ensure_identity(&name, &host_names, now, LEAF_LIFETIME);
            ensured.or_else(|error| kept(directory, &name, error, now)).map(Arc::new)
        };
        let systems = config.systems();
        let of_systems = systems.iter().map(|system| directory.system_files(&SystemName::from_stored(system.name())));
        let files = files_of_all(directory).into_iter();
        Ok(Self {
            cloud: directory.cloud()?,
            anchors: vec![directory.anchor()?],
            device_anchors: Vec::new(),
            revocations: directory.revocations(now)?,
            identities: systems.iter().copied().map(identity).collect::<Result<_, _>>()?,
            curve: Some(CurveKeys::read(directory)?),
            files: files.chain(of_systems.flat_map(|(certificate, key)| [certificate, key])).chain(CurveKeys::files(directory)).collect(),
        })
    }

    fn of_key_stores(stores: &KeyStores, systems: &[CoreSystem]) -> Result<Self, SecurityError> {
        let password = stores.password_file.as_deref().map(file::read_password).transpose()?;
        let password = password.as_ref().map(|password| password.as_str());
        let paths: Vec<PathBuf> = systems.iter().map(|system| stores.key_store(*system)).collect();
        let identities: Vec<_> = paths.iter().map(|path| Identity::read(path, password).map(Arc::new)).collect::<Result<_, _>>()?;
        let anchors = file::read_anchors(&stores.trust_store, password)?;
        let list = revocation_list(stores);
        let revocations = read_revocations(&list, &anchors)?;
        let cloud = identities[0].certificate().system().map_err(|error: CommonNameError| FileError::content(&paths[0], error))?.cloud;
        let files = paths.into_iter().chain([stores.trust_store.clone(), list]).collect();
        Ok(Self { cloud, anchors, device_anchors: Vec::new(), revocations, identities, curve: None, files })
    }
}

/// What all systems of a cloud go by.
pub(super) fn files_of_all(directory: &TrustDirectory) -> [PathBuf; 2] {
    ["cloud.crt", REVOCATIONS].map(|name| directory.path().join(name))
}

/// What is revoked of those who are believed beside key stores.
pub(super) fn revocation_list(stores: &KeyStores) -> PathBuf {
    stores.folder.join(REVOCATIONS)
}

/// An identity that still counts although it could not be made anew: the authority's key may be kept elsewhere, or encrypted.
pub(super) fn kept(
    directory: &TrustDirectory,
    system: &SystemName,
    error: DirectoryError,
    now: UtcTime,
) -> Result<Identity, DirectoryError> {
    match directory.identity(system) {
        Ok(identity) if identity.certificate().is_valid_at(now) => {
            let until = identity.certificate().not_after();
            tracing::warn!(system = system.as_str(), %until, %error, "a certificate could not be made anew and is used as it is");
            Ok(identity)
        }
        _ => Err(error),
    }
}

impl KeyStores {
    /// Where a core system's certificate and key are.
    fn key_store(&self, system: CoreSystem) -> PathBuf {
        self.folder.join(format!("{}.p12", system.name()))
    }
}

impl SecurityConfig {
    /// The core systems that there are certificates for. A folder of key stores may have none for the Gateway, or for the Gatekeeper, without which there is no
    /// Gateway either: then the cloud has none, as clouds that know no others.
    pub fn systems(&self) -> &'static [CoreSystem] {
        let all: &'static [CoreSystem] = &CoreSystem::ALL;
        let is_there = |system: &CoreSystem| self.key_stores.as_ref().is_none_or(|stores| stores.key_store(*system).exists());
        let missing = all.iter().position(|system| system.needs_keys() && !is_there(system));
        &all[..missing.unwrap_or(all.len())]
    }

    /// Makes a cloud's authority and the operator's identity where there are none.
    pub(super) fn ensure_authority(&self, now: UtcTime) -> Result<(), DirectoryError> {
        if !self.directory.exists() {
            self.directory.init(&self.named(&default_cloud_name()), now)?;
            self.directory.ensure_identity(&SystemName::from_stored(OPERATOR), &[], now, LEAF_LIFETIME)?;
        }
        Ok(())
    }

    /// Refuses another cloud than the operator has named.
    pub(super) fn expect_cloud(&self, found: &CloudCommonName) -> Result<(), SecurityError> {
        let expected = self.named(found);
        if *found == expected {
            return Ok(());
        }
        Err(SecurityError::OtherName { place: self.place().to_owned(), found: found.clone(), expected })
    }

    /// Where the cloud's own authority is; with key stores from elsewhere there is none.
    pub fn own_authority(&self) -> Option<TrustDirectory> {
        self.key_stores.is_none().then(|| self.directory.clone())
    }

    /// The names that were given, and `other` where none was.
    fn named(&self, other: &CloudCommonName) -> CloudCommonName {
        let name = |given: &Option<CloudName>, other: &CloudName| given.clone().unwrap_or_else(|| other.clone());
        CloudCommonName { cloud: name(&self.cloud, &other.cloud), operator: name(&self.operator, &other.operator) }
    }

    /// Where certificates and keys are.
    pub fn place(&self) -> &Path {
        self.key_stores.as_ref().map_or(self.directory.path(), |stores| &stores.folder)
    }

    /// Says what will not work without the authority's key, if it cannot be used. With a passphrase that does not open it nothing is
    /// begun: whoever gave it expects that all works.
    pub(super) fn try_authority(&self, renewal_due: UtcTime) -> Result<(), DirectoryError> {
        let Some(directory) = self.own_authority() else { return Ok(()) };
        match directory.authority() {
            Ok(_) => Ok(()),
            Err(error) if directory.has_passphrase() => Err(error),
            Err(error) => {
                tracing::warn!(
                    %error,
                    %renewal_due,
                    "without the key of the cloud's authority no new system comes to a certificate, and the core systems' own are not \
                     renewed when they are due; if it is encrypted, give --passphrase-file or BODKIN_CA_PASSPHRASE"
                );
                Ok(())
            }
        }
    }
}
