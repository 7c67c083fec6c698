//! Every seed of the fuzz targets through the same functions that the fuzzer calls (`fuzz/README.md`).

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("a readable folder").file_name().into_string().expect("names are UTF-8")).collect()
}

#[test]
fn every_seed_keeps_what_its_target_promises() {
    let mut broken = Vec::new();
    for (name, target) in fuzz::TARGETS {
        let seeds = folder("seeds").join(name);
        let files = names_in(&seeds);
        assert!(files.len() >= 5, "{name} has {} seeds", files.len());
        for file in files {
            let bytes = fs::read(seeds.join(&file)).expect("a seed is read");
            if catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
                broken.push(format!("{name}/{file}"));
            }
        }
    }
    assert!(broken.is_empty(), "these break what their targets promise: {broken:#?}");
}

#[test]
fn every_target_has_its_program_and_its_seeds() {
    let targets: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in(&folder("seeds")), targets);
    let programs: BTreeSet<String> = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names_in(&folder("fuzz_targets")), programs);
    let manifest = fs::read_to_string(folder("Cargo.toml")).expect("a readable manifest");
    for name in &targets {
        let program = fs::read_to_string(folder("fuzz_targets").join(format!("{name}.rs"))).expect("a readable program");
        assert!(program.contains(&format!("bodkin_fuzz::{name}(bytes)")), "{name}.rs calls another target");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in the manifest");
    }
}
