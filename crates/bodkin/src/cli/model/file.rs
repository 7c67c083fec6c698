//! Files of nets: which form a file has is said by the end of its name.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use bodkin_petri::{
    format::{
        decoded, drawing, json,
        pnml::{self, PnmlError},
        xpn,
    },
    net::Net,
};
use clap::Args;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Unit of time of nets whose files have none.
const TIME_UNIT_DEFAULT: &str = "s";

/// A file of a net, as commands take it.
#[derive(Args, Clone, Debug)]
pub struct NetFile {
    /// File of the net: docs/formats/net.md
    #[arg(value_name = "NET")]
    file: PathBuf,
    /// Which net of a PNML document that has several, by its id
    #[arg(long = "net", value_name = "ID")]
    which: Option<String>,
}

impl NetFile {
    /// Reads the net.
    ///
    /// # Errors
    /// As for [`read_net`].
    pub fn read(&self) -> Result<Net, String> {
        read_net(&self.file, self.which.as_deref())
    }
}

/// Reads a net, of a document of several the one with the id `which`. What was passed over is told.
///
/// # Errors
/// What is wrong, with the file's name and the place in it.
pub fn read_net(path: &Path, which: Option<&str>) -> Result<Net, String> {
    let told = |reason: String| format!("{}: {reason}", path.display());
    let text = match end_of(path) {
        Some("pnml" | "xpn") => decoded(&read_bytes(path)?).map_err(|error| told(error.to_string()))?,
        _ => read_text(path)?,
    };
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match end_of(path) {
        Some("json" | "xpn") if which.is_some() => Err(told("it has one net; --net is for PNML documents of several".to_owned())),
        Some("json") => json::read(&text).map_err(|error| told(error.to_string())),
        Some("pnml") => {
            let document = pnml::document(&text, which).map_err(|error| match error {
                error @ PnmlError::Choice { .. } => told(format!("{error} (--net ID)")),
                error => told(error.to_string()),
            })?;
            for (tool, count) in &document.passed_over {
                eprintln!("bodkin: {}: passed over: what {tool} says for itself, {count} times", path.display());
            }
            Ok(document.net)
        }
        Some("xpn") => xpn::read(&text, &name, TIME_UNIT_DEFAULT).map_err(|error| told(error.to_string())),
        _ => Err(told("its form is not known; expected a name that ends with .json, .pnml or .xpn".to_owned())),
    }
}

/// The text of a net in the form that the file's name asks for.
///
/// # Errors
/// That there is no such form.
pub fn write_net(net: &Net, path: &Path) -> Result<String, String> {
    match end_of(path) {
        Some("json") => Ok(json::write(net)),
        Some("pnml") => Ok(pnml::write(net)),
        Some("dot") => Ok(drawing::dot(net)),
        Some("svg") => Ok(drawing::svg(net)),
        _ => Err(format!("{}: its form is not known; expected a name that ends with .json, .pnml, .dot or .svg", path.display())),
    }
}

fn end_of(path: &Path) -> Option<&str> {
    path.extension().and_then(|end| end.to_str())
}

/// Reads a file of text in UTF-8, up to a limit.
///
/// # Errors
/// The file's name, and what is wrong with it.
pub fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        format!("{}: line {line}: it is not UTF-8; save the file as UTF-8", path.display())
    })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let told = |reason: String| format!("{}: {reason}", path.display());
    let file = File::open(path).map_err(|error| told(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| told(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX { Err(told(format!("it is larger than {FILE_BYTES_MAX} bytes"))) } else { Ok(bytes) }
}
