//! `bodkin onboard`: how new systems come to their first certificate in one call.

mod grant;
mod join;

use clap::{Args, Subcommand};

use self::{
    grant::{NewDevice, NewSecret},
    join::Joining,
};
use super::{printer::Printer, registry::RegistryOptions};

/// Options of `bodkin onboard`.
#[derive(Args, Clone, Debug)]
pub struct OnboardOptions {
    #[command(subcommand)]
    command: OnboardCommand,
}

/// What to do about new systems.
#[derive(Subcommand, Clone, Debug)]
enum OnboardCommand {
    /// Secrets that new systems come with
    Secret {
        #[command(flatten)]
        registry: RegistryOptions,
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// Devices that come with the certificate of their maker
    Device {
        #[command(flatten)]
        registry: RegistryOptions,
        #[command(subcommand)]
        command: DeviceCommand,
    },
    /// On the new system: make a key, and have it certified by a cloud
    Join(Joining),
}

/// What to do about secrets.
#[derive(Subcommand, Clone, Debug)]
enum SecretCommand {
    /// Make a secret and print it, once: the cloud keeps only its hash
    Add(NewSecret),
    /// List the grants there are, of secrets and devices
    List,
    /// Take a grant back, of a secret or a device
    Remove(Id),
}

/// What to do about devices.
#[derive(Subcommand, Clone, Debug)]
enum DeviceCommand {
    /// Let a device come to a certificate; `onboard secret list` and `remove` are for devices too
    Add(NewDevice),
}

#[derive(Args, Clone, Debug)]
struct Id {
    /// Id of the grant, as the list shows it
    #[arg(value_name = "ID")]
    id: i64,
}

/// Carries a command out; gives the exit code.
pub async fn run(options: OnboardOptions, printer: Printer) -> anyhow::Result<u8> {
    match options.command {
        OnboardCommand::Secret { registry, command } => {
            let monitor = registry.monitor()?;
            match command {
                SecretCommand::Add(new) => grant::add_secret(&monitor, new, printer).await,
                SecretCommand::List => grant::list(&monitor, printer).await,
                SecretCommand::Remove(Id { id }) => grant::remove(&monitor, id, printer).await,
            }
        }
        OnboardCommand::Device { registry, command } => {
            let DeviceCommand::Add(new) = command;
            grant::add_device(&registry.monitor()?, new, printer).await
        }
        OnboardCommand::Join(joining) => join::run(joining, printer).await,
    }
}
