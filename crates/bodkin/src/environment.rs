//! Variables named BODKIN_*: one that no option has is a mistake, as an unknown key of the configuration file is.

use std::collections::BTreeSet;

use clap::Command;

use crate::{nearest::nearest, passphrase, settings::moved};

/// What such a name begins with.
const PREFIX: &str = "BODKIN_";
/// Variables of the script `x` and of the tests.
const OF_THE_TREE: [&str; 11] = [
    "BODKIN_ARROWHEAD_CLIENT",
    "BODKIN_JOSERFC",
    "BODKIN_NATS_SERVER",
    "BODKIN_NUMPY",
    "BODKIN_PYZMQ",
    "BODKIN_RUSTUP_URL",
    "BODKIN_SCHEMATHESIS",
    "BODKIN_SKIPS",
    "BODKIN_TEST_ALL",
    "BODKIN_TEST_SEED",
    "BODKIN_WRITE_REFERENCE",
];
/// Variables that no option has: others see the options of a process.
const SECRETS: [&str; 1] = [passphrase::VARIABLE];

/// Says what is wrong if the environment has a variable that no option of `command` or its subcommands has.
pub fn check(command: &Command, variables: impl Iterator<Item = (String, String)>) -> Result<(), String> {
    let mut known = BTreeSet::new();
    collect(command, &mut known);
    known.extend(OF_THE_TREE.into_iter().chain(SECRETS).map(str::to_owned));
    for (name, value) in variables.filter(|(name, _)| name.starts_with(PREFIX)) {
        if !known.contains(&name) && !is_of_kubernetes(&name, &value) {
            if let Some(told) = moved::told(&name) {
                return Err(told);
            }
            // All begin alike, which makes none the nearer.
            let near = nearest(&name[PREFIX.len()..], known.iter().filter_map(|known| known.strip_prefix(PREFIX)));
            let near = near.map(|known| format!(" Did you mean {PREFIX}{known}?"));
            let near = near.unwrap_or_else(|| " See bodkin up --help for those there are.".to_owned());
            return Err(format!("no option has the environment variable {name}.{near} Correct or unset it."));
        }
    }
    Ok(())
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|option| Some(option.get_env()?.to_string_lossy().into_owned())));
    command.get_subcommands().for_each(|below| collect(below, known));
}

/// Kubernetes tells every container of services by such variables: for one called `bodkin` they begin as ours do.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let numbered_port = name.split("_PORT_").skip(1).any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let url = value.starts_with("tcp://") || value.starts_with("udp://");
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || numbered_port || name.ends_with("_PORT") && url
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn checked(name: &str, value: &str) -> Result<(), String> {
        let below = Command::new("up").arg(Arg::new("data").long("data").env("BODKIN_DATA"));
        let command = Command::new("bodkin").arg(Arg::new("log").long("log").env("BODKIN_LOG")).subcommand(below);
        check(&command, [("PATH".to_owned(), String::new()), (name.to_owned(), value.to_owned())].into_iter())
    }

    #[test]
    fn a_misspelt_variable_is_told_with_the_nearest_name() {
        let told = checked("BODKIN_DTAA", "x").unwrap_err();
        assert!(told.contains("BODKIN_DTAA") && told.contains("Did you mean BODKIN_DATA?"), "{told}");
        for far in ["BODKIN_SOMETHING_ELSE", "BODKIN_HOME", "BODKIN_"] {
            assert!(checked(far, "x").unwrap_err().contains("bodkin up --help"), "{far}");
        }
        assert!(checked("BODKIN_LEASE_MS", "9").unwrap_err().contains("write lease_ms into the table [platform]"));
        for known in ["BODKIN_DATA", "BODKIN_CA_PASSPHRASE", "BODKIN_LOG", "BODKIN_SKIPS", "BODKINS_OWN", "bodkin_data"] {
            assert_eq!(checked(known, "x"), Ok(()), "{known}");
        }
    }

    /// What the script sets is in the environment of every test, and of every process that a test starts.
    #[test]
    fn the_scripts_own_variables_are_known() {
        let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../x")).expect("the script is there");
        let words = script.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
        let set: BTreeSet<&str> = words.filter(|word| word.starts_with(PREFIX)).collect();
        assert!(set.contains("BODKIN_TEST_ALL"), "{set:?}");
        let unknown: Vec<_> = set.into_iter().filter(|name| !OF_THE_TREE.contains(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?} would be refused by every process of a test");
    }

    #[test]
    fn what_kubernetes_sets_is_no_mistake() {
        let set = [
            ("BODKIN_SERVICE_HOST", "10.0.0.1"),
            ("BODKIN_SERVICE_PORT_REGISTRY", "8443"),
            ("BODKIN_PORT", "tcp://10.0.0.1:8443"),
            ("BODKIN_PORT_8443_TCP_ADDR", "10.0.0.1"),
            ("BODKIN_CLOUD_PORT_8443_TCP", "tcp://10.0.0.1:8443"),
        ];
        for (name, value) in set {
            assert_eq!(checked(name, value), Ok(()), "{name}");
        }
        assert!(checked("BODKIN_PORT", "8443").is_err());
    }
}
