//! `bodkin cert export`: what the cloud's systems trust.

use std::path::PathBuf;

use anyhow::Context;
use bodkin_trust::{Certificate, file, keystore};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{PasswordOptions, place::PlaceOptions};
use crate::{DONE, cli::printer::Printer};

/// Options of `bodkin cert export`.
#[derive(Args, Clone, Debug)]
pub struct ExportOptions {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    truststore: PathBuf,
    /// Its form
    #[arg(long, value_name = "FORM", default_value = "p12")]
    format: Format,
    #[command(flatten)]
    password: PasswordOptions,
    /// The root as well, for programs that trust self-signed certificates only: all clouds of the root are trusted then
    #[arg(long)]
    with_root: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A PKCS#12 trust store; needs --password-file
    P12,
    /// PEM
    Pem,
}

/// Writes; gives the exit code.
pub fn run(place: &PlaceOptions, options: &ExportOptions, printer: Printer) -> anyhow::Result<u8> {
    let chain = place.directory()?.chain()?;
    let anchors = if options.with_root { chain.as_slice() } else { &chain[..1] };
    let path = &options.truststore;
    match options.format {
        Format::Pem => file::write_public(path, anchors.iter().map(Certificate::to_pem).collect::<String>().as_bytes())?,
        Format::P12 => {
            let password = options.password.read()?.context("a PKCS#12 trust store needs --password-file (or take --format pem)")?;
            let store = keystore::write_anchors(anchors, &password).with_context(|| path.display().to_string())?;
            // Nothing in it is secret, but no key store is believed that others may read.
            file::write_private(path, &store)?;
        }
    }
    let names: Vec<&str> = anchors.iter().map(Certificate::told_name).collect();
    printer.done(&json!({"file": path, "trusted": names}), &format!("{} trusts {}", path.display(), names.join(", ")))?;
    Ok(DONE)
}
