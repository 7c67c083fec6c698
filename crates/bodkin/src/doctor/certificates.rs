//! Certificates of secure mode: until when they count, and whether what was revoked is known.

use std::{fs, path::Path, time::Duration};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_trust::{Certificate, TrustDirectory, file, keystore};

use super::finding::Finding;
use crate::settings::Settings;

const DAY: Duration = Duration::from_secs(86_400);
/// A system's certificate that ends so soon was not renewed when it was due.
pub(super) const SYSTEM_SOON: Duration = Duration::from_secs(14 * 86_400);
/// An authority is replaced with more work: every system needs another certificate.
const AUTHORITY_SOON: Duration = Duration::from_secs(180 * 86_400);
/// Names that are told of those whose certificates end soon.
const NAMED_MAX: usize = 5;

const CHECK: &str = "certificate";

/// Looks at the certificates that `bodkin up` would use; nothing in insecure mode, and what cannot be read is told.
pub fn examine(settings: &Settings, now: UtcTime) -> Vec<Finding> {
    let all = "complete settings have every option";
    if settings.insecure.expect(all) {
        return Vec::new();
    }
    let key_stores = settings.key_stores.clone().expect(all);
    if !key_stores.as_os_str().is_empty() {
        return in_key_stores(&key_stores, settings.key_store_password_file.as_deref().expect(all), now);
    }
    let directory = TrustDirectory::new(settings.trust_directory());
    if directory.exists() { in_directory(&directory, now) } else { Vec::new() }
}

fn in_directory(directory: &TrustDirectory, now: UtcTime) -> Vec<Finding> {
    let mut found = Vec::new();
    match directory.chain() {
        Ok(chain) => found.extend(chain.iter().map(|authority| judge_authority(authority, now))),
        Err(error) => found.push(unreadable(&error)),
    }
    match directory.revocations(now) {
        Ok(_) => found.push(Finding::ok(CHECK, "the list of revoked certificates can be read")),
        Err(error) => found.push(unreadable(&error)),
    }
    let mut files: Vec<_> = fs::read_dir(directory.systems()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "crt"));
    files.sort();
    for path in files {
        match file::read_certificates(&path) {
            Ok(chain) => found.extend(chain.first().map(|own| judge_system(own, now, "bodkin cert renew"))),
            Err(error) => found.push(unreadable(&error)),
        }
    }
    found.extend(issued(directory, now));
    found
}

/// What the authority has issued to systems whose certificates are not kept here: the newest of each name counts.
fn issued(directory: &TrustDirectory, now: UtcTime) -> Option<Finding> {
    let ledger = match directory.ledger() {
        Ok(ledger) => ledger,
        Err(error) => return Some(unreadable(&error)),
    };
    let mut newest = std::collections::BTreeMap::new();
    for one in ledger.issued().iter().filter(|one| one.revoked_at.is_none()) {
        let end = newest.entry(one.name.clone()).or_insert(one.not_after);
        *end = (*end).max(one.not_after);
    }
    let ending: Vec<(String, UtcTime)> = newest.into_iter().filter(|(_, end)| *end >= now && *end < now.plus(SYSTEM_SOON)).collect();
    if ending.is_empty() {
        return None;
    }
    let named: Vec<String> = ending.iter().take(NAMED_MAX).map(|(name, end)| format!("{name} ({end})")).collect();
    let more = ending.len().saturating_sub(NAMED_MAX);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let told = format!(
        "{} systems' certificates end within {} days: {}{rest}",
        ending.len(),
        SYSTEM_SOON.as_secs() / DAY.as_secs(),
        named.join(", ")
    );
    Some(Finding::warning(
        CHECK,
        told,
        "have whoever runs these systems renew them: bodkin cert renew, or bodkin cert issue for another one",
    ))
}

