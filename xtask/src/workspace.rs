//! What `cargo metadata` says of the workspace and of every crate it links on this platform.
//!
//! Metadata shows each crate with the features that anybody asks for, tests included; a feature that only a test asks for links
//! nothing into the product. So the links are those that `cargo tree` draws without the tests' dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Why one crate depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Linked into whatever uses the crate.
    Normal,
    /// Used by the crate's tests and examples only.
    Dev,
    /// Used by the crate's build script only.
    Build,
}

/// A dependency as a `Cargo.toml` names it, for every platform.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The package's name, also where the importing crate renames it.
    pub name: String,
    /// Why it is there.
    pub kind: Kind,
}

/// One package.
#[derive(Clone, Debug)]
pub struct Package {
    /// As in its `Cargo.toml`.
    pub name: String,
    /// Its SPDX licence expression.
    pub licence: Option<String>,
    /// Runs in the compiler, and is linked into nothing.
    pub is_proc_macro: bool,
    /// What its `Cargo.toml` names.
    pub declares: Vec<Dependency>,
    /// Identities of the packages that are linked with it here.
    pub links: Vec<String>,
}

/// All packages by cargo's identity of them, and which of them are ours.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Every package that cargo resolved for this platform.
    pub packages: BTreeMap<String, Package>,
    /// The identities of the workspace's own crates.
    pub members: BTreeSet<String>,
}

impl Workspace {
    /// Asks cargo about the workspace at `root`. Limited to this platform: other platforms' crates need not be downloaded.
    pub fn read(root: &Path) -> Result<Self> {
        let tree = output(
            Command::new(env!("CARGO"))
                .args(["tree", "--workspace", "--locked", "--edges", "normal", "--prefix", "depth", "--format", " {p}"])
                .current_dir(root),
        )?;
        let mut workspace = Self::parse(&metadata(root)?)?;
        workspace.keep_links(&edges(&tree)?);
        Ok(workspace)
    }

    /// Drops the links that are not among `drawn`, pairs of names.
    fn keep_links(&mut self, drawn: &BTreeSet<(String, String)>) {
        let names: BTreeMap<String, String> = self.packages.iter().map(|(id, package)| (id.clone(), package.name.clone())).collect();
        for package in self.packages.values_mut() {
            package.links.retain(|id| names.get(id).is_some_and(|name| drawn.contains(&(package.name.clone(), name.clone()))));
        }
    }

    /// Reads the JSON of `cargo metadata --format-version 1`.
    fn parse(metadata: &Value) -> Result<Self> {
        let mut links = BTreeMap::new();
        for node in list(&metadata["resolve"], "nodes")? {
            let linked = list(node, "deps")?.iter().filter(|dependency| is_linked(dependency));
            let linked = linked.map(|dependency| text(dependency, "pkg")).collect::<Result<Vec<_>>>()?;
            links.insert(text(node, "id")?, linked);
        }
        let mut packages = BTreeMap::new();
        for package in list(metadata, "packages")? {
            let id = text(package, "id")?;
            let targets = list(package, "targets")?;
            let resolved = Package {
                name: text(package, "name")?,
                licence: package["license"].as_str().map(str::to_owned),
                is_proc_macro: targets.iter().any(|target| target["kind"][0] == "proc-macro"),
                declares: list(package, "dependencies")?.iter().map(dependency).collect::<Result<_>>()?,
                links: links.remove(&id).unwrap_or_default(),
            };
            packages.insert(id, resolved);
        }
        let members = list(metadata, "workspace_members")?;
        let members = members.iter().map(|id| Ok(id.as_str().context("a member is text")?.to_owned()));
        Ok(Self { packages, members: members.collect::<Result<_>>()? })
    }

    /// The workspace's own packages.
    pub fn own(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().filter_map(|id| self.packages.get(id))
    }
}

/// What `cargo metadata` prints of the workspace at `root`, for this platform.
pub fn metadata(root: &Path) -> Result<Value> {
    let host = output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let metadata = ["metadata", "--locked", "--format-version", "1", "--filter-platform", host.trim()];
    serde_json::from_str(&output(Command::new(env!("CARGO")).args(metadata).current_dir(root))?).context("cargo metadata prints JSON")
}

/// Who links whom, by name, in a tree of `cargo tree --prefix depth`: lines `DEPTH NAME vVERSION ...`.
fn edges(tree: &str) -> Result<BTreeSet<(String, String)>> {
    let mut edges = BTreeSet::new();
    let mut path: Vec<&str> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split(' ');
        let depth = words.next().and_then(|depth| depth.parse::<usize>().ok());
        let (depth, name) = depth.zip(words.next()).with_context(|| format!("cargo tree prints depth and name, not `{line}`"))?;
        path.truncate(depth);
        if let Some(parent) = path.last() {
            edges.insert(((*parent).to_owned(), name.to_owned()));
        }
        path.push(name);
    }
    Ok(edges)
}

