//! `bodkin model convert`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::file::{read_net, write_net};
use crate::{DONE, FAILED, USAGE, cli::printer::Printer};

/// Options of `bodkin model convert`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "The end of a file's name says its form: .json (Bodkin's own), .pnml (ISO/IEC 15909-2), .xpn (ORIS, read only), \
                        .dot and .svg (written only).\nExit codes: 0 done, 1 it cannot be written, 2 a file has a mistake or no known form.")]
pub struct ConvertOptions {
    /// File to read
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Which net of a PNML document that has several, by its id
    #[arg(long = "net", value_name = "ID")]
    which: Option<String>,
    /// File to write; one that is there is replaced
    #[arg(value_name = "OUT")]
    to: PathBuf,
}

/// Converts a net; gives the exit code.
pub fn run(options: &ConvertOptions, printer: Printer) -> anyhow::Result<u8> {
    let net = match read_net(&options.from, options.which.as_deref()) {
        Ok(net) => net,
        Err(mistake) => return Ok(refused(&mistake, USAGE)),
    };
    let text = match write_net(&net, &options.to) {
        Ok(text) => text,
        Err(mistake) => return Ok(refused(&mistake, USAGE)),
    };
    if let Err(error) = std::fs::write(&options.to, text) {
        return Ok(refused(&format!("{}: {error}", options.to.display()), FAILED));
    }
    let name = |path: &Path| path.display().to_string();
    printer.done(
        &json!({ "net": net.name(), "from": name(&options.from), "to": name(&options.to) }),
        &format!("{} written to {}", net.name(), options.to.display()),
    )?;
    Ok(DONE)
}

fn refused(mistake: &str, code: u8) -> u8 {
    eprintln!("bodkin: {mistake}");
    code
}
