//! Grants to new systems: made by the operator, spent by whoever comes with the secret or the device's certificate.

use aws_lc_rs::constant_time;
use bodkin_arrowhead::{
    name::SystemName,
    onboarding::{GRANTS_MAX, Grant, NamePattern, NewGrant, NotGranted},
};

use crate::{
    database::{DatabaseError, DatabaseResult, Row, params},
    draft::{Draft, OperationError, seconds, time},
};

/// The table. Of a secret only the hash is kept.
pub(crate) const MIGRATION: &str = "
CREATE TABLE onboarding_grant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    system_name TEXT NOT NULL,
    secret_hash BLOB,
    device TEXT UNIQUE,
    uses_left INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    alternative_names TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CHECK ((secret_hash IS NULL) <> (device IS NULL))
) STRICT;
";

const COLUMNS: &str = "id, system_name, device, uses_left, expires_at, alternative_names, created_at";

/// SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

/// What somebody comes with.
#[derive(Clone)]
pub enum Credential {
    /// The secret of this grant.
    Secret {
        /// Which grant.
        id: i64,
        /// What its secret should hash to.
        hash: SecretHash,
    },
    /// The certificate of the device with this common name.
    Device(String),
}

/// A grant that was spent once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The grant as it was.
    pub grant: Grant,
    /// Who gets the certificate.
    pub system: SystemName,
}

impl Draft<'_> {
    /// Makes a grant; exactly one of device and secret is given. Those that are over make room.
    pub fn add_grant(&mut self, new: &NewGrant, secret: Option<SecretHash>) -> Result<Grant, OperationError> {
        self.run("DELETE FROM onboarding_grant WHERE expires_at < ?1 OR uses_left = 0", [self.now_seconds()])?;
        let count = self.id("SELECT count(*) FROM onboarding_grant", ())?.unwrap_or_default();
        if usize::try_from(count).unwrap_or_default() >= GRANTS_MAX {
            return Err(OperationError::invalid(format!("There are {GRANTS_MAX} grants, which is the limit. Remove some.")));
        }
        if let Some(device) = &new.device
            && self.id("SELECT id FROM onboarding_grant WHERE device = ?1", [device])?.is_some()
        {
            return Err(OperationError::invalid(format!("There is a grant for the device '{device}'. Remove it first.")));
        }
        let names = serde_json::to_string(&new.alternative_names).expect("texts are JSON");
        let inserted = format!(
            "INSERT INTO onboarding_grant (system_name, secret_hash, device, uses_left, expires_at, alternative_names, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING {COLUMNS}"
        );
        let values = params![
            new.systems.to_string(),
            secret.map(|hash| hash.0),
            new.device.as_ref(),
            new.uses,
            seconds(new.expires_at),
            names,
            self.now_seconds()
        ];
        Ok(self.row(&inserted, values, grant)?.expect("an inserted row is returned"))
    }

    /// Every grant, by id.
    pub fn grants(&self) -> Result<Vec<Grant>, OperationError> {
        self.rows(&format!("SELECT {COLUMNS} FROM onboarding_grant ORDER BY id"), (), grant)
    }

    /// Removes a grant; gives whether it was there.
    pub fn remove_grant(&mut self, id: i64) -> Result<bool, OperationError> {
        Ok(self.run("DELETE FROM onboarding_grant WHERE id = ?1", [id])? == 1)
    }

    /// Spends a grant once, for the system that is asked for or the only one there is. Who comes at the same time comes before or after.
    pub fn spend_grant(
        &mut self,
        credential: &Credential,
        asked: Option<&SystemName>,
    ) -> Result<Result<Spent, NotGranted>, OperationError> {
        let Some(grant) = self.granted(credential)? else { return Ok(Err(NotGranted::Unknown)) };
        match grant.admit(asked, time(self.now_seconds())) {
            Err(why) => Ok(Err(why)),
            Ok(system) => {
                self.run("UPDATE onboarding_grant SET uses_left = uses_left - 1 WHERE id = ?1", [grant.id])?;
                Ok(Ok(Spent { grant, system }))
            }
        }
    }

    /// Takes back that a grant was spent: nothing was issued.
    pub fn return_grant(&mut self, id: i64) -> Result<(), OperationError> {
        self.run("UPDATE onboarding_grant SET uses_left = uses_left + 1 WHERE id = ?1", [id])?;
        Ok(())
    }

    fn granted(&self, credential: &Credential) -> Result<Option<Grant>, OperationError> {
        match credential {
            Credential::Device(name) => {
                Ok(self.row(&format!("SELECT {COLUMNS} FROM onboarding_grant WHERE device = ?1"), [name], grant)?)
            }
            Credential::Secret { id, hash } => {
                let found = self.row(&format!("SELECT {COLUMNS}, secret_hash FROM onboarding_grant WHERE id = ?1"), [*id], |row| {
                    Ok((grant(row)?, row.get::<Option<[u8; 32]>>(7)?))
                })?;
                // A grant that is not there takes as long as one with another secret.
                let kept = found.as_ref().and_then(|(_, kept)| *kept).unwrap_or_default();
                let is_it = constant_time::verify_slices_are_equal(&kept, &hash.0).is_ok();
                Ok(found.filter(|(_, kept)| is_it && kept.is_some()).map(|(grant, _)| grant))
            }
        }
    }
}

