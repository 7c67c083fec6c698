//! The demo's consumer: finds the provider through the Orchestrator, reads its service, receives its events.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail, ensure};
use bodkin_arrowhead::form::{OrchestrationForm, ServiceQueryForm, SubscriptionRequest, SystemRequest};
use bodkin_client::{
    Connection, EventForm, Events,
    answer::{Offer, PushedEvent},
};
use clap::Args;
use hyper::{Method, StatusCode};
use serde::de::DeserializeOwned;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    gate::is_event_handler,
    http_server::{self, Request},
    member::{Member, MemberOptions},
    processing,
    report::{Report, Sample, Step, Way, milliseconds, tell},
};

/// Name of the consumer's system.
pub const SYSTEM: &str = "demo-consumer";
/// Where at the consumer events are posted to.
const NOTIFY_URI: &str = "/events";
/// So many events in sequence make a way of delivery good.
const EVENTS_IN_SEQUENCE: usize = 3;
/// Longest wait for an event or for the authorization rule.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause before the Orchestrator is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// Events waiting to be told; more of them come back to the Event Handler as 503.
const ARRIVALS_MAX: usize = 256;

/// Options of the consumer.
#[derive(Args, Clone, Debug)]
pub struct ConsumerOptions {
    #[command(flatten)]
    member: MemberOptions,
    /// The service that is read and checked.
    #[arg(long, value_name = "SERVICE")]
    service: String,
    /// A service whose events are told after the checks; may be repeated.
    #[arg(long, value_name = "SERVICE")]
    live: Vec<String>,
}

/// An event that reached the consumer.
struct Arrival {
    way: Way,
    sample: Sample,
    latency: Duration,
}

struct Consumer {
    member: Member,
    system: SystemRequest,
    service: String,
    pushed: mpsc::Receiver<Arrival>,
}

/// Does all steps and then tells what arrives until SIGTERM. A failed step is told and ends it with exit code 1.
pub async fn run(options: ConsumerOptions) -> anyhow::Result<u8> {
    let mut terminate = signal(SignalKind::terminate())?;
    let (mut consumer, took) = Consumer::register(&options).await?;
    let address = format!("{}:{}", consumer.system.address.as_deref().unwrap_or_default(), consumer.system.port.unwrap_or_default());
    tell_step(Step::Registered, took, format!("registered itself as {SYSTEM} at {address}"))?;
    let done = tokio::select! {
        done = consumer.take_part(&options.live) => done,
        _ = terminate.recv() => Ok(()),
    };
    if let Err(error) = done {
        tell(&Report::Failed { why: format!("{error:#}") })?;
        return Ok(1);
    }
    consumer.member.cloud.unregister_system(&consumer.system).await.context("cannot take the consumer off the registry")?;
    Ok(0)
}

fn tell_step(step: Step, took: Duration, text: String) -> anyhow::Result<()> {
    Ok(tell(&Report::Step { step, text, took_ms: milliseconds(took) })?)
}

/// Puts a pushed event into the queue of arrivals. In a secure cloud nobody pushes but the Event Handler.
fn take_push(arrivals: &mpsc::Sender<Arrival>, request: &Request<'_>) -> (StatusCode, String) {
    if (request.method, request.uri.path()) != (&Method::POST, NOTIFY_URI) {
        return (StatusCode::NOT_FOUND, String::new());
    }
    if !request.caller.is_none_or(is_event_handler) {
        return (StatusCode::UNAUTHORIZED, String::new());
    }
    let event = serde_json::from_slice::<PushedEvent>(&request.body).map_err(anyhow::Error::from);
    match event.and_then(|event| arrival(Way::HttpPush, &event.payload)) {
        Ok(arrival) => match arrivals.try_send(arrival) {
            Ok(()) => (StatusCode::OK, String::new()),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
        },
        Err(error) => (StatusCode::BAD_REQUEST, serde_json::json!({"error": format!("{error:#}")}).to_string()),
    }
}

fn arrival(way: Way, payload: &str) -> anyhow::Result<Arrival> {
    let now = SystemTime::now();
    let sample: Sample = serde_json::from_str(payload).with_context(|| format!("an event is no sample: {payload}"))?;
    let measured = SystemTime::UNIX_EPOCH + Duration::from_nanos(sample.unix_ns);
    // Zero if the clock was set back between the two readings.
    let latency = now.duration_since(measured).unwrap_or_default();
    Ok(Arrival { way, sample, latency })
}

