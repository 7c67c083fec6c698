//! What is inside the binary: a software bill of materials in the form of CycloneDX 1.5. It has no time and no serial number, so that the same tree makes the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::workspace::Workspace;

/// The package that is delivered.
const PRODUCT: &str = "bodkin";
/// Crates of others come from there; ours do not.
const REGISTRY: &str = "registry+";

/// What the parts are read from, besides `cargo metadata`.
pub struct Sources<'s> {
    /// `Cargo.lock`.
    pub lock: &'s str,
    /// `web/dist/licences.txt`: what the dashboard is made of.
    pub dashboard: &'s str,
    /// `web/package-lock.json`.
    pub dashboard_lock: &'s str,
}

/// The document.
pub fn document(workspace: &Workspace, sources: &Sources<'_>) -> Result<Value> {
    let product = workspace.members.iter().find(|id| workspace.packages.get(*id).is_some_and(|package| package.name == PRODUCT));
    let product = product.with_context(|| format!("no member is called {PRODUCT}"))?;
    let checksums = checksums(sources.lock);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    let mut open = vec![product];
    let mut seen: BTreeSet<&String> = BTreeSet::from([product]);
    while let Some(id) = open.pop() {
        let package = workspace.packages.get(id).with_context(|| format!("cargo metadata has no package {id}"))?;
        if id != product {
            components.push(component(id, &package.name, package.licence.as_deref(), &checksums)?);
        }
        let mut links: Vec<String> = package.links.iter().map(|link| reference(workspace, link)).collect::<Result<_>>()?;
        links.sort();
        dependencies.push(json!({"ref": reference(workspace, id)?, "dependsOn": links}));
        open.extend(package.links.iter().filter(|link| seen.insert(*link)));
    }
    components.extend(dashboard(sources)?);
    let by_reference = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    components.sort_by_key(|value| by_reference(value, "bom-ref"));
    dependencies.sort_by_key(|value| by_reference(value, "ref"));
    let licence = workspace.packages[product].licence.as_deref();
    let about = json!({"type": "application", "bom-ref": reference(workspace, product)?, "name": PRODUCT, "version": version(product), "licenses": licences(licence)});
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(id: &str, name: &str, licence: Option<&str>, checksums: &BTreeMap<(&str, &str), &str>) -> Result<Value> {
    let version = version(id);
    let reference = purl(id, name);
    let mut component = json!({"type": "library", "bom-ref": reference, "name": name, "version": version, "licenses": licences(licence)});
    if id.starts_with(REGISTRY) {
        let checksum = checksums.get(&(name, version)).with_context(|| format!("Cargo.lock has no checksum of {name} {version}"))?;
        component["purl"] = reference.into();
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    Ok(component)
}

fn licences(expression: Option<&str>) -> Value {
    // The old spelling of a choice is none of SPDX's.
    expression.map_or_else(|| json!([]), |expression| json!([{"expression": expression.replace('/', " OR ")}]))
}

fn reference(workspace: &Workspace, id: &str) -> Result<String> {
    let package = workspace.packages.get(id).with_context(|| format!("cargo metadata has no package {id}"))?;
    Ok(purl(id, &package.name))
}

/// A package URL; of a crate of ours, which no registry has, name and version.
fn purl(id: &str, name: &str) -> String {
    let version = version(id);
    if id.starts_with(REGISTRY) { format!("pkg:cargo/{name}@{version}") } else { format!("{name}@{version}") }
}

/// The version in cargo's identity of a package: `...#name@1.2.3`, or `...#1.2.3`.
fn version(id: &str) -> &str {
    let end = id.rsplit('#').next().unwrap_or(id);
    end.rsplit('@').next().unwrap_or(end)
}

/// Checksums of a `Cargo.lock` by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let mut checksums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
        if let (Some(name), Some(version), Some(checksum)) = (value("name"), value("version"), value("checksum")) {
            checksums.insert((name, version), checksum);
        }
    }
    checksums
}

/// What the dashboard's files have in them: each is headed, and underlined, in the text of licences.
fn dashboard(sources: &Sources<'_>) -> Result<Vec<Value>> {
    let lock: Value = serde_json::from_str(sources.dashboard_lock).context("web/package-lock.json is JSON")?;
    let lines: Vec<&str> = sources.dashboard.lines().collect();
    let is_underline = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte == b'=');
    let names = lines.windows(2).filter(|pair| !pair[0].is_empty() && is_underline(pair[1])).map(|pair| pair[0]);
    names
        .map(|name| {
            let package = &lock["packages"][format!("node_modules/{name}")];
            let version =
                package["version"].as_str().with_context(|| format!("web/package-lock.json has no {name}, which web/dist has in it"))?;
            let purl = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
            let licence = licences(package["license"].as_str());
            Ok(json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": licence}))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    fn package(name: &str, links: &[&str]) -> Package {
        let links = links.iter().map(|link| (*link).to_owned()).collect();
        Package { name: name.to_owned(), licence: Some("MIT/Apache-2.0".to_owned()), is_proc_macro: false, declares: Vec::new(), links }
    }

    #[test]
    fn what_is_linked_is_told_and_nothing_else() {
        let [ours, broker, serde, test] = [
            "path+file:///x/crates/bodkin#1.0.0",
            "path+file:///x/b#broker@1.0.0",
            "registry+https://r#serde@1.2.3",
            "registry+https://r#test@9.9.9",
        ];
        let packages = [
            (ours, package(PRODUCT, &[broker])),
            (broker, package("broker", &[serde])),
            (serde, package("serde", &[])),
            (test, package("test", &[])),
        ];
        let packages = packages.map(|(id, package)| (id.to_owned(), package)).into();
        let workspace = Workspace { packages, members: [ours.to_owned(), broker.to_owned()].into() };
        let sources = Sources {
            lock: "[[package]]\nname = \"serde\"\nversion = \"1.2.3\"\nchecksum = \"ab\"\n",
            dashboard: "@a/b\n====\n\nMIT\n",
            dashboard_lock: r#"{"packages": {"node_modules/@a/b": {"version": "4.5.6", "license": "ISC"}}}"#,
        };
        let document = document(&workspace, &sources).unwrap();
        let names: Vec<&str> = document["components"].as_array().unwrap().iter().map(|part| part["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(names, ["broker@1.0.0", "pkg:cargo/serde@1.2.3", "pkg:npm/%40a/b@4.5.6"]);
        assert_eq!(document["components"][1]["hashes"][0]["content"], "ab");
        assert_eq!(document["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["metadata"]["component"]["bom-ref"], "bodkin@1.0.0");
        assert_eq!(document["dependencies"][1], json!({"ref": "broker@1.0.0", "dependsOn": ["pkg:cargo/serde@1.2.3"]}));
        assert!(super::document(&workspace, &Sources { lock: "", ..sources }).is_err(), "a crate without a checksum");
    }

    #[test]
    fn versions_are_found_in_both_forms_of_an_identity() {
        assert_eq!((version("registry+https://r#serde@1.2.3"), version("path+file:///x/bodkin#0.1.0")), ("1.2.3", "0.1.0"));
    }
}
