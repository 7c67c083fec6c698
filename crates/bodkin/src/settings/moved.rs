//! Options that have moved into a table of the configuration: who still uses them is told where they are.

/// The key as it was, and what it is in `[platform]`.
const MOVED: [(&str, &str); 3] = [("lease_ms", "lease_ms"), ("lease_heartbeat_ms", "heartbeat_ms"), ("clock_drift_ppm", "drift_ppm")];

/// Where an option is now that was a key, a flag or a variable of this name; `None` if it has not moved.
pub fn told(name: &str) -> Option<String> {
    let flag = name.strip_prefix("--").map(|flag| flag.replace('-', "_"));
    let variable = name.strip_prefix("BODKIN_").map(str::to_lowercase);
    let key = flag.or(variable).unwrap_or_else(|| name.to_owned());
    let (_, now) = MOVED.iter().find(|(before, _)| *before == key)?;
    Some(format!("{name} has moved: write {now} into the table [platform] of the file that --config names, of all nodes of the pair alike"))
}

/// The first key of a configuration that has moved.
pub fn in_file(text: &str) -> Option<String> {
    let document: toml::Table = toml::from_str(text).ok()?;
    document.keys().find_map(|key| told(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_option_is_told_with_its_new_place_however_it_was_given() {
        for name in ["lease_heartbeat_ms", "--lease-heartbeat-ms", "BODKIN_LEASE_HEARTBEAT_MS"] {
            let told = told(name).unwrap();
            assert!(told.starts_with(&format!("{name} has moved: write heartbeat_ms into the table [platform]")), "{told}");
        }
        assert_eq!(["heartbeat_ms", "--lease", "BODKIN_DATA"].map(told), [None, None, None]);
        assert!(in_file("port_offset = 1\nlease_ms = 5").unwrap().starts_with("lease_ms has moved: write lease_ms into"));
        assert_eq!(in_file("[platform]\nlease_ms = 5"), None);
    }
}