async fn next_streamed(events: &mut Events) -> anyhow::Result<Arrival> {
    match events.next().await {
        Some(event) => arrival(Way::ServerSentEvents, &event.data),
        None => match events.end() {
            Some(why) => Err(why.clone().into()),
            None => bail!("the event stream has ended"),
        },
    }
}

/// The next number that a graph has made; what the stream says of results that were shed is passed over.
async fn next_result<T: DeserializeOwned>(events: &mut Events) -> anyhow::Result<T> {
    loop {
        let event = timeout(WAIT_MAX, events.next()).await.context("no result of the graph came")?;
        let event = event.context("the event stream has ended")?;
        if !event.event.starts_with("bodkin-") {
            return serde_json::from_str(&event.data).with_context(|| format!("a result is no number: {}", event.data));
        }
    }
}

impl Consumer {
    async fn register(options: &ConsumerOptions) -> anyhow::Result<(Self, Duration)> {
        let member = Member::join(&options.member, SYSTEM).await?;
        let listener = http_server::listen().await.context("no port for the consumer")?;
        let address = listener.local_addr()?;
        let (arrivals, pushed) = mpsc::channel(ARRIVALS_MAX);
        let push = move |request: &Request<'_>| take_push(&arrivals, request);
        tokio::spawn(http_server::serve(listener, member.acceptor()?, push));
        let system = member.system(address);
        let began = Instant::now();
        member.cloud.register_system(&system).await.context("cannot register the consumer")?;
        Ok((Self { member, system, service: options.service.clone(), pushed }, began.elapsed()))
    }

    async fn take_part(&mut self, live: &[String]) -> anyhow::Result<()> {
        self.is_denied().await?;
        let offer = self.is_allowed().await?;
        let unit = self.read(&offer).await?;
        self.hears_by_stream(&unit).await?;
        self.hears_by_push(&unit).await?;
        if processing::absent(live).is_none() {
            self.hears_results().await?;
        }
        self.tell_arrivals(live).await
    }

    async fn orchestrate(&self) -> anyhow::Result<(Vec<Offer>, Duration)> {
        let form = OrchestrationForm {
            requester_system: Some(self.system.clone()),
            requested_service: Some(ServiceQueryForm {
                service_definition_requirement: Some(self.service.clone()),
                interface_requirements: Some(vec![Some(self.member.interface().to_owned())]),
                ..ServiceQueryForm::default()
            }),
            orchestration_flags: Some(BTreeMap::from([("overrideStore".to_owned(), Some(true))])),
            ..OrchestrationForm::default()
        };
        let began = Instant::now();
        let offers = self.member.cloud.orchestrate(&form).await.context("the Orchestrator failed")?;
        Ok((offers, began.elapsed()))
    }

    async fn is_denied(&self) -> anyhow::Result<()> {
        let (offers, took) = self.orchestrate().await?;
        if let Some(offer) = offers.first() {
            bail!("the Orchestrator offered {} before any rule allowed it", offer.provider.host_and_port());
        }
        let text = format!(
            "asked the Orchestrator for {}: DENIED. The answer is empty: the service is registered, but no authorization rule lets {SYSTEM} use it",
            self.service
        );
        tell_step(Step::Denied, took, text)
    }

    /// Asks again until the operator has made the rule.
    async fn is_allowed(&self) -> anyhow::Result<Offer> {
        let began = Instant::now();
        loop {
            let (mut offers, took) = self.orchestrate().await?;
            if let Some(offer) = offers.pop() {
                let token = offer.authorization_tokens.as_ref().and_then(|tokens| tokens.get(self.member.interface()));
                let token =
                    token.map(|token| format!(", with a token of {} characters that counts there", token.len())).unwrap_or_default();
                let text = format!("asked again: ALLOWED. {} offers it at {}{token}", offer.provider.system_name, offer.url());
                tell_step(Step::Allowed, took, text)?;
                return Ok(offer);
            }
            ensure!(began.elapsed() < WAIT_MAX, "the Orchestrator offered nothing within {} s of asking", WAIT_MAX.as_secs());
            sleep(ASK_AGAIN).await;
        }
    }

