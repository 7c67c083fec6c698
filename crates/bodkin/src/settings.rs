//! What was configured, and what it means.
//!
//! Every option of `bodkin up` is a flag, an environment variable and a key of a TOML file, all of the same name with its
//! unit in it. Flags go before the environment, the environment before the file, the file before
//! `/etc/bodkin/bodkin.toml`, and that before the defaults.

mod announced;
mod edges;
pub mod fleet;
mod graphs;
pub mod help;
mod limits;
pub mod moved;
mod nats;
mod options;
mod orchestrator;
pub mod pair;
mod platform;
mod relaxed;
mod relay;
mod shared;
mod traces;
mod tunnels;
pub mod zmtp;

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use bodkin_arrowhead::{
    authorization::token::TokenLifetimes,
    name::{CloudName, EventType, NamingRules, SystemName},
    service_registry::{AddressDetection, Deregistration},
};
use bodkin_host::{
    AuditLimits, EventLogLimits, HostConfig, JobSchedule, KeyStores, Port, SecurityConfig, api::Modeller, gate::Origin, realtime::Realtime,
};
use nix::unistd::{AccessFlags, access};

use self::shared::realtime_at;
pub use self::{graphs::check_together, options::Settings, relaxed::relaxed_options};
use crate::{
    forecast::forecast,
    modelling,
    nearest::nearest,
    passphrase,
    topic_file::{self, TopicFile},
};

/// The operator's file, read when it is there.
const SYSTEM_FILE: &str = "/etc/bodkin/bodkin.toml";

/// Where the state is by default.
const DEFAULT_DATA: &str = "./.bodkin";

/// Where commands look for the cloud of this machine if nothing tells them: where `bodkin up` would keep it that is started beside them.
pub fn data_of_this_machine() -> PathBuf {
    data_beside(Path::new(DEFAULT_DATA), Path::new(SYSTEM_FILE))
}

/// A directory that is there goes before what the operator's file says: whoever began with a cloud in a folder finds that one. A file that cannot be read says nothing here;
/// `bodkin up` tells what is wrong with it.
fn data_beside(here: &Path, system_file: &Path) -> PathBuf {
    let said = || read(system_file).ok().and_then(|settings| given(&settings.data));
    let there = if here.is_dir() { None } else { said() };
    there.unwrap_or_else(|| here.to_owned())
}

/// Where commands reach the cloud of this machine if nothing tells them: where the operator's file has it listen, which counts for a cloud in a folder too, or on loopback.
pub fn host_of_this_machine() -> IpAddr {
    host_of(Path::new(SYSTEM_FILE))
}