fn grant(row: &Row<'_>) -> DatabaseResult<Grant> {
    let (pattern, names): (String, String) = (row.get(1)?, row.get(5)?);
    Ok(Grant {
        id: row.get(0)?,
        systems: NamePattern::parse(&pattern).map_err(|error| DatabaseError::column(1, error))?,
        device: row.get(2)?,
        uses_left: row.get(3)?,
        expires_at: time(row.get(4)?),
        alternative_names: serde_json::from_str(&names).map_err(|error| DatabaseError::column(5, error))?,
        created_at: time(row.get(6)?),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bodkin_arrowhead::{onboarding::GrantRequest, utc::UtcTime};
    use tempfile::TempDir;

    use super::*;
    use crate::{Opened, Store, StoreError};

    struct Bench {
        _place: TempDir,
        opened: Opened,
    }

    impl Bench {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let opened = Store::open(place.path()).unwrap();
            Self { _place: place, opened }
        }

        fn write<T: Send + 'static>(
            &self,
            operation: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError> + Send + 'static,
        ) -> Result<T, StoreError> {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(self.opened.store.write(operation, |_, done| done))
        }

        fn add(&self, request: GrantRequest, secret: Option<SecretHash>) -> Result<Grant, StoreError> {
            let now = UtcTime::from_system_time(std::time::SystemTime::now()).unwrap();
            let new = NewGrant::parse(request, now).unwrap();
            self.write(move |draft| draft.add_grant(&new, secret))
        }

        fn spend(&self, credential: Credential, asked: Option<&str>) -> Result<Spent, NotGranted> {
            let asked = asked.map(|name| SystemName::parse(name).unwrap());
            self.write(move |draft| draft.spend_grant(&credential, asked.as_ref())).unwrap()
        }
    }

    const HASH: SecretHash = SecretHash([7; 32]);

    fn request(system_name: &str, uses: u32) -> GrantRequest {
        GrantRequest { system_name: system_name.into(), uses: Some(uses), ..GrantRequest::default() }
    }

    #[test]
    fn a_secret_is_spent_as_often_as_it_may_be_and_no_more() {
        let bench = Bench::new();
        let id = bench.add(request("sensor-*", 2), Some(HASH)).unwrap().id;
        let right = Credential::Secret { id, hash: HASH };
        assert_eq!(bench.spend(right.clone(), Some("sensor-1")).unwrap().system.as_str(), "sensor-1");
        assert!(matches!(bench.spend(right.clone(), Some("display")), Err(NotGranted::Name { .. })));
        assert!(bench.spend(right.clone(), Some("sensor-2")).is_ok());
        assert_eq!(bench.spend(right.clone(), Some("sensor-3")), Err(NotGranted::UsedUp));
        bench.write(move |draft| draft.return_grant(id)).unwrap();
        assert!(bench.spend(right, Some("sensor-3")).is_ok());
    }

    #[test]
    fn another_secret_another_grant_and_a_device_s_grant_are_unknown() {
        let bench = Bench::new();
        let id = bench.add(request("sensor-1", 1), Some(HASH)).unwrap().id;
        let device = GrantRequest { device: Some("device-1".into()), ..request("sensor-2", 1) };
        let of_device = bench.add(device, None).unwrap().id;
        let zeros = SecretHash([0; 32]);
        for (id, hash) in [(id, SecretHash([8; 32])), (id + 7, HASH), (id + 7, zeros), (of_device, HASH), (of_device, zeros)] {
            assert_eq!(bench.spend(Credential::Secret { id, hash }, None), Err(NotGranted::Unknown));
        }
        assert_eq!(bench.spend(Credential::Device("device-2".into()), None), Err(NotGranted::Unknown));
        assert_eq!(bench.spend(Credential::Device("device-1".into()), None).unwrap().system.as_str(), "sensor-2");
        assert!(bench.spend(Credential::Secret { id, hash: HASH }, None).is_ok(), "what others have tried costs nothing");
    }

    #[test]
    fn what_is_over_counts_no_more_and_goes_with_the_next() {
        let bench = Bench::new();
        let short = GrantRequest { expires_in_seconds: Some(1), ..request("sensor-1", 1) };
        let id = bench.add(short, Some(HASH)).unwrap().id;
        std::thread::sleep(Duration::from_millis(2100));
        assert_eq!(bench.spend(Credential::Secret { id, hash: HASH }, None), Err(NotGranted::Expired));
        let kept = bench.add(request("sensor-2", 1), Some(HASH)).unwrap();
        assert_eq!(bench.write(|draft| draft.grants()).unwrap(), std::slice::from_ref(&kept));
        assert!(bench.write(move |draft| draft.remove_grant(kept.id)).unwrap());
        assert!(!bench.write(move |draft| draft.remove_grant(kept.id)).unwrap());
    }

    #[test]
    fn a_device_has_one_grant() {
        let bench = Bench::new();
        let device = || GrantRequest { device: Some("device-1".into()), ..request("sensor-2", 1) };
        let first = bench.add(device(), None).unwrap();
        assert!(bench.add(device(), None).unwrap_err().to_string().contains("device-1"));
        bench.write(move |draft| draft.remove_grant(first.id)).unwrap();
        bench.add(device(), None).unwrap();
    }
}
