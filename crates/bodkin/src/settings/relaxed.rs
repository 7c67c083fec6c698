//! Options that give up a protection of secure mode for systems written for the Java cloud.
//!
//! `bodkin up` logs a warning for each one at start, and `bodkin doctor` reports it.

use bodkin_host::HostConfig;

/// One option that is set, and the protection that it removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaxedOption {
    /// The option's key.
    pub key: &'static str,
    /// The protection that is missing while the option is set.
    pub effect: String,
    /// When the option can be removed.
    pub remedy: &'static str,
}

/// Lists the options of `config` that remove a protection. Insecure mode has none of these protections.
pub fn relaxed_options(config: &HostConfig) -> Vec<RelaxedOption> {
    let mut found = Vec::new();
    if config.security.is_none() {
        return found;
    }
    if config.unsubscribe_by_any {
        found.push(RelaxedOption {
            key: "unsubscribe_by_any",
            effect: "every system of the cloud may end the subscriptions of other systems".to_owned(),
            remedy: "set it to false when no system ends another system's subscription",
        });
    }
    if !config.tokens_without_expiry_for.is_empty() {
        let names: Vec<&str> = config.tokens_without_expiry_for.iter().map(String::as_str).collect();
        found.push(RelaxedOption {
            key: "tokens_without_expiry_for",
            effect: format!("tokens for {} never expire: a consumer whose rule is removed keeps access", names.join(", ")),
            remedy: "remove each provider from the list as soon as it accepts tokens that expire",
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn keys(change: impl Fn(&mut Settings)) -> Vec<&'static str> {
        let mut settings = Settings::defaults();
        change(&mut settings);
        relaxed_options(&settings.config().expect("valid settings")).iter().map(|option| option.key).collect()
    }

    #[test]
    fn options_that_remove_protection_are_listed() {
        assert_eq!(keys(|_| {}), Vec::<&str>::new());
        assert_eq!(keys(|settings| settings.unsubscribe_by_any = Some(true)), ["unsubscribe_by_any"]);
        let endless = |settings: &mut Settings| settings.tokens_without_expiry_for = Some(vec!["Kalix-Provider".into()]);
        assert_eq!(keys(endless), ["tokens_without_expiry_for"]);
    }

    #[test]
    fn insecure_mode_has_nothing_to_relax() {
        let insecure = |settings: &mut Settings| (settings.insecure, settings.unsubscribe_by_any) = (Some(true), Some(true));
        assert_eq!(keys(insecure), Vec::<&str>::new());
    }
}
