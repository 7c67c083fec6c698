//! From a message's frames to the subscribers' sockets the ZMTP port allocates nothing, whatever it came by.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, PoisonError},
};

use bodkin_arrowhead::name::SystemName;
use bodkin_broker::wire::HEADER_BYTES;
use bodkin_host::{HostConfig, Server, ZmtpConfig};
use bodkin_zmtp::{ClientSecurity, ClientSettings, Connection, Event, Limits, Metadata, Random, SocketType};

use super::{
    COUNTED_EVENTS, Connector, PATIENCE, SOURCE, WARM_UP_EVENTS, config,
    counting::{ONE_AT_A_TIME, allocations, shard_thread},
    post, read_event,
};

const SUBSCRIBERS: usize = 3;
const EVENT_TYPE: &[u8] = b"Hot";
/// The second needs escapes as JSON.
const PAYLOADS: [&[u8]; 2] = [b"21.5", b"{\"value\":21.5,\n\"unit\":\"C\"}"];

/// A connection behind its handshake, for frames without boxes.
pub fn connect(address: SocketAddr, socket_type: SocketType) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let settings = ClientSettings { limits: Limits::default(), metadata: Metadata::of(socket_type), security: ClientSecurity::Null };
    let mut out = Vec::new();
    let mut connection = Connection::client(Arc::new(settings), Random::new(&mut [0; Random::OCTETS]), &mut out);
    loop {
        socket.write_all(&std::mem::take(&mut out)).unwrap();
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        if connection.receive(&mut byte, &mut out).unwrap().event == Some(Event::Ready) {
            return socket;
        }
    }
}

pub fn message(frames: &[&[u8]]) -> Vec<u8> {
    let (last, others) = frames.split_last().unwrap();
    let frame = |more: u8, payload: &[u8]| [&[more, u8::try_from(payload.len()).unwrap()], payload].concat();
    others.iter().map(|payload| frame(1, payload)).chain([frame(0, last)]).collect::<Vec<_>>().concat()
}

#[test]
fn publishing_by_zmtp_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let data = tempfile::tempdir().unwrap();
    let zmtp = Some(ZmtpConfig { port: 0, system: Some(SystemName::parse("sensor").unwrap()), ipc: None });
    let config = HostConfig { zmtp, ..config(data.path(), None) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start(&config)).unwrap();
    let [registry, _, _, event_handler, ..] = server.addresses[..] else { panic!("four core systems are everywhere") };
    let address = server.zmtp.unwrap();
    let plain = Connector(None);
    post(&mut plain.connect(registry), "/serviceregistry/register-system", SOURCE, 201);

    let subscriber = |_| {
        let mut socket = connect(address, SocketType::Sub);
        socket.write_all(&message(&[b"\x01hot"])).unwrap();
        // A ping behind it, whose answer says that it is served.
        socket.write_all(b"\x04\x07\x04PING\0\0").unwrap();
        socket.read_exact(&mut [0; 7]).unwrap();
        socket
    };
    let mut subscribers: Vec<_> = (0..SUBSCRIBERS).map(subscriber).collect();
    let mut stream = plain.connect(event_handler);
    write!(stream, "GET /eventhandler/subscription?eventtype=hot HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    read_event(&mut stream);
    let (mut push, mut req, mut http) =
        (connect(address, SocketType::Push), connect(address, SocketType::Req), plain.connect(event_handler));
    let by_http = format!(r#"{{"eventType":"Hot","source":{SOURCE},"payload":"21.5"}}"#);
    let reply = message(&[b"", b"200", b""]);
    let mut publish = |times: u32| {
        for n in 0..times as usize {
            let payload = PAYLOADS[n % PAYLOADS.len()];
            let payload = match n % 3 {
                0 => {
                    push.write_all(&message(&[EVENT_TYPE, payload])).unwrap();
                    payload
                }
                1 => {
                    req.write_all(&message(&[b"", EVENT_TYPE, payload])).unwrap();
                    let mut came = vec![0; reply.len()];
                    req.read_exact(&mut came).unwrap();
                    assert_eq!(came, reply);
                    payload
                }
                _ => {
                    post(&mut http, "/eventhandler/publish", &by_http, 200);
                    PAYLOADS[0]
                }
            };
            let mut came = vec![0; message(&[b"hot", payload, &[0; HEADER_BYTES]]).len()];
            for subscriber in &mut subscribers {
                subscriber.read_exact(&mut came).unwrap();
                assert_eq!(came[2..5], *b"hot");
                assert_eq!(came[7..][..payload.len()], *payload);
            }
            read_event(&mut stream);
        }
    };
    publish(WARM_UP_EVENTS);
    let counted = allocations(shard_thread(), || publish(COUNTED_EVENTS));
    runtime.block_on(server.stop());
    assert_eq!(counted, 0, "allocations for {COUNTED_EVENTS} events");
}
