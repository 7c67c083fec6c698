//! The demo's course: the local cloud, the provider, the consumer, the rule between them; then live values.

use std::{
    io::{self, IsTerminal},
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use bodkin_arrowhead::form::IntracloudRuleRequest;
use bodkin_client::{CoreSystems, Limits, Page, answer::Service};
use bodkin_host::{Port, ZmtpConfig};
use tempfile::TempDir;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    DemoOptions,
    certificates::Certificates,
    child::Child,
    consumer, fail_over,
    live::Live,
    narrator::{paragraph, step},
    neighbors, processing, provider,
    report::{Ready, Report, Step},
};

/// Longest wait for a process's next report.
pub(super) const REPORT_TIMEOUT: Duration = Duration::from_secs(30);
/// The service that the consumer is first denied and then allowed.
const SERVICE: &str = "processor-load";
/// The consumer's steps after it was denied.
const STEPS_ONCE_ALLOWED: [Step; 4] = [Step::Allowed, Step::Read, Step::Streamed, Step::Pushed];

/// The processes, in the order they were started.
#[derive(Default)]
pub(super) struct Cast {
    children: Vec<Child>,
}

/// What the live part shows beside the values.
struct Addresses {
    ready: Ready,
    /// Those of the consumer, which may hear the events.
    certificates: Option<Certificates>,
    provider: String,
}

/// Runs the demo; gives the exit code.
pub async fn run(options: &DemoOptions) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let data = DataDirectory::new(options.data.clone())?;
    let mut cast = Cast::default();
    let course = async {
        match options.clouds {
            1 if options.fail_over => fail_over::stay().await,
            1 => play(options, data.path(), &mut cast).await,
            _ => neighbors::play(data.path(), &mut cast).await,
        }
    };
    let played = tokio::select! {
        played = course => played,
        () = signals.any() => Ok(()),
    };
    let began = Instant::now();
    let unwell = cast.end().await;
    if let Err(error) = played {
        eprintln!("bodkin demo: {error:#}");
        return Ok(crate::FAILED);
    }
    step(began.elapsed(), "demo", "ended all its processes")?;
    let unwell = unwell?;
    if unwell.is_empty() {
        return Ok(0);
    }
    eprintln!("bodkin demo: {} did not end in order", unwell.join(", "));
    Ok(crate::FAILED)
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// The local cloud's data: a directory of the caller's, or a temporary one that goes with the demo.
enum DataDirectory {
    Given(PathBuf),
    Temporary(TempDir),
}

