//! Events that a graph processes on their way: from a supplier's message to the subscriber of a result neither the shard nor a worker allocates anything.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{Arc, PoisonError},
};

use bodkin_arrowhead::name::SystemName;
use bodkin_broker::wire::HEADER_BYTES;
use bodkin_host::{
    HostConfig, Server, ZmtpConfig,
    graph::{DeclaredGraph, DeclaredGraphs, parse},
};
use bodkin_operators::Keys;
use bodkin_zmtp::SocketType;

use super::{
    COUNTED_EVENTS, Connector, SOURCE, WARM_UP_EVENTS, config,
    counting::{ONE_AT_A_TIME, allocations, shard_thread, thread},
    post,
    zmtp::{connect, message},
};

/// A filter on numbers, and a spectrum of bytes that shares its result with a less urgent level.
const GRAPH: &str = r#"
[graph]
name = "both"

[[supplier]]
topic = "hot"
shape = "f64"
period_ms = 1

[[supplier]]
topic = "shaking"
shape = "u8[16]"
form = "base64"
period_ms = 1

[[operator]]
name = "mean"
kind = "moving_average"
inputs = ["hot"]
window = 4

[[operator]]
name = "spectrum"
kind = "fft"
inputs = ["shaking"]
spectrum = "magnitude"

[[operator]]
name = "peak"
kind = "max"
inputs = ["spectrum"]

[[output]]
topic = "warm"
from = "mean"

[[output]]
topic = "spectra"
from = "spectrum"
form = "base64"

[[output]]
topic = "peaks"
from = "peak"
level = 1
"#;

/// An event of a supplier, and topic and length of what comes out.
struct Processed {
    event_type: &'static str,
    payload: &'static str,
    results: &'static [(&'static str, usize)],
}

/// A number, and 16 bytes.
const EVENTS: [Processed; 2] = [
    Processed { event_type: "hot", payload: "21.5", results: &[("warm", "21.5".len())] },
    Processed { event_type: "shaking", payload: "AAAAAAAAAAAAAAAAAAAAAA==", results: &[("spectra", 96), ("peaks", "0.0".len())] },
];

fn subscribe(address: std::net::SocketAddr, topic: &str) -> TcpStream {
    let mut socket = connect(address, SocketType::Sub);
    socket.write_all(&message(&[&[&[1], topic.as_bytes()].concat()])).unwrap();
    // A ping behind it, whose answer says that it is served.
    socket.write_all(b"\x04\x07\x04PING\0\0").unwrap();
    socket.read_exact(&mut [0; 7]).unwrap();
    socket
}

#[test]
fn processing_on_the_way_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let data = tempfile::tempdir().unwrap();
    let zmtp = Some(ZmtpConfig { port: 0, system: Some(SystemName::parse("sensor").unwrap()), ipc: None });
    let declared = DeclaredGraph { place: "here".into(), file: parse(GRAPH).unwrap() };
    let graphs = Arc::new(DeclaredGraphs::new(vec![declared], Keys::default(), 1 << 16).unwrap());
    let config = HostConfig { zmtp, graphs, ..config(data.path(), None) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start(&config)).unwrap();
    let address = server.zmtp.unwrap();
    post(&mut Connector(None).connect(server.addresses[0]), "/serviceregistry/register-system", SOURCE, 201);
    let mut subscribers: Vec<(&str, TcpStream)> = ["warm", "spectra", "peaks"].map(|topic| (topic, subscribe(address, topic))).into();
    let mut push = connect(address, SocketType::Push);
    let mut publish = |times: u32| {
        for n in 0..times as usize {
            let Processed { event_type, payload, results } = EVENTS[n % EVENTS.len()];
            push.write_all(&message(&[event_type.as_bytes(), payload.as_bytes()])).unwrap();
            for (topic, length) in results {
                let (_, subscriber) = subscribers.iter_mut().find(|(of, _)| of == topic).unwrap();
                let mut came = vec![0; message(&[topic.as_bytes(), &vec![0; *length], &[0; HEADER_BYTES]]).len()];
                subscriber.read_exact(&mut came).unwrap();
                assert_eq!(came[2..][..topic.len()], *topic.as_bytes());
            }
        }
    };
    publish(WARM_UP_EVENTS);
    let of_shard = allocations(shard_thread(), || publish(COUNTED_EVENTS));
    let of_worker = allocations(thread("operator-0-0"), || publish(COUNTED_EVENTS));
    runtime.block_on(server.stop());
    assert_eq!((of_shard, of_worker), (0, 0), "allocations for {COUNTED_EVENTS} events");
}
