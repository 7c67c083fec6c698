//! Programs of the C library, built by the C compiler that linking needs anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skip;

/// The compiler's words for CURVE of either end by libsodium.
pub const BY_CURVE: [&str; 3] = ["-DZMTP_WITH_CURVE=1", "-DZMTP_WITH_CURVE_SERVER=1", "-lsodium"];

/// Builds a source file of `zmtp-c` with the library and its POSIX port, as a program of this name.
pub fn built(source: &str, name: &str, options: &[&str]) -> PathBuf {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../zmtp-c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let folder = |name: &str| -> Vec<PathBuf> {
        let files = std::fs::read_dir(library.join(name)).expect("a folder").map(|entry| entry.expect("an entry").path());
        files.filter(|path| path.extension().is_some_and(|ending| ending == "c")).collect()
    };
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O1", "-g", "-I"]).arg(library.join("include"));
    compiler.arg("-I").arg(library.join("adapter"));
    compiler.args(folder("src")).args(folder("port")).args(folder("port/posix")).arg(library.join(source));
    let status = compiler.args(options).arg("-o").arg(&program).status().expect("a C compiler");
    assert!(status.success(), "{source} is not built");
    program
}

/// Whether libsodium is there; if not, the test is noted as skipped.
pub fn has_sodium(test: &str) -> bool {
    let is_there = Command::new("pkg-config").args(["--exists", "libsodium"]).status().is_ok_and(|status| status.success());
    if !is_there {
        skip::note(test, "no libsodium (Debian: libsodium-dev, pkg-config)");
    }
    is_there
}
