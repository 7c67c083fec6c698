//! `bodkin up`: the local cloud in the foreground.

mod paired;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use bodkin_host::{
    Announced, HostConfig, Port, SecurityConfig, Server,
    log_book::LogBook,
    pair::{PairConfig, topics_digest},
    realtime::{Realtime, keep_large_tables_apart},
};
use bodkin_store::Opened;
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};

pub use self::paired::obey_signals;
use crate::{
    FAILED, USAGE, owner,
    service_manager::ServiceManager,
    settings::{Settings, relaxed_options},
};

/// How long tasks may take to end once everything under way is answered.
const SHUTDOWN_MAX: Duration = Duration::from_secs(2);

/// What a service manager shows while everything answers.
const SERVES: &str = "serves the local cloud";

/// Options of `bodkin up`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Defaults: `bodkin up --print-config` prints the configuration that these options, the environment and the files make.\n\
    Files: that of --config goes before /etc/bodkin/bodkin.toml; bodkin.example.toml explains every key."
)]
pub struct UpOptions {
    /// Configuration file (TOML); its keys are the options below with underscores
    #[arg(long, env = "BODKIN_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the effective configuration as TOML and end
    #[arg(long)]
    print_config: bool,
    /// Of a pair: lead although this node may lack what was answered, because the other one will not come back. Never while the other one runs
    #[arg(long)]
    force_lead: bool,
    #[command(flatten)]
    settings: Settings,
}

impl UpOptions {
    /// The same as the Backup of a pair.
    pub fn into_backup(mut self) -> Self {
        self.settings.role = Some("backup".into());
        self
    }
}

/// Runs until SIGTERM or SIGINT; gives the exit code.
pub fn run(options: UpOptions, log_book: Arc<LogBook>, started: Instant, json_output: bool) -> anyhow::Result<u8> {
    // In front of the first large buffer, a configuration of thousands of topics.
    keep_large_tables_apart();
    let settings = match options.settings.complete(options.config.as_deref()) {
        Ok(settings) => settings,
        Err(error) => return Ok(fail(USAGE, &error)),
    };
    if options.print_config {
        print!("{}", settings.to_toml());
        return Ok(0);
    }
    let realtime = settings.realtime();
    let (config, pair) = match settings.pair().and_then(|pair| Ok((settings.config()?, pair))) {
        Ok((config, pair)) => (HostConfig { log_book, ..config }, pair),
        Err(error) => return Ok(fail(USAGE, &error)),
    };
    for option in relaxed_options(&config) {
        tracing::warn!(option = option.key, remedy = option.remedy, "{}", option.effect);
    }
    if let Err(error) = owner::refuse_root(&config.data) {
        return Ok(fail(FAILED, &error));
    }
    let realtime = match Realtime::start(realtime) {
        Ok(realtime) => realtime,
        Err(error) => return Ok(fail(USAGE, &error.into())),
    };
    let config = HostConfig { realtime: realtime.clone(), ..config };
    raise_open_files();
    let manager = ServiceManager::of_environment();
    match pair {
        Some(pair) => {
            let topics = Some(topics_digest(&config.topics));
            let pair = PairConfig { is_forced: options.force_lead, realtime, security: config.security.clone(), topics, ..pair };
            return paired::run(config, pair, &manager, json_output);
        }
        None if options.force_lead => return Ok(fail(USAGE, &anyhow::anyhow!("--force-lead is for a node of a pair: name its --role"))),
        None => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the control plane's threads")?;
    let opened = runtime.block_on(serve(&config, &manager, started, json_output))?;
    // Idle connections and push tasks hold on to the store; they end with the runtime.
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    match opened {
        Ok((opened, code)) => {
            opened.close();
            Ok(code)
        }
        Err(code) => Ok(code),
    }
}

/// Serves until a signal says otherwise, or another process has this node's name.
///
/// Returns the store to be closed and the exit code, or the exit code of a start that came to nothing.
async fn serve(
    config: &HostConfig,
    manager: &ServiceManager,
    started: Instant,
    json_output: bool,
) -> anyhow::Result<Result<(Opened, u8), u8>> {
    // Asked for before anything is served, so that an early signal is not lost.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hang_up = signal(SignalKind::hangup())?;
    let is_new = config.security.as_ref().is_some_and(|security| !security.place().exists());
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(error) => return Ok(Err(fail(FAILED, &error.into()))),
    };
    tell_ready(&server, config, started, json_output);
    if is_new && !json_output {
        tell_new(config);
    }
    manager.ready(SERVES);
    let pulse = server.pulse();
    if config.security.is_none() && !config.listen.is_loopback() {
        tracing::warn!(listen = %config.listen, "INSECURE MODE ON THE NETWORK: whoever reaches these ports may change and read everything");
    }
    let mut displaced = None;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            why = server.displaced() => {
                displaced = Some(why);
                break;
            }
            _ = hang_up.recv() => {
                manager.reloading();
                server.reload("SIGHUP").await;
                manager.ready(SERVES);
            }
            () = manager.watch(&pulse) => {}
        }
    }
    manager.stopping();
    if !json_output {
        println!("stopping: what is under way is answered");
    }
    let opened = server.stop().await;
    let code = displaced.map_or(0, |why| fail(FAILED, &anyhow::anyhow!(why)));
    Ok(Ok((opened, code)))
}

