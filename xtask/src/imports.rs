//! The direction of imports: which of our crates may import which, and what the pure ones may link at all.
//!
//! The table is that of the design, cut to the crates that exist. It is complete both ways: a crate without a row and a row
//! without a crate are violations, so that a new crate's arrows are decided when it is made.

use std::collections::BTreeSet;

use crate::workspace::{Kind, Package, Workspace};

/// One of our crates and its arrows.
struct Row {
    name: &'static str,
    /// Sees no socket, file, clock or global randomness, and links only [`PURE_MAY_LINK`].
    pure: bool,
    imports: &'static [&'static str],
}

/// Arrows point up in this table only.
const TABLE: &[Row] = &[
    Row { name: "bodkin-broker", pure: true, imports: &[] },
    Row { name: "bodkin-operators", pure: true, imports: &["bodkin-broker"] },
    Row { name: "bodkin-arrowhead", pure: true, imports: &[] },
    Row { name: "bodkin-simulator", pure: true, imports: &["bodkin-broker", "bodkin-operators"] },
    Row { name: "bodkin-zmtp", pure: true, imports: &[] },
    Row { name: "bodkin-petri", pure: true, imports: &[] },
    Row { name: "bodkin-relay", pure: true, imports: &[] },
    Row { name: "bodkin-nats", pure: true, imports: &[] },
    Row { name: "bodkin-store", pure: false, imports: &["bodkin-arrowhead", "bodkin-broker"] },
    Row { name: "bodkin-trust", pure: false, imports: &["bodkin-arrowhead", "bodkin-zmtp"] },
    Row { name: "bodkin-client", pure: false, imports: &["bodkin-arrowhead", "bodkin-broker", "bodkin-trust", "bodkin-zmtp"] },
    Row {
        name: "bodkin-host",
        pure: false,
        imports: &[
            "bodkin-arrowhead",
            "bodkin-broker",
            "bodkin-nats",
            "bodkin-operators",
            "bodkin-relay",
            "bodkin-store",
            "bodkin-trust",
            "bodkin-zmtp",
        ],
    },
    // Drives any Arrowhead over the wire: of ours only the machines of real-time topics and of relays, and what they are spoken to in.
    Row { name: "bodkin-bench", pure: false, imports: &["bodkin-broker", "bodkin-client", "bodkin-nats", "bodkin-relay", "bodkin-zmtp"] },
    Row {
        name: "bodkin",
        pure: false,
        imports: &[
            "bodkin-arrowhead",
            "bodkin-bench",
            "bodkin-broker",
            "bodkin-client",
            "bodkin-host",
            "bodkin-operators",
            "bodkin-petri",
            "bodkin-simulator",
            "bodkin-store",
            "bodkin-trust",
        ],
    },
    Row { name: "xtask", pure: false, imports: &[] },
];

/// The crate whose tests may use any other: they start the whole.
const FREE_IN_TESTS: &str = "bodkin";

/// External crates that a pure crate may link, through others too. None of them opens a socket or a file, reads a clock or
/// draws global randomness in the calls we make: look before adding one.
const PURE_MAY_LINK: &[&str] = &[
    // Errors and JSON.
    "itoa",
    "memchr",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "thiserror",
    "thiserror-impl",
    "zmij",
    // RFC 3339 text of a time that is given.
    "humantime",
    // Maps with structural sharing; its generator runs on a seed of its own.
    "archery",
    "bytemuck",
    "equivalent",
    "imbl",
    "imbl-sized-chunks",
    "rand_core",
    "rand_xoshiro",
    "safe_arch",
    "wide",
    // The boxes of CURVE: arithmetic on what it is given. Its features that draw keys are off; only `cpufeatures` asks anything
    // of the machine, which instructions it has.
    "aead",
    "cfg-if",
    "cipher",
    "cpufeatures",
    "crypto-common",
    "crypto_secretbox",
    "curve25519-dalek",
    "curve25519-dalek-derive",
    "generic-array",
    "inout",
    "opaque-debug",
    "poly1305",
    "salsa20",
    "subtle",
    "typenum",
    "universal-hash",
    "zeroize",
    // Graph files: a reader of TOML.
    "serde_spanned",
    "toml",
    "toml_datetime",
    "toml_parser",
    "toml_writer",
    "winnow",
    // Operators: Fourier transforms, and AES-256-GCM under keys derived by HMAC-SHA-256. They ask the machine which instructions it has, and nothing else.
    "aes",
    "aes-gcm",
    "autocfg",
    "block-buffer",
    "block-padding",
    "cmov",
    "const-oid",
    "cpubits",
    "ctr",
    "ctutils",
    "digest",
    "ghash",
    "hmac",
    "hybrid-array",
    "num-complex",
    "num-integer",
    "num-traits",
    "polyval",
    "primal-check",
    "realfft",
    "rustfft",
    "sha2",
    "strength_reduce",
    "transpose",
];

/// External crates that a pure crate's tests may use besides.
const PURE_MAY_TEST_WITH: &[&str] = &["proptest", "stateright"];

/// Every import that the table does not allow, a line each.
pub fn violations(workspace: &Workspace) -> Vec<String> {
    let mut violations = Vec::new();
    let own: BTreeSet<&str> = workspace.own().map(|package| package.name.as_str()).collect();
    for package in workspace.own() {
        let Some(row) = TABLE.iter().find(|row| row.name == package.name) else {
            violations.push(format!("{}: has no row in the table of xtask/src/imports.rs", package.name));
            continue;
        };
        violations.extend(forbidden_arrows(package, row, &own));
        if row.pure {
            violations.extend(impurities(workspace, package, &own));
        }
    }
    let gone = TABLE.iter().filter(|row| !own.contains(row.name));
    violations.extend(gone.map(|row| format!("{}: has a row in the table of xtask/src/imports.rs, but is no crate", row.name)));
    violations
}

