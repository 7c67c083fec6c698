//! Which trust directory a command is for, and what opens its authorities' keys.

use std::path::PathBuf;

use bodkin_trust::TrustDirectory;
use clap::Args;

use crate::{passphrase, settings::data_of_this_machine};

/// Options of every `bodkin cert` command.
#[derive(Args, Clone, Debug)]
pub struct PlaceOptions {
    /// Directory of the cloud's database and other state
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_DATA", value_name = "DIR", default_value_os_t = data_of_this_machine())]
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
        passphrase::trust_directory(path, self.passphrase_file.as_deref())
    }
}