/// Who listens on all addresses is on loopback too.
fn host_of(system_file: &Path) -> IpAddr {
    let said = read(system_file).ok().and_then(|settings| settings.listen);
    said.filter(|listen| !listen.is_unspecified()).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// By how much the operator's file moves the standard ports, for commands that nothing tells; it counts for a cloud in a folder too.
pub fn port_offset_of_this_machine() -> u16 {
    offset_of(Path::new(SYSTEM_FILE))
}

fn offset_of(system_file: &Path) -> u16 {
    read(system_file).ok().and_then(|settings| settings.offset()).unwrap_or(0)
}

/// Whether this process may keep its state there, or make the directory.
fn is_ours(data: &Path) -> bool {
    let there = data.ancestors().find(|path| path.try_exists().unwrap_or(true));
    there.is_none_or(|there| access(there, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK).is_ok())
}

impl Settings {
    /// Fills in what flags and environment left open: from the named file, the operator's file, the defaults. Where nobody but the operator's file names the data directory,
    /// and that is another user's (the service's), it is the default one: whoever tries Bodkin beside the service has a cloud of his own.
    pub fn complete(self, file: Option<&Path>) -> anyhow::Result<Self> {
        let named = file.map(read).transpose()?.unwrap_or_default();
        let system = Path::new(SYSTEM_FILE);
        let mut system = if system.exists() { read(system)? } else { Self::default() };
        let own = self.or(named);
        if own.data.is_none()
            && let Some(of_others) = system.data.take_if(|data| !is_ours(data))
        {
            eprintln!(
                "bodkin: state is in {DEFAULT_DATA}, because {SYSTEM_FILE} names {}, which this user may not write",
                of_others.display()
            );
        }
        Ok(own.or(system).or(Self::defaults()))
    }

    /// Where complete settings keep certificates and keys.
    pub fn trust_directory(&self) -> PathBuf {
        given(&self.trust).unwrap_or_else(|| self.data.as_ref().expect("complete settings have every option").join("trust"))
    }

    /// By how much the settings move the standard ports; `None`: the system chooses, or, where they are not complete, nothing is said.
    fn offset(&self) -> Option<u16> {
        self.port_offset.filter(|_| self.any_port != Some(true))
    }

    /// The options as a TOML file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain values")
    }

    /// What complete settings mean.
    pub fn config(self) -> anyhow::Result<HostConfig> {
        let all = "complete settings have every option";
        let (listen, address_detection, jobs) = (self.listen.expect(all), address_detection(&self)?, jobs(&self)?);
        let tokens_without_expiry_for = tokens_without_expiry_for(&self)?;
        let (token_lifetimes, platform, zmtp) = (token_lifetimes(&self)?, self.platform(), self.zmtp_config()?);
        let (limits, orchestrator) = (self.limits()?, self.orchestrator()?);
        let (relay, relay_logins, fixed_answers) = (self.relay_config()?, self.relay_logins()?, self.fixed_answers()?);
        let (traces, dns_sd) = (self.traces()?, self.announced()?);
        let fleet = self.fleet()?;
        // They are acknowledged in the fleet's stream when they are on the disk.
        let from_fleet = durable(self.fleet.as_ref().map_or(Vec::new(), |table| table.durable().to_vec()))?;
        let (offset, tunnels) = (self.offset(), self.tunnels()?);
        let domain_name = self.domain_name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        if domain_name.is_none() && listen.is_unspecified() {
            bail!("--listen {listen} needs --domain-name, the address under which clients reach the core systems");
        }
        let domain_name = domain_name.unwrap_or_else(|| listen.to_string());
        let carriers = self.carriers()?;
        let graphs = Arc::new(self.graphs(&carriers)?);
        let database = self.shared_database()?;
        let nats = self.node_events()?;
        let node_stream = self.node_stream()?;
        Ok(HostConfig {
            security: (!self.insecure.expect(all)).then(|| security(&self, &domain_name)).transpose()?,
            adopt_data: self.adopt_data.expect(all),
            replication_pace: pair::replication_pace(self.replication.as_deref().expect(all), self.replication_period_ms.expect(all))?,
            backup_keeps: self.backup_keeps.expect(all),
            pair: None,
            data: self.data.expect(all),
            nats,
            node_stream,
            realtime_at: realtime_at(self.realtime_at.expect(all), database.is_some())?,
            database,
            listen,
            domain_name,
            ports: ports(offset)?,
            tunnel_ports: tunnels.ports,
            tunnel_ports_of_one: self.gateway_ports_per_consumer.expect(all),
            gateway_is_mandatory: tunnels.is_mandatory,
            unsubscribe_by_any: self.unsubscribe_by_any.expect(all),
            zmtp,
            relay,
            relay_logins: Arc::new(relay_logins),
            fixed_answers,
            log_book: Arc::default(),
            audit: AuditLimits {
                bytes_max: self.audit_bytes_max.expect(all),
                age_max: Duration::from_secs(self.audit_age_max_s.expect(all)),
            },
            log_entries_max: self.log_entries_max.expect(all),
            dns_sd,
            fleet,
            traces,
            host_names: self.host_names.expect(all),
            cors_origins: origins(self.cors_origins.expect(all).into_iter().chain(self.management_tool_origin))?,
            naming: NamingRules {
                strict_service_definition: self.use_strict_service_definition_verifier.expect(all),
                strict_interface_name: self.use_strict_service_intf_name_verifier.expect(all),
                allow_self_addressing: self.allow_self_addressing.expect(all),
                allow_non_routable_addressing: self.allow_non_routable_addressing.expect(all),
                secure_services: !self.insecure.expect(all),
            },
            address_detection,
            jobs,
            ping_timeout: Duration::from_millis(self.ping_timeout_ms.expect(all)),
            event_log: self.event_log.expect(all).then_some(EventLogLimits {
                bytes_max: self.event_log_bytes_max.expect(all),
                age_max: Duration::from_secs(self.event_log_age_max_s.expect(all)),
            }),
            platform,
            topics: self
                .declared
                .as_ref()
                .map_or_else(|| Ok(Vec::new()), TopicFile::each)
                .context("a topic of an entry with a count")?
                .into(),
            graphs,
            carriers,
            realtime: Realtime::ordinary(),
            durable_event_types: durable(self.durable_event_types.expect(all))?.into_iter().chain(from_fleet).collect(),
            orchestrator,
            forecast: Some(forecast),
            modeller: Some(Modeller { draw: modelling::draw, fit: modelling::fit }),
            token_lifetimes,
            tokens_without_expiry_for,
            limits,
        })
    }
}

