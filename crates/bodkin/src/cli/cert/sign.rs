//! `bodkin cert sign`: a certificate for a key that its owner keeps.

use std::path::PathBuf;

use anyhow::Context;
use bodkin_arrowhead::{common_name::SystemCommonName, name::SystemName};
use bodkin_trust::{Certificate, Profile, SigningRequest, file, tls::now};
use clap::Args;
use serde_json::json;

use super::{Life, place::PlaceOptions, system};
use crate::{
    DONE,
    cli::{printer::Printer, write_out},
};

/// Options of `bodkin cert sign`.
#[derive(Args, Clone, Debug)]
pub struct SignOptions {
    /// The request (PKCS#10, PEM or DER)
    #[arg(value_name = "CSR")]
    request: PathBuf,
    /// The system whose certificate it becomes, whatever the request says
    #[arg(long, value_name = "NAME", value_parser = system)]
    system: SystemName,
    /// A host name or IP address that it counts for as a server, besides its own name; may be repeated
    #[arg(long = "san", value_name = "NAME")]
    alternative_names: Vec<String>,
    #[command(flatten)]
    life: Life,
    /// File for the chain [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Signs; gives the exit code.
pub fn run(place: &PlaceOptions, options: SignOptions, printer: Printer) -> anyhow::Result<u8> {
    let directory = place.directory()?;
    let request = SigningRequest::read(&file::read_any(&options.request)?).with_context(|| options.request.display().to_string())?;
    let name = SystemCommonName { system: options.system, cloud: directory.cloud()? };
    let profile = Profile::system(&name, &options.alternative_names, now(), options.life.duration());
    let chain = directory.certify(&directory.authority()?, &profile, request.public_key_info())?;
    let text: String = chain.iter().map(Certificate::to_pem).collect();
    let own = &chain[0];
    let answer = json!({
        "name": own.common_name(), "serial": own.serial_text(), "notAfter": own.not_after(), "asked": request.common_name(),
        "chain": text, "file": options.out,
    });
    match &options.out {
        Some(path) => {
            file::write_public(path, text.as_bytes())?;
            let sentence = format!("issued {}, serial {}, until {}: {}", name, own.serial_text(), own.not_after(), path.display());
            printer.done(&answer, &sentence)?;
        }
        None if printer.is_json() => printer.done(&answer, "")?,
        None => write_out(&text)?,
    }
    Ok(DONE)
}
