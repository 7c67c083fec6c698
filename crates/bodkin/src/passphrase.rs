//! What opens the key of the cloud's authority where that is encrypted. `bodkin cert` and `bodkin up` are told it in the same words.

use std::path::{Path, PathBuf};

use anyhow::bail;
use bodkin_trust::{TrustDirectory, file::read_password};
use zeroize::Zeroizing;

/// Names the passphrase itself: no option does, for others see the options of a process.
pub const VARIABLE: &str = "BODKIN_CA_PASSPHRASE";
/// Shortest passphrase that authorities' keys are encrypted with.
const CHARACTERS_MIN: usize = 8;

/// The trust directory at `path` with the passphrase from the first line of `file`, else from the environment, where one is given.
///
/// # Errors
/// The file cannot be read or others may read it; or there is no authority yet, and one with so short a passphrase is not made.
pub fn trust_directory(path: PathBuf, file: Option<&Path>) -> anyhow::Result<TrustDirectory> {
    let passphrase = match file {
        Some(file) => Some(read_password(file)?),
        None => std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()).map(Zeroizing::new),
    };
    let characters = passphrase.as_ref().map(|passphrase| passphrase.chars().count());
    let directory = TrustDirectory::new(path).with_passphrase(passphrase);
    match characters {
        Some(characters @ ..CHARACTERS_MIN) if !directory.exists() => {
            bail!("the passphrase has {characters} characters; {CHARACTERS_MIN} at least are expected")
        }
        _ => Ok(directory),
    }
}