    /// Reads the service where the Orchestrator said; gives the registered unit.
    async fn read(&self, offer: &Offer) -> anyhow::Result<String> {
        let unit = offer.metadata.as_ref().and_then(|metadata| metadata.get("unit")).context("the service has no unit in its metadata")?;
        let provider = self.member.cloud.provider(offer)?;
        let path = offer.path(self.member.interface());
        let began = Instant::now();
        let answer = provider.send(Method::GET, &path, None).await.context("the provider failed")?;
        let took = began.elapsed();
        ensure!(answer.status == StatusCode::OK, "the provider answered {}", answer.status);
        let sample: Sample = serde_json::from_slice(&answer.body).context("the provider's answer is no sample")?;
        self.check(&sample, unit)?;
        let how = if offer.is_secure() { self.is_refused_without_token(&provider, offer).await? } else { "" };
        tell_step(Step::Read, took, format!("read the service there{how}: {:.1} {}", sample.value, sample.unit))?;
        Ok(unit.clone())
    }

    async fn is_refused_without_token(&self, provider: &Connection, offer: &Offer) -> anyhow::Result<&'static str> {
        let answer = provider.send(Method::GET, &offer.service_uri, None).await.context("the provider failed")?;
        ensure!(answer.status == StatusCode::UNAUTHORIZED, "without a token the provider answered {}", answer.status);
        Ok(" with the token (without it: 401)")
    }

    fn check(&self, sample: &Sample, unit: &str) -> anyhow::Result<()> {
        ensure!(sample.service == self.service, "a sample of {} came for {}", sample.service, self.service);
        ensure!(sample.unit == unit, "a sample in {} came, {unit} is registered", sample.unit);
        ensure!(sample.value.is_finite() && sample.sequence > 0, "the sample {sample:?} cannot be");
        Ok(())
    }

    fn event_type(&self) -> String {
        self.service.to_uppercase()
    }

    async fn hears_by_stream(&mut self, unit: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut events =
            self.member.cloud.events(&self.event_type(), EventForm::Payload, Some(&self.system)).await.context("no event stream")?;
        let mut sequence = Sequence::default();
        while !sequence.is_long_enough() {
            let arrival = timeout(WAIT_MAX, next_streamed(&mut events)).await.context("no event came by SSE")??;
            self.check(&arrival.sample, unit)?;
            sequence.push(&arrival)?;
        }
        tell_step(Step::Streamed, began.elapsed(), format!("subscribed to {} by SSE: {sequence}", self.event_type()))
    }

    async fn hears_by_push(&mut self, unit: &str) -> anyhow::Result<()> {
        let form = SubscriptionRequest {
            event_type: Some(self.event_type()),
            subscriber_system: Some(self.system.clone()),
            notify_uri: Some(NOTIFY_URI.to_owned()),
            match_meta_data: Some(false),
            ..SubscriptionRequest::default()
        };
        let began = Instant::now();
        self.member.cloud.subscribe(&form).await.context("the subscription failed")?;
        let mut sequence = Sequence::default();
        while !sequence.is_long_enough() {
            let arrival =
                timeout(WAIT_MAX, self.pushed.recv()).await.context("no event came by HTTP push")?.context("the listener has ended")?;
            self.check(&arrival.sample, unit)?;
            sequence.push(&arrival)?;
        }
        let text = format!("subscribed to {} by HTTP push to its {NOTIFY_URI}: {sequence}", self.event_type());
        tell_step(Step::Pushed, began.elapsed(), text)
    }

    /// Hears what the graph makes, as soon as it runs.
    async fn hears_results(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        let open = |event_type| self.member.cloud.events(event_type, EventForm::Payload, Some(&self.system));
        let (mut work, mut alarm) = (open(processing::WORK).await?, open(processing::BUSY).await?);
        let (mut last_mhz, mut last_alarm) = (0.0, 0);
        for _ in 0..EVENTS_IN_SEQUENCE {
            last_mhz = next_result::<f64>(&mut work).await?;
            last_alarm = next_result::<u8>(&mut alarm).await?;
            ensure!(last_mhz.is_finite() && last_mhz >= 0.0 && last_alarm <= 1, "{last_mhz} MHz with the alarm {last_alarm} cannot be");
        }
        let (wanted, work, busy) = (EVENTS_IN_SEQUENCE, processing::WORK, processing::BUSY);
        let text =
            format!("subscribed to {work} and {busy}: {wanted} results of each, at last {last_mhz:.0} MHz with the alarm {last_alarm}");
        tell_step(Step::Processed, began.elapsed(), text)
    }

    /// Tells everything that arrives, from one stream a service and from the push subscription.
    async fn tell_arrivals(&mut self, live: &[String]) -> anyhow::Result<()> {
        let (arrivals, mut streamed) = mpsc::channel(ARRIVALS_MAX);
        for service in live {
            let mut events = self.member.cloud.events(&service.to_uppercase(), EventForm::Payload, Some(&self.system)).await?;
            let arrivals = arrivals.clone();
            tokio::spawn(async move {
                loop {
                    let arrival = next_streamed(&mut events).await;
                    let last = arrival.is_err();
                    if arrivals.send(arrival).await.is_err() || last {
                        return;
                    }
                }
            });
        }
        loop {
            let arrival = tokio::select! {
                arrival = streamed.recv() => arrival.context("all event streams have ended")??,
                arrival = self.pushed.recv() => arrival.context("the listener has ended")?,
            };
            tell(&Report::Arrived { way: arrival.way, sample: arrival.sample, latency_ms: milliseconds(arrival.latency) })?;
        }
    }
}

