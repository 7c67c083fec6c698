//! The C library's use cases, built for the emulated radio with lwIP as Debian has it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use tempfile::TempDir;

/// What is compiled into each program, from the library's folder; a name that ends in `/` is all C files of that folder.
const SOURCES: [&str; 5] = ["src/", "port/net.c", "port/lwip/", "examples/station.c", "examples/radio/"];

/// The two programs, in a folder of their own; gone when dropped.
#[derive(Debug)]
pub struct Programs {
    _folder: Option<TempDir>,
    pub prime_count: PathBuf,
    pub word_count: PathBuf,
}

impl Programs {
    /// Builds both from the library's folder.
    ///
    /// # Errors
    /// There are no such sources, no compiler, or no lwIP.
    pub fn build(library: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let build = |name: &str| compile(library, name, &folder.path().join(name));
        Ok(Self { prime_count: build("prime_count")?, word_count: build("word_count")?, _folder: Some(folder) })
    }

    /// Two that are there already.
    #[cfg(test)]
    pub fn of(prime_count: PathBuf, word_count: PathBuf) -> Self {
        Self { _folder: None, prime_count, word_count }
    }
}

fn compile(library: &Path, name: &str, program: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-O2", "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE", "-I"]).arg(library.join("include"));
    command.args(lwip("--cflags")?).args(sources(library)?).arg(library.join("examples").join(name).with_extension("c"));
    command.args(lwip("--libs")?).arg("-o").arg(program);
    let built = command.stdin(Stdio::null()).output().context("the use cases are built by `cc`, which is missing")?;
    if !built.status.success() {
        bail!("{name} is not built:\n{}", String::from_utf8_lossy(&built.stderr));
    }
    Ok(program.to_path_buf())
}

fn sources(library: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for name in SOURCES {
        let path = library.join(name);
        if !name.ends_with('/') {
            sources.push(path);
            continue;
        }
        let why = || format!("{} is not there: --library is the folder `zmtp-c` of Bodkin's sources", path.display());
        for entry in std::fs::read_dir(&path).with_context(why)? {
            sources.push(entry?.path());
        }
    }
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    Ok(sources)
}

/// Options for the compiler.
fn lwip(what: &str) -> anyhow::Result<Vec<String>> {
    const MISSING: &str = "the stations need lwIP (Debian: liblwip-dev, pkg-config)";
    let told = Command::new("pkg-config").args([what, "lwip"]).output().context(MISSING)?;
    if !told.status.success() {
        bail!(MISSING);
    }
    Ok(String::from_utf8(told.stdout)?.split_whitespace().map(String::from).collect())
}
