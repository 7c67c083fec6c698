//! Thousands of connections that say nothing, on the data plane's port and on one of the control plane's; and thousands at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::Signal;

use super::living;
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::http::Connection;
use crate::support::patience::eventually;
use crate::support::sse::EventStream;

/// Idle connections, where the system lets a process have so many.
const CROWD_MAX: usize = 15_000;
/// Descriptors that this process and the cloud need for everything else.
const SPARE_DESCRIPTORS: usize = 1_000;
/// Requests whose median is compared.
const REQUESTS: usize = 101;
/// How many times as long a request may take beside the crowd, at the median.
pub const SLOWDOWN_MAX: u32 = 3;
/// What a loaded machine may add to either median.
const NOISE: Duration = Duration::from_millis(5);

/// The descriptors of this process are enough for one crowd at a time.
pub fn one_crowd() -> MutexGuard<'static, ()> {
    static CROWD: Mutex<()> = Mutex::new(());
    CROWD.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn crowd_size() -> usize {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of descriptors is known");
    CROWD_MAX.min(usize::try_from(soft).unwrap_or(usize::MAX).saturating_sub(SPARE_DESCRIPTORS))
}

/// The median time of one request and its answer.
pub fn median(mut request: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let begun = Instant::now();
            request();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[REQUESTS / 2]
}

/// What `system` does for those who do ask, again and again on kept connections.
struct Asking {
    connection: Connection,
    stream: Option<EventStream>,
    published: usize,
}

impl Asking {
    fn new(cloud: &Cloud, of: System) -> Self {
        let stream =
            (of == System::EventHandler).then(|| EventStream::open(cloud.address(of), "/eventhandler/subscription?eventtype=crowd", &[]));
        Self { connection: cloud.connect(of), stream, published: 0 }
    }

    fn ask(&mut self) {
        let headers = [("Content-Type", "application/json")];
        match &self.stream {
            Some(stream) => {
                let body = event("crowd", system("crowd", 1), &self.published.to_string()).to_string();
                let answer = self.connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes()));
                answer.expect("an answer").expect_status(200);
                self.published += 1;
                stream.wait_for(self.published);
            }
            None => {
                let body = "{\"serviceDefinitionRequirement\":\"crowd\"}";
                let answer = self.connection.request("POST", "/serviceregistry/query", &headers, Some(body.as_bytes()));
                answer.expect("an answer").expect_status(200);
            }
        }
    }
}

#[test]
fn thousands_of_idle_connections_slow_nobody_and_one_more_than_the_limit_is_told() {
    let (_crowd, size) = (one_crowd(), crowd_size());
    // The crowd, the connection that asks, its stream, and one of another kind.
    let limit = (size + 3).to_string();
    for of in [System::EventHandler, System::ServiceRegistry] {
        let cloud =
            Launch::new().flags(["--connections-max", &limit, "--client-connections-max", &limit, "--idle-timeout-ms", "600000"]).start();
        cloud.register(&service("crowd", system("crowd", 1)));
        let mut asking = Asking::new(&cloud, of);
        let alone = median(|| asking.ask());
        let mut crowd: Vec<Connection> = (0..size).map(|number| open(&cloud, of, number)).collect();
        let beside = median(|| asking.ask());
        assert!(beside <= alone * SLOWDOWN_MAX + NOISE, "{} takes {beside:?} beside {size} idle ones, {alone:?} alone", of.name());
        if let Some(stream) = &asking.stream {
            assert_eq!(stream.count(), 2 * REQUESTS);
        }
        fill_and_overflow(&cloud, of, &mut crowd);
        // The crowd leaves, and its places are free again.
        drop(crowd);
        assert!(eventually(|| answers(&cloud, of)), "{} did not recover", of.name());
    }
}

/// The system completes a connection when there is room at a socket that listens, and drops it when there is none; a cloud that is
/// stopped accepts none meanwhile.
#[test]
fn more_connections_at_once_than_one_socket_holds_find_room_on_either_plane() {
    const TEST: &str = "more_connections_at_once_than_one_socket_holds_find_room_on_either_plane";
    let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("the limit of a socket's queue is told");
    let one_socket: usize = limit.trim().parse().expect("a number");
    let (_crowd, size) = (one_crowd(), one_socket + one_socket / 2);
    if size > crowd_size() {
        return crate::support::skip::note(TEST, &format!("a socket holds {one_socket}, and a process has no descriptors for more"));
    }
    let cloud = Launch::new().start();
    for of in [System::EventHandler, System::ServiceRegistry] {
        cloud.signal(Signal::SIGSTOP);
        let crowd: Vec<Connection> = (0..size).map(|number| open(&cloud, of, number)).collect();
        cloud.signal(Signal::SIGCONT);
        drop(crowd);
        assert!(eventually(|| answers(&cloud, of)), "{} did not recover", of.name());
    }
}

#[track_caller]
fn open(cloud: &Cloud, of: System, number: usize) -> Connection {
    Connection::open(cloud.address(of)).unwrap_or_else(|error| panic!("{} idle connection {number}: {error}", of.name()))
}

/// Whether one more connection is served.
fn answers(cloud: &Cloud, of: System) -> bool {
    status(cloud, of) == Some(200)
}

fn status(cloud: &Cloud, of: System) -> Option<u16> {
    let mut connection = Connection::open(cloud.address(of)).ok()?;
    connection.request("GET", &living(of), &[("Connection", "close")], None).ok().map(|answer| answer.status)
}

/// Opens connections until one is refused, which is told with 503; those that are in go on being served.
fn fill_and_overflow(cloud: &Cloud, of: System, crowd: &mut Vec<Connection>) {
    let refused = (0..100).find_map(|number| {
        crowd.push(open(cloud, of, number));
        status(cloud, of).filter(|status| *status != 200)
    });
    assert_eq!(refused, Some(503), "{}: beyond the limit it is told", of.name());
    let first = crowd[0].request("GET", &living(of), &[], None).expect("an answer");
    assert_eq!(first.status, 200, "{}: who is in is served", of.name());
    // The other plane has its own limit.
    let other = if of == System::EventHandler { System::ServiceRegistry } else { System::EventHandler };
    assert!(answers(cloud, other), "{} is not served while {} is full", other.name(), of.name());
}
