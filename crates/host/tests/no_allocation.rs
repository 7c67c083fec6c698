//! From a publish request's bytes to the subscribers' sockets the shard allocates nothing, once its buffers have grown.

#![allow(unsafe_code)] // A counting allocator has to be one; it only counts and passes on.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use bodkin_arrowhead::{caller::Caller, common_name::CloudCommonName, json, publication::PublishForm};
use bodkin_host::{EventLogLimits, HostConfig, Limits, Server, route::PUBLISH};

/// Counts the allocations of one thread.
struct Counting;

/// The thread whose allocations count; 0 is none.
static THREAD: AtomicI32 = AtomicI32::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    let counted = THREAD.load(SeqCst);
    if counted != 0 && counted == nix::unistd::gettid().as_raw() {
        ALLOCATIONS.fetch_add(1, SeqCst);
    }
}

// SAFETY: every call is passed on to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WARM_UP_EVENTS: u32 = 200;
const COUNTED_EVENTS: u32 = 2000;
const SUBSCRIBERS: usize = 3;

#[test]
fn publishing_to_streams_allocates_nothing() {
    let data = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = HostConfig {
        data: data.path().to_owned(),
        listen: "127.0.0.1".parse().unwrap(),
        domain_name: "127.0.0.1".into(),
        ports: [0; 5],
        naming: Default::default(),
        address_detection: None,
        jobs: Default::default(),
        ping_timeout: Duration::from_secs(1),
        limits: Limits::default(),
        event_log: Some(EventLogLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) }),
        durable_event_types: Vec::new(),
        log_book: Default::default(),
        log_entries_max: 100,
        host_names: Vec::new(),
        cors_origins: Vec::new(),
        orchestrator: Default::default(),
        token_lifetimes: Default::default(),
    };
    let server = runtime.block_on(Server::start(&config)).unwrap();
    let [registry, .., event_handler, _] = server.addresses;
    let source = r#"{"systemName":"sensor","address":"127.0.0.1","port":9000}"#;
    let mut client = TcpStream::connect(registry).unwrap();
    post(&mut client, "/serviceregistry/register-system", source, 201);

    let mut subscribers: Vec<TcpStream> = (0..SUBSCRIBERS).map(|form| subscribe(event_handler, form)).collect();
    let mut publisher = TcpStream::connect(event_handler).unwrap();
    let payloads = [r#"21.5"#, r#"{\"value\":21.5,\n\"unit\":\"\u00b0C\"}"#];
    let events =
        payloads.map(|payload| format!(r#"{{"eventType":"Hot","source":{source},"metaData":{{"unit":"C"}},"payload":"{payload}"}}"#));
    let mut publish = |times: u32| {
        for n in 0..times {
            post(&mut publisher, "/eventhandler/publish", &events[n as usize % events.len()], 200);
            subscribers.iter_mut().for_each(read_event);
        }
    };
    publish(WARM_UP_EVENTS);
    // The counter counts: this thread allocates for every request.
    THREAD.store(nix::unistd::gettid().as_raw(), SeqCst);
    publish(1);
    THREAD.store(0, SeqCst);
    assert!(ALLOCATIONS.swap(0, SeqCst) > 0);
    THREAD.store(shard_thread(), SeqCst);
    publish(COUNTED_EVENTS);
    THREAD.store(0, SeqCst);
    assert_eq!(ALLOCATIONS.load(SeqCst), 0, "allocations for {COUNTED_EVENTS} events");
    runtime.block_on(server.stop());
    a_certified_publisher_costs_none_either(&events);
}

/// Whether a certificate's name is the source's is asked for each event.
fn a_certified_publisher_costs_none_either(events: &[String]) {
    let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
    let [sensor, other] = ["sensor", "other"].map(|name| Caller::certified(&format!("{name}.{cloud}"), &cloud));
    let may = |caller: &Caller, event: &str| {
        let form: PublishForm<'_> = json::parse_object(event).unwrap();
        PUBLISH.admit(caller).and_then(|admitted| admitted.permit(form)).is_ok()
    };
    THREAD.store(nix::unistd::gettid().as_raw(), SeqCst);
    let allowed = events.iter().all(|event| may(&sensor, event));
    let allocations = ALLOCATIONS.load(SeqCst);
    let denied = events.iter().all(|event| !may(&other, event));
    THREAD.store(0, SeqCst);
    assert!(allowed && denied);
    assert_eq!(allocations, 0, "allocations for {} events", events.len());
    assert!(ALLOCATIONS.load(SeqCst) > 0, "a denial is told in words");
}

/// The shard's thread id, by its name.
fn shard_thread() -> i32 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let shard = tasks.into_iter().find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "shard-0"));
    shard.unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap()
}

fn post(client: &mut TcpStream, path: &str, body: &str, status: u16) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    client.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = [0; 8192];
    let length = client.read(&mut answer).unwrap();
    let answer = std::str::from_utf8(&answer[..length]).unwrap();
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
}

fn subscribe(event_handler: SocketAddr, form: usize) -> TcpStream {
    let path = ["/eventhandler/subscription?eventtype=hot", "/eventhandler/events?event_type=hot"][form % 2];
    let mut stream = TcpStream::connect(event_handler).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    read_event(&mut stream);
    stream
}

/// Reads until an empty line ends what came: the stream's head with its comment, or an event.
fn read_event(stream: &mut TcpStream) {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while !text.ends_with(b"\n\n") {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "the stream ended");
        text.extend_from_slice(&piece[..length]);
    }
}