fn fail(code: u8, error: &anyhow::Error) -> u8 {
    eprintln!("bodkin: {error:#}");
    code
}

/// Where each port listens, by its name.
fn listeners(server: &Server) -> Map<String, Value> {
    let listeners = Port::ALL.iter().zip(&server.addresses).map(|(port, address)| (port.name(), address));
    let zmtp = server.zmtp.iter().map(|address| ("zmtp", address));
    let ipc = server.zmtp_ipc.iter().map(|file| ("zmtp-ipc".to_owned(), json!(file.path().display().to_string())));
    let relay = server.relay.iter().map(|address| ("relay", address));
    listeners.chain(zmtp).chain(relay).map(|(name, address)| (name.to_owned(), json!(address.to_string()))).chain(ipc).collect()
}

fn tell_ready(server: &Server, config: &HostConfig, started: Instant, json_output: bool) {
    let security = config.security.as_ref();
    let listeners = Port::ALL.iter().zip(&server.addresses);
    let zmtp = server.zmtp.iter().map(|address| ("zmtp", address));
    let ready_ms = started.elapsed().as_secs_f64() * 1e3;
    let cloud = server.security().map(|security| security.trust().cloud.to_string());
    if json_output {
        let listeners = self::listeners(server);
        let mode = if security.is_some() { "secure" } else { "insecure" };
        let trust = security.map(SecurityConfig::place);
        let ready =
            json!({"ready_ms": ready_ms, "pid": std::process::id(), "mode": mode, "listeners": listeners, "cloud": cloud, "trust": trust});
        return println!("{ready}");
    }
    let scheme = match (cloud, security) {
        (Some(cloud), Some(security)) => {
            println!("secure mode: {cloud}, certificates and keys in {}", security.place().display());
            "https"
        }
        _ => {
            println!("insecure mode: nobody is identified; authorization rules still decide orchestration and events");
            "http"
        }
    };
    listeners.clone().for_each(|(port, address)| println!("  {:<16} {scheme}://{address}", port.name()));
    // The monitor's port is what programs know it as.
    let dashboard = listeners.filter(|(port, _)| **port == Port::Monitor);
    dashboard.for_each(|(_, address)| println!("  {:<16} {scheme}://{address} in a browser", "dashboard"));
    zmtp.for_each(|(name, address)| println!("  {name:<16} tcp://{address}"));
    server.zmtp_ipc.iter().for_each(|file| println!("  {:<16} ipc://{}", "zmtp", file.path().display()));
    server.relay.iter().for_each(|address| println!("  {:<16} {address} (bodkin-relay/1 over TLS)", "relay"));
    // On loopback no device could find it, and commands look there.
    if !config.listen.is_loopback() {
        if !config.listen.is_unspecified() {
            println!("  {:<16} bodkin COMMAND --service-registry {}", "commands", server.addresses[0]);
        }
        println!("  {:<16} {}", "dns-sd", announced_as(config.dns_sd));
    }
    println!("ready in {ready_ms:.0} ms");
}

/// What devices on the network find by multicast DNS.
fn announced_as(announced: Option<Announced>) -> &'static str {
    match announced {
        None => "nothing is announced on the network; --dns-sd cloud has devices find this cloud by multicast DNS",
        Some(Announced::CoreSystems) => "the core systems are announced on the network by multicast DNS",
        Some(Announced::Services) => "all services are announced on the network by multicast DNS",
    }
}

/// What to do with a cloud that has just got its certificates.
fn tell_new(config: &HostConfig) {
    let Some(security) = &config.security else { return };
    let (trust, data) = (security.directory.path().display(), config.data.display());
    println!(
        "the cloud has new certificates and keys:\n  \
        the operator's (sysop), for management: {trust}/systems/sysop.crt and sysop.key\n  \
        every other system needs its own: bodkin cert issue --data {data} --system NAME\n  \
        a browser on this machine: bodkin dashboard --data {data} prints a link that signs it in\n  \
        a browser elsewhere needs the operator's as a key store, and {trust}/root.crt: bodkin cert issue --data {data} --system sysop --p12 sysop.p12 --password-file FILE\n  \
        what systems trust: {trust}/cloud.crt; keep {trust}/root.key at another place"
    );
}

/// Ten thousand connections need as many descriptors: takes all that the system grants without asking for rights.
fn raise_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit on open files could not be raised; many connections at once may be refused");
    }
}
