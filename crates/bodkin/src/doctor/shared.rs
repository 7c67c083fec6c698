//! The database that several nodes share: is it reached, may this user work with it, and is it of this version?

use std::path::Path;

use bodkin_store::{
    database_choice,
    identity::{self, DatabaseId},
    shared::{DatabasePlace, Look, Secrecy, look},
};

use super::finding::Finding;
use crate::settings::Settings;

const CHECK: &str = "shared database";
/// The check whether the parts of the data directory belong to the database.
const IDENTITY: &str = "identity";

/// Looks at it, if there is one.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    match settings.shared_database() {
        Ok(Some(place)) => {
            let looked = look(&place);
            let directory = settings.data.as_deref().expect("complete settings have every option");
            let belonging = looked.as_ref().ok().and_then(|look| belonging(directory, look.cloud.as_ref()));
            std::iter::once(judge(&place, looked)).chain(belonging).chain(secrecy(&place)).collect()
        }
        // That it cannot be read is told with the other options.
        Ok(None) | Err(_) => Vec::new(),
    }
}

/// Whether the events and the audit log of the data directory are of the database's cloud. `None` if the directory has neither.
fn belonging(directory: &Path, cloud: Option<&DatabaseId>) -> Option<Finding> {
    match database_choice::refuse_other_shared(directory, cloud) {
        Err(error) => {
            let advice = "name the database of this directory (--database, BODKIN_DATABASE), or another data directory (--data)";
            Some(Finding::problem(IDENTITY, error.to_string(), advice))
        }
        Ok(()) => {
            let bound = identity::database_of_parts(directory).ok()??;
            Some(Finding::ok(IDENTITY, format!("shared database, events and audit log are of database {bound}")))
        }
    }
}

/// The way to the server, where others may be on it.
fn secrecy(place: &DatabasePlace) -> Option<Finding> {
    let advice = "say sslmode=verify-full&sslrootcert=FILE in the database's URL (docs/how-to/several-nodes.md)";
    Some(match place.secrecy()? {
        Secrecy::Verified => Finding::ok(CHECK, "the way to it is TLS, and the server has to show who it is"),
        Secrecy::Unverified => Finding::warning(CHECK, "the way to it is TLS, and whoever answers is believed to be the server", advice),
        Secrecy::None => {
            Finding::warning(CHECK, "the way to it is not protected: who is on it reads all that is said, and the password", advice)
        }
    })
}

fn judge(place: &DatabasePlace, looked: Result<Look, String>) -> Finding {
    let Look { server, version, version_known, may_make, nodes, unsafe_settings, awaits_standby, .. } = match looked {
        Ok(look) => look,
        Err(why) => {
            let advice = "see that the server runs and is reached from here, and that user, password, database and rights are right (docs/how-to/several-nodes.md)";
            return Finding::problem(CHECK, format!("{place} cannot be used: {why}"), advice);
        }
    };
    let told = format!("{place} is PostgreSQL {server}, {nodes} nodes are connected");
    match version {
        // The first node of this release makes what is new.
        Some(version) if version < version_known => {
            Finding::ok(CHECK, format!("{told}; its tables are of version {version}, and bodkin up brings them to {version_known}"))
        }
        Some(version) if version != version_known => {
            let told = format!("{told}; its tables are of version {version}, and this Bodkin works with {version_known}");
            Finding::problem(CHECK, told, "bring every node of the cloud to the same release")
        }
        None | Some(_) if !may_make => Finding::problem(
            CHECK,
            format!("{told}; this user may not make tables in it"),
            "as the database's owner: GRANT CREATE ON DATABASE ... TO ...",
        ),
        _ if !unsafe_settings.is_empty() => {
            let told = format!("{told}; {} is off, so that a crash of its machine loses what was answered", unsafe_settings.join(" and "));
            Finding::warning(CHECK, told, "switch it on in postgresql.conf")
        }
        _ if place.hosts() > 1 && !awaits_standby => {
            let told = format!("{told}; it acknowledges what no standby has yet, so that a fail-over loses what was answered");
            Finding::warning(CHECK, told, "name the standbys in synchronous_standby_names (docs/how-to/several-nodes.md)")
        }
        None => Finding::ok(CHECK, format!("{told}; it is empty, and the first bodkin up makes the tables")),
        Some(version) => Finding::ok(CHECK, format!("{told}; its tables are of version {version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn what_is_found_is_judged() {
        let place = DatabasePlace::parse("postgres://bodkin:secret@db/cloud").unwrap();
        let good = Look {
            server: "15.1".into(),
            version: Some(1),
            version_known: 1,
            may_make: true,
            cloud: None,
            nodes: 2,
            unsafe_settings: Vec::new(),
            awaits_standby: false,
        };
        let pair = DatabasePlace::parse("postgres://bodkin:secret@db1,db2/cloud").unwrap();
        assert!(judge(&pair, Ok(good.clone())).found.contains("no standby has yet"));
        assert_eq!(judge(&pair, Ok(Look { awaits_standby: true, ..good.clone() })).verdict, Verdict::Ok);
        let cases = [
            (Ok(good.clone()), Verdict::Ok, "2 nodes"),
            (Ok(Look { version: None, ..good.clone() }), Verdict::Ok, "empty"),
            (Ok(Look { version: Some(2), ..good.clone() }), Verdict::Problem, "version 2"),
            (Ok(Look { version_known: 2, ..good.clone() }), Verdict::Ok, "brings them to 2"),
            (Ok(Look { may_make: false, ..good.clone() }), Verdict::Problem, "may not make"),
            (Ok(Look { unsafe_settings: vec!["fsync".into()], ..good }), Verdict::Warning, "fsync is off"),
            (Err("password authentication failed".into()), Verdict::Problem, "password authentication failed"),
        ];
        for (looked, verdict, expected) in cases {
            let finding = judge(&place, looked);
            assert!(finding.verdict == verdict && finding.found.contains(expected), "{finding}");
            assert!(!finding.found.contains("secret"), "{finding}");
        }
    }
}
