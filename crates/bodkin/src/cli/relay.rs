//! `bodkin relay`: relays between clouds.

use clap::{Args, Subcommand};

use crate::relay::ServeOptions;

/// Options of `bodkin relay`.
#[derive(Args, Clone, Debug)]
pub struct RelayOptions {
    /// What is to be done.
    #[command(subcommand)]
    pub command: RelayCommand,
}

/// What is to be done with a relay.
#[derive(Clone, Debug, Subcommand)]
pub enum RelayCommand {
    /// Be a relay, where clouds meet that share no authority; no cloud need run
    Serve(ServeOptions),
}
