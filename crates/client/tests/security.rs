//! Calls over TLS, against a server of this file's own: who is believed, who is not, and what is said then.

use std::{net::SocketAddr, sync::OnceLock, time::Duration};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    utc::UtcTime,
};
use bodkin_client::{CallError, Connection, CoreSystems, EventForm, Limits, Monitor, Security};
use bodkin_trust::{
    Authority, Certificate, Identity, Profile,
    tls::{self, ClientCertificate, PeerCheck, ServerCheck},
};
use http::{Method, StatusCode};
use rustls::HandshakeKind;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

const DAY: Duration = Duration::from_secs(86_400);
const HERE: &str = "127.0.0.1";

/// Two clouds under one root, made once: keys take their time.
struct World {
    root: Certificate,
    own: Authority,
    other: Authority,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        // Long enough for systems' certificates of other days.
        let (since, life) = (tls::now().minus(30 * DAY), 60 * DAY);
        let root = Authority::root(since, life).unwrap();
        let cloud = |name: &str| root.issue_cloud(&CloudCommonName::parse(name).unwrap(), since, life).unwrap();
        let (own, other) = (cloud("own.test.arrowhead.eu"), cloud("other.test.arrowhead.eu"));
        World { root: root.certificate().clone(), own, other }
    })
}

impl World {
    fn anchors(&self) -> [Certificate; 1] {
        [self.own.certificate().clone()]
    }

    /// A system of the own cloud, as a client trusts it.
    fn client(&self) -> Security {
        Security::new(Some(&issue(&self.own, "display", &[], tls::now())), &self.anchors()).unwrap()
    }
}

fn issue(cloud: &Authority, system: &str, hosts: &[&str], now: UtcTime) -> Identity {
    let name = SystemCommonName::parse(&format!("{system}.{}", cloud.certificate().common_name().unwrap())).unwrap();
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    cloud.issue(&Profile::system(&name, &hosts, now, DAY)).unwrap()
}

/// Answers every request on every connection with the name in the client's certificate, and tells how each handshake went.
struct Server {
    address: SocketAddr,
    handshakes: mpsc::UnboundedReceiver<Result<HandshakeKind, String>>,
}

impl Server {
    async fn of(identity: &Identity) -> Self {
        Self::answering(identity, |name| answer(&name)).await
    }

    async fn answering(identity: &Identity, answer: impl Fn(String) -> String + Clone + Send + 'static) -> Self {
        let config = tls::server(identity, &world().anchors(), ClientCertificate::Required, PeerCheck::default()).unwrap();
        let acceptor = TlsAcceptor::from(config);
        let listener = TcpListener::bind((HERE, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (told, handshakes) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer, told) = (acceptor.clone(), answer.clone(), told.clone());
                tokio::spawn(async move {
                    match acceptor.accept(stream).into_fallible().await {
                        Ok(mut stream) => {
                            // Not every test listens.
                            let _ = told.send(Ok(stream.get_ref().1.handshake_kind().unwrap()));
                            let name = caller(&stream);
                            while read_request(&mut stream).await {
                                stream.write_all(answer(name.clone()).as_bytes()).await.unwrap();
                            }
                        }
                        Err((error, mut stream)) => {
                            let _ = told.send(Err(error.to_string()));
                            // What the client has still to say would reset the connection before it has read the alert.
                            let mut rest = Vec::new();
                            let _ = stream.shutdown().await;
                            let _ = stream.read_to_end(&mut rest).await;
                        }
                    }
                });
            }
        });
        Self { address, handshakes }
    }

    async fn asked_by(&self, security: &Security, system: &str) -> Result<String, CallError> {
        let answer = Connection::secure(self.address, limits(), security, system).send(Method::GET, "/", None).await?;
        assert_eq!(answer.status, StatusCode::OK);
        Ok(String::from_utf8(answer.body.to_vec()).unwrap())
    }

    /// What the call is refused with; nothing was done.
    #[track_caller]
    fn why(asked: Result<String, CallError>) -> String {
        match asked.unwrap_err() {
            CallError::Tls { why, .. } => why,
            other => panic!("{other}"),
        }
    }
}

fn limits() -> Limits {
    Limits { answer_timeout: Duration::from_secs(10), ..Limits::default() }
}

fn caller(stream: &TlsStream<TcpStream>) -> String {
    let certificate = stream.get_ref().1.peer_certificates().unwrap().first().unwrap();
    Certificate::from_der(certificate).unwrap().common_name().unwrap().to_owned()
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Reads a head, and a body that comes with it; gives whether there was one.
async fn read_request(stream: &mut TlsStream<TcpStream>) -> bool {
    let mut bytes = [0; 4096];
    let mut filled = 0;
    while !bytes[..filled].windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut bytes[filled..]).await {
            Ok(read @ 1..) => filled += read,
            _ => return false,
        }
    }
    true
}

#[tokio::test]
async fn both_sides_know_who_the_other_is() {
    let server = Server::of(&issue(&world().own, "serviceregistry", &[HERE], tls::now())).await;
    let answered = server.asked_by(&world().client(), "ServiceRegistry").await.unwrap();
    assert_eq!(answered, "display.own.test.arrowhead.eu");
    let monitor = Monitor::secure(server.address, limits(), &world().client());
    assert!(monitor.is_ready().await.unwrap(), "any core system may serve Bodkin's own port");
}