impl DataDirectory {
    fn new(given: Option<PathBuf>) -> anyhow::Result<Self> {
        match given {
            Some(path) => Ok(Self::Given(path)),
            None => Ok(Self::Temporary(TempDir::with_prefix("bodkin-demo-").context("no temporary data directory; name one with --data")?)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

impl Cast {
    /// Ends the processes, the last one first; gives those that did not end in order.
    async fn end(self) -> anyhow::Result<Vec<&'static str>> {
        let mut unwell = Vec::new();
        for child in self.children.into_iter().rev() {
            let name = child.name();
            if !child.stop().await? {
                unwell.push(name);
            }
        }
        Ok(unwell)
    }

    pub(super) fn enter(&mut self, child: Child) -> &mut Child {
        self.children.push(child);
        self.children.last_mut().expect("a child was pushed")
    }
}

async fn play(options: &DemoOptions, data: &Path, cast: &mut Cast) -> anyhow::Result<()> {
    let mode = if options.insecure { "Insecure mode" } else { "Secure mode: certificates, mutual TLS, tokens" };
    paragraph(&format!(
        "A local cloud, a provider of this machine's sensors and a consumer, each a process of its own.\n{mode}; on this machine only.\n\n"
    ))?;
    let ready = start_cloud(options, data, cast).await?;
    let registry = ready.listeners.get("serviceregistry").context("the local cloud did not say where its Service Registry is")?.clone();
    let certificates = (!options.insecure).then(|| Certificates::of(data));
    let operator = discover(&registry, certificates.as_ref()).await?;
    remove_former_participants(&operator).await?;
    let [as_provider, as_consumer] = issue(certificates.as_ref())?;
    let (provider, services) = start_provider(&registry, as_provider, cast).await?;
    start_consumer(&registry, as_consumer, &services, cast).await?;
    expect(consumer_of(cast), Step::Denied).await?;
    allow(&operator).await?;
    for step in STEPS_ONCE_ALLOWED {
        expect(consumer_of(cast), step).await?;
    }
    let monitor = ready.listeners.get("monitor").context("the local cloud did not say where its own port is")?;
    processing::deploy(monitor, certificates.as_ref(), &services).await?;
    if processing::absent(&services).is_none() {
        expect(consumer_of(cast), Step::Processed).await?;
    }
    fail_over::show().await?;
    paragraph(
        "\nAll checks hold: found, denied, allowed, read, events received by SSE and by HTTP push, processed on their way, and none lost with the Primary.\n",
    )?;
    if options.once {
        return Ok(());
    }
    show_live(cast, &Addresses { ready, certificates, provider }).await
}

/// Finds the core systems as the operator.
async fn discover(registry: &str, certificates: Option<&Certificates>) -> anyhow::Result<CoreSystems> {
    Ok(match certificates {
        Some(certificates) => CoreSystems::discover_securely(registry, Limits::default(), &certificates.operator()?).await?,
        None => CoreSystems::discover(registry).await?,
    })
}

/// Plays the operator: who takes part gets a certificate. Gives the options for the two processes.
fn issue(certificates: Option<&Certificates>) -> anyhow::Result<[Vec<String>; 2]> {
    let Some(certificates) = certificates else { return Ok([Vec::new(), Vec::new()]) };
    let began = Instant::now();
    let issued = [certificates.issue(provider::SYSTEM)?, certificates.issue(consumer::SYSTEM)?];
    let text = format!("issued certificates to {} and {}; they lead to the cloud's authority", provider::SYSTEM, consumer::SYSTEM);
    step(began.elapsed(), "operator", &text)?;
    Ok(issued)
}

fn consumer_of(cast: &mut Cast) -> &mut Child {
    cast.children.last_mut().expect("the consumer was started last")
}

async fn start_cloud(options: &DemoOptions, data: &Path, cast: &mut Cast) -> anyhow::Result<Ready> {
    let data = data.to_str().context("the data directory's name is not UTF-8")?;
    let mut arguments: Vec<String> = ["--", "--output", "json", "up", "--data", data].map(str::to_owned).into();
    if options.insecure {
        arguments.push("--insecure".to_owned());
    }
    match options.port_offset {
        _ if options.any_port => arguments.push("--any-port".to_owned()),
        Some(offset) => arguments.extend(["--port-offset".to_owned(), offset.to_string()]),
        None => {
            if let Some(taken) = taken_port() {
                paragraph(&format!("Port {taken} is in use here, so the kernel chooses all ports (as --any-port does).\n\n"))?;
                arguments.push("--any-port".to_owned());
            }
        }
    }
    let began = Instant::now();
    let cloud = cast.enter(Child::start("the local cloud", "cloud", &arguments)?);
    let ready: Ready = cloud.tells_within(REPORT_TIMEOUT).await?;
    let listeners = ["serviceregistry", "authorization", "orchestrator", "eventhandler", "monitor"];
    let told: Vec<String> = listeners.iter().filter_map(|name| Some(format!("{name} {}", ready.listeners.get(*name)?))).collect();
    step(began.elapsed(), "cloud", &format!("ready, process {}: {}", ready.pid, told.join(", ")))?;
    Ok(ready)
}

/// A standard port that something else uses.
fn taken_port() -> Option<u16> {
    Port::ALL
        .into_iter()
        .map(Port::default_port)
        .chain([ZmtpConfig::DEFAULT_PORT])
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_err())
}

/// A demo that was killed leaves its systems in a data directory of the caller's.
async fn remove_former_participants(operator: &CoreSystems) -> anyhow::Result<()> {
    let began = Instant::now();
    let systems = operator.systems(&Page::default()).await?.data.into_iter();
    let former: Vec<_> = systems.filter(|system| [provider::SYSTEM, consumer::SYSTEM].contains(&system.system_name.as_str())).collect();
    for system in &former {
        operator.remove_system(system.id).await?;
    }
    if former.is_empty() {
        return Ok(());
    }
    Ok(step(began.elapsed(), "operator", &format!("removed {} systems that a former demo left in this data directory", former.len()))?)
}

async fn start_provider(registry: &str, mut arguments: Vec<String>, cast: &mut Cast) -> anyhow::Result<(String, Vec<String>)> {
    arguments.extend(["--service-registry".to_owned(), registry.to_owned()]);
    let child = cast.enter(Child::start("the provider", "provider", &arguments)?);
    let pid = child.pid().unwrap_or_default();
    match child.tells_within(REPORT_TIMEOUT).await? {
        Report::Serving { address, services, absent, took_ms } => {
            let mut text = format!(
                "process {pid} serves {} at {address} and registered {} services: {}",
                provider::SYSTEM,
                services.len(),
                services.join(", ")
            );
            if !absent.is_empty() {
                text.push_str(&format!(". Not on this machine: {}", absent.join(", ")));
            }
            step(Duration::from_secs_f64(took_ms / 1e3), "provider", &text)?;
            Ok((address, services))
        }
        Report::Failed { why } => bail!("the provider failed: {why}"),
        report => bail!("the provider reported something else: {report:?}"),
    }
}

async fn start_consumer(registry: &str, mut arguments: Vec<String>, services: &[String], cast: &mut Cast) -> anyhow::Result<()> {
    arguments.extend(["--service-registry", registry, "--service", SERVICE].map(str::to_owned));
    arguments.extend(services.iter().flat_map(|service| ["--live".to_owned(), service.clone()]));
    expect(cast.enter(Child::start("the consumer", "consumer", &arguments)?), Step::Registered).await
}

/// Waits for the consumer's next step and tells it.
async fn expect(consumer: &mut Child, expected: Step) -> anyhow::Result<()> {
    match consumer.tells_within(REPORT_TIMEOUT).await? {
        Report::Step { step: done, text, took_ms } if done == expected => {
            Ok(step(Duration::from_secs_f64(took_ms / 1e3), "consumer", &text)?)
        }
        Report::Failed { why } => bail!("the consumer failed where {expected:?} was next: {why}"),
        report => bail!("the consumer reported something else where {expected:?} was next: {report:?}"),
    }
}

/// Plays the operator: makes the rule that lets the consumer use the service.
async fn allow(operator: &CoreSystems) -> anyhow::Result<()> {
    let began = Instant::now();
    let service = registered_service(operator).await?;
    let consumer = operator.systems(&Page::default()).await?.data.into_iter().find(|system| system.system_name == consumer::SYSTEM);
    let consumer = consumer.context("the consumer is not registered")?;
    let form = IntracloudRuleRequest {
        consumer_id: Some(consumer.id),
        provider_ids: Some(vec![Some(service.provider.id)]),
        service_definition_ids: Some(vec![Some(service.service_definition.id)]),
        interface_ids: Some(service.interfaces.iter().map(|interface| Some(interface.id)).collect()),
    };
    let made = operator.add_rules(&form).await.context("the rule was not made")?.data;
    let [rule] = made.as_slice() else { bail!("one rule was asked for, {} were made", made.len()) };
    let text = format!(
        "added authorization rule {}: {} may use {SERVICE} of {} over {}",
        rule.id,
        consumer::SYSTEM,
        provider::SYSTEM,
        service.interfaces.iter().map(|interface| interface.interface_name.as_str()).collect::<Vec<_>>().join(", ")
    );
    Ok(step(began.elapsed(), "operator", &text)?)
}

async fn registered_service(operator: &CoreSystems) -> anyhow::Result<Service> {
    let mut found = operator.services_of(SERVICE, &Page::default()).await?.data;
    found.retain(|service| service.provider.system_name == provider::SYSTEM);
    ensure!(found.len() == 1, "{SERVICE} of {} is registered {} times", provider::SYSTEM, found.len());
    Ok(found.remove(0))
}

/// Prints what arrives until a signal comes (which drops this) or a process ends (an error).
async fn show_live(cast: &mut Cast, addresses: &Addresses) -> anyhow::Result<()> {
    paragraph(&addresses.to_try())?;
    let mut live = Live::new(io::stdout().is_terminal());
    let [cloud, provider, consumer] = cast.children.as_mut_slice() else { unreachable!("the cast has three members") };
    loop {
        let report = tokio::select! {
            report = consumer.tells::<Report>() => report?,
            report = provider.tells::<Report>() => report?,
            report = cloud.tells::<serde_json::Value>() => bail!("the local cloud said something else: {}", report?),
        };
        match report {
            Report::Arrived { way, sample, latency_ms } => live.arrived(way, sample, latency_ms)?,
            Report::Failed { why } => bail!("a participant failed: {why}"),
            report => bail!("a participant reported something else: {report:?}"),
        }
    }
}

/// Of the key store that a browser takes, which is made of nothing secret: the demo's certificates end with it. Java's keytool wants six characters.
const PASSWORD: &str = "bodkin-demo";

impl Addresses {
    fn to_try(&self) -> String {
        let at = |name: &str| self.ready.listeners.get(name).map_or("?", String::as_str);
        let bodkin = std::env::args().next().unwrap_or_else(|| "bodkin".to_owned());
        let event_type = SERVICE.to_uppercase();
        let (registry, handler, monitor) = (at("serviceregistry"), at("eventhandler"), at("monitor"));
        let commands = match &self.certificates {
            None => [
                format!("curl http://{}/{SERVICE}", self.provider),
                format!("curl -N 'http://{handler}/eventhandler/subscription?eventtype={event_type}'"),
                format!("curl http://{monitor}/metrics"),
                format!("{bodkin} service list --service-registry {registry} --insecure"),
            ],
            Some(certificates) => {
                let [cert, key, ca] = certificates.files(consumer::SYSTEM).map(|file| file.display().to_string());
                let curl = format!("curl --cacert {ca} --cert {cert} --key {key}");
                [
                    format!("{curl} -N 'https://{handler}/eventhandler/subscription?eventtype={event_type}'"),
                    format!("{curl} https://{monitor}/metrics"),
                    format!("{curl} https://{}/{SERVICE}     # 401: no token", self.provider),
                    format!("{bodkin} service list --service-registry {registry} --trust {}", certificates.path().display()),
                ]
            }
        };
        let dashboard = match &self.certificates {
            None => format!("The dashboard is at http://{monitor}/ in a browser."),
            Some(certificates) => {
                let trust = certificates.path().display();
                format!(
                    "The dashboard is at https://{monitor}/ for a browser that has the operator's certificate (bodkin demo --insecure needs none):\n  \
                     (umask 077; echo {PASSWORD} > password); {bodkin} cert issue --trust {trust} --system sysop --p12 sysop.p12 --password-file password\n  \
                     # then import sysop.p12 (its password is {PASSWORD}), and {trust}/root.crt as an authority"
                )
            }
        };
        format!("\n{dashboard}\n\nTry it in another terminal (Ctrl-C ends the demo):\n  {}\n\n", commands.join("\n  "))
    }
}
