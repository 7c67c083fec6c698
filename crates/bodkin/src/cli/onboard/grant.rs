//! `bodkin onboard secret` and `device`: who may come to a certificate.

use std::{path::PathBuf, time::Duration};

use bodkin_arrowhead::onboarding::{GrantRequest, LIFETIME_DEFAULT};
use bodkin_client::{Monitor, answer::OnboardingGrant};
use bodkin_trust::file;
use clap::Args;

use crate::{
    DONE,
    cli::{lookup, printer::Printer, table::Table, write_out},
};

const LIST_COMMAND: &str = "bodkin onboard secret list";

/// What a grant allows.
#[derive(Args, Clone, Debug)]
struct Allowed {
    /// The system, or the beginning of systems' names with a * behind it: 'sensor-*'
    #[arg(long, value_name = "NAME")]
    system: String,
    /// How many certificates it is good for
    #[arg(long, value_name = "N", default_value_t = 1)]
    uses: u32,
    /// How long it counts: a number with s, m, h or d [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires_in: Option<Duration>,
    /// A host name or IP address that the certificate counts for as a server, besides the system's name; may be repeated
    #[arg(long = "san", value_name = "NAME")]
    alternative_names: Vec<String>,
}

impl Allowed {
    fn request(self, device: Option<String>) -> GrantRequest {
        let Self { system, uses, expires_in, alternative_names } = self;
        GrantRequest {
            system_name: system,
            device,
            uses: Some(uses),
            expires_in_seconds: Some(expires_in.unwrap_or(LIFETIME_DEFAULT).as_secs()),
            alternative_names,
        }
    }
}

#[derive(Args, Clone, Debug)]
pub struct NewSecret {
    #[command(flatten)]
    allowed: Allowed,
    /// File for the secret, readable to you only [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct NewDevice {
    /// Common name in the device's certificate
    #[arg(long, value_name = "NAME")]
    device: String,
    #[command(flatten)]
    allowed: Allowed,
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a number with s, m, h or d, such as 90m, not '{text}'");
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

/// Makes a secret and prints it, or writes it into a file.
pub async fn add_secret(monitor: &Monitor, new: NewSecret, printer: Printer) -> anyhow::Result<u8> {
    let grant = monitor.grant_onboarding(&new.allowed.request(None)).await?;
    let secret = grant.secret.clone().unwrap_or_default();
    match &new.out {
        Some(path) => {
            file::write_private(path, format!("{secret}\n").as_bytes())?;
            let shown = OnboardingGrant { secret: None, ..grant };
            printer.done(&shown, &format!("{}: the secret is in {}", sentence(&shown), path.display()))?;
        }
        None if printer.is_json() => printer.done(&grant, "")?,
        None => {
            eprintln!("{}; nobody is told the secret again", sentence(&grant));
            write_out(&format!("{secret}\n"))?;
        }
    }
    Ok(DONE)
}

/// Lets a device come.
pub async fn add_device(monitor: &Monitor, new: NewDevice, printer: Printer) -> anyhow::Result<u8> {
    let grant = monitor.grant_onboarding(&new.allowed.request(Some(new.device))).await?;
    printer.done(&grant, &sentence(&grant))?;
    Ok(DONE)
}

/// Lists who may come.
pub async fn list(monitor: &Monitor, printer: Printer) -> anyhow::Result<u8> {
    let grants = monitor.onboarding_grants().await?;
    let mut table = Table::new(&["ID", "SYSTEM", "COMES WITH", "USES LEFT", "EXPIRES", "FURTHER NAMES"]);
    for grant in &grants.data {
        let comes_with = grant.device.as_ref().map_or("a secret".to_owned(), |device| format!("the device {device}"));
        table.push([
            grant.id.to_string(),
            grant.system_name.clone(),
            comes_with,
            grant.uses_left.to_string(),
            grant.expires_at.clone(),
            grant.alternative_names.join(" "),
        ]);
    }
    printer.rows(&grants, &table, "no grants: nobody new may come to a certificate")?;
    Ok(DONE)
}

/// Takes a grant back.
pub async fn remove(monitor: &Monitor, id: i64, printer: Printer) -> anyhow::Result<u8> {
    lookup::found(monitor.remove_onboarding_grant(id).await, "grant", id, LIST_COMMAND)?;
    printer.done(&serde_json::json!({"id": id}), &format!("removed: grant {id}"))?;
    Ok(DONE)
}

fn sentence(grant: &OnboardingGrant) -> String {
    let uses = if grant.uses_left == 1 { "use" } else { "uses" };
    format!("grant {} for {}, {} {uses}, until {}", grant.id, grant.system_name, grant.uses_left, grant.expires_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("1h", 3600), ("7d", 604_800)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "h", "1", "1w", "-1h", "1.5h", "99999999999999999999d", "1\u{fc}"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
