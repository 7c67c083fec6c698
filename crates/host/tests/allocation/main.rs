//! From a publish request's bytes to the subscribers' sockets the shard allocates nothing, once its buffers have grown. In TLS the library
//! allocates for each record, and no more than that.

mod counting;
mod dealer;
mod graph;
mod zmtp;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, PoisonError},
    time::Duration,
};

use bodkin_arrowhead::{
    caller::Caller,
    common_name::{CloudCommonName, SystemCommonName},
    json,
    name::{EventType, SystemName},
    publication::PublishForm,
};
use bodkin_broker::{
    timing::Nanos,
    topic::{Period, TopicSpec},
};
use bodkin_host::{DeclaredTopic, EventLogLimits, HostConfig, SecurityConfig, Server, route::PUBLISH};
use bodkin_trust::{
    TrustDirectory,
    tls::{self, ServerCheck},
};
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use self::counting::{ONE_AT_A_TIME, allocations, shard_thread, this_thread};

const WARM_UP_EVENTS: u32 = 200;
const COUNTED_EVENTS: u32 = 2000;
const SUBSCRIBERS: usize = 3;
/// Many more events than are in their slots together while one is published after the other.
const AT_ONCE_EVENTS: usize = 32;
/// The longest wait for an answer or an event; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(20);
/// Of the TLS library, for a record that is read or written.
const ALLOCATIONS_A_RECORD_MAX: u64 = 2;

/// A client's end of a connection.
trait Client: Read + Write {}
impl<S: Read + Write> Client for S {}

/// T of real-time topics.
const PERIOD: Duration = Duration::from_micros(100);
const SOURCE: &str = r#"{"systemName":"sensor","address":"127.0.0.1","port":9000}"#;

/// What is published in turn.
fn events() -> [String; 2] {
    [r#"21.5"#, r#"{\"value\":21.5,\n\"unit\":\"\u00b0C\"}"#]
        .map(|payload| format!(r#"{{"eventType":"Hot","source":{SOURCE},"metaData":{{"unit":"C"}},"payload":"{payload}"}}"#))
}

/// How a client connects: as it is, or in TLS.
struct Connector(Option<Arc<ClientConfig>>);

/// Who takes part.
struct Clients {
    /// Publishes, and listens to itself.
    sensor: Connector,
    /// Makes the rule by which it may.
    operator: Connector,
}

impl Connector {
    fn connect(&self, address: SocketAddr) -> Box<dyn Client> {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        match &self.0 {
            None => Box::new(socket),
            Some(config) => {
                let session = ClientConnection::new(config.clone(), ServerName::from(address.ip())).unwrap();
                Box::new(StreamOwned::new(session, socket))
            }
        }
    }
}

#[test]
fn publishing_to_streams_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let data = tempfile::tempdir().unwrap();
    let clients = Clients { sensor: Connector(None), operator: Connector(None) };
    let counted = allocations_of(config(data.path(), None), &clients);
    assert_eq!(counted, 0, "allocations for {COUNTED_EVENTS} events");
}

#[test]
fn publishing_on_a_real_time_topic_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let data = tempfile::tempdir().unwrap();
    let clients = Clients { sensor: Connector(None), operator: Connector(None) };
    let spec = TopicSpec {
        deadline: Nanos::from_millis(100).into(),
        broker_subscriber_max: Nanos::from_micros(100),
        ..TopicSpec::best_effort(Period::Every(Nanos::from_micros(PERIOD.as_micros() as i64)))
    };
    let topics =
        Arc::new([DeclaredTopic { event_type: EventType::parse("hot").unwrap(), spec: spec.into(), permitted: Default::default() }]);
    let counted = allocations_of(HostConfig { topics, ..config(data.path(), None) }, &clients);
    assert_eq!(counted, 0, "allocations for {COUNTED_EVENTS} events");
}

#[test]
fn publishing_to_streams_in_tls_allocates_for_each_record_only() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let data = tempfile::tempdir().unwrap();
    let trust = TrustDirectory::new(data.path().join("trust"));
    let security = SecurityConfig {
        directory: trust.clone(),
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: true,
        host_names: Vec::new(),
    };
    let config = config(data.path(), Some(security));
    trust.init(&CloudCommonName::parse("a.b.arrowhead.eu").unwrap(), tls::now()).unwrap();
    // The clients' certificates; the cloud makes its own when it starts.
    let connector = |name: &str| {
        let name = SystemCommonName { system: SystemName::from_stored(name), cloud: trust.cloud().unwrap() };
        let profile = bodkin_trust::Profile::system(&name, &[], tls::now(), Duration::from_secs(3600));
        let identity = trust.authority().unwrap().issue(&profile).unwrap();
        Connector(Some(tls::client(Some(&identity), &[trust.anchor().unwrap()], ServerCheck::HostName).unwrap()))
    };
    let clients = Clients { sensor: connector("sensor"), operator: connector("sysop") };
    let counted = allocations_of(config, &clients);
    // A request, its answer, and an event for each subscriber.
    let records = u64::from(COUNTED_EVENTS) * (2 + SUBSCRIBERS as u64);
    println!("{counted} allocations for {records} records");
    assert!(counted <= records * ALLOCATIONS_A_RECORD_MAX, "{counted} allocations for {records} records");
}

