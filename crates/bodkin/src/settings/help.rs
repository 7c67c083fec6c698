//! What the help says of options beside their own words: the defaults, which the options themselves do not have, because the file and the environment go between.

use clap::Command;

use super::Settings;

/// Commands with every option of a server: those that are one, and the one that looks whether it could be.
const CONFIGURED: [&str; 3] = ["up", "backup", "doctor"];

/// The command with the defaults of servers' options in their help. Those that are empty say in words what that means.
pub fn with_defaults(command: Command) -> Command {
    let defaults = toml::Table::try_from(Settings::defaults()).expect("settings are plain values");
    CONFIGURED.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |server| {
            server.mut_args(|option| {
                let told = defaults.get(option.get_id().as_str()).and_then(told);
                match (told, option.get_help().map(ToString::to_string)) {
                    (Some(told), Some(help)) => option.help(format!("{help} [default: {told}]")),
                    _ => option,
                }
            })
        })
    })
}

fn told(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        toml::Value::Array(_) | toml::Value::Table(_) => None,
        plain => Some(plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;

    #[test]
    fn every_option_with_a_default_says_it() {
        let server = |name| Settings::augment_args(Command::new(name));
        let mut command =
            with_defaults(CONFIGURED.into_iter().fold(Command::new("bodkin"), |command, name| command.subcommand(server(name))));
        for name in CONFIGURED {
            let told = command.find_subcommand_mut(name).unwrap().render_help().to_string();
            for expected in ["other state [default: ./.bodkin]", "[default: 127.0.0.1]", "[default: 1073741824]", "[default: false]"] {
                assert!(told.contains(expected), "{name} {expected}:\n{told}");
            }
            assert!(!told.contains("[default: ]") && !told.contains("[default: []]"), "{told}");
        }
    }
}
