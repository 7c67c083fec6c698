//! `bodkin cert revoke` and `bodkin cert list`: what was issued, and what of it no longer counts.

use std::path::Path;

use anyhow::{bail, ensure};
use bodkin_arrowhead::utc::UtcTime;
use bodkin_trust::{DirectoryError, Identity, Issued, Ledger, TrustDirectory, file, keystore, tls::now};
use clap::{Args, builder::PossibleValuesParser};
use serde_json::{Value, json};

use super::{PasswordOptions, place::PlaceOptions};
use crate::{
    DONE,
    cli::{printer::Printer, table::Table},
};

/// Options of `bodkin cert revoke`.
#[derive(Args, Clone, Debug)]
pub struct RevokeOptions {
    /// Serial numbers, files of certificates or key stores, or names of systems (all certificates of theirs that count)
    #[arg(value_name = "SERIAL|FILE|NAME", required_unless_present = "refresh")]
    targets: Vec<String>,
    #[command(flatten)]
    password: PasswordOptions,
    /// Only sign the list anew: for whoever refuses lists that are older than a year
    #[arg(long, conflicts_with = "targets")]
    refresh: bool,
}

/// Options of `bodkin cert list`.
#[derive(Args, Clone, Debug)]
pub struct Listing {
    /// Only those of this system, by its name or common name
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Only those of which this is so
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(["valid", "expired", "revoked"]))]
    state: Option<String>,
}

/// Revokes; gives the exit code.
pub fn run(place: &PlaceOptions, options: RevokeOptions, printer: Printer) -> anyhow::Result<u8> {
    let (directory, now) = (place.directory()?, now());
    let password = options.password.read()?;
    let ledger = directory.ledger()?;
    let mut serials = Vec::new();
    for target in &options.targets {
        serials.extend(meant(&directory, &ledger, target, password.as_ref().map(|password| password.as_str()), now)?);
    }
    directory.revoke(&serials, now)?;
    let ledger = directory.ledger()?;
    let revoked: Vec<&Issued> = serials.iter().filter_map(|serial| ledger.find(serial)).collect();
    for warning in revoked.iter().filter_map(|issued| issued.revocation_warning()) {
        eprintln!("warning: {warning}");
    }
    let answer = json!({"revoked": revoked});
    printer.rows(&answer, &table(revoked.into_iter(), now), "the revocation list is signed anew")?;
    Ok(DONE)
}

/// Lists what was issued; gives the exit code.
pub fn list(place: &PlaceOptions, options: &Listing, printer: Printer) -> anyhow::Result<u8> {
    let (directory, now) = (place.directory()?, now());
    directory.anchor()?;
    let ledger = directory.ledger()?;
    let is_meant = |issued: &&Issued| {
        options.system.as_ref().is_none_or(|name| is_named(issued, name))
            && options.state.as_ref().is_none_or(|state| issued.state(now) == state)
    };
    let listed: Vec<&Issued> = ledger.issued().iter().filter(is_meant).collect();
    let told = |issued: &&Issued| {
        let mut row = json!(issued);
        row["state"] = Value::from(issued.state(now));
        row
    };
    let answer = json!({"certificates": listed.iter().map(told).collect::<Vec<_>>()});
    printer.rows(&answer, &table(listed.into_iter(), now), "nothing of that kind was issued")?;
    Ok(DONE)
}

/// The serial numbers that a word on the command line means.
fn meant(directory: &TrustDirectory, ledger: &Ledger, target: &str, password: Option<&str>, now: UtcTime) -> anyhow::Result<Vec<String>> {
    if let Some(issued) = ledger.find(target) {
        return Ok(vec![issued.serial.clone()]);
    }
    if Path::new(target).is_file() {
        return of_file(directory, Path::new(target), password).map(|serial| vec![serial]);
    }
    let counts = |issued: &&Issued| is_named(issued, target) && issued.state(now) == "valid";
    let serials: Vec<_> = ledger.issued().iter().filter(counts).map(|issued| issued.serial.clone()).collect();
    ensure!(!serials.is_empty(), "{target} is no serial number, no file, and no system that has a valid certificate: see bodkin cert list");
    Ok(serials)
}

fn of_file(directory: &TrustDirectory, path: &Path, password: Option<&str>) -> anyhow::Result<String> {
    let content = file::read_any(path)?;
    let certificate = if keystore::is_key_store(&content) {
        Identity::read(path, password)?.certificate().clone()
    } else {
        file::read_anchors(path, None)?.swap_remove(0)
    };
    if !certificate.is_issued_by(&directory.anchor()?) {
        let name = certificate.told_name().to_owned();
        bail!(DirectoryError::NotOurs { name, issuer: certificate.issuer().unwrap_or("nobody").to_owned() });
    }
    Ok(certificate.serial_text())
}

fn is_named(issued: &Issued, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    issued.name == name || issued.name.split('.').next() == Some(&name)
}

/// With the node that has brought each, where several share the account.
fn table<'a>(rows: impl Iterator<Item = &'a Issued>, now: UtcTime) -> Table {
    let rows: Vec<_> = rows.collect();
    let has_nodes = rows.iter().any(|issued| issued.node.is_some());
    let headings = ["SERIAL", "NAME", "UNTIL", "STATE", "NODE"];
    let mut table = Table::new(&headings[..if has_nodes { 5 } else { 4 }]);
    for issued in rows {
        let state = match issued.revoked_at {
            Some(since) => format!("revoked {since}"),
            None => issued.state(now).to_owned(),
        };
        let node = has_nodes.then(|| issued.node.clone().unwrap_or_else(|| "this".to_owned()));
        table.push([issued.serial.clone(), issued.name.clone(), issued.not_after.to_string(), state].into_iter().chain(node));
    }
    table
}