/// Whether a certificate's name is the source's is asked for each event.
#[test]
fn asking_whose_an_event_is_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
    let [sensor, other] = ["sensor", "other"].map(|name| Caller::certified(&format!("{name}.{cloud}"), &cloud));
    let may = |caller: &Caller, event: &str| {
        let form: PublishForm<'_> = json::parse_object(event).unwrap();
        PUBLISH.admit(caller).and_then(|admitted| admitted.permit(form)).is_ok()
    };
    let events = events();
    assert_eq!(allocations(this_thread(), || assert!(events.iter().all(|event| may(&sensor, event)))), 0);
    let denied = allocations(this_thread(), || assert!(events.iter().all(|event| !may(&other, event))));
    assert!(denied > 0, "a denial is told in words");
}

fn config(data: &std::path::Path, security: Option<SecurityConfig>) -> HostConfig {
    let event_log = Some(EventLogLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) });
    HostConfig { event_log, security, ..HostConfig::on_loopback(data) }
}

/// What the shard allocates for the counted events.
fn allocations_of(config: HostConfig, clients: &Clients) -> u64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start(&config)).unwrap();
    let [registry, authorization, _, event_handler, ..] = server.addresses[..] else { panic!("four core systems are everywhere") };
    let service = format!(r#"{{"serviceDefinition":"heat","providerSystem":{SOURCE},"interfaces":["HTTP-INSECURE-JSON"]}}"#);
    let entry = post(&mut clients.sensor.connect(registry), "/serviceregistry/register", &service, 201);
    let entry: serde_json::Value = serde_json::from_str(&entry).unwrap();
    let (sensor, heat, interface) = (&entry["provider"]["id"], &entry["serviceDefinition"]["id"], &entry["interfaces"][0]["id"]);
    let rule =
        format!(r#"{{"consumerId":{sensor},"providerIds":[{sensor}],"serviceDefinitionIds":[{heat}],"interfaceIds":[{interface}]}}"#);
    post(&mut clients.operator.connect(authorization), "/authorization/mgmt/intracloud", &rule, 201);

    let mut subscribers: Vec<_> = (0..SUBSCRIBERS).map(|form| subscribe(&clients.sensor, event_handler, form)).collect();
    let mut publisher = clients.sensor.connect(event_handler);
    let events = events();
    for event in &events {
        publish_at_once(clients.sensor.connect(event_handler), &mut subscribers, event);
    }
    let mut publish = |times: u32| {
        for n in 0..times {
            post(&mut publisher, "/eventhandler/publish", &events[n as usize % events.len()], 200);
            subscribers.iter_mut().for_each(read_event);
            // No faster than real-time topics may be: their slots are let go so long behind a dispatch.
            std::thread::sleep(PERIOD);
        }
    };
    publish(WARM_UP_EVENTS);
    // The counter counts: this thread allocates for every request.
    assert!(allocations(this_thread(), || publish(1)) > 0);
    let counted = allocations(shard_thread(), || publish(COUNTED_EVENTS));
    runtime.block_on(server.stop());
    counted
}

/// Posts and gives the body of the answer, which comes in one piece.
fn post(client: &mut Box<dyn Client>, path: &str, body: &str, status: u16) -> String {
    client.write_all(request(path, body).as_bytes()).unwrap();
    let mut answer = [0; 8192];
    let length = client.read(&mut answer).unwrap();
    let answer = std::str::from_utf8(&answer[..length]).unwrap();
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

fn request(path: &str, body: &str) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    format!("{head}{body}")
}

/// Publishes one event [`AT_ONCE_EVENTS`] times without waiting for answers, so that as many slots are in use together.
///
/// On a busy machine a slot may still be in use when the next event comes, which then grows the buffer of a slot that was never used.
fn publish_at_once(mut publisher: Box<dyn Client>, subscribers: &mut [Box<dyn Client>], event: &str) {
    publisher.write_all(request("/eventhandler/publish", event).repeat(AT_ONCE_EVENTS).as_bytes()).unwrap();
    let answers = read_times(&mut publisher, "\r\n\r\n", AT_ONCE_EVENTS);
    // An event is refused when all slots are in use.
    let accepted = answers.matches("HTTP/1.1 200 ").count();
    assert!(accepted > 0, "{answers}");
    for subscriber in subscribers {
        read_times(subscriber, "\n\n", accepted);
    }
    std::thread::sleep(PERIOD * AT_ONCE_EVENTS as u32);
}

/// Reads until a text has come `times` times.
fn read_times(stream: &mut Box<dyn Client>, text: &str, times: usize) -> String {
    let mut received = String::new();
    let mut piece = [0; 4096];
    while received.matches(text).count() < times {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "the stream ended after {received}");
        received.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    received
}

fn subscribe(connector: &Connector, event_handler: SocketAddr, form: usize) -> Box<dyn Client> {
    let path = ["/eventhandler/subscription?eventtype=hot", "/eventhandler/events?event_type=hot"][form % 2];
    let mut stream = connector.connect(event_handler);
    write!(stream, "GET {path}&system_name=sensor&address=127.0.0.1&port=9000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    read_event(&mut stream);
    stream
}

/// Reads until an empty line ends what came: the stream's head with its comment, or an event.
fn read_event(stream: &mut Box<dyn Client>) {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while !text.ends_with(b"\n\n") {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "the stream ended");
        text.extend_from_slice(&piece[..length]);
    }
}
