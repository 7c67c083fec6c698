//! A folder with a cloud's trust directory in it, made and used by `bodkin cert`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::cloud::BINARY;

/// The password in the file `password` of every such folder.
pub const PASSWORD: &str = "pass-word 1";

/// The folder; removed when dropped. Commands run in it, so that files are named without their folder.
pub struct Certificates(TempDir);

impl Certificates {
    /// An empty folder but for the file `password`.
    pub fn empty() -> Self {
        let place = Self(TempDir::new().expect("a temporary directory"));
        place.write_secret("password", PASSWORD);
        place
    }

    /// With a cloud's authority: `testcloud1` of `aitia`.
    #[track_caller]
    pub fn init() -> Self {
        let place = Self::empty();
        place.done("cert init --cloud testcloud1 --operator aitia");
        place
    }

    /// A file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file of the trust directory.
    pub fn trust(&self, name: &str) -> PathBuf {
        self.path(".bodkin/trust").join(name)
    }

    /// Writes a file that only its owner may read.
    pub fn write_secret(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file is written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).expect("rights are set");
    }

    /// `bodkin` with the words of `line`, to be started in the folder; quotes are not understood.
    pub fn bodkin(&self, line: &str) -> Command {
        self.program(BINARY, line)
    }

    /// What `bodkin` printed; its exit code must be `code`.
    #[track_caller]
    pub fn ended(&self, line: &str, code: i32) -> Output {
        let output = self.bodkin(line).output().expect("the binary starts");
        let told = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{line}: {told:?}");
        output
    }

    /// What it printed; its exit code must be 0.
    #[track_caller]
    pub fn done(&self, line: &str) -> String {
        String::from_utf8(self.ended(line, 0).stdout).expect("the output is UTF-8")
    }

    /// The one document it printed.
    #[track_caller]
    pub fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(&format!("{line} --output json"))).expect("one JSON document")
    }

    /// What it said on standard error when it refused.
    #[track_caller]
    pub fn refused(&self, line: &str) -> String {
        String::from_utf8(self.ended(line, 1).stderr).expect("the output is UTF-8")
    }

    /// Another program, to be started in the folder.
    pub fn program(&self, program: &str, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command
    }
}