fn in_key_stores(folder: &Path, password_file: &Path, now: UtcTime) -> Vec<Finding> {
    let password = match (password_file.as_os_str().is_empty(), file::read_password(password_file)) {
        (true, _) => Default::default(),
        (false, Ok(password)) => password,
        (false, Err(error)) => return vec![unreadable(&error)],
    };
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "p12"));
    files.sort();
    if files.is_empty() {
        let told = format!("there is no key store (NAME.p12) in {}", folder.display());
        return vec![Finding::problem(CHECK, told, "name the folder of the core systems' key stores (--key-stores)")];
    }
    let judge = |path: &std::path::PathBuf| {
        let store = file::read_private(path).map_err(|error| unreadable(&error))?;
        let in_file = |error: keystore::KeyStoreError| unreadable(&format!("{}: {error}", path.display()));
        let identity = keystore::read_identity(&store, &password).map_err(in_file)?;
        Ok(judge_system(identity.certificate(), now, "put another key store there, as whoever issues these certificates makes it"))
    };
    files.iter().map(|path| judge(path).unwrap_or_else(|finding: Finding| finding)).collect()
}

fn judge_authority(authority: &Certificate, now: UtcTime) -> Finding {
    let (name, end) = (authority.told_name(), authority.not_after());
    let told = format!("the authority {name} counts until {end}");
    const ADVICE: &str =
        "make another cloud authority in a new directory (bodkin cert init --trust), and give every system a certificate of it";
    if end < now {
        Finding::problem(CHECK, format!("the authority {name} has ended, {end}: no certificate counts"), ADVICE)
    } else if end < now.plus(AUTHORITY_SOON) {
        Finding::warning(CHECK, told, ADVICE)
    } else {
        Finding::ok(CHECK, told)
    }
}

fn judge_system(own: &Certificate, now: UtcTime, advice: &str) -> Finding {
    let (name, end) = (own.told_name(), own.not_after());
    let told = format!("{name} counts until {end}");
    if end < now {
        Finding::problem(CHECK, format!("{name} has ended, {end}"), advice)
    } else if end < now.plus(SYSTEM_SOON) {
        Finding::warning(CHECK, format!("{told}, and was due for renewal {}", own.renewal_due()), advice)
    } else {
        Finding::ok(CHECK, told)
    }
}

fn unreadable(error: &impl ToString) -> Finding {
    Finding::problem(CHECK, error.to_string(), "repair what it names: without it the cloud does not start in secure mode")
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::{common_name::CloudCommonName, name::SystemName};

    use super::{super::Verdict, *};

    #[test]
    fn what_ends_soon_is_told_in_time_and_what_has_ended_is_a_problem() {
        let place = tempfile::tempdir().unwrap();
        let directory = TrustDirectory::new(place.path());
        let made = UtcTime::from_unix_nanos(1_800_000_000_000_000_000);
        directory.init(&CloudCommonName::parse("local.bodkin.arrowhead.eu").unwrap(), made).unwrap();
        let name = SystemName::from_stored("sensor");
        directory.ensure_identity(&name, &[], made, 90 * DAY).unwrap();
        let verdicts = |days: u32| {
            let found = in_directory(&directory, made.plus(days * DAY));
            let of = |part: &str| found.iter().find(|finding| finding.found.contains(part)).map(|finding| finding.verdict);
            (of("sensor.local"), of("systems' certificates end"), of("authority local"))
        };
        assert_eq!(verdicts(1), (Some(Verdict::Ok), None, Some(Verdict::Ok)));
        assert_eq!(verdicts(80), (Some(Verdict::Warning), Some(Verdict::Warning), Some(Verdict::Ok)));
        assert_eq!(verdicts(91), (Some(Verdict::Problem), None, Some(Verdict::Ok)));
        assert_eq!(verdicts(10 * 365 - 100).2, Some(Verdict::Warning));
        assert_eq!(verdicts(10 * 365 + 1).2, Some(Verdict::Problem));
        fs::remove_file(place.path().join("revoked.crl")).unwrap();
        let without = in_directory(&directory, made);
        let is_told = without.iter().any(|finding| finding.verdict == Verdict::Problem && finding.found.contains("revoked.crl"));
        assert!(is_told, "{without:?}");
    }

    #[test]
    fn a_folder_without_key_stores_and_one_that_cannot_be_opened_are_problems() {
        let place = tempfile::tempdir().unwrap();
        let now = UtcTime::from_unix_nanos(1_800_000_000_000_000_000);
        let verdicts = || in_key_stores(place.path(), Path::new(""), now).iter().map(|finding| finding.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(), [Verdict::Problem]);
        file::write_private(&place.path().join("orchestrator.p12"), b"no key store").unwrap();
        assert_eq!(verdicts(), [Verdict::Problem]);
    }
}