fn is_linked(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn dependency(value: &Value) -> Result<Dependency> {
    let kind = match value["kind"].as_str() {
        None => Kind::Normal,
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        Some(other) => anyhow::bail!("cargo names an unknown kind of dependency: {other}"),
    };
    Ok(Dependency { name: text(value, "name")?, kind })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("cargo metadata has a list `{key}`"))
}

fn text(value: &Value, key: &str) -> Result<String> {
    Ok(value[key].as_str().with_context(|| format!("cargo metadata has a text `{key}`"))?.to_owned())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} starts"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
impl Workspace {
    /// A workspace without external crates: each line is `crate: normal ~dev +build`.
    pub fn of(lines: &[&str]) -> Self {
        let mut workspace = Self::default();
        for line in lines {
            let (name, dependencies) = line.split_once(':').expect("a crate's line has a colon");
            let declares = dependencies.split_whitespace().map(|word| match word.split_at(1) {
                ("~", name) => Dependency { name: name.to_owned(), kind: Kind::Dev },
                ("+", name) => Dependency { name: name.to_owned(), kind: Kind::Build },
                _ => Dependency { name: word.to_owned(), kind: Kind::Normal },
            });
            workspace.members.insert(name.to_owned());
            let declares: Vec<_> = declares.collect();
            let links = declares.iter().filter(|dependency| dependency.kind == Kind::Normal);
            let links = links.map(|dependency| dependency.name.clone()).collect();
            let package = Package { name: name.to_owned(), licence: None, is_proc_macro: false, declares, links };
            workspace.packages.insert(name.to_owned(), package);
        }
        workspace
    }

    /// Adds an external crate that links `links`.
    pub fn with_external(mut self, name: &str, licence: Option<&str>, links: &[&str]) -> Self {
        let links = links.iter().map(|&link| link.to_owned()).collect();
        let licence = licence.map(str::to_owned);
        let package = Package { name: name.to_owned(), licence, is_proc_macro: false, declares: Vec::new(), links };
        self.packages.insert(name.to_owned(), package);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cargo_prints_is_read() {
        let metadata = json!({
            "workspace_members": ["ours#1"],
            "packages": [
                {"id": "ours#1", "name": "ours", "license": "MIT", "targets": [{"kind": ["lib"]}], "dependencies": [
                    {"name": "theirs", "kind": null}, {"name": "tried", "kind": "dev"}, {"name": "made", "kind": "build"}]},
                {"id": "theirs#2", "name": "theirs", "license": null, "targets": [{"kind": ["proc-macro"]}], "dependencies": []},
            ],
            "resolve": {"nodes": [
                {"id": "ours#1", "deps": [
                    {"pkg": "theirs#2", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                    {"pkg": "tried#3", "dep_kinds": [{"kind": "dev"}]}]},
                {"id": "theirs#2", "deps": []},
            ]},
        });
        let workspace = Workspace::parse(&metadata).expect("well-formed metadata");

        let ours = workspace.own().next().expect("one member");
        assert_eq!((ours.name.as_str(), ours.licence.as_deref(), ours.is_proc_macro), ("ours", Some("MIT"), false));
        let kinds: Vec<_> = ours.declares.iter().map(|dependency| (dependency.name.as_str(), dependency.kind)).collect();
        assert_eq!(kinds, [("theirs", Kind::Normal), ("tried", Kind::Dev), ("made", Kind::Build)]);
        assert_eq!(ours.links, ["theirs#2"]);
        assert!(workspace.packages["theirs#2"].is_proc_macro);
        assert_eq!(workspace.packages["theirs#2"].licence, None);
    }

    #[test]
    fn a_link_that_only_tests_ask_for_is_none() {
        let drawn = edges("0 ours v1.0.0 (/somewhere)\n1 theirs v2.0.0\n2 deep v3.0.0\n1 deep v3.0.0 (*)\n\n0 other v1.0.0\n").unwrap();
        let pairs: Vec<_> = drawn.iter().map(|(one, other)| (one.as_str(), other.as_str())).collect();
        assert_eq!(pairs, [("ours", "deep"), ("ours", "theirs"), ("theirs", "deep")]);
        let mut workspace = Workspace::of(&["ours: theirs", "other: ours"]).with_external("theirs", None, &["deep", "clock"]);
        workspace = workspace.with_external("deep", None, &[]).with_external("clock", None, &[]);
        workspace.keep_links(&drawn);
        assert_eq!(workspace.packages["theirs"].links, ["deep"]);
        assert_eq!(workspace.packages["other"].links, [""; 0]);
        assert!(edges("ours v1.0.0").is_err());
    }

    #[test]
    fn metadata_without_a_resolution_is_an_error() {
        let error = Workspace::parse(&json!({"workspace_members": [], "packages": []})).expect_err("nothing resolved");
        assert!(error.to_string().contains("`nodes`"), "{error}");
    }
}
