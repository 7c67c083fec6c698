//! CURVE keys of the ZMTP port: the cloud's own pair, and whose the other keys are.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{DirectoryError, TrustDirectory};
use bodkin_zmtp::{KeyPair, PublicKey};

/// The keys as of one look at the files.
#[derive(Clone, Debug)]
pub struct CurveKeys {
    /// By which clients know the port.
    pub own: Arc<KeyPair>,
    systems: BTreeMap<PublicKey, SystemName>,
}

impl CurveKeys {
    /// Reads them; the cloud's own pair is made if there is none.
    pub(super) fn read(directory: &TrustDirectory) -> Result<Self, DirectoryError> {
        Ok(Self { own: Arc::new(directory.ensure_server_pair()?), systems: directory.curve_keys()? })
    }

    /// Where they are read.
    pub(super) fn files(directory: &TrustDirectory) -> [PathBuf; 2] {
        [directory.server_pair(), directory.curve()]
    }

    /// The system that a key is bound to.
    pub fn system(&self, key: &PublicKey) -> Option<&SystemName> {
        self.systems.get(key)
    }
}
