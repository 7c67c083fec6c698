//! `bodkin cert issue`: a key and its certificate for a system, or for many.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{Identity, KeyChoice, Order, TrustDirectory, directory::make_directory, file, keystore, tls::now};
use clap::Args;
use serde_json::json;

use super::{Life, PasswordOptions, batch, place::PlaceOptions, system};
use crate::{
    DONE,
    cli::{details::Details, printer::Printer},
};

/// Options of `bodkin cert issue`.
#[derive(Args, Clone, Debug)]
pub struct IssueOptions {
    /// The system
    #[arg(long, value_name = "NAME", value_parser = system, required_unless_present = "from", conflicts_with = "from")]
    system: Option<SystemName>,
    /// File with one system a line: NAME [SAN ...], or {"system": NAME, "sans": [...]}
    #[arg(long, value_name = "FILE", requires = "out")]
    from: Option<PathBuf>,
    /// A host name or IP address that it counts for as a server, besides its own name; may be repeated
    #[arg(long = "san", value_name = "NAME")]
    alternative_names: Vec<String>,
    #[command(flatten)]
    life: Life,
    /// Folder for NAME.crt and NAME.key [default: where the core systems' are, or none with --p12]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a PKCS#12 key store of key and chain, which must not be there yet
    #[arg(long, value_name = "FILE", requires = "password_file", conflicts_with = "from")]
    p12: Option<PathBuf>,
    #[command(flatten)]
    password: PasswordOptions,
    /// Make a new key, and issue anew what is there
    #[arg(long)]
    new_key: bool,
    /// One key for all systems of --from: quick, for load tests only, for each can be any other
    #[arg(long, requires = "from", conflicts_with = "new_key")]
    shared_key: bool,
}

/// Issues; gives the exit code.
pub fn run(place: &PlaceOptions, options: IssueOptions, printer: Printer) -> anyhow::Result<u8> {
    let directory = place.directory()?;
    match (&options.from, &options.system) {
        (Some(from), _) => many(&directory, from, &options, printer),
        (None, Some(system)) => one(&directory, system, &options, printer),
        (None, None) => unreachable!("one of them is required"),
    }
}

fn one(directory: &TrustDirectory, system: &SystemName, options: &IssueOptions, printer: Printer) -> anyhow::Result<u8> {
    let folder = match (&options.out, &options.p12) {
        (Some(out), _) => Some(new_folder(out)?),
        (None, Some(_)) => None,
        (None, None) => Some(directory.systems()),
    };
    if let Some(p12) = options.p12.as_deref().filter(|p12| p12.exists()) {
        bail!("{0} is there already: bodkin cert renew {0} renews it; move it away to have another one there", p12.display());
    }
    let order = Order {
        system: system.clone(),
        alternative_names: options.alternative_names.clone(),
        lifetime: options.life.duration(),
        folder,
        key: if options.new_key { KeyChoice::New } else { KeyChoice::Kept },
    };
    let password = options.password.read()?;
    // Before anything is issued that could not be written.
    if let Some(password) = password.as_deref().filter(|_| options.p12.is_some()) {
        keystore::check_password(password)?;
    }
    let delivery = directory.ensure(&order, now())?;
    let mut files: Vec<PathBuf> = order.files().map(|(certificate, key)| vec![certificate, key]).unwrap_or_default();
    if let (Some(p12), Some(password)) = (&options.p12, &password) {
        write_key_store(p12, &delivery.identity, password)?;
        files.push(p12.clone());
    }
    tell(&delivery.identity, if delivery.is_new { "issued" } else { "kept, because it is there and good" }, &files, printer)?;
    Ok(DONE)
}

fn many(directory: &TrustDirectory, from: &Path, options: &IssueOptions, printer: Printer) -> anyhow::Result<u8> {
    let folder = new_folder(options.out.as_deref().expect("it is required with --from"))?;
    let key = match (options.shared_key, options.new_key) {
        (true, _) => KeyChoice::Shared(Arc::new(batch::shared_key(&folder)?)),
        (false, true) => KeyChoice::New,
        (false, false) => KeyChoice::Kept,
    };
    let wanted = batch::read(from)?;
    let order = |wanted: batch::Wanted| Order {
        system: wanted.system,
        alternative_names: options.alternative_names.iter().cloned().chain(wanted.alternative_names).collect(),
        lifetime: options.life.duration(),
        folder: Some(folder.clone()),
        key: key.clone(),
    };
    let orders: Vec<Order> = wanted.into_iter().map(order).collect();
    let done = directory.ensure_all(&orders, now(), &batch::tell_progress(orders.len(), printer))?;
    let answer = json!({"issued": done.issued, "kept": done.kept, "folder": folder});
    let sentence = format!("{} issued, {} kept because they are there and good; all are in {}", done.issued, done.kept, folder.display());
    printer.done(&answer, &sentence)?;
    Ok(DONE)
}

fn new_folder(path: &Path) -> anyhow::Result<PathBuf> {
    make_directory(path)?;
    Ok(path.to_owned())
}

/// Writes a key store; its alias is the system's name.
pub fn write_key_store(path: &Path, identity: &Identity, password: &str) -> anyhow::Result<()> {
    let own = identity.certificate();
    let alias = own.system().map_or_else(|_| own.told_name().to_owned(), |name| name.system.to_string());
    let store = keystore::write_identity(identity, &alias, password).with_context(|| path.display().to_string())?;
    Ok(file::write_private(path, &store)?)
}

/// Tells of a certificate and where it is.
pub fn tell(identity: &Identity, done: &str, files: &[PathBuf], printer: Printer) -> anyhow::Result<()> {
    let own = identity.certificate();
    let answer = json!({
        "name": own.common_name(), "done": done, "serial": own.serial_text(), "notBefore": own.not_before(), "notAfter": own.not_after(),
        "renewFrom": own.renewal_due().whole_seconds(), "alternativeNames": own.alternative_names(), "files": files,
    });
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let details = Details::default()
        .with("certificate", done)
        .with("name", own.told_name())
        .with("serial", own.serial_text())
        .with("counts until", own.not_after())
        .with("renew from", own.renewal_due().whole_seconds())
        .with("counts for", own.alternative_names().join(", "))
        .with("files", files.join(", "));
    Ok(printer.one(&answer, &details)?)
}
