//! How a system comes to its certificate: what is there and good is kept, anything else is issued, and the ledger has it first.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    ledger_line::LedgerLine,
    name::SystemName,
    utc::UtcTime,
};

use crate::{
    authority::{Authority, IssueError, Profile},
    certificate::Certificate,
    directory::{DirectoryError, Result, TrustDirectory, files_in},
    file::{self, FileError, Sync},
    identity::Identity,
    key::{KeySize, PrivateKey},
    ledger::Entry,
    lock::Lock,
    revocation::Revocations,
    shared_ledger::line_of_entry,
};

/// A system's identity that is wanted in two files of a folder, `NAME.crt` and `NAME.key`.
#[derive(Clone, Debug)]
pub struct Order {
    /// Whose.
    pub system: SystemName,
    /// DNS names and IP addresses that it counts for as a server, besides its own name.
    pub alternative_names: Vec<String>,
    /// How long it counts if it is issued.
    pub lifetime: Duration,
    /// Where the files are; the folder is there. Without one it is issued, and whoever ordered it writes it.
    pub folder: Option<PathBuf>,
    /// Which key it has.
    pub key: KeyChoice,
}

/// Which key a certificate is issued for.
#[derive(Clone, Debug)]
pub enum KeyChoice {
    /// That which is there, so that who knows the public key need not be told; a new one if there is none, or it was revoked.
    Kept,
    /// A new one, so that nothing that is there is kept.
    New,
    /// This one, which others have too. For load tests only: they can be each other.
    Shared(Arc<PrivateKey>),
}

/// What came of an order.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What is in the files now.
    pub identity: Identity,
    /// Whether it was issued for this order; otherwise it was there.
    pub is_new: bool,
}

impl TrustDirectory {
    /// The kept identity of a core system or the operator. It is issued if it is not there, if two thirds of its life are over, if it is
    /// revoked or if it does not count for all of the names; its key stays. The authority's key is needed only then.
    pub fn ensure_identity(&self, system: &SystemName, alternative_names: &[String], now: UtcTime, lifetime: Duration) -> Result<Identity> {
        let (system, alternative_names, folder) = (system.clone(), alternative_names.to_vec(), Some(self.systems()));
        let order = Order { system, alternative_names, lifetime, folder, key: KeyChoice::Kept };
        Ok(self.ensure(&order, now)?.identity)
    }

    /// Returns the serial number of a system's certificate here if it is revoked and no newer one has replaced it.
    ///
    /// Without a certificate in the directory the newest one of the system's name in the ledger decides. So a node whose certificate was revoked does not obtain
    /// another one because a file is missing.
    pub fn find_revoked(&self, system: &SystemName, now: UtcTime) -> Result<Option<String>> {
        let (certificate, _) = self.system_files(system);
        if let Some(chain) = if_there(file::read_certificates(&certificate), &certificate)? {
            let is_revoked = self.revocations(now)?.contains(&chain[0]);
            return Ok(is_revoked.then(|| chain[0].serial_text()));
        }
        let name = SystemCommonName { system: system.clone(), cloud: self.cloud()? }.to_string();
        let ledger = self.ledger()?;
        let newest = ledger.issued().iter().rev().find(|issued| issued.name == name);
        Ok(newest.filter(|issued| issued.revoked_at.is_some()).map(|issued| issued.serial.clone()))
    }

    /// Fills an order.
    pub fn ensure(&self, order: &Order, now: UtcTime) -> Result<Delivery> {
        let key = match self.standing(now)?.look(order)? {
            Found::Good(identity) => return Ok(Delivery { identity, is_new: false }),
            Found::Wanting(key) => key,
        };
        let identity = order.issue(&self.authority()?, key, now)?;
        self.deliver(&[(order, &identity)], now, Sync::Now)?;
        Ok(Delivery { identity, is_new: true })
    }

    /// Issues a certificate for a public key whose owner has shown to have the private one; gives its chain. The name and all else are
    /// those of the profile.
    pub fn certify(&self, authority: &Authority, profile: &Profile, public_key_info: &[u8]) -> Result<Vec<Certificate>> {
        self.certify_told(authority, profile, public_key_info, |_| Ok(()))
    }

