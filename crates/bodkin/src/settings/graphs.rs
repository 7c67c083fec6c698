//! Graphs that run from the start: their files, and the keys that their operators name.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use bodkin_host::graph::{Carriers, DeclaredGraph, DeclaredGraphs};
use bodkin_operators::Keys;
use bodkin_trust::file::read_private;

use super::{Settings, given};
use crate::graph_file;

/// Keys that a directory may have.
const KEYS_MAX: usize = 64;

impl Settings {
    /// The graphs that complete settings name, with the keys that are there.
    pub(super) fn graphs(&self, carriers: &Carriers) -> anyhow::Result<DeclaredGraphs> {
        let all = "complete settings have every option";
        let edge = self.edge.clone().unwrap_or_default();
        let declare = |path: &String| {
            let file = graph_file::read(Path::new(path)).map_err(|mistakes| anyhow!("{mistakes}"))?;
            let declared = DeclaredGraph::new(path.clone(), file, &edge)?;
            declared.check_reach(carriers)?;
            Ok(declared)
        };
        let graphs = self.graphs.iter().flatten().map(declare).collect::<anyhow::Result<Vec<_>>>()?;
        for (at, declared) in graphs.iter().enumerate() {
            graphs[..at].iter().try_for_each(|other| declared.check_kept(&other.file, carriers))?;
        }
        let keys = given(&self.graph_keys).map_or_else(|| Ok(Keys::default()), |directory| keys(&directory))?;
        Ok(DeclaredGraphs::new(graphs, keys, self.event_bytes_max.expect(all))?.called(edge))
    }
}

/// Whether the graphs of these files, and those that it names itself, would run together on the node whose configuration is in `config`, each as its part there: what is refused is what the node would refuse
/// at its start, in the same words.
pub fn check_together(config: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let mut settings = Settings::default().complete(Some(config))?;
    let named = settings.graphs.get_or_insert_default();
    let is_same = |known: &String, file: &Path| match (Path::new(known).canonicalize(), file.canonicalize()) {
        (Ok(known), Ok(file)) => known == file,
        _ => Path::new(known) == file,
    };
    for file in files {
        if !named.iter().any(|known| is_same(known, file)) {
            named.push(file.to_str().with_context(|| format!("{} is no text", file.display()))?.to_owned());
        }
    }
    let carriers = settings.carriers()?;
    settings.graphs(&carriers).map(drop)
}

/// The keys of a directory: NAME.key each, 32 bytes that nobody else may read.
fn keys(directory: &Path) -> anyhow::Result<Keys> {
    let unread = || format!("cannot read the keys of graphs in {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).with_context(unread)? {
        let path: PathBuf = entry.with_context(unread)?.path();
        if path.extension().is_some_and(|extension| extension == "key") {
            paths.push(path);
        }
    }
    if paths.len() > KEYS_MAX {
        bail!("{} has {} keys, and {KEYS_MAX} are the most", directory.display(), paths.len());
    }
    let mut keys = Keys::default();
    for path in paths {
        let name = path.file_stem().and_then(|name| name.to_str()).with_context(|| format!("the name of {} is no text", path.display()))?;
        let octets = read_private(&path)?;
        keys.add(name, &octets).with_context(|| format!("{} has {} bytes", path.display(), octets.len()))?;
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_files_that_nobody_else_may_read() {
        let place = tempfile::tempdir().expect("a directory");
        let write = |name: &str, bytes: usize, mode: u32| {
            let path = place.path().join(name);
            fs::write(&path, vec![7; bytes]).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            path
        };
        write("press.key", 32, 0o600);
        write("notes.txt", 3, 0o644);
        let told = format!("{:?}", keys(place.path()).expect("one key"));
        assert!(told.contains("press") && !told.contains("notes") && !told.contains("7, 7"), "{told}");
        let open = write("open.key", 32, 0o644);
        assert!(keys(place.path()).expect_err("others may read it").to_string().contains("chmod 600"));
        fs::remove_file(open).expect("removed");
        write("short.key", 31, 0o600);
        assert!(format!("{:#}", keys(place.path()).expect_err("it is short")).contains("short.key has 31 bytes: a key has 32 bytes"));
        assert!(format!("{:#}", keys(&place.path().join("none")).expect_err("there is none")).contains("cannot read the keys"));
    }
}
