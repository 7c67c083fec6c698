//! One cloud for all unit tests of this crate: making its keys takes a second.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    utc::UtcTime,
};
use tempfile::TempDir;

use crate::{
    authority::{Authority, Profile},
    directory::{self, CLOUD_LIFETIME, ROOT_LIFETIME, TrustDirectory},
    identity::Identity,
    key::{KeySize, PrivateKey},
};

pub const DAY: Duration = Duration::from_secs(86_400);

static ROOT: LazyLock<Authority> = LazyLock::new(|| Authority::root(now(), ROOT_LIFETIME).expect("a root is made"));
static CLOUD: LazyLock<Authority> = LazyLock::new(|| root().issue_cloud(&cloud_name(), now(), CLOUD_LIFETIME).expect("a cloud is made"));
static KEY: LazyLock<Arc<PrivateKey>> = LazyLock::new(|| Arc::new(PrivateKey::generate(KeySize::Bits2048).expect("a key is made")));

/// The time in all these tests.
pub fn now() -> UtcTime {
    UtcTime::parse("2031-01-01T00:00:00Z").expect("a time")
}

pub fn cloud_name() -> CloudCommonName {
    CloudCommonName::parse("testcloud1.aitia.arrowhead.eu").expect("a cloud's name")
}

pub fn root() -> &'static Authority {
    &ROOT
}

pub fn cloud() -> &'static Authority {
    &CLOUD
}

/// A system's key, for all systems.
pub fn key() -> Arc<PrivateKey> {
    KEY.clone()
}

/// What the certificate of `sensor` says, which counts for 90 days.
pub fn profile() -> Profile {
    let name = SystemCommonName::parse("sensor.testcloud1.aitia.arrowhead.eu").expect("a system's name");
    Profile::system(&name, &["localhost".to_owned(), "127.0.0.1".to_owned()], now(), 90 * DAY)
}

/// The identity of `sensor`.
pub fn sensor() -> Identity {
    let certificate = cloud().certify(&profile(), &key().public_key_info()).expect("a certificate is issued");
    Identity::new(cloud().chain_of(certificate), key()).expect("certificate and key fit")
}

/// A directory of the example cloud.
pub fn directory() -> (TempDir, TrustDirectory) {
    let place = TempDir::new().expect("a temporary directory");
    let directory = TrustDirectory::new(place.path().join("trust"));
    directory::make_directory(&directory.systems()).expect("directories are made");
    directory.found(root(), cloud(), now()).expect("files are written");
    (place, directory)
}
