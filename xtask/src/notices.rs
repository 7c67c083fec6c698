//! The licences of what is inside the binary, with their texts: who hands the binary on hands these on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// How the files begin that a crate has its licences in.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// Larger files are none of these.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Between two texts.
const LINE: &str = "--------------------------------------------------------------------------------";

/// A crate of others that is linked into the binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name and version.
    pub title: String,
    /// SPDX expression of its licence.
    pub licence: String,
    /// What it says itself.
    pub texts: Vec<String>,
}

/// Every crate of a bill of materials (`sbom::document`) with the texts in its folder, which `folders` finds by name and version.
pub fn parts(bill: &Value, folders: &BTreeMap<(String, String), PathBuf>) -> Result<Vec<Part>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let components = bill["components"].as_array().context("a bill has components")?;
    let crates = components.iter().filter(|part| part["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/")));
    let part = |part: &Value| {
        let key = (text(&part["name"]), text(&part["version"]));
        let folder = folders.get(&key).with_context(|| format!("cargo metadata has no folder of {} {}", key.0, key.1))?;
        let texts = texts(folder).with_context(|| format!("{} is read", folder.display()))?;
        Ok(Part { title: format!("{} {}", key.0, key.1), licence: text(&part["licenses"][0]["expression"]), texts })
    };
    crates.map(part).collect()
}

/// The folder of every package by name and version, as `cargo metadata` says it.
pub fn folders(metadata: &Value) -> Result<BTreeMap<(String, String), PathBuf>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has packages")?;
    let folder = |package: &Value| {
        let text = |key: &str| package[key].as_str().with_context(|| format!("a package has a text `{key}`")).map(str::to_owned);
        let manifest = PathBuf::from(text("manifest_path")?);
        Ok(((text("name")?, text("version")?), manifest.parent().context("a manifest is in a folder")?.to_owned()))
    };
    packages.iter().map(folder).collect()
}

/// The texts in a crate's folder, in the order of their names.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_uppercase();
        NAMES.iter().any(|begin| name.starts_with(begin))
            && path.metadata().is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX)
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(is_one);
    files.sort();
    let read = |file: &PathBuf| Ok(String::from_utf8_lossy(&fs::read(file)?).replace("\r\n", "\n").trim().to_owned());
    let texts: Result<BTreeSet<String>> = files.iter().map(read).collect();
    Ok(texts?.into_iter().filter(|text| !text.is_empty()).collect())
}

/// The document: all parts, then each text once with those that it is of, then what the dashboard is made of.
pub fn document(parts: &[Part], dashboard: &str) -> String {
    let mut told = "What is inside the binary bodkin besides its own code, and under which licences.\n\n".to_owned();
    let mut of_texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for part in parts {
        let remark = if part.texts.is_empty() { " (its package has no text of its own)" } else { "" };
        told.push_str(&format!("{}: {}{remark}\n", part.title, part.licence));
        for text in &part.texts {
            of_texts.entry(text).or_default().push(&part.title);
        }
    }
    let mut of_texts: Vec<(&str, Vec<&str>)> = of_texts.into_iter().collect();
    of_texts.sort_by(|one, other| one.1.cmp(&other.1));
    for (text, titles) in of_texts {
        told.push_str(&format!("\n{LINE}\nOf {}:\n\n{text}\n", titles.join(", ")));
    }
    told.push_str(&format!("\n{LINE}\nOf the dashboard:\n\n{}\n", dashboard.trim()));
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_stands_once_with_all_that_it_is_of() {
        let part = |title: &str, texts: &[&str]| Part {
            title: title.to_owned(),
            licence: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let told = document(&[part("a 1.0", &["the same"]), part("b 2.0", &["the same", "another"]), part("c 3.0", &[])], "svelte\n");
        assert_eq!(told.matches("the same").count(), 1);
        for words in [
            "a 1.0: MIT\n",
            "Of a 1.0, b 2.0:\n\nthe same\n",
            "Of b 2.0:\n\nanother\n",
            "c 3.0: MIT (its package has no text",
            "Of the dashboard:\n\nsvelte\n",
        ] {
            assert!(told.contains(words), "{words} is not in\n{told}");
        }
    }

    #[test]
    fn the_texts_are_those_of_the_crates_of_others() {
        let place = std::env::temp_dir().join(format!("bodkin-notices-{}", std::process::id()));
        fs::create_dir_all(place.join("LICENSES")).unwrap();
        for (name, text) in
            [("LICENSE-MIT", "mit\r\n"), ("license-apache", "apache"), ("NOTICE.txt", ""), ("README.md", "readme"), ("Copying", "mit\n")]
        {
            fs::write(place.join(name), text).unwrap();
        }
        let metadata = json!({"packages": [{"name": "a", "version": "1.0.0", "manifest_path": place.join("Cargo.toml")}]});
        let component = |purl: &str| json!({"name": "a", "version": "1.0.0", "purl": purl, "licenses": [{"expression": "MIT"}]});
        let bill = json!({"components": [component("pkg:cargo/a@1.0.0"), component("pkg:npm/a@1.0.0"), {"name": "ours", "version": "1"}]});
        let found = parts(&bill, &folders(&metadata).unwrap()).unwrap();
        fs::remove_dir_all(&place).unwrap();
        assert_eq!(found, [Part { title: "a 1.0.0".into(), licence: "MIT".into(), texts: vec!["apache".into(), "mit".into()] }]);
        assert!(parts(&bill, &BTreeMap::new()).is_err(), "a crate whose folder nobody knows");
    }
}
