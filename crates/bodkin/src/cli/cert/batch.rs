//! Many systems at once: the file that names them, the key that they may share, and how far it is.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, bail};
use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{FileError, KeySize, PrivateKey, batch::Progress, file};
use serde::Deserialize;

use super::system;
use crate::cli::printer::Printer;

/// Systems in one file: as many certificates as a ledger has room for, and some.
const SYSTEMS_MAX: usize = 200_000;
/// Certificates between two remarks.
const TOLD_EVERY: usize = 1000;
/// No system can have this name.
const SHARED_KEY_FILE: &str = "_shared.key";

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    pub system: SystemName,
    pub alternative_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    system: String,
    #[serde(default)]
    sans: Vec<String>,
}

/// Reads the systems of a file; each may be there once.
pub fn read(path: &Path) -> anyhow::Result<Vec<Wanted>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> anyhow::Result<Vec<Wanted>> {
    let mut all = Vec::new();
    let mut lines_by_name = BTreeMap::new();
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
        let wanted = parse_line(line).with_context(|| format!("line {number}"))?;
        if let Some(first) = lines_by_name.insert(wanted.system.clone(), number) {
            bail!("line {number}: {} is in line {first} already", wanted.system);
        }
        all.push(wanted);
        if all.len() > SYSTEMS_MAX {
            bail!("there are more than {SYSTEMS_MAX} systems in it");
        }
    }
    if all.is_empty() { bail!("there is no system in it") } else { Ok(all) }
}

fn parse_line(line: &str) -> anyhow::Result<Wanted> {
    let Line { system: name, sans } = if line.starts_with('{') {
        serde_json::from_str(line)?
    } else {
        let mut words = line.split_whitespace().map(str::to_owned);
        Line { system: words.next().unwrap_or_default(), sans: words.collect() }
    };
    let system = system(&name).map_err(|error| anyhow::anyhow!("{name:?}: {error}"))?;
    Ok(Wanted { system, alternative_names: sans })
}

/// The key that the systems of a folder share; made where it is not there.
pub fn shared_key(folder: &Path) -> anyhow::Result<PrivateKey> {
    let path = folder.join(SHARED_KEY_FILE);
    match file::read_key(&path, None) {
        Err(error) if FileError::is_missing(&error) => {
            let key = PrivateKey::generate(KeySize::Bits2048)?;
            file::write_private(&path, key.to_pem().as_bytes())?;
            Ok(key)
        }
        read => Ok(read?),
    }
}

/// Tells people on stderr now and then how far it is.
pub fn tell_progress(all: usize, printer: Printer) -> impl Fn(Progress) + Sync {
    let told = AtomicUsize::new(0);
    move |progress| {
        let done = progress.issued + progress.kept;
        let round = done / TOLD_EVERY;
        if told.fetch_max(round, Ordering::Relaxed) < round && !printer.is_json() {
            eprintln!("{done} of {all}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, alternative_names: &[&str]) -> Wanted {
        let alternative_names = alternative_names.iter().map(|name| (*name).to_owned()).collect();
        Wanted { system: SystemName::parse(name).unwrap(), alternative_names }
    }

    #[test]
    fn a_line_is_a_name_or_an_object() {
        let text = "# load\n\nload-1\n  Load-2  10.0.0.1 b.example\n{\"system\": \"load-3\", \"sans\": [\"c.example\"]}\n{\"system\":\"load-4\"}\n";
        let all =
            [wanted("load-1", &[]), wanted("load-2", &["10.0.0.1", "b.example"]), wanted("load-3", &["c.example"]), wanted("load-4", &[])];
        assert_eq!(parse(text).unwrap(), all);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, told) in [
            ("", "no system"),
            ("a\n_b\n", "line 2: \"_b\": the name has invalid format"),
            ("a\nb\nA\n", "line 3: a is in line 1 already"),
            ("{\"system\":\"a\",\"san\":[]}", "line 1: unknown field `san`"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
