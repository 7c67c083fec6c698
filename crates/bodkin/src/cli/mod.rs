//! The client commands: `service`, `system`, `auth` and `event`, each the management of one thing by its name.
//!
//! A command is one or two calls to the core systems, found through the Service Registry. Results go to stdout, errors
//! and remarks to stderr.

mod auth;
mod event;
mod lookup;
mod pair;
mod printer;
mod registry;
mod service;
mod system;
mod table;

use bodkin_client::CallError;
use clap::Subcommand;

use self::printer::Printer;

/// The caller may not do what was asked.
const DENIED: u8 = 3;

/// A command to a local cloud that runs.
#[derive(Subcommand, Clone, Debug)]
pub enum ClientCommand {
    /// Services: who offers what
    Service(service::ServiceOptions),
    /// Systems: who takes part
    System(system::SystemOptions),
    /// Authorization rules: who may use what
    Auth(auth::AuthOptions),
    /// Events: publish, subscribe, listen
    Event(event::EventOptions),
}

/// Carries a command out; gives the exit code. A failed call is an error, but for a denied one, which is told here.
pub async fn run(command: ClientCommand, json_output: bool) -> anyhow::Result<u8> {
    let printer = Printer::new(json_output);
    let done = match command {
        ClientCommand::Service(options) => service::run(options, printer).await,
        ClientCommand::System(options) => system::run(options, printer).await,
        ClientCommand::Auth(options) => auth::run(options, printer).await,
        ClientCommand::Event(options) => event::run(options, printer).await,
    };
    match done {
        Ok(()) => Ok(0),
        Err(error) if error.downcast_ref::<CallError>().is_some_and(CallError::is_denied) => {
            eprintln!("bodkin: {error:#}");
            Ok(DENIED)
        }
        Err(error) => Err(error),
    }
}
