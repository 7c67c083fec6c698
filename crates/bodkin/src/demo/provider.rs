//! The demo's provider: this machine's sensors as services over HTTP and as events.

use std::{
    collections::BTreeMap,
    sync::{Arc, RwLock},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail};
use bodkin_arrowhead::{
    form::{EventPublishRequest, ServiceRegistryRequest, SystemRequest},
    utc::UtcTime,
};
use hyper::{Method, StatusCode};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval},
};

use super::{
    gate::Gate,
    http_server::{self, Request},
    member::{Member, MemberOptions},
    report::{Report, Sample, milliseconds, tell},
    sensors::{self, Sensor, Sensors},
};

/// Name of the provider's system.
pub const SYSTEM: &str = "demo-provider";
/// Time between two samples, and so between two events of a type.
const SAMPLE_PERIOD: Duration = Duration::from_millis(500);
/// Rates need two readings: how long the first measurement takes.
const FIRST_MEASUREMENT: Duration = Duration::from_millis(100);
/// So many failed publications in a row end the provider.
const FAILED_PUBLICATIONS_MAX: u32 = 10;

/// The latest sample of every service, by path.
type Latest = Arc<RwLock<BTreeMap<String, Sample>>>;

struct Provider {
    member: Member,
    system: SystemRequest,
    sensors: Vec<Box<dyn Sensor>>,
    latest: Latest,
    /// How often all sensors were read: the sequence number of their samples.
    round: u64,
}

/// Serves and publishes until SIGTERM, then takes itself off the registry.
pub async fn run(options: MemberOptions) -> anyhow::Result<u8> {
    let mut terminate = signal(SignalKind::terminate())?;
    let member = Member::join(&options, SYSTEM).await?;
    let gate = Gate::of(member.identity(), &member.cloud).await?;
    let listener = http_server::listen().await.context("no port for the provider")?;
    let address = listener.local_addr()?;
    let latest = Latest::default();
    let served = latest.clone();
    tokio::spawn(http_server::serve(listener, member.acceptor()?, move |request| answer(&served, &gate, request)));

    let Sensors { there, absent } = sensors::open();
    tokio::time::sleep(FIRST_MEASUREMENT).await;
    let system = member.system(address);
    let mut provider = Provider { member, system, sensors: there, latest, round: 1 };
    for sensor in 0..provider.sensors.len() {
        provider.sample(sensor)?;
    }
    let began = Instant::now();
    provider.register().await?;
    tell(&Report::Serving {
        address: address.to_string(),
        services: provider.sensors.iter().map(|sensor| sensor.service().to_owned()).collect(),
        absent: absent.iter().map(|(service, why)| format!("{service} ({why})")).collect(),
        took_ms: milliseconds(began.elapsed()),
    })?;
    tokio::select! {
        failed = provider.publish_samples() => failed?,
        _ = terminate.recv() => {}
    }
    provider.member.cloud.unregister_system(&provider.system).await.context("cannot take the provider off the registry")?;
    Ok(0)
}

/// `GET /SERVICE` answers the latest sample to whom the gate admits.
fn answer(latest: &Latest, gate: &Gate, request: &Request<'_>) -> (StatusCode, String) {
    if request.method != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, String::new());
    }
    let latest = latest.read().expect("nobody panics with the samples in hand");
    match latest.get(request.uri.path()) {
        Some(sample) if gate.admits(request.caller, request.uri.query(), &sample.service) => (StatusCode::OK, json(sample)),
        Some(_) => (StatusCode::UNAUTHORIZED, serde_json::json!({"error": "no token that is good for this service"}).to_string()),
        None => {
            let paths: Vec<&str> = latest.keys().map(String::as_str).collect();
            (StatusCode::NOT_FOUND, serde_json::json!({"error": "no such service", "services": paths}).to_string())
        }
    }
}

fn json(sample: &Sample) -> String {
    serde_json::to_string(sample).expect("a sample is texts and numbers")
}

/// Where a service is at the provider.
fn service_uri(service: &str) -> String {
    format!("/{service}")
}

impl Provider {
    async fn register(&self) -> anyhow::Result<()> {
        for sensor in &self.sensors {
            let form = ServiceRegistryRequest {
                service_definition: Some(sensor.service().to_owned()),
                provider_system: Some(self.system.clone()),
                service_uri: Some(service_uri(sensor.service())),
                secure: Some(self.member.service_security().to_owned()),
                metadata: Some(BTreeMap::from([("unit".to_owned(), Some(sensor.unit().to_owned()))])),
                version: Some(1),
                interfaces: Some(vec![Some(self.member.interface().to_owned())]),
                ..ServiceRegistryRequest::default()
            };
            self.member.cloud.register(&form).await.with_context(|| format!("cannot register {}", sensor.service()))?;
        }
        Ok(())
    }

    /// Reads a sensor. The sample is what its service answers from now on.
    fn sample(&mut self, sensor: usize) -> anyhow::Result<Sample> {
        let sensor = &mut self.sensors[sensor];
        let reading = match sensor.read() {
            Ok(reading) => reading,
            Err(why) => bail!("{} cannot be read any more: {why}", sensor.service()),
        };
        let now = SystemTime::now();
        let sample = Sample {
            service: sensor.service().to_owned(),
            sequence: self.round,
            value: reading.value,
            unit: sensor.unit().to_owned(),
            time: UtcTime::from_system_time(now)?.to_string(),
            unix_ns: u64::try_from(now.duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())?,
            parts: reading.parts,
        };
        let mut latest = self.latest.write().expect("nobody panics with the samples in hand");
        latest.insert(service_uri(&sample.service), sample.clone());
        Ok(sample)
    }

    async fn publish_samples(&mut self) -> anyhow::Result<()> {
        let mut period = interval(SAMPLE_PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed = 0;
        loop {
            period.tick().await;
            self.round += 1;
            for sensor in 0..self.sensors.len() {
                let sample = self.sample(sensor)?;
                match self.publish(&sample).await {
                    Ok(()) => failed = 0,
                    Err(error) if failed == FAILED_PUBLICATIONS_MAX => return Err(error),
                    Err(error) => {
                        eprintln!("{error:#}");
                        failed += 1;
                    }
                }
            }
        }
    }

    async fn publish(&self, sample: &Sample) -> anyhow::Result<()> {
        let form = EventPublishRequest {
            event_type: Some(sample.service.to_uppercase()),
            source: Some(self.system.clone()),
            payload: Some(json(sample)),
            time_stamp: Some(sample.time.clone()),
            ..EventPublishRequest::default()
        };
        self.member.cloud.publish(&form).await.with_context(|| format!("cannot publish {}", sample.service))
    }
}
