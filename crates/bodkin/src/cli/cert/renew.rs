//! `bodkin cert renew`: the same names, the same key, another term.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{Identity, TrustDirectory, file, keystore, tls::now};
use clap::Args;
use serde_json::json;

use super::{Life, PasswordOptions, issue::write_key_store, place::PlaceOptions};
use crate::{
    DONE,
    cli::{printer::Printer, table::Table},
};

/// Options of `bodkin cert renew`.
#[derive(Args, Clone, Debug)]
pub struct RenewOptions {
    /// Systems kept here, or files: key stores, or chains with the key beside [default: all kept here of whose life two thirds are over]
    #[arg(value_name = "NAME|FILE")]
    targets: Vec<String>,
    #[command(flatten)]
    life: Life,
    #[command(flatten)]
    password: PasswordOptions,
    /// Make new keys: who seals tokens to the old ones, or has them registered, must be told
    #[arg(long)]
    new_key: bool,
}

/// Renews; gives the exit code.
pub fn run(place: &PlaceOptions, options: RenewOptions, printer: Printer) -> anyhow::Result<u8> {
    let (directory, password) = (place.directory()?, options.password.read()?);
    let password = password.as_ref().map(|password| password.as_str());
    let targets = if options.targets.is_empty() { due(&directory)? } else { named(&directory, &options.targets) };
    let mut table = Table::new(&["FILE", "NAME", "SERIAL", "UNTIL"]);
    let mut answer = Vec::new();
    for path in targets {
        let old = Identity::read(&path, password)?;
        let renewed = directory.renew(&old, options.new_key, options.life.duration(), now())?;
        rewrite(&path, &renewed, password)?;
        let own = renewed.certificate();
        answer.push(json!({"file": path, "name": own.common_name(), "serial": own.serial_text(), "notAfter": own.not_after()}));
        table.push([path.display().to_string(), own.told_name().to_owned(), own.serial_text(), own.not_after().to_string()]);
    }
    printer.rows(&json!({"renewed": answer}), &table, "nothing is due")?;
    Ok(DONE)
}

/// A name is that of a system kept here; anything with a dot or a slash in it is a file.
fn named(directory: &TrustDirectory, targets: &[String]) -> Vec<PathBuf> {
    let path = |target: &String| match SystemName::parse(target) {
        Ok(system) => directory.system_files(&system).0,
        Err(_) => target.into(),
    };
    targets.iter().map(path).collect()
}

/// The chains kept here of whose life two thirds are over.
fn due(directory: &TrustDirectory) -> anyhow::Result<Vec<PathBuf>> {
    directory.anchor()?;
    let mut due = Vec::new();
    for entry in fs::read_dir(directory.systems())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "crt") && file::read_certificates(&path)?[0].renewal_due() <= now() {
            due.push(path);
        }
    }
    due.sort();
    Ok(due)
}

/// Writes an identity in the form that the file has.
fn rewrite(path: &Path, identity: &Identity, password: Option<&str>) -> anyhow::Result<()> {
    let content = file::read_any(path)?;
    match password {
        Some(password) if keystore::is_key_store(&content) => write_key_store(path, identity, password),
        _ if file::holds_pem_key(&content) => {
            let text = zeroize::Zeroizing::new(format!("{}{}", identity.key().to_pem().as_str(), identity.chain_to_pem()));
            Ok(file::write_private(path, text.as_bytes())?)
        }
        _ => Ok(file::write_identity(path, &path.with_extension("key"), identity)?),
    }
}