    /// As [`Self::certify`], of a cloud whose nodes share the account: `told` has the line brought to the others, or says why nothing may be issued. Only
    /// then it is in the ledger, and anybody's.
    pub fn certify_told<E: From<DirectoryError>>(
        &self,
        authority: &Authority,
        profile: &Profile,
        public_key_info: &[u8],
        told: impl FnOnce(LedgerLine) -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<Certificate>, E> {
        let certificate = authority.certify(profile, public_key_info).map_err(DirectoryError::Issue)?;
        told(line_of_entry(&Entry::issue(&certificate, profile.now)))?;
        self.record(&Lock::take(self.path())?, &[&certificate], profile.now)?;
        Ok(authority.chain_of(certificate))
    }

    /// Issues a certificate of the same names for an identity that this authority has issued before; the key stays unless a new one is
    /// asked for. A revoked certificate is not renewed. Writing it is the caller's.
    pub fn renew(&self, identity: &Identity, new_key: bool, lifetime: Duration, now: UtcTime) -> Result<Identity> {
        let (authority, own) = (self.authority()?, identity.certificate());
        let name = own.told_name().to_owned();
        if !own.is_issued_by(authority.certificate()) {
            return Err(DirectoryError::NotOurs { name, issuer: own.issuer().unwrap_or("nobody").to_owned() });
        }
        if self.revocations(now)?.contains(own) {
            return Err(DirectoryError::Revoked(name));
        }
        let key = if new_key { new_key_pair()? } else { identity.key().clone() };
        let profile = Profile { name, alternative_names: own.alternative_names().to_vec(), now, lifetime };
        let chain = self.certify(&authority, &profile, &key.public_key_info())?;
        Ok(Identity::new(chain, key).map_err(IssueError::Identity)?)
    }

    /// Puts what was issued into the ledger, then into its files.
    pub(crate) fn deliver(&self, issued: &[(&Order, &Identity)], now: UtcTime, sync: Sync) -> Result<()> {
        let lock = Lock::take(self.path())?;
        let certificates: Vec<_> = issued.iter().map(|(_, identity)| identity.certificate()).collect();
        self.record(&lock, &certificates, now)?;
        for (order, identity) in issued {
            if let Some((certificate, key)) = order.files() {
                file::write_identity_with(&certificate, &key, identity, sync)?;
            }
        }
        Ok(())
    }

    /// What certificates are held against.
    pub(crate) fn standing(&self, now: UtcTime) -> Result<Standing> {
        Ok(Standing { cloud: self.cloud()?, anchor: self.anchor()?, revocations: self.revocations(now)?, now })
    }
}

impl Order {
    /// The files that it asks for: chain and key.
    pub fn files(&self) -> Option<(PathBuf, PathBuf)> {
        self.folder.as_ref().map(|folder| files_in(folder, &self.system))
    }

    /// Issues what is wanted, for `key` or a new one. Nobody may have it before it is delivered.
    pub(crate) fn issue(&self, authority: &Authority, key: Option<Arc<PrivateKey>>, now: UtcTime) -> Result<Identity> {
        let anchor = authority.certificate();
        let cloud = CloudCommonName::parse(anchor.common_name().unwrap_or_default())
            .map_err(|_| IssueError::NoAuthority(anchor.told_name().to_owned()))?;
        let name = SystemCommonName { system: self.system.clone(), cloud };
        let key = match key {
            Some(key) => key,
            None => new_key_pair()?,
        };
        let profile = Profile::system(&name, &self.alternative_names, now, self.lifetime);
        let certificate = authority.certify(&profile, &key.public_key_info())?;
        Ok(Identity::new(authority.chain_of(certificate), key).map_err(IssueError::Identity)?)
    }
}

fn new_key_pair() -> Result<Arc<PrivateKey>> {
    Ok(Arc::new(PrivateKey::generate(KeySize::Bits2048).map_err(IssueError::Key)?))
}

/// What certificates are held against at a time.
pub(crate) struct Standing {
    cloud: CloudCommonName,
    anchor: Certificate,
    revocations: Revocations,
    now: UtcTime,
}

/// What is in the place of an order.
pub(crate) enum Found {
    /// What was ordered.
    Good(Identity),
    /// Nothing, or what is to be replaced; the key stays if there is one.
    Wanting(Option<Arc<PrivateKey>>),
}

impl Standing {
    /// Looks what is in the place of an order. What another authority has issued is an error: it is not ours to replace.
    pub(crate) fn look(&self, order: &Order) -> Result<Found> {
        let shared = match &order.key {
            KeyChoice::Shared(key) => Some(key.clone()),
            KeyChoice::Kept | KeyChoice::New => None,
        };
        let Some((certificate, key_path)) = order.files() else { return Ok(Found::Wanting(shared)) };
        let chain = if_there(file::read_certificates(&certificate), &certificate)?;
        let own = chain.as_ref().map(|chain| &chain[0]);
        if let Some(foreign) = own.filter(|own| !own.is_issued_by(&self.anchor)) {
            let issuer = foreign.issuer().unwrap_or("nobody").to_owned();
            return Err(DirectoryError::Foreign { path: certificate, issuer });
        }
        let is_revoked = own.is_some_and(|own| self.revocations.contains(own));
        let kept = if_there(file::read_key(&key_path, None), &key_path)?.map(Arc::new);
        let key = match &order.key {
            KeyChoice::Shared(_) => shared,
            KeyChoice::New => None,
            // Whoever has got hold of the certificate's key still has it.
            KeyChoice::Kept => kept.clone().filter(|_| !is_revoked),
        };
        match (chain, &key) {
            (Some(chain), Some(key)) if !is_revoked && self.is_good(&chain[0], order) => {
                // Key and certificate differ where writing them was interrupted, or the order is for another key.
                let same_key = kept.is_some_and(|kept| kept.pkcs8() == key.pkcs8());
                match Identity::new(chain, key.clone()) {
                    Ok(identity) if same_key => Ok(Found::Good(identity)),
                    _ => Ok(Found::Wanting(Some(key.clone()))),
                }
            }
            _ => Ok(Found::Wanting(key)),
        }
    }

