//! `bodkin demo --clouds 2`: two clouds that share no authority, and a relay between them. A consumer of one finds, reads and hears this machine's sensors in the other,
//! and a consumer of the other reads them by a tunnel of both Gateways.
//!
//! The clouds and the provider are processes; the demo plays both operators, and the consumer.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail, ensure};
use bodkin_arrowhead::{
    common_name::CloudCommonName,
    form::{CloudRequest, IntracloudRuleRequest, OrchestrationForm, RelayRequest, ServiceQueryForm, SystemRequest},
    name::SystemName,
    shared_event::DEADLINE_MS_DEFAULT,
};
use bodkin_client::{
    Connection, CoreSystems, EventForm, Limits, Monitor, Page, Security,
    answer::{KnownCloud, Offer, Service},
    request::IntercloudRuleRequest,
};
use bodkin_trust::{TrustDirectory, base64};
use hyper::{Method, StatusCode};
use tokio::time::{sleep, timeout};

use super::{
    certificates::Certificates,
    child::Child,
    narrator::{paragraph, step},
    provider,
    report::{Ready, Report, Sample},
    scene::{Cast, REPORT_TIMEOUT},
    tunnel,
};

/// Who runs both clouds.
const OPERATOR: &str = "demo";
/// The cloud of the sensors, and of the relay.
const WORKSHOP: &str = "workshop";
/// The cloud of the consumer.
const OFFICE: &str = "office";
/// The consumer's system.
const CONSUMER: &str = "demo-consumer";
/// What it wants.
const SERVICE: &str = "processor-load";
/// What the consumer's rule in its own cloud names: events of other clouds are its Gatekeeper's.
const HEARD_SERVICE: &str = "inter-cloud-events";
const GATEKEEPER: &str = "gatekeeper";
/// Asks other clouds if there is nothing here.
const ELSEWHERE: &str = "enableInterCloud";
/// Longest wait until both clouds hear each other, and for an event.
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const EVENTS: usize = 3;

/// One of the clouds, and what its operator works with.
pub(super) struct Side {
    pub(super) name: &'static str,
    ready: Ready,
    certificates: Certificates,
    pub(super) monitor: Monitor,
}

impl Side {
    async fn start(name: &'static str, data: &Path, further: &[&str], cast: &mut Cast) -> anyhow::Result<Self> {
        let data = data.join(name);
        let path = data.to_str().context("the data directory's name is not UTF-8")?;
        let mut arguments: Vec<String> = [
            "--",
            "--output",
            "json",
            "up",
            "--any-port",
            "--neighbor-timeout-ms",
            "10000",
            "--cloud",
            name,
            "--operator",
            OPERATOR,
            "--data",
            path,
        ]
        .map(str::to_owned)
        .into();
        arguments.extend(further.iter().map(|argument| argument.to_string()));
        let began = Instant::now();
        let cloud = cast.enter(Child::start("a local cloud", "cloud", &arguments)?);
        let ready: Ready = cloud.tells_within(REPORT_TIMEOUT).await?;
        let relay = ready.listeners.get("relay").map(|place| format!(", with a relay at {place}")).unwrap_or_default();
        step(began.elapsed(), "cloud", &format!("{name}.{OPERATOR} is ready, process {}{relay}; its authority is its own", ready.pid))?;
        let certificates = Certificates::of(&data);
        let place = ready.listeners.get("monitor").context("a cloud did not say where its own port is")?;
        let monitor = Monitor::secure(place, Limits::default(), &certificates.operator()?);
        Ok(Self { name, ready, certificates, monitor })
    }

    fn registry(&self) -> anyhow::Result<&String> {
        self.ready.listeners.get("serviceregistry").context("a cloud did not say where its Service Registry is")
    }

    async fn operator(&self) -> anyhow::Result<CoreSystems> {
        Ok(CoreSystems::discover_securely(self.registry()?, Limits::default(), &self.certificates.operator()?).await?)
    }

