//! The names and addresses that the core systems' certificates are made out for.

use std::net::IpAddr;

use super::SecurityConfig;

/// What always means this machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// This machine's own name; empty where it tells none.
pub fn machine_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Each once: the machine's own names and those that clients were told, as far as a certificate can have them.
pub(super) fn host_names(config: &SecurityConfig) -> Vec<String> {
    let machine = machine_name();
    let all = LOCAL.into_iter().chain([machine.as_str()]).chain(config.host_names.iter().map(String::as_str));
    let mut names = Vec::new();
    for name in all.map(canonical).filter(|name| is_host_name(name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// As names compare: small letters, addresses in their shortest form, no dot at the end.
fn canonical(name: &str) -> String {
    let name = name.trim().trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().map_or(name, |address| address.to_string())
}

/// Whether a client can call a machine so. The unspecified address is none of its names, nor is a pattern.
fn is_host_name(name: &str) -> bool {
    match name.parse::<IpAddr>() {
        Ok(address) => !address.is_unspecified(),
        Err(_) => {
            let is_label = |label: &str| {
                (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            };
            name.len() <= 253 && name.split('.').all(is_label)
        }
    }
}

#[cfg(test)]
mod tests {
    use bodkin_trust::TrustDirectory;

    use super::*;

    #[test]
    fn every_name_is_there_once_and_what_is_none_is_not() {
        let given = ["0.0.0.0", "", "*", "Cloud.Factory.Example.", "cloud.factory.example", "10.0.0.7", "0:0:0:0:0:0:0:1", "a b", "::"];
        let config = SecurityConfig {
            directory: TrustDirectory::new("trust"),
            key_stores: None,
            device_authorities: None,
            cloud: None,
            operator: None,
            verify_host_names: true,
            host_names: given.map(str::to_owned).to_vec(),
        };
        let machine = canonical(&machine_name());
        let names: Vec<String> = host_names(&config).into_iter().filter(|name| *name != machine).collect();
        let expected: Vec<&str> =
            ["localhost", "127.0.0.1", "::1", "cloud.factory.example", "10.0.0.7"].into_iter().filter(|name| *name != machine).collect();
        assert_eq!(names, expected);
    }
}