    fn is_good(&self, certificate: &Certificate, order: &Order) -> bool {
        let is_in_its_time = certificate.is_valid_at(self.now) && self.now < certificate.renewal_due();
        let name = SystemCommonName { system: order.system.clone(), cloud: self.cloud.clone() };
        let is_named = certificate.system().is_ok_and(|system| system == name);
        let names = certificate.alternative_names();
        let counts_for_all = order.alternative_names.iter().all(|wanted| names.iter().any(|name| is_same_name(name, wanted)));
        is_in_its_time && is_named && counts_for_all && certificate.key_kind().is_strong()
    }
}

/// Addresses have several forms, host names two cases.
fn is_same_name(one: &str, other: &str) -> bool {
    match (one.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}

/// What was read, nothing if there is no file, or an empty one: what was not synced is empty after a loss of power.
fn if_there<T>(read: std::result::Result<T, FileError>, path: &Path) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_missing() => Ok(None),
        Err(_) if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::example::{self, DAY, directory, now};

    fn order(directory: &TrustDirectory, key: KeyChoice) -> Order {
        let system = SystemName::parse("sensor").unwrap();
        let names = vec!["LocalHost".to_owned(), "0:0::1".to_owned()];
        Order { system, alternative_names: names, lifetime: 90 * DAY, folder: Some(directory.systems()), key }
    }

    /// Issued first for the key of all examples: making keys takes time.
    fn delivered(directory: &TrustDirectory) -> Identity {
        let delivery = directory.ensure(&order(directory, KeyChoice::Shared(example::key())), now()).unwrap();
        assert!(delivery.is_new);
        delivery.identity
    }

    #[test]
    fn what_is_there_and_good_is_kept() {
        let (_place, directory) = directory();
        let first = delivered(&directory);
        let again = directory.ensure(&order(&directory, KeyChoice::Kept), now().plus(50 * DAY)).unwrap();
        assert!(!again.is_new);
        assert_eq!(again.identity.chain(), first.chain());
        assert_eq!(directory.identity(&SystemName::parse("sensor").unwrap()).unwrap().chain(), first.chain());
        assert_eq!(directory.ledger().unwrap().issued().len(), 1);
    }

    #[test]
    fn what_is_no_longer_good_is_issued_anew_for_the_same_key() {
        let (_place, directory) = directory();
        let first = delivered(&directory);
        let kept = order(&directory, KeyChoice::Kept);
        let other_name = Order { alternative_names: vec!["elsewhere".to_owned()], ..kept.clone() };
        for (order, time) in [(&kept, now().plus(61 * DAY)), (&kept, now().plus(200 * DAY)), (&other_name, now())] {
            let before = directory.ledger().unwrap().issued().len();
            let delivery = directory.ensure(order, time).unwrap();
            assert!(delivery.is_new);
            assert_eq!(delivery.identity.key().pkcs8(), first.key().pkcs8());
            assert_eq!(directory.ledger().unwrap().issued().len(), before + 1);
        }
    }

    #[test]
    fn a_revoked_certificate_costs_its_owner_the_key() {
        let (_place, directory) = directory();
        let first = delivered(&directory);
        directory.revoke(&[first.certificate().serial_text()], now()).unwrap();
        let second = directory.ensure(&order(&directory, KeyChoice::Kept), now()).unwrap();
        assert!(second.is_new);
        assert_ne!(second.identity.key().pkcs8(), first.key().pkcs8());
    }

    #[test]
    fn revoked_certificate_is_found_until_another_is_issued() {
        let (_place, directory) = directory();
        let system = SystemName::parse("sensor").unwrap();
        assert_eq!(directory.find_revoked(&system, now()).unwrap(), None, "none was issued");
        let serial = delivered(&directory).certificate().serial_text();
        assert_eq!(directory.find_revoked(&system, now()).unwrap(), None);
        directory.revoke(std::slice::from_ref(&serial), now()).unwrap();
        assert_eq!(directory.find_revoked(&system, now()).unwrap(), Some(serial.clone()));
        let (certificate, _) = directory.system_files(&system);
        fs::remove_file(certificate).unwrap();
        assert_eq!(directory.find_revoked(&system, now()).unwrap(), Some(serial), "the ledger knows");
        directory.ensure(&order(&directory, KeyChoice::Kept), now()).unwrap();
        assert_eq!(directory.find_revoked(&system, now()).unwrap(), None);
    }

    #[test]
    fn what_an_interruption_has_left_is_completed() {
        let (_place, directory) = directory();
        let first = delivered(&directory);
        let kept = order(&directory, KeyChoice::Kept);
        let (certificate, key) = directory.system_files(&kept.system);
        let text = fs::read(&certificate).unwrap();
        fs::remove_file(&certificate).unwrap();
        assert_eq!(directory.ensure(&kept, now()).unwrap().identity.key().pkcs8(), first.key().pkcs8(), "the key alone");
        fs::write(&certificate, "").unwrap();
        assert!(directory.ensure(&kept, now()).unwrap().is_new, "not synced before the power went");
        fs::write(&certificate, &text).unwrap();
        fs::remove_file(&key).unwrap();
        assert_ne!(directory.ensure(&kept, now()).unwrap().identity.key().pkcs8(), first.key().pkcs8(), "the certificate alone");
        fs::write(&certificate, &text).unwrap();
        let delivery = directory.ensure(&kept, now()).unwrap();
        assert!(delivery.is_new, "the certificate of another key");
    }

    #[test]
    fn what_comes_from_elsewhere_is_not_replaced() {
        let (_place, directory) = directory();
        let kept = order(&directory, KeyChoice::Kept);
        let (certificate, _) = directory.system_files(&kept.system);
        fs::write(&certificate, example::cloud().certificate().to_pem()).unwrap();
        let error = directory.ensure(&kept, now()).unwrap_err();
        assert!(matches!(&error, DirectoryError::Foreign { issuer, .. } if issuer == "arrowhead.eu"), "{error}");
        fs::write(&certificate, "somebody's notes").unwrap();
        assert!(matches!(directory.ensure(&kept, now()), Err(DirectoryError::File(FileError::Content { .. }))));
    }

    #[test]
    fn what_is_renewed_has_the_same_names_and_key_unless_a_new_one_is_asked_for() {
        let (_place, directory) = directory();
        let first = delivered(&directory);
        for new_key in [false, true] {
            let renewed = directory.renew(&first, new_key, 30 * DAY, now().plus(DAY)).unwrap();
            assert_eq!(renewed.certificate().alternative_names(), first.certificate().alternative_names());
            assert_eq!(renewed.certificate().not_after(), now().plus(31 * DAY));
            assert_eq!(renewed.key().pkcs8() == first.key().pkcs8(), !new_key);
            assert!(directory.ledger().unwrap().find(&renewed.certificate().serial_text()).is_some());
        }
        let elsewhere = Identity::new(vec![example::sensor().certificate().clone()], example::key()).unwrap();
        assert!(directory.renew(&elsewhere, false, DAY, now()).is_ok(), "issued by the same authority, in another directory");
        let root = example::root().identity();
        assert!(matches!(directory.renew(root, false, DAY, now()), Err(DirectoryError::NotOurs { .. })));
        directory.revoke(&[first.certificate().serial_text()], now()).unwrap();
        assert!(matches!(directory.renew(&first, false, DAY, now()), Err(DirectoryError::Revoked(_))));
    }

    #[test]
    fn without_a_folder_nothing_is_written_but_the_ledger() {
        let (_place, directory) = directory();
        let order = Order { folder: None, ..order(&directory, KeyChoice::Shared(example::key())) };
        assert!(directory.ensure(&order, now()).unwrap().is_new && directory.ensure(&order, now()).unwrap().is_new);
        assert_eq!(directory.ledger().unwrap().issued().len(), 2);
        assert_eq!(fs::read_dir(directory.systems()).unwrap().count(), 0);
    }

    #[test]
    fn an_encrypted_authority_is_not_asked_for_what_is_there() {
        let (_place, directory) = directory();
        delivered(&directory);
        fs::remove_file(directory.path().join("cloud.key")).unwrap();
        let kept = order(&directory, KeyChoice::Kept);
        assert!(!directory.ensure(&kept, now()).unwrap().is_new);
        assert!(directory.ensure(&Order { key: KeyChoice::New, ..kept }, now()).is_err());
    }
}