/// The folders of the pure crates, as in `crates/broker`.
pub fn pure_folders() -> impl Iterator<Item = String> {
    let pure = TABLE.iter().filter(|row| row.pure);
    pure.map(|row| format!("crates/{}", row.name.trim_start_matches("bodkin-")))
}

fn forbidden_arrows(package: &Package, row: &Row, own: &BTreeSet<&str>) -> Vec<String> {
    let ours = package.declares.iter().filter(|dependency| own.contains(dependency.name.as_str()));
    let forbidden = ours.filter(|dependency| {
        let free = dependency.kind == Kind::Dev && row.name == FREE_IN_TESTS;
        !free && !row.imports.contains(&dependency.name.as_str())
    });
    forbidden.map(|dependency| format!("{} may not import {} ({:?})", row.name, dependency.name, dependency.kind)).collect()
}

/// What a pure crate links or tests with beyond the two lists. Build scripts and what they use are linked into nothing.
fn impurities(workspace: &Workspace, package: &Package, own: &BTreeSet<&str>) -> Vec<String> {
    let linked = linked_with(workspace, package);
    let linked = linked.iter().filter(|name| !own.contains(*name) && !PURE_MAY_LINK.contains(name));
    let linked = linked.map(|name| format!("{} is pure and may not link {name}", package.name));
    let tests = package.declares.iter().filter(|dependency| dependency.kind == Kind::Dev).map(|dependency| dependency.name.as_str());
    let tests = tests.filter(|name| !own.contains(name) && !PURE_MAY_LINK.contains(name) && !PURE_MAY_TEST_WITH.contains(name));
    let tests = tests.map(|name| format!("{} is pure and may not test with {name}", package.name));
    linked.chain(tests).collect()
}

/// Names of all packages that are linked with `package`; what a procedural macro links stays in the compiler.
fn linked_with<'a>(workspace: &'a Workspace, package: &'a Package) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = package.links.iter().collect();
    while let Some(id) = open.pop() {
        let Some(linked) = workspace.packages.get(id).filter(|_| seen.insert(id)) else { continue };
        names.insert(linked.name.as_str());
        if !linked.is_proc_macro {
            open.extend(&linked.links);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All crates of the table without an import, then `lines` in place of theirs.
    fn tree(lines: &[&str]) -> Workspace {
        let replaced = |row: &Row| lines.iter().any(|line| line.split(':').next() == Some(row.name));
        let bare: Vec<String> = TABLE.iter().filter(|row| !replaced(row)).map(|row| format!("{}:", row.name)).collect();
        Workspace::of(&bare.iter().map(String::as_str).chain(lines.iter().copied()).collect::<Vec<_>>())
    }

    fn check(lines: &[&str], expect: &[&str]) {
        assert_eq!(violations(&tree(lines)), expect, "{lines:?}");
    }

    #[test]
    fn every_arrow_of_the_table_is_allowed() {
        let lines: Vec<String> = TABLE.iter().map(|row| format!("{}: {}", row.name, row.imports.join(" "))).collect();
        check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    }

    #[test]
    fn the_table_itself_points_up() {
        for (index, row) in TABLE.iter().enumerate() {
            for import in row.imports {
                assert!(TABLE[..index].iter().any(|above| above.name == *import), "{} imports {import}", row.name);
            }
        }
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_refused_whatever_its_kind() {
        check(&["bodkin-store: bodkin-host"], &["bodkin-store may not import bodkin-host (Normal)"]);
        check(&["bodkin-arrowhead: ~bodkin-broker"], &["bodkin-arrowhead may not import bodkin-broker (Dev)"]);
        check(&["bodkin-host: +bodkin-client"], &["bodkin-host may not import bodkin-client (Build)"]);
    }

    #[test]
    fn the_tests_of_the_binary_may_use_any_crate() {
        check(&["bodkin: ~xtask"], &[]);
        check(&["bodkin: xtask"], &["bodkin may not import xtask (Normal)"]);
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        check(&["bodkin-new:"], &["bodkin-new: has no row in the table of xtask/src/imports.rs"]);
    }

    #[test]
    fn a_row_needs_a_crate() {
        let mut workspace = tree(&[]);
        workspace.members.remove("bodkin-client");
        assert_eq!(violations(&workspace), ["bodkin-client: has a row in the table of xtask/src/imports.rs, but is no crate"]);
    }

    #[test]
    fn a_pure_crate_links_only_what_is_listed_however_deep() {
        let workspace = tree(&["bodkin-broker: thiserror", "bodkin-host: tokio"]);
        let workspace = workspace.with_external("thiserror", None, &["memchr"]).with_external("memchr", None, &["tokio"]);
        let workspace = workspace.with_external("tokio", None, &["memchr"]);
        assert_eq!(violations(&workspace), ["bodkin-broker is pure and may not link tokio"]);
    }

    #[test]
    fn what_a_procedural_macro_links_does_not_count() {
        let mut workspace = tree(&["bodkin-broker: serde_derive"]).with_external("serde_derive", None, &["syn"]);
        workspace = workspace.with_external("syn", None, &[]);
        workspace.packages.get_mut("serde_derive").expect("was added").is_proc_macro = true;
        assert_eq!(violations(&workspace), [""; 0]);
    }

    #[test]
    fn a_pure_crate_tests_only_with_what_is_listed() {
        check(&["bodkin-broker: ~proptest ~serde_json"], &[]);
        check(&["bodkin-broker: ~tempfile"], &["bodkin-broker is pure and may not test with tempfile"]);
    }
}