/// Events of one service that came one after the other, none missing and none twice.
#[derive(Debug, Default)]
struct Sequence {
    first: u64,
    last: u64,
    count: usize,
    latency_max: Duration,
}

impl Sequence {
    fn push(&mut self, arrival: &Arrival) -> anyhow::Result<()> {
        let number = arrival.sample.sequence;
        if self.count == 0 {
            self.first = number;
        } else {
            ensure!(number == self.last + 1, "event {number} came after event {}", self.last);
        }
        self.last = number;
        self.count += 1;
        self.latency_max = self.latency_max.max(arrival.latency);
        Ok(())
    }

    fn is_long_enough(&self) -> bool {
        self.count >= EVENTS_IN_SEQUENCE
    }
}

impl std::fmt::Display for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { first, last, count, latency_max } = self;
        write!(
            f,
            "{count} events in sequence (numbers {first} to {last}), each within {:.2} ms of its measurement",
            milliseconds(*latency_max)
        )
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::common_name::SystemCommonName;
    use bytes::Bytes;
    use hyper::Uri;

    use super::*;

    fn arrived(sequence: u64) -> Arrival {
        let text = format!(r#"{{"service":"s","sequence":{sequence},"value":1.0,"unit":"u","time":"t","unix_ns":0,"parts":{{}}}}"#);
        arrival(Way::HttpPush, &text).unwrap()
    }

    #[test]
    fn a_gap_and_a_repetition_are_no_sequence() {
        let push = |numbers: [u64; 3]| {
            let mut sequence = Sequence::default();
            numbers.into_iter().try_for_each(|number| sequence.push(&arrived(number))).map(|()| sequence.is_long_enough())
        };
        assert!(push([7, 8, 9]).unwrap());
        assert_eq!(push([7, 9, 10]).unwrap_err().to_string(), "event 9 came after event 7");
        assert_eq!(push([7, 8, 8]).unwrap_err().to_string(), "event 8 came after event 8");
    }

    #[test]
    fn a_full_queue_and_nonsense_are_told_to_the_event_handler() {
        let (arrivals, mut pushed) = mpsc::channel(1);
        let event = |payload: &str| {
            let event = serde_json::json!({"eventType": "S", "metaData": null, "payload": payload, "timeStamp": "2026-01-01T00:00:00Z"});
            Bytes::from(event.to_string())
        };
        let sample = r#"{"service":"s","sequence":1,"value":1.0,"unit":"u","time":"t","unix_ns":0,"parts":{}}"#;
        let uri = Uri::from_static(NOTIFY_URI);
        let name = |name: &str| SystemCommonName::parse(&format!("{name}.cloud.operator.arrowhead.eu")).unwrap();
        let pushed_by = |caller, method: &Method, body| take_push(&arrivals, &Request { method, uri: &uri, caller, body }).0;
        let (handler, other) = (name("EventHandler"), name("demo-provider"));
        assert_eq!(pushed_by(Some(&other), &Method::POST, event(sample)), StatusCode::UNAUTHORIZED);
        assert_eq!(pushed_by(Some(&handler), &Method::POST, event(sample)), StatusCode::OK);
        assert_eq!(pushed_by(None, &Method::POST, event(sample)), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(pushed_by(None, &Method::POST, event("x")), StatusCode::BAD_REQUEST);
        assert_eq!(pushed_by(None, &Method::GET, event(sample)), StatusCode::NOT_FOUND);
        assert_eq!(pushed.try_recv().unwrap().sample.sequence, 1);
    }
}