/// A path that is not empty.
fn given(path: &Option<PathBuf>) -> Option<PathBuf> {
    path.clone().filter(|path| !path.as_os_str().is_empty())
}

/// Existing key stores, if they are to be used.
fn key_stores(settings: &Settings) -> anyhow::Result<Option<KeyStores>> {
    let password_file = given(&settings.key_store_password_file);
    match (given(&settings.key_stores), given(&settings.trust_store)) {
        (Some(folder), Some(trust_store)) => Ok(Some(KeyStores { folder, trust_store, password_file })),
        (None, None) if password_file.is_none() => Ok(None),
        _ => bail!("--key-stores and --trust-store are given together, and --key-store-password-file with them"),
    }
}

/// Where certificates and keys are, and what they are made out for.
fn security(settings: &Settings, domain_name: &str) -> anyhow::Result<SecurityConfig> {
    let all = "complete settings have every option";
    let name = |option: &Option<String>, key: &str| {
        let name = option.as_deref().map(str::trim).filter(|name| !name.is_empty());
        name.map(|name| CloudName::parse(name).map_err(|error| anyhow!("{key} {error}"))).transpose()
    };
    let host_names = settings.host_names.iter().flatten().cloned().chain([domain_name.to_owned(), settings.listen.expect(all).to_string()]);
    Ok(SecurityConfig {
        directory: passphrase::trust_directory(settings.trust_directory(), given(&settings.passphrase_file).as_deref())?,
        key_stores: key_stores(settings)?,
        device_authorities: given(&settings.device_authorities),
        cloud: name(&settings.cloud, "cloud")?,
        operator: name(&settings.operator, "operator")?,
        verify_host_names: settings.verify_host_names.expect(all),
        host_names: host_names.collect(),
    })
}

fn address_detection(settings: &Settings) -> anyhow::Result<Option<AddressDetection>> {
    let parse =
        |text: &String| text.trim().parse::<IpAddr>().with_context(|| format!("'{text}' of filter_proxy_addresses is no IP address"));
    let proxies = settings.filter_proxy_addresses.iter().flatten().map(parse).collect::<anyhow::Result<Vec<_>>>()?;
    Ok((settings.use_network_address_detector == Some(true)).then(|| AddressDetection::new(proxies)))
}

/// Longest time that a token may be configured to count for: a year.
const TOKEN_TTL_MINUTES_MAX: u64 = 366 * 24 * 60;

fn token_lifetimes(settings: &Settings) -> anyhow::Result<TokenLifetimes> {
    let minutes = |option: Option<u64>| option.expect("complete settings have every option");
    let (default, maximum) = (minutes(settings.auth_token_ttl_in_minutes), minutes(settings.auth_token_ttl_max_in_minutes));
    if !(1..=TOKEN_TTL_MINUTES_MAX).contains(&maximum) || !(1..=maximum).contains(&default) {
        bail!(
            "every token ends: auth_token_ttl_in_minutes must be 1 to auth_token_ttl_max_in_minutes, and that at most {TOKEN_TTL_MINUTES_MAX}"
        );
    }
    let lifetime = |minutes: u64| Duration::from_secs(minutes * 60);
    Ok(TokenLifetimes { default: lifetime(default), maximum: lifetime(maximum) })
}

