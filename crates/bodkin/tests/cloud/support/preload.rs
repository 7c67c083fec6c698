//! A process under test whose clock of the day is ahead, or whose sine does not return: a library that the dynamic linker loads in front of the C library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use super::cloud::Launch;

/// The library. Each test process builds it in a file of its own, and replaces what another one has built.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (library, built) = (folder.join("preload.so"), folder.join(format!("preload-{}.so", std::process::id())));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o"]).arg(&built);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cloud/support/preload.c");
    let status = compiler.arg(source).status().expect("a C compiler");
    assert!(status.success(), "the library is not built");
    std::fs::rename(&built, &library).expect("a file is renamed");
    library
});

impl Launch {
    /// With a clock of the day that is ahead by these seconds.
    pub fn clock_ahead(self, seconds: i64) -> Self {
        self.preloaded().env("CLOCK_AHEAD_S", &seconds.to_string())
    }

    /// With functions of the C library replaced: a sine does not return.
    pub fn preloaded(self) -> Self {
        self.env("LD_PRELOAD", LIBRARY.to_str().expect("a path is text"))
    }
}
