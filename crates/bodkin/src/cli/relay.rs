//! `bodkin relay`: where this cloud and others meet.

use bodkin_arrowhead::form::RelayRequest;
use bodkin_client::{Monitor, Page, answer::KnownRelay};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::{page::PageOptions, printer::Printer, public_key, registry::RegistryOptions, table::Table};
use crate::{DONE, relay::ServeOptions};

/// Options of `bodkin relay`.
#[derive(Args, Clone, Debug)]
pub struct RelayOptions {
    /// What is to be done.
    #[command(subcommand)]
    pub command: RelayCommand,
}

/// What to do about relays.
#[derive(Subcommand, Clone, Debug)]
pub enum RelayCommand {
    /// Be a relay, where clouds meet that share no authority; no cloud need run
    Serve(ServeOptions),
    /// Make a relay known
    Add {
        #[command(flatten)]
        registry: RegistryOptions,
        #[command(flatten)]
        relay: NewRelay,
    },
    /// List the relays that are known
    List {
        #[command(flatten)]
        registry: RegistryOptions,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Forget a relay; the last one by which a cloud's gatekeeper is reached stays
    #[command(visible_alias = "rm")]
    Remove {
        #[command(flatten)]
        registry: RegistryOptions,
        /// Its id, or HOST:PORT
        #[arg(value_name = "RELAY")]
        relay: String,
    },
}

/// A relay to be made known.
#[derive(Args, Clone, Debug)]
pub struct NewRelay {
    /// Where it is
    #[arg(value_name = "HOST:PORT")]
    place: String,
    /// What it is for: dialogues of gatekeepers, tunnels of gateways, or both
    #[arg(long = "for", value_name = "USE", default_value = "all")]
    purpose: Purpose,
    /// It is for tunnels to the clouds only that it is assigned to
    #[arg(long)]
    exclusive: bool,
    /// Certificate (PEM) of the relay: whoever shows another key is not it [default: its certificate has to lead to this cloud's authority]
    #[arg(long, value_name = "FILE", conflicts_with = "authentication_info", value_parser = public_key::of_certificate)]
    certificate: Option<String>,
    /// Base64 of its public key, instead
    #[arg(long, value_name = "KEY")]
    authentication_info: Option<String>,
    /// It is the one inside this cloud (`relay_listen`): it shows the Gatekeeper's key
    #[arg(long, conflicts_with_all = ["certificate", "authentication_info"])]
    own: bool,
    /// It is reached without TLS: a broker that speaks STOMP, in a network that is closed
    #[arg(long, conflicts_with_all = ["certificate", "authentication_info", "own"])]
    plain: bool,
}

/// What a relay is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Purpose {
    /// Dialogues of gatekeepers and tunnels of gateways.
    All,
    /// Dialogues only.
    Gatekeepers,
    /// Tunnels only.
    Gateways,
}

impl Purpose {
    fn relay_type(self) -> &'static str {
        match self {
            Self::All => "GENERAL_RELAY",
            Self::Gatekeepers => "GATEKEEPER_RELAY",
            Self::Gateways => "GATEWAY_RELAY",
        }
    }
}

impl NewRelay {
    async fn form(self, monitor: &Monitor) -> anyhow::Result<RelayRequest> {
        let place = super::registry::parse_host_and_port(&self.place).map_err(|error| anyhow::anyhow!("{error}"))?;
        let (host, port) = place.rsplit_once(':').expect("it has both");
        let key = if self.own { Some(monitor.introduction().await?.gatekeeper_key) } else { self.certificate.or(self.authentication_info) };
        Ok(RelayRequest {
            address: Some(host.trim_matches(['[', ']']).to_owned()),
            port: port.parse().ok(),
            authentication_info: key,
            secure: Some(!self.plain),
            exclusive: Some(self.exclusive),
            relay_type: Some(self.purpose.relay_type().to_owned()),
        })
    }
}

/// Carries a command out; gives the exit code.
pub async fn run(options: RelayOptions, printer: Printer) -> anyhow::Result<u8> {
    super::told(execute(options, printer).await)
}

async fn execute(options: RelayOptions, printer: Printer) -> anyhow::Result<u8> {
    match options.command {
        RelayCommand::Serve(_) => unreachable!("main serves it, on a runtime of its own"),
        RelayCommand::Add { registry, relay } => {
            let monitor = registry.monitor()?;
            let relay = monitor.add_relay(&relay.form(&monitor).await?).await?;
            printer.done(&relay, &format!("known: relay {}, id {}", relay.host_and_port(), relay.id))?;
        }
        RelayCommand::List { registry, page } => {
            let monitor = registry.monitor()?;
            let mut relays = monitor.relays(&page.into()).await?;
            let states = monitor.relay_states().await?.data;
            for relay in &mut relays.data {
                relay.state = states.iter().find(|state| state.relay == relay.host_and_port()).map(|state| state.state.clone());
            }
            printer.rows(&relays, &table(&relays.data), "no relays are known")?;
        }
        RelayCommand::Remove { registry, relay } => {
            let monitor = registry.monitor()?;
            let relay = choose(&monitor.relays(&Page::default()).await?.data, &relay)?;
            monitor.remove_relay(relay.id).await?;
            printer.done(&json!({"removed": relay}), &format!("removed: relay {}", relay.host_and_port()))?;
        }
    }
    Ok(DONE)
}

/// The relay that `text` names: by its id, or by its place.
pub fn choose(known: &[KnownRelay], text: &str) -> anyhow::Result<KnownRelay> {
    let text = text.trim();
    let is_it = |relay: &&KnownRelay| relay.id.to_string() == text || relay.host_and_port().eq_ignore_ascii_case(text);
    known.iter().find(is_it).cloned().ok_or_else(|| anyhow::anyhow!("no relay {text} is known; see bodkin relay list"))
}

fn table(relays: &[KnownRelay]) -> Table {
    let mut table = Table::new(&["ID", "RELAY", "TYPE", "TLS", "EXCLUSIVE", "KEY", "STATE"]);
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    for relay in relays {
        let key = if relay.authentication_info.is_some() { "its own" } else { "by its authority" };
        let key = if relay.secure { key } else { "none" }.to_owned();
        let state = relay.state.clone().unwrap_or_else(|| "not in use".to_owned());
        let (secure, exclusive) = (yes(relay.secure), yes(relay.exclusive));
        table.push([relay.id.to_string(), relay.host_and_port(), relay.relay_type.clone(), secure, exclusive, key, state]);
    }
    table
}