/// The names of providers whose tokens have no expiry, as they are stored.
fn tokens_without_expiry_for(settings: &Settings) -> anyhow::Result<BTreeSet<String>> {
    let names = settings.tokens_without_expiry_for.iter().flatten().filter(|name| !name.trim().is_empty());
    let parse = |name: &String| {
        let parsed = SystemName::parse(name).map_err(|error| anyhow!("'{name}' of tokens_without_expiry_for {error}"))?;
        Ok(parsed.as_str().to_owned())
    };
    names.map(parse).collect()
}

/// Between two looks for services to be removed some seconds after their end of validity.
const EXPIRY_INTERVAL_MAX: Duration = Duration::from_secs(10);

fn jobs(settings: &Settings) -> anyhow::Result<JobSchedule> {
    let minutes = |option: Option<u64>, name: &str| match option {
        Some(minutes @ 1..) => Ok(Duration::from_secs(minutes.saturating_mul(60))),
        _ => bail!("{name} must be at least 1"),
    };
    let ttl_interval = minutes(settings.ttl_interval_min, "ttl_interval_min")?;
    let ping_interval = minutes(settings.ping_interval_min, "ping_interval_min")?;
    let subscription_interval = minutes(settings.event_handler_ttl_interval_min, "event_handler_ttl_interval_min")?;
    let is = |option: Option<bool>| option == Some(true);
    let later = settings.deregister_after_s.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let at_once = |scheduled: Option<bool>| if is(scheduled) { Some(Duration::ZERO) } else { later };
    Ok(JobSchedule {
        deregistration: Deregistration { expired_for: at_once(settings.ttl_scheduled), unreachable_for: at_once(settings.ping_scheduled) },
        expiry_interval: if is(settings.ttl_scheduled) { ttl_interval } else { later.unwrap_or(ttl_interval).min(EXPIRY_INTERVAL_MAX) },
        probe_interval: (is(settings.ping_scheduled) || is(settings.probe_services)).then_some(ping_interval),
        subscription_interval: is(settings.event_handler_ttl_scheduled).then_some(subscription_interval),
    })
}

fn durable(names: Vec<String>) -> anyhow::Result<Vec<EventType>> {
    let parse = |name: &String| EventType::parse(name).with_context(|| format!("'{name}' of durable_event_types is no event type"));
    names.iter().map(parse).collect()
}

fn origins(texts: impl Iterator<Item = String>) -> anyhow::Result<Vec<Origin>> {
    let given = texts.filter(|text| !text.trim().is_empty());
    given.map(|text| Origin::parse(&text).context("cors_origins or management_tool_origin")).collect()
}

/// The port of every listener; without an offset any.
pub fn ports(offset: Option<u16>) -> anyhow::Result<[u16; 7]> {
    let Some(offset) = offset else { return Ok([0; 7]) };
    let moved = Port::ALL.map(|port| port.default_port().checked_add(offset));
    if moved.contains(&None) {
        bail!("--port-offset {offset} moves a port beyond 65535; the largest standard port is 8455");
    }
    Ok(moved.map(Option::unwrap_or_default))
}

fn read(file: &Path) -> anyhow::Result<Settings> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the configuration {}", file.display()))?;
    if let Some(told) = moved::in_file(&text) {
        bail!("the configuration {} has a mistake: {told}", file.display());
    }
    let mut settings: Settings = toml::from_str(&text).map_err(|error| mistake(file, &text, &error))?;
    if settings.platform.is_some() || settings.topic.is_some() {
        let declared = topic_file::read_configuration(file, &text);
        settings.declared = Some(declared.map_err(|mistakes| anyhow!("{mistakes}"))?);
    }
    Ok(settings)
}

/// What is wrong with a configuration, and where. Of a key that is none the nearest is told, and not all hundred there are.
fn mistake(file: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
    let message = error.message();
    // The reader names the key and then all those there are, each between back quotes.
    let mut names = message.split('`').skip(1).step_by(2);
    let told = match names.next().filter(|_| message.starts_with("unknown field")) {
        Some(key) => {
            let near = nearest(key, names).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
            format!("no option is called {key}.{near} bodkin up --print-config shows all there are")
        }
        None => message.trim_end().to_owned(),
    };
    anyhow!("the configuration {} has a mistake in line {line}: {told}", file.display())
}

#[cfg(test)]
mod tests;