    /// Makes the relay known, and the other cloud with its key, as the two operators would by a file and its fingerprint.
    async fn know(&self, other: &Self, relay: &RelayRequest) -> anyhow::Result<KnownCloud> {
        let introduced = other.monitor.introduction().await?;
        let relay = self.monitor.add_relay(relay).await?;
        let form = CloudRequest {
            operator: Some(introduced.operator),
            name: Some(introduced.name),
            secure: Some(true),
            neighbor: Some(true),
            authentication_info: Some(introduced.gatekeeper_key),
            gatekeeper_relay_ids: Some(vec![Some(relay.id)]),
            gateway_relay_ids: None,
        };
        Ok(self.monitor.add_cloud(&form).await?)
    }

    /// Waits until it is connected to its relay, where it listens to others.
    async fn is_at_relay(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let states = self.monitor.relay_states().await?.data;
            if states.iter().any(|relay| relay.state.starts_with("open")) {
                return Ok(());
            }
            let told: Vec<&str> = states.iter().map(|relay| relay.state.as_str()).collect();
            ensure!(began.elapsed() < WAIT_MAX, "{} does not come to the relay: {}", self.name, told.join(", "));
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until another cloud answers; gives how long its answer took.
    async fn reaches(&self, other: &KnownCloud) -> anyhow::Result<Duration> {
        let began = Instant::now();
        loop {
            let found = self.monitor.ping_cloud(other.id).await?;
            if found.answered {
                return Ok(Duration::from_micros(found.elapsed_us));
            }
            let why = found.why.unwrap_or_default();
            ensure!(began.elapsed() < WAIT_MAX, "{} does not reach {}: {why}", self.name, found.cloud);
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Plays it.
pub async fn play(data: &Path, cast: &mut Cast) -> anyhow::Result<()> {
    paragraph(&format!(
        "Two clouds on this machine, {WORKSHOP} with a provider of its sensors and {OFFICE} with a consumer. They share no authority, and meet at a relay.\n\n"
    ))?;
    let workshop = Side::start(WORKSHOP, data, &["--relay-listen", "127.0.0.1:0"], cast).await?;
    let office = Side::start(OFFICE, data, &["--gateway-is-mandatory", "true"], cast).await?;
    let [known_office, known_workshop] = introduce(&workshop, &office).await?;
    let services = start_provider(&workshop, Some(&office), cast).await?;
    ensure!(services.iter().any(|service| service == SERVICE), "this machine has no {SERVICE}, which the demo reads");
    let consumer = Consumer::join(&office, &workshop).await?;
    consumer.is_denied().await?;
    let provided = allow(&workshop, &office, &known_office).await?;
    let offer = consumer.is_allowed().await?;
    tell_parts(&office, &workshop).await?;
    consumer.reads(&offer).await?;
    share([&workshop, &office], [&known_office, &known_workshop], &provided).await?;
    consumer.hears(&office, &workshop).await?;
    paragraph(&format!(
        "\nThe other way: {OFFICE} lets consumers of other clouds in by its Gateway only, and its events go from Gatekeeper to Gatekeeper as before.\n\n"
    ))?;
    start_provider(&office, None, cast).await?;
    let consumer = Consumer::join(&workshop, &office).await?;
    let provided = allow(&office, &workshop, &known_workshop).await?;
    tunnel::show(&consumer, &workshop, &office).await?;
    share([&office, &workshop], [&known_workshop, &known_office], &provided).await?;
    consumer.hears(&workshop, &office).await?;
    let checks = "introduced, denied, found in the other cloud, allowed, read directly and by a tunnel, and events heard both ways";
    Ok(paragraph(&format!("\nAll checks hold: {checks}.\n"))?)
}

/// Plays both operators; gives what the first knows of the second, and the second of the first.
async fn introduce(workshop: &Side, office: &Side) -> anyhow::Result<[KnownCloud; 2]> {
    let began = Instant::now();
    let place = workshop.ready.listeners.get("relay").context("the cloud did not say where its relay is")?;
    let (host, port) = place.rsplit_once(':').context("the relay's place has no port")?;
    let relay = RelayRequest {
        address: Some(host.to_owned()),
        port: port.parse().ok(),
        authentication_info: Some(workshop.monitor.introduction().await?.gatekeeper_key),
        secure: Some(true),
        exclusive: Some(false),
        relay_type: None,
    };
    let known_office = workshop.know(office, &relay).await?;
    let known_workshop = office.know(workshop, &relay).await?;
    let text = format!("made {WORKSHOP} and {OFFICE} known to each other: names, the keys of their Gatekeepers, the relay");
    step(began.elapsed(), "operator", &text)?;
    // A call is lost that is made before the other one listens.
    workshop.is_at_relay().await?;
    office.is_at_relay().await?;
    workshop.reaches(&known_office).await?;
    let took = office.reaches(&known_workshop).await?;
    let text = format!(
        "{OFFICE} has asked {WORKSHOP} and was answered through the relay: four messages, signed, and sealed for the other Gatekeeper"
    );
    step(took, "cloud", &text)?;
    Ok([known_office, known_workshop])
}

/// Starts the provider of the sensors in a cloud, which serves consumers of `guests` too; gives its services.
async fn start_provider(cloud: &Side, guests: Option<&Side>, cast: &mut Cast) -> anyhow::Result<Vec<String>> {
    let mut arguments = cloud.certificates.issue(provider::SYSTEM)?;
    arguments.extend(["--service-registry".to_owned(), cloud.registry()?.clone()]);
    if let Some(guests) = guests {
        let authority = guests.certificates.path().join("cloud.crt");
        arguments.extend(["--guests".to_owned(), authority.to_string_lossy().into_owned()]);
    }
    match cast.enter(Child::start("the provider", "provider", &arguments)?).tells_within(REPORT_TIMEOUT).await? {
        Report::Serving { address, services, took_ms, .. } => {
            let text = format!("serves {} at {address}, registered in {}: {}", provider::SYSTEM, cloud.name, services.join(", "));
            step(Duration::from_secs_f64(took_ms / 1e3), "provider", &text)?;
            Ok(services)
        }
        Report::Failed { why } => bail!("the provider failed: {why}"),
        report => bail!("the provider reported something else: {report:?}"),
    }
}

/// Plays the operator of a cloud with sensors: another one may use a service of theirs. Gives the service.
async fn allow(home: &Side, other: &Side, known_other: &KnownCloud) -> anyhow::Result<Service> {
    let began = Instant::now();
    let operator = home.operator().await?;
    let mut found = operator.services_of(SERVICE, &Page::default()).await?.data;
    found.retain(|service| service.provider.system_name == provider::SYSTEM);
    let service = found.pop().with_context(|| format!("{SERVICE} is not registered"))?;
    let form = IntercloudRuleRequest {
        cloud_id: known_other.id,
        provider_id_list: vec![service.provider.id],
        service_definition_id_list: vec![service.service_definition.id],
        interface_id_list: service.interfaces.iter().map(|interface| interface.id).collect(),
    };
    operator.add_intercloud_rules(&form).await.context("the rule was not made")?;
    let text = format!("of {} added an intercloud rule: consumers of {} may use {SERVICE} of {}", home.name, other.name, provider::SYSTEM);
    step(began.elapsed(), "operator", &text)?;
    Ok(service)
}

/// Tells the parts of the dialogues that found and granted the service (Rocha 2019, Figure 5.5).
pub(super) async fn tell_parts(asking: &Side, asked: &Side) -> anyhow::Result<()> {
    let (here, there) = (asking.monitor.dialogue_times().await?, asked.monitor.dialogue_times().await?);
    for (subject, what) in [("gsd_poll", "global discovery"), ("icn_proposal", "negotiation")] {
        for (part, text) in [("call", "called, acknowledged"), ("answer", "asked, answered")] {
            if let Some(mean) = here.mean(subject, part) {
                let decided = there.mean(subject, "decide").filter(|_| part == "answer");
                let decided = decided.map(|decided| format!(", {:.2} ms of it to decide", decided.as_secs_f64() * 1e3)).unwrap_or_default();
                step(mean, "cloud", &format!("  {what}: {text}{decided}"))?;
            }
        }
    }
    Ok(())
}

/// Plays both operators: the event type of the first cloud is shared with the second, and the consumer may hear it there. Each knows the other one as `known` says.
async fn share([of, with]: [&Side; 2], known: [&KnownCloud; 2], provided: &Service) -> anyhow::Result<()> {
    let [known_with, known_of] = known;
    let began = Instant::now();
    let shared = of.monitor.share_event(known_with.id, SERVICE, i64::from(DEADLINE_MS_DEFAULT)).await?;
    let text = format!(
        "of {} shared {} of {} with {}, within {} ms",
        of.name, shared.event_type, provided.provider.system_name, shared.cloud, shared.deadline_ms
    );
    step(began.elapsed(), "operator", &text)?;
    let began = Instant::now();
    let accepted = with.monitor.accept_events(known_of.id, SERVICE).await?;
    step(began.elapsed(), "operator", &format!("of {} accepted {} of {}", with.name, accepted.event_type, accepted.cloud))?;
    let began = Instant::now();
    let operator = with.operator().await?;
    let mut found = operator.services_of(HEARD_SERVICE, &Page::default()).await?.data;
    found.retain(|service| service.provider.system_name == GATEKEEPER);
    let heard = found.pop().with_context(|| format!("{HEARD_SERVICE} is not registered"))?;
    let systems = operator.systems(&Page::default()).await?.data;
    let consumer = systems.into_iter().find(|system| system.system_name == CONSUMER).context("the consumer is not registered")?;
    let form = IntracloudRuleRequest {
        consumer_id: Some(consumer.id),
        provider_ids: Some(vec![Some(heard.provider.id)]),
        service_definition_ids: Some(vec![Some(heard.service_definition.id)]),
        interface_ids: Some(heard.interfaces.iter().map(|interface| Some(interface.id)).collect()),
    };
    operator.add_rules(&form).await.context("the rule was not made")?;
    Ok(step(began.elapsed(), "operator", &format!("of {} added a rule: {CONSUMER} may hear events of other clouds", with.name))?)
}

/// The consumer, a system of one of the clouds.
pub(super) struct Consumer {
    cloud: CoreSystems,
    system: SystemRequest,
    /// Towards systems of its own cloud.
    pub(super) home: Security,
    /// Towards systems of the other cloud.
    abroad: Security,
}

impl Consumer {
    /// Registers it. It believes the authority of its own cloud, and for the provider that of the other one.
    async fn join(home: &Side, other: &Side) -> anyhow::Result<Self> {
        let name = SystemName::parse(CONSUMER).expect("it is a name");
        home.certificates.issue(CONSUMER)?;
        let anchor = |side: &Side| TrustDirectory::new(side.certificates.path()).anchor().context("a cloud has no authority");
        let identity = TrustDirectory::new(home.certificates.path()).identity(&name).context("the consumer has no certificate")?;
        let system = SystemRequest {
            system_name: Some(CONSUMER.to_owned()),
            address: Some("127.0.0.1".to_owned()),
            port: Some(1),
            authentication_info: Some(base64::encode(identity.certificate().public_key_info())),
            ..SystemRequest::default()
        };
        let security = Security::new(Some(&identity), &[anchor(home)?, anchor(other)?])?;
        let began = Instant::now();
        let cloud = CoreSystems::discover_securely(home.registry()?, Limits::default(), &security).await?;
        cloud.register_system(&system).await.context("cannot register the consumer")?;
        step(began.elapsed(), "consumer", &format!("registered itself in {} as {CONSUMER}", home.name))?;
        let other = CloudCommonName::parse(&format!("{}.{OPERATOR}.arrowhead.eu", other.name)).expect("it is a cloud's name");
        Ok(Self { cloud, system, abroad: security.towards_cloud(other), home: security })
    }

    pub(super) async fn orchestrate(&self) -> anyhow::Result<(Vec<Offer>, Duration)> {
        let form = OrchestrationForm {
            requester_system: Some(self.system.clone()),
            requested_service: Some(ServiceQueryForm {
                service_definition_requirement: Some(SERVICE.to_owned()),
                ..ServiceQueryForm::default()
            }),
            orchestration_flags: Some(BTreeMap::from(["overrideStore", ELSEWHERE].map(|flag| (flag.to_owned(), Some(true))))),
            ..OrchestrationForm::default()
        };
        let began = Instant::now();
        let offers = self.cloud.orchestrate(&form).await.context("the Orchestrator failed")?;
        Ok((offers, began.elapsed()))
    }

    async fn is_denied(&self) -> anyhow::Result<()> {
        let (offers, took) = self.orchestrate().await?;
        ensure!(offers.is_empty(), "the Orchestrator offered something before any rule allowed it");
        let text = format!(
            "asked the Orchestrator of {OFFICE} for {SERVICE}: DENIED. Nothing is registered there, and {WORKSHOP} says the same as if it had none"
        );
        Ok(step(took, "consumer", &text)?)
    }

    async fn is_allowed(&self) -> anyhow::Result<Offer> {
        let (mut offers, took) = self.orchestrate().await?;
        let offer = offers.pop().context("the Orchestrator offered nothing after the rule was made")?;
        let token = offer.authorization_tokens.as_ref().and_then(|tokens| tokens.values().next());
        let token = token.context("the offer of the other cloud has no token")?;
        let text = format!(
            "asked again: ALLOWED, found in {WORKSHOP}. {} offers it at {}, with a token of {} characters for {CONSUMER} of {OFFICE}",
            offer.provider.system_name,
            offer.url(),
            token.len()
        );
        step(took, "consumer", &text)?;
        Ok(offer)
    }

    async fn reads(&self, offer: &Offer) -> anyhow::Result<()> {
        let interface =
            offer.authorization_tokens.as_ref().and_then(|tokens| tokens.keys().next()).context("the offer has no interface")?;
        let provider = Connection::secure(offer.provider.host_and_port(), Limits::default(), &self.abroad, &offer.provider.system_name);
        let began = Instant::now();
        let answer = provider.send(Method::GET, &offer.path(interface), None).await.context("the provider failed")?;
        let took = began.elapsed();
        ensure!(answer.status == StatusCode::OK, "the provider answered {}", answer.status);
        let sample: Sample = serde_json::from_slice(&answer.body).context("the provider's answer is no sample")?;
        let without = provider.send(Method::GET, &offer.service_uri, None).await.context("the provider failed")?;
        ensure!(without.status == StatusCode::UNAUTHORIZED, "without a token the provider answered {}", without.status);
        let text = format!("read the service directly, with the token (without it: 401): {:.1} {}", sample.value, sample.unit);
        Ok(step(took, "consumer", &text)?)
    }

    async fn hears(&self, home: &Side, other: &Side) -> anyhow::Result<()> {
        let event_type = SERVICE.to_uppercase();
        let began = Instant::now();
        let mut events = self.cloud.events(&event_type, EventForm::Payload, Some(&self.system)).await.context("no event stream")?;
        let (mut last, mut latest) = (0, Duration::ZERO);
        for count in 0..EVENTS {
            let event = timeout(WAIT_MAX, events.next()).await.context("no event of the other cloud came")?;
            let event = event.context("the event stream has ended")?;
            let sample: Sample = serde_json::from_str(&event.data).with_context(|| format!("an event is no sample: {}", event.data))?;
            ensure!(count == 0 || sample.sequence == last + 1, "event {} came after event {last}", sample.sequence);
            last = sample.sequence;
            let measured = SystemTime::UNIX_EPOCH + Duration::from_nanos(sample.unix_ns);
            latest = latest.max(SystemTime::now().duration_since(measured).unwrap_or_default());
        }
        let text = format!(
            "heard {event_type} of {} in {} by SSE: {EVENTS} events in sequence, each within {:.2} ms of its measurement",
            other.name,
            home.name,
            latest.as_secs_f64() * 1e3
        );
        step(began.elapsed(), "consumer", &text)?;
        let began = Instant::now();
        let share = loop {
            let deliveries = other.monitor.deliveries().await?.data;
            let share = deliveries.into_iter().find(|delivery| delivery.event_type == event_type).context("the share is gone")?;
            // An event is heard before the word that it was taken is back.
            if share.delivered >= EVENTS as u64 || began.elapsed() > WAIT_MAX {
                break share;
            }
            sleep(LOOK_EVERY).await;
        };
        ensure!(share.lost == 0 && share.dead_letters == 0, "{} events were lost, {} given up", share.lost, share.dead_letters);
        let text = format!(
            "{} counts {} events that {} has taken, {} of them late, none lost",
            other.name, share.delivered, home.name, share.late
        );
        Ok(step(began.elapsed(), "cloud", &text)?)
    }
}
