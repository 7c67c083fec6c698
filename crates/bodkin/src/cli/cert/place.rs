//! Which trust directory a command is for, and what opens its authorities' keys.

use std::path::PathBuf;

use anyhow::bail;
use bodkin_trust::{TrustDirectory, file::read_password};
use clap::Args;
use zeroize::Zeroizing;

/// Names the passphrase itself: no option does, for others see the options of a process.
pub const PASSPHRASE_VARIABLE: &str = "BODKIN_CA_PASSPHRASE";
/// Shortest passphrase that authorities' keys are encrypted with.
const PASSPHRASE_CHARACTERS_MIN: usize = 8;

/// Options of every `bodkin cert` command.
#[derive(Args, Clone, Debug)]
pub struct PlaceOptions {
    /// Directory of the cloud's database and other state
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_DATA", value_name = "DIR", default_value = "./.bodkin")]
    data: PathBuf,
    /// Directory of the cloud's certificates and keys [default: trust in the data directory]
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_TRUST", value_name = "DIR")]
    trust: Option<PathBuf>,
    /// File whose first line opens the authorities' keys; only its owner may read it
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_CA_PASSPHRASE_FILE", value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl PlaceOptions {
    /// The directory, and what opens it.
    pub fn directory(&self) -> anyhow::Result<TrustDirectory> {
        let path = self.trust.clone().unwrap_or_else(|| self.data.join("trust"));
        Ok(TrustDirectory::new(path).with_passphrase(self.passphrase()?))
    }

    /// The same, for an authority that is to be made.
    pub fn new_directory(&self) -> anyhow::Result<TrustDirectory> {
        match self.passphrase()?.map(|passphrase| passphrase.chars().count()) {
            Some(characters @ ..PASSPHRASE_CHARACTERS_MIN) => {
                bail!("the passphrase has {characters} characters; {PASSPHRASE_CHARACTERS_MIN} at least are expected")
            }
            _ => self.directory(),
        }
    }

    fn passphrase(&self) -> anyhow::Result<Option<Zeroizing<String>>> {
        match &self.passphrase_file {
            Some(path) => Ok(Some(read_password(path)?)),
            None => Ok(std::env::var(PASSPHRASE_VARIABLE).ok().filter(|text| !text.is_empty()).map(Zeroizing::new)),
        }
    }
}
