//! `bodkin cloud`: other clouds. Two operators hand each other a small file, and read its fingerprint to each other by another way.

mod events;
mod introduction;
mod session;

use std::path::PathBuf;

use anyhow::{Context, bail};
use bodkin_arrowhead::form::{CloudRequest, RelayRequest};
use bodkin_client::{
    Monitor, Page,
    answer::{KnownCloud, KnownRelay, List, TestedRelay},
};
use clap::{Args, Subcommand};
use serde_json::json;

use self::introduction::{IntroducedRelay, Introduction};
use super::{page::PageOptions, printer::Printer, registry::RegistryOptions, relay, table::Table};
use crate::{DONE, FAILED, USAGE};

/// Relays for tunnels only.
const FOR_TUNNELS: &str = "GATEWAY_RELAY";

/// Options of `bodkin cloud`.
#[derive(Args, Clone, Debug)]
pub struct CloudOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(subcommand)]
    command: CloudCommand,
}

/// What to do about other clouds.
#[derive(Subcommand, Clone, Debug)]
enum CloudCommand {
    /// Write what the operator of another cloud needs to know of this one, and print its fingerprint
    Introduce {
        /// A relay by which this cloud is reached, its id or HOST:PORT; may be repeated [default: all that gatekeepers may meet at]
        #[arg(long = "relay", value_name = "RELAY")]
        relays: Vec<String>,
        /// Where it goes [default: the standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Make another cloud known, from what its operator has written with `introduce`
    Add {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Its fingerprint, as the other operator has told it by another way than the file came
        #[arg(long, value_name = "SHA256")]
        fingerprint: Option<String>,
        /// Whether the cloud is asked when this one has no provider
        #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
        neighbor: bool,
        /// Put it in the place of what was known of the cloud, for example when its key has changed
        #[arg(long)]
        replace: bool,
    },
    /// List the clouds that are known
    List(PageOptions),
    /// Ask another cloud's gatekeeper whether it is there, again and again while it does not listen yet, and say how long that took; exit code 1 if it does not answer within neighbor_timeout_ms
    Ping(Named),
    /// Test a relay together with another cloud: ten messages of 2,048 bytes there and back, then ten of the other cloud's; exit code 1 if any is lost
    TestRelay {
        #[command(flatten)]
        cloud: Named,
        /// The relay, its id or HOST:PORT; the other cloud has to know it too [default: one by which its gatekeeper is called]
        #[arg(long, value_name = "RELAY")]
        relay: Option<String>,
    },
    /// List the tunnels to and from other clouds, and those that have ended last
    Sessions {
        /// End the open session whose id begins so
        #[arg(long, value_name = "ID")]
        close: Option<String>,
    },
    /// Let another cloud hear an event type, through the relay; it hears publishers that an intercloud rule grants it
    ShareEvent(events::Sharing),
    /// List the event types that other clouds hear, and how that goes
    SharedEvents,
    /// Let another cloud hear an event type no more
    UnshareEvent(events::Shared),
    /// Take events of a type that another cloud shares with this one; what is not accepted is refused
    AcceptEvent(events::Shared),
    /// Take events of a type from another cloud no more
    RefuseEvent(events::Shared),
    /// List which event types are accepted of other clouds, and what has come of the events that they share
    HeardEvents,
    /// Forget another cloud, with its rules, its systems and what is shared with it
    #[command(visible_alias = "rm")]
    Remove(Named),
}

#[derive(Args, Clone, Debug)]
struct Named {
    /// The cloud: NAME, NAME.OPERATOR or its id
    #[arg(value_name = "CLOUD")]
    cloud: String,
}

/// Carries a command out; gives the exit code.
pub async fn run(options: CloudOptions, printer: Printer) -> anyhow::Result<u8> {
    let monitor = options.registry.monitor()?;
    match options.command {
        CloudCommand::Introduce { relays, out } => introduce(&monitor, &relays, out, printer).await,
        CloudCommand::Add { file, fingerprint, neighbor, replace } => {
            let introduction = Introduction::read(&file)?;
            let expected = introduction.fingerprint();
            match fingerprint {
                Some(told) if expected.is(&told) => add(&monitor, &introduction, neighbor, replace, printer).await,
                Some(_) => bail!(
                    "{} has another fingerprint: {expected}. It is not what the other operator has written; nothing was changed",
                    file.display()
                ),
                None => {
                    let (name, operator) = (&introduction.name, &introduction.operator);
                    eprintln!(
                        "bodkin: {} says to be of cloud {name}.{operator}, with the fingerprint\n  {expected}\nLet its operator read you the fingerprint, and give what you hear by --fingerprint",
                        file.display()
                    );
                    Ok(USAGE)
                }
            }
        }
        CloudCommand::List(page) => {
            let clouds = monitor.clouds(&page.into()).await?;
            printer.rows(&clouds, &table(&clouds.data), "no clouds are known")?;
            Ok(DONE)
        }
        CloudCommand::Ping(Named { cloud }) => {
            let id = another(&monitor, &cloud).await?.id;
            let found = options.registry.monitor_towards_others()?.ping_cloud(id).await?;
            let ms = found.elapsed_us as f64 / 1e3;
            let told = match &found.why {
                None => format!("{} answered in {ms:.1} ms", found.cloud),
                Some(why) => format!("{} did not answer: {why}", found.cloud),
            };
            printer.done(&found, &told)?;
            Ok(if found.answered { DONE } else { FAILED })
        }
        CloudCommand::TestRelay { cloud: Named { cloud }, relay } => {
            let id = another(&monitor, &cloud).await?.id;
            let relay = match relay {
                Some(text) => Some(relay::choose(&monitor.relays(&Page::default()).await?.data, &text)?.id),
                None => None,
            };
            let tested = options.registry.monitor_towards_others()?.test_relay(id, relay).await?;
            printer.done(&tested, &tested_in_words(&tested))?;
            Ok(if tested.lost == 0 { DONE } else { FAILED })
        }
        CloudCommand::Sessions { close: Some(id) } => session::close(&monitor, &id, printer).await,
        CloudCommand::Sessions { close: None } => session::list(&monitor, printer).await,
        CloudCommand::ShareEvent(sharing) => {
            events::share(&monitor, &sharing, &another(&monitor, &sharing.cloud).await?, printer).await?;
            Ok(DONE)
        }
        CloudCommand::SharedEvents => events::list_shared(&monitor, printer).await.map(|()| DONE),
        CloudCommand::UnshareEvent(shared) => {
            events::unshare(&monitor, &shared, &another(&monitor, &shared.cloud).await?, printer).await?;
            Ok(DONE)
        }
        CloudCommand::AcceptEvent(accepted) => {
            events::accept(&monitor, &accepted, &another(&monitor, &accepted.cloud).await?, printer).await?;
            Ok(DONE)
        }
        CloudCommand::RefuseEvent(accepted) => {
            events::refuse(&monitor, &accepted, &another(&monitor, &accepted.cloud).await?, printer).await?;
            Ok(DONE)
        }
        CloudCommand::HeardEvents => events::list_heard(&monitor, printer).await.map(|()| DONE),
        CloudCommand::Remove(Named { cloud }) => {
            let cloud = another(&monitor, &cloud).await?;
            monitor.remove_cloud(cloud.id).await?;
            printer.done(
                &json!({"removed": cloud}),
                &format!("removed: {}.{}, with its rules, its systems and what was shared with it", cloud.name, cloud.operator),
            )?;
            Ok(DONE)
        }
    }
}

fn tested_in_words(tested: &TestedRelay) -> String {
    let TestedRelay { cloud, relay, sent, lost, .. } = tested;
    let back = sent.saturating_sub(*lost);
    match (tested.min_ms, tested.mean_ms, tested.max_ms) {
        (Some(min), Some(mean), Some(max)) => {
            format!(
                "{relay} with {cloud}: {back} of {sent} messages came back, in {min:.1} ms at least, {mean:.1} ms in the mean, {max:.1} ms at most"
            )
        }
        _ => format!("{relay} with {cloud}: none of {sent} messages came back"),
    }
}

async fn introduce(monitor: &Monitor, named: &[String], out: Option<PathBuf>, printer: Printer) -> anyhow::Result<u8> {
    let own = monitor.introduction().await?;
    let known = monitor.relays(&Page::default()).await?.data;
    let relays: Vec<KnownRelay> = match named {
        [] => known.into_iter().filter(|relay| relay.relay_type != FOR_TUNNELS).collect(),
        named => named.iter().map(|text| relay::choose(&known, text)).collect::<Result<_, _>>()?,
    };
    if relays.is_empty() {
        bail!("this cloud knows no relay that gatekeepers may meet at: bodkin relay add HOST:PORT makes one known");
    }
    if let Some(relay) = relays.iter().find(|relay| relay.relay_type == FOR_TUNNELS) {
        bail!("the relay {} is for tunnels only, and gatekeepers do not meet there", relay.host_and_port());
    }
    if let Some(relay) = relays.iter().find(|relay| relay.secure && relay.authentication_info.is_none()) {
        let place = relay.host_and_port();
        bail!(
            "the relay {place} is known here without its key, by which the other cloud would know it: bodkin relay remove {place}, and add it with --own, --certificate or --authentication-info"
        );
    }
    let introduction = Introduction {
        version: introduction::VERSION,
        operator: own.operator,
        name: own.name,
        gatekeeper_key: own.gatekeeper_key,
        relay: relays.into_iter().map(IntroducedRelay::from).collect(),
    };
    let (text, fingerprint) = (introduction.to_text(), introduction.fingerprint());
    match out {
        Some(path) => {
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            let answer = json!({"file": path, "fingerprint": fingerprint.to_string()});
            printer.done(&answer, &format!("written: {}, fingerprint\n  {fingerprint}", path.display()))?;
        }
        None if printer.is_json() => printer.document(&json!({"introduction": text, "fingerprint": fingerprint.to_string()}))?,
        None => {
            super::write_out(&text)?;
            eprintln!("fingerprint: {fingerprint}");
        }
    }
    Ok(DONE)
}

async fn add(monitor: &Monitor, introduction: &Introduction, neighbor: bool, replace: bool, printer: Printer) -> anyhow::Result<u8> {
    let former = named(&monitor.clouds(&Page::default()).await?, &introduction.operator, &introduction.name);
    match &former {
        Some(own) if own.own_cloud => bail!("it is this cloud itself: only other clouds are made known"),
        Some(_) if !replace => {
            bail!("cloud {}.{} is known already: --replace puts this in its place", introduction.name, introduction.operator)
        }
        _ => {}
    }
    let known = monitor.relays(&Page::default()).await?.data;
    let mut ids = Vec::with_capacity(introduction.relay.len());
    for relay in &introduction.relay {
        let id = match known.iter().find(|known| relay.is(known)) {
            Some(known) => known.id,
            None => monitor.add_relay(&RelayRequest::from(relay)).await?.id,
        };
        if !ids.contains(&Some(id)) {
            ids.push(Some(id));
        }
    }
    let form = CloudRequest {
        operator: Some(introduction.operator.clone()),
        name: Some(introduction.name.clone()),
        secure: Some(true),
        neighbor: Some(neighbor),
        authentication_info: Some(introduction.gatekeeper_key.clone()),
        gatekeeper_relay_ids: Some(ids),
        gateway_relay_ids: former.as_ref().map(|former| former.gateway_relays.iter().map(|relay| Some(relay.id)).collect()),
    };
    let (cloud, done) = match former {
        Some(former) => (monitor.replace_cloud(former.id, &form).await?, "replaced"),
        None => (monitor.add_cloud(&form).await?, "known"),
    };
    printer.done(&cloud, &format!("{done}: {}.{}, id {}", cloud.name, cloud.operator, cloud.id))?;
    Ok(DONE)
}

fn named(clouds: &List<KnownCloud>, operator: &str, name: &str) -> Option<KnownCloud> {
    let is_it = |cloud: &&KnownCloud| cloud.operator.eq_ignore_ascii_case(operator) && cloud.name.eq_ignore_ascii_case(name);
    clouds.data.iter().find(is_it).cloned()
}

/// The cloud that `text` names, which is not this one.
async fn another(monitor: &Monitor, text: &str) -> anyhow::Result<KnownCloud> {
    let cloud = find(monitor, text).await?;
    if cloud.own_cloud {
        bail!("{text} is this cloud itself");
    }
    Ok(cloud)
}

/// The cloud that `text` names: by its name, by name and operator, or by its id.
pub async fn find(monitor: &Monitor, text: &str) -> anyhow::Result<KnownCloud> {
    let mut clouds = monitor.clouds(&Page::default()).await?.data;
    clouds.retain(|cloud| is_named(cloud, text.trim()));
    match clouds.len() {
        0 => bail!("no cloud {text} is known; see bodkin cloud list"),
        1 => Ok(clouds.remove(0)),
        _ => {
            let found: Vec<String> = clouds.iter().map(|cloud| format!("{}.{}", cloud.name, cloud.operator)).collect();
            bail!("several clouds are named {text}: {}; name one with its operator", found.join(", "))
        }
    }
}

fn is_named(cloud: &KnownCloud, text: &str) -> bool {
    let whole = || format!("{}.{}", cloud.name, cloud.operator);
    cloud.id.to_string() == text || cloud.name.eq_ignore_ascii_case(text) || whole().eq_ignore_ascii_case(text)
}

fn table(clouds: &[KnownCloud]) -> Table {
    let mut table = Table::new(&["ID", "CLOUD", "OPERATOR", "OWN", "SECURE", "NEIGHBOR", "RELAYS"]);
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    for cloud in clouds {
        let relays: Vec<String> = cloud.gatekeeper_relays.iter().chain(&cloud.gateway_relays).map(KnownRelay::host_and_port).collect();
        table.push([
            cloud.id.to_string(),
            cloud.name.clone(),
            cloud.operator.clone(),
            yes(cloud.own_cloud),
            yes(cloud.secure),
            yes(cloud.neighbor),
            relays.join(" "),
        ]);
    }
    table
}
