//! `bodkin cert curve`: whose CURVE key is which.

use std::path::PathBuf;

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{
    TrustDirectory,
    curve::{self, PublicKey},
    file,
    tls::now,
};
use clap::Args;
use serde_json::json;

use super::{place::PlaceOptions, system};
use crate::{
    DONE,
    cli::{printer::Printer, table::Table},
};

/// Options of `bodkin cert curve`.
#[derive(Args, Clone, Debug)]
pub struct CurveOptions {
    /// The system; without one the keys are listed
    #[arg(long, value_name = "NAME", value_parser = system)]
    system: Option<SystemName>,
    /// File for the new pair of keys, in the form of ZeroMQ's certificates [default: NAME.curve in this folder]
    #[arg(long, value_name = "FILE", requires = "system", conflicts_with_all = ["public_key", "remove"])]
    out: Option<PathBuf>,
    /// Bind this key, which the system has made itself (40 characters of Z85 text)
    #[arg(
        long,
        value_name = "KEY",
        requires = "system",
        value_parser = str::parse::<PublicKey>,
        conflicts_with = "remove",
        allow_hyphen_values = true
    )]
    public_key: Option<PublicKey>,
    /// Take the system's key away
    #[arg(long, requires = "system")]
    remove: bool,
}

/// Makes, binds, removes or lists; gives the exit code.
pub fn run(place: &PlaceOptions, options: CurveOptions, printer: Printer) -> anyhow::Result<u8> {
    let directory = place.directory()?;
    directory.anchor()?;
    match (options.system, options.public_key) {
        (None, _) => list(&directory, printer)?,
        (Some(system), _) if options.remove => {
            directory.bind_curve_key(&system, None, now())?;
            printer.done(&json!({"system": system, "publicKey": null}), &format!("{system} has no CURVE key"))?;
        }
        (Some(system), Some(key)) => {
            directory.bind_curve_key(&system, Some(&key), now())?;
            printer.done(&json!({"system": system, "publicKey": key.to_string()}), &format!("{key} is the key of {system}"))?;
        }
        (Some(system), None) => {
            let path = options.out.unwrap_or_else(|| format!("{system}.curve").into());
            let pair = curve::generate()?;
            // The secret is safe before the key counts.
            file::write_private(&path, curve::certificate_file(&pair).as_bytes())?;
            directory.bind_curve_key(&system, Some(pair.public()), now())?;
            let answer = json!({"system": system, "publicKey": pair.public().to_string(), "file": path});
            printer.done(&answer, &format!("{} is the key of {system}; the pair is in {}", pair.public(), path.display()))?;
        }
    }
    Ok(DONE)
}

fn list(directory: &TrustDirectory, printer: Printer) -> anyhow::Result<()> {
    let keys = directory.curve_keys()?;
    let mut table = Table::new(&["SYSTEM", "PUBLIC KEY"]);
    let mut answer = Vec::new();
    for (key, system) in keys {
        answer.push(json!({"system": system, "publicKey": key.to_string()}));
        table.push([system.to_string(), key.to_string()]);
    }
    // The cloud makes it when it starts.
    let server = curve::read_pair(&directory.server_pair()).ok().map(|pair| pair.public().to_string());
    if let Some(key) = &server {
        table.push(["(the cloud's ZMTP port)".to_owned(), key.clone()]);
    }
    Ok(printer.rows(&json!({"server": server, "keys": answer}), &table, "no system has a CURVE key")?)
}
