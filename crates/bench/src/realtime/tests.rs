//! Both sides against the bare relays, end to end, as threads of one process.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::thread;

use super::detour::{Detour, DetourOrder};
use super::dialect::Speech;
use super::listener::{Far, Hearing, ListenerOrder, Listeners};
use super::publisher::{Proxies, ProxyOrder, ProxyReport};
use super::relay::{Chain, Relay, RelayOrder};
use super::tally::ListenerReport;
use super::window::Window;
use super::workload::tests::small;
use super::workload::{Stamp, Workload};
use crate::event::payload::monotonic_ns;
use crate::statistics::{Latencies, Unit};

const MS: u64 = 1_000_000;

fn window() -> Window {
    let start_ns = monotonic_ns() + 10 * MS;
    Window { start_ns, measured_from_ns: start_ns + 60 * MS, end_ns: start_ns + 360 * MS, crash_ns: None }
}

fn proxies(speech: Speech, address: SocketAddr, workload: &Workload) -> Proxies {
    Proxies::connect(ProxyOrder { speech, brokers: vec![address], system: "bench".into(), workload: workload.clone(), awaits_all: false })
        .unwrap()
}

/// Runs both sides over a relay that passes everything to every subscriber.
fn relayed(workload: &Workload, far: impl FnOnce(SocketAddr) -> Option<Far>) -> (ProxyReport, ListenerReport) {
    let relay = Relay::listen(RelayOrder { subscribers: workload.subscribers(), publishers: workload.proxies().len() }).unwrap();
    let address = relay.address().unwrap();
    let relay = thread::spawn(|| relay.run());
    let (speech, brokers) = (Speech::ZmtpPubSub, vec![address]);
    let order = ListenerOrder {
        speech,
        brokers,
        system: "bench".into(),
        far: far(address),
        hearing: Hearing::default(),
        workload: workload.clone(),
    };
    let listeners = Listeners::subscribe(order).unwrap();
    let proxies = proxies(speech, address, workload);
    let window = window();
    let hearing = thread::spawn(move || listeners.hear(window));
    let published = proxies.publish(window).unwrap();
    let heard = hearing.join().unwrap().unwrap();
    relay.join().unwrap().unwrap();
    (published, heard)
}

#[test]
fn every_event_of_every_proxy_comes_once_to_whoever_hears_it() {
    let mut workload = small();
    workload.groups.iter_mut().for_each(|group| group.heard_by = vec![0, 1]);
    let (published, heard) = relayed(&workload, |_| None);
    let of = |at: usize| (heard.groups[at].streams, heard.groups[at].expected, heard.groups[at].received, heard.groups[at].duplicates);
    // 7 topics every 20 ms and one every 50 ms for 300 ms, each heard twice.
    assert_eq!((of(0), of(1)), ((14, 210, 210, 0), (2, 12, 12, 0)));
    assert_eq!((published.proxies, published.sent, published.not_sent, heard.foreign), (4, 111, 0, 0));
    assert_eq!(Latencies::from_counts(&published.lateness).count(), 3 * 15 + 6, "one for each burst");
    assert!(heard.groups.iter().all(|group| group.streams_kept == group.streams));
}

#[test]
fn what_nobody_asked_for_is_foreign() {
    let (_, heard) = relayed(&small(), |_| None);
    assert_eq!((heard.groups[0].received, heard.groups[1].received), (105, 6));
    assert!(heard.foreign >= 111, "the relay passes on what was not subscribed to");
}

#[test]
fn what_a_far_subscriber_hears_has_been_on_its_way() {
    let mut workload = small();
    workload.groups.truncate(1);
    let (end, _until_then) = UnixStream::pair().unwrap();
    let detour = |address| {
        let detour = Detour::listen(DetourOrder { brokers: vec![address] }).unwrap();
        let brokers = detour.addresses().unwrap();
        thread::spawn(|| detour.run(end));
        Some(Far { subscriber: 0, brokers })
    };
    let (published, heard) = relayed(&workload, detour);
    let latency = Latencies::from_counts(&heard.groups[0].latency);
    assert_eq!((published.sent, heard.groups[0].received, latency.count()), (105, 105, 105));
    assert!(latency.percentile(0.0, Unit::Ms) >= 5.0, "the shortest way takes as long: {}", latency.percentile(0.0, Unit::Ms));
}

#[test]
fn a_chain_of_hops_gives_everything_back() {
    let far = Chain::listen(None).unwrap();
    let near = Chain::listen(Some(far.address().unwrap())).unwrap();
    let address = near.address().unwrap();
    let hops = [thread::spawn(|| far.run()), thread::spawn(|| near.run())];
    let mut workload = small();
    workload.groups.truncate(1);
    workload.groups[0].topics = 1;
    workload.groups[0].heard_by.clear();
    workload.stamp = Stamp::Sent;
    let published = proxies(Speech::Echo { message_bytes: 100 }, address, &workload).publish(window()).unwrap();
    hops.into_iter().for_each(|hop| hop.join().unwrap().unwrap());
    assert_eq!((published.sent, Latencies::from_counts(&published.covered).count()), (15, 15));
}