#[tokio::test]
async fn a_server_of_another_name_or_cloud_is_not_asked() {
    let world = world();
    let server = Server::of(&issue(&world.own, "authorization", &[HERE], tls::now())).await;
    let why = Server::why(server.asked_by(&world.client(), "serviceregistry").await);
    assert_eq!(why, "it is authorization.own.test.arrowhead.eu, but serviceregistry was expected there: check the address");

    // A root that both clouds lead to says nothing about which of them it is.
    let security = Security::new(Some(&issue(&world.own, "display", &[], tls::now())), std::slice::from_ref(&world.root)).unwrap();
    let server = Server::of(&issue(&world.other, "serviceregistry", &[HERE], tls::now())).await;
    let why = Server::why(server.asked_by(&security, "serviceregistry").await);
    assert!(why.contains("serviceregistry.other.test.arrowhead.eu, of another cloud than own.test.arrowhead.eu"), "{why}");
}

#[tokio::test]
async fn a_server_whose_certificate_does_not_count_is_not_asked() {
    let world = world();
    let (now, ago, ahead) = (tls::now(), tls::now().minus(2 * DAY), tls::now().plus(2 * DAY));
    let cases = [
        (issue(&world.other, "serviceregistry", &[HERE], now), "leads to no authority that is trusted here"),
        (issue(&world.own, "serviceregistry", &[HERE], ago), "has expired"),
        (issue(&world.own, "serviceregistry", &[HERE], ahead), "does not count yet"),
        (issue(&world.own, "serviceregistry", &["10.9.8.7"], now), "10.9.8.7. Call it by one of these"),
    ];
    for (identity, part) in cases {
        let why = Server::why(Server::of(&identity).await.asked_by(&world.client(), "serviceregistry").await);
        assert!(why.contains(part), "{why}");
    }
}

#[tokio::test]
async fn the_host_is_not_looked_at_where_that_is_asked_for() {
    let world = world();
    let server = Server::of(&issue(&world.own, "serviceregistry", &["10.9.8.7"], tls::now())).await;
    let me = issue(&world.own, "display", &[], tls::now());
    let security = Security::with_check(Some(&me), &world.anchors(), ServerCheck::ChainOnly).unwrap();
    assert!(server.asked_by(&security, "serviceregistry").await.is_ok());
    let why = Server::why(server.asked_by(&security, "orchestrator").await);
    assert!(why.contains("but orchestrator was expected"), "{why}");
}

#[tokio::test]
async fn a_client_that_is_refused_is_told_what_to_do() {
    let world = world();
    let mut server = Server::of(&issue(&world.own, "serviceregistry", &[HERE], tls::now())).await;
    let nobody = Security::new(None, &world.anchors()).unwrap();
    let why = Server::why(server.asked_by(&nobody, "serviceregistry").await);
    assert!(why.contains("it asks for a certificate: give one (--cert, or --trust)"), "{why}");

    let stranger = Security::new(Some(&issue(&world.other, "display", &[], tls::now())), std::slice::from_ref(&world.root)).unwrap();
    let why = Server::why(server.asked_by(&stranger, "serviceregistry").await);
    assert!(why.contains("of another cloud than other.test.arrowhead.eu"), "{why}");

    let late = Security::new(Some(&issue(&world.own, "display", &[], tls::now().minus(2 * DAY))), &world.anchors()).unwrap();
    let why = Server::why(server.asked_by(&late, "serviceregistry").await);
    assert!(why.contains("our certificate, display.own.test.arrowhead.eu, has expired"), "{why}");

    assert!(server.handshakes.recv().await.unwrap().is_err());
}

#[tokio::test]
async fn where_one_side_speaks_no_tls_both_ways_are_told() {
    let server = Server::of(&issue(&world().own, "serviceregistry", &[HERE], tls::now())).await;
    let error = Connection::new(server.address, limits()).send(Method::GET, "/", None).await.unwrap_err();
    assert!(error.to_string().contains("where no certificate is found name one: --data, --trust or --cert"), "{error}");

    let listener = TcpListener::bind((HERE, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let error = Connection::secure(address, limits(), &world().client(), "serviceregistry").send(Method::GET, "/", None).await.unwrap_err();
    assert!(error.to_string().contains("It may be a cloud in insecure mode"), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_made_again_resumes_its_session() {
    let closing = |name: String| format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{name}", name.len());
    let mut server = Server::answering(&issue(&world().own, "serviceregistry", &[HERE], tls::now()), closing).await;
    let connection = Connection::secure(server.address, limits(), &world().client(), "serviceregistry");
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
        connection.send(Method::GET, "/", None).await.unwrap();
        assert_eq!(server.handshakes.recv().await.unwrap(), Ok(expected));
    }
    let why = Server::why(server.asked_by(&world().client(), "orchestrator").await);
    assert!(why.contains("but orchestrator was expected"), "{why}");
}

#[tokio::test]
async fn core_systems_are_found_and_events_come_over_tls() {
    let world = world();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let handler =
        Server::answering(&issue(&world.own, "eventhandler", &[HERE], tls::now()), move |name| format!("{head}event: T\ndata: {name}\n\n"))
            .await;
    let port = handler.address.port();
    let found = format!(
        r#"{{"serviceQueryData":[{{"id":1,"serviceDefinition":{{"id":1,"serviceDefinition":"x"}},"provider":{{"id":1,"systemName":"core",
            "address":"{HERE}","port":{port}}},"serviceUri":"/x","secure":"CERTIFICATE","version":1,"interfaces":[]}}],"unfilteredHits":1}}"#
    );
    let registry = Server::answering(&issue(&world.own, "serviceregistry", &[HERE], tls::now()), move |_| answer(&found)).await;
    let cloud = CoreSystems::discover_securely(registry.address, limits(), &world.client()).await.unwrap();
    let mut events = cloud.events("T", EventForm::Payload, None).await.unwrap();
    assert_eq!(events.next().await.unwrap().data, "display.own.test.arrowhead.eu");
}
