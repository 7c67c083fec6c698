//! A service that a cloud offers to others: a sensor that tells a temperature by HTTPS, and notes who has asked for it.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::thread;
use std::time::Duration;

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{
    Certificate, Identity, TrustDirectory, base64,
    tls::{self, ClientCertificate, PeerCheck},
};
use rustls::{ServerConnection, StreamOwned};

use super::http::find;
use super::secure::DAY;
use super::side::Side;

/// What it tells.
pub const BODY: &str = "23.5 degrees";
/// What it has recorded, which it tells at [`RECORD`]: more than all that holds bytes on their way takes at once.
pub const RECORD_BYTES: usize = 24 * 1024 * 1024;
/// Where.
pub const RECORD: &str = "/record";
/// Where it tells the same as anywhere, and ends the connection without a word behind it.
pub const LAST: &str = "/last";

/// The sensor of a cloud. Its threads end with the process of the tests.
pub struct Heat {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    name: &'static str,
    callers: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Heat {
    /// Serves whoever shows a certificate of its own cloud, or of one of these authorities.
    pub fn start(side: &Side, at: IpAddr, others: &[Certificate]) -> Self {
        Self::start_as("sensor", Duration::ZERO, side, at, others)
    }

    /// The same by another name, and with so much time for each answer.
    pub fn start_as(name: &'static str, delay: Duration, side: &Side, at: IpAddr, others: &[Certificate]) -> Self {
        let directory = TrustDirectory::new(side.data.join("trust"));
        let system = SystemName::parse(name).expect("a name");
        let identity = directory.ensure_identity(&system, &[at.to_string()], tls::now(), DAY).expect("an identity");
        let anchors = [&[directory.anchor().expect("an authority")], others].concat();
        let config = tls::server(&identity, &anchors, ClientCertificate::Required, PeerCheck::default()).expect("a configuration");
        let listener = TcpListener::bind((at, 0)).expect("a port");
        let (address, callers) = (listener.local_addr().expect("an address"), Arc::<Mutex<Vec<String>>>::default());
        let (noted, connections) = (callers.clone(), Arc::<AtomicUsize>::default());
        let counted = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Relaxed);
                let (config, noted) = (config.clone(), noted.clone());
                thread::spawn(move || serve(stream, ServerConnection::new(config).expect("a session"), &noted, delay));
            }
        });
        Self { address, identity, name, callers, connections }
    }

    /// Registers it, secured by token, and lets another cloud use it.
    #[track_caller]
    pub fn offer(&self, side: &Side, to: &str) {
        let (address, port, key) = (self.address.ip(), self.address.port(), base64::encode(&self.identity.key().public_key_info()));
        side.done(&format!(
            "service add heat --system {} --address {address} --port {port} --uri /heat --secure TOKEN --authentication-info {key}",
            self.name
        ));
        let clouds = side.done("cloud list");
        let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == to).expect("it is known")["id"].clone();
        side.done(&format!("auth intercloud add --cloud {id} --provider {} --service heat", self.name));
    }

    /// The names of those who have asked until now, in their order.
    pub fn callers(&self) -> Vec<String> {
        self.callers.lock().expect("no test panics here").clone()
    }

    /// The connections that it has had.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

/// The recorded bytes, of which no two stretches are alike that are not a multiple of 251 apart.
pub fn record() -> Vec<u8> {
    (0..RECORD_BYTES).map(|at| (at % 251) as u8 ^ (at >> 16) as u8).collect()
}

/// Answers the requests of a connection, to the last.
fn serve(stream: TcpStream, session: ServerConnection, callers: &Mutex<Vec<String>>, delay: Duration) {
    let mut stream = StreamOwned::new(session, stream);
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        heard.extend_from_slice(&piece[..count]);
        while let Some(end) = find(&heard, b"\r\n\r\n") {
            let [is_for_record, is_last] = [RECORD, LAST].map(|path| heard.starts_with(format!("GET {path} ").as_bytes()));
            heard.drain(..end + 4);
            let shown = stream.conn.peer_certificates().and_then(|chain| chain.first()).expect("it was asked for");
            let caller = Certificate::from_der(shown).expect("a certificate").told_name().to_owned();
            callers.lock().expect("no test panics here").push(caller);
            thread::sleep(delay);
            let body = if is_for_record { record() } else { BODY.as_bytes().to_vec() };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
            if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() || is_last {
                return;
            }
        }
    }
}
