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
        // What runs in the compiler, and all that only it links, is inside no binary.
        let linked = package.links.iter().filter(|link| workspace.packages.get(*link).is_none_or(|package| !package.is_proc_macro));
        let mut links: Vec<String> = linked.clone().map(|link| reference(workspace, link)).collect::<Result<_>>()?;
        links.sort();
        dependencies.push(json!({"ref": reference(workspace, id)?, "dependsOn": links}));
        open.extend(linked.filter(|link| seen.insert(*link)));
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
        let [ours, broker, serde, derive, syn, test] = [
            "path+file:///x/crates/bodkin#1.0.0",
            "path+file:///x/b#broker@1.0.0",
            "registry+https://r#serde@1.2.3",
            "registry+https://r#derive@1.2.3",
            "registry+https://r#syn@2.0.0",
            "registry+https://r#test@9.9.9",
        ];
        let packages = [
            (ours, package(PRODUCT, &[broker])),
            (broker, package("broker", &[serde])),
            (serde, package("serde", &[derive])),
            (derive, Package { is_proc_macro: true, ..package("derive", &[syn]) }),
            (syn, package("syn", &[])),
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

    /// What a `Cargo.lock` says of a package: its checksum, and the names of all that it may link, build with or test with.
    struct Locked<'l> {
        checksum: &'l str,
        names: BTreeSet<&'l str>,
    }

    fn locked(lock: &str) -> BTreeMap<String, Locked<'_>> {
        let mut packages = BTreeMap::new();
        for text in lock.split("[[package]]").skip(1) {
            let quoted =
                |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = ")).unwrap_or_default().trim_matches('"');
            let names = text.split_once("dependencies = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or_default());
            // A name, and where there are several of it a version behind.
            let names =
                names.lines().filter_map(|line| line.trim().trim_matches(['"', ',']).split(' ').next()).filter(|name| !name.is_empty());
            let is_ours = !text.contains("\nsource = ");
            let reference = format!("{}{}@{}", if is_ours { "" } else { "pkg:cargo/" }, quoted("name"), quoted("version"));
            packages.insert(reference, Locked { checksum: quoted("checksum"), names: names.collect() });
        }
        packages
    }

    /// The tree's own bill: what it says of each part is what `Cargo.lock` says, and its parts are those that cargo links into the binary.
    #[test]
    fn the_bill_of_this_tree_is_what_cargo_lock_and_cargo_tree_say() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
        let (lock, dashboard, dashboard_lock) = (read("Cargo.lock"), read("web/dist/licences.txt"), read("web/package-lock.json"));
        let sources = Sources { lock: &lock, dashboard: &dashboard, dashboard_lock: &dashboard_lock };
        let bill = document(&Workspace::read(root).unwrap(), &sources).unwrap();
        let locked = locked(&lock);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name_of = |reference: &str| reference.trim_start_matches("pkg:cargo/").split('@').next().unwrap_or_default().to_owned();

        let parts = bill["components"].as_array().unwrap();
        let crates: BTreeMap<String, &Value> =
            parts.iter().map(|part| (text(&part["bom-ref"]), part)).filter(|(part, _)| !part.contains("pkg:npm/")).collect();
        assert!(crates.len() > 100 && parts.len() > crates.len(), "{} crates, {} parts", crates.len(), parts.len());
        for (reference, part) in &crates {
            let package = locked.get(reference).unwrap_or_else(|| panic!("Cargo.lock has no {reference}"));
            assert_eq!(text(&part["hashes"][0]["content"]), package.checksum, "{reference}");
            assert!(part["licenses"].as_array().is_some_and(|licences| !licences.is_empty()), "{reference} has no licence");
        }
        for links in bill["dependencies"].as_array().unwrap() {
            let package = &locked[&text(&links["ref"])];
            for link in links["dependsOn"].as_array().unwrap().iter().map(text) {
                assert!(crates.contains_key(&link), "{link} is linked, and no part");
                assert!(package.names.contains(name_of(&link).as_str()), "Cargo.lock does not have {} depend on {link}", links["ref"]);
            }
        }

        // Drawn for the product alone, and by another way: without the compiler's parts.
        let mut tree = std::process::Command::new(env!("CARGO"));
        tree.args(["tree", "--package", PRODUCT, "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
        let drawn = tree.current_dir(root).output().unwrap();
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
        let drawn = String::from_utf8(drawn.stdout).unwrap();
        let drawn: BTreeSet<String> = drawn
            .lines()
            .filter_map(|line| line.split_once(" v"))
            .map(|(name, rest)| format!("{name}@{}", rest.split(' ').next().unwrap_or_default()))
            .collect();
        let told: BTreeSet<String> = crates.keys().map(|part| part.trim_start_matches("pkg:cargo/").to_owned()).collect();
        let missing: Vec<&String> = drawn.iter().filter(|part| !told.contains(*part) && !part.starts_with("bodkin@")).collect();
        assert!(missing.is_empty(), "linked, and not in the bill: {missing:?}");
    }

    #[test]
    fn versions_are_found_in_both_forms_of_an_identity() {
        assert_eq!((version("registry+https://r#serde@1.2.3"), version("path+file:///x/bodkin#0.1.0")), ("1.2.3", "0.1.0"));
    }
}
