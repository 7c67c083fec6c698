//! A small HTTP server in the tests' own process, plain or over mutual TLS, for what the bench does to a server it did not write.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::endpoint::Endpoint;
use crate::ports::held_port;
use crate::wire::Caller;

/// An answer: status and body. Status 0 closes the connection instead.
pub type Answer = (u16, String);

/// Serves every connection on a thread of its own until the test process ends; `answer` sees path and body.
pub fn serve(answer: impl Fn(&str, &str) -> Answer + Clone + Send + 'static) -> Endpoint {
    listen(move |stream| connection(stream, answer.clone()))
}

fn listen(serve: impl Fn(TcpStream) -> Option<()> + Clone + Send + 'static) -> Endpoint {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = Endpoint::resolve(&listener.local_addr().unwrap().to_string()).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    endpoint
}

/// An endpoint where nothing listens.
pub fn nobody() -> Endpoint {
    Endpoint::resolve(&format!("127.0.0.1:{}", held_port().unwrap())).unwrap()
}

/// Both ends of mutual TLS at 127.0.0.1.
pub struct Mutual {
    /// Of the server.
    pub serving: Arc<ServerConfig>,
    /// Of the client, with a session that can be resumed.
    pub calling: Arc<ClientConfig>,
}

/// New certificates of a new authority.
pub fn mutual() -> Mutual {
    let [ca, server, client] = ["ca", "server", "client"].map(|_| KeyPair::generate().unwrap());
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&ca).unwrap();
    let issuer = Issuer::new(params, &ca);
    let issue = |host: &str, key: &KeyPair| {
        let certificate = CertificateParams::new(vec![host.to_string()]).unwrap().signed_by(key, &issuer).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    };
    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let (roots, provider) = (Arc::new(roots), Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build().unwrap();
    let (chain, key) = issue("127.0.0.1", &server);
    let serving = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let serving = Arc::new(serving.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap());
    let (chain, key) = issue("client", &client);
    let calling = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let calling = Arc::new(calling.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap());
    Mutual { serving, calling }
}

/// As [`serve`] over mutual TLS; the endpoint is called as `client` with a session that can be resumed.
pub fn serve_securely(answer: impl Fn(&str, &str) -> Answer + Clone + Send + 'static) -> Endpoint {
    let Mutual { serving, calling } = mutual();
    let begin = move |stream| StreamOwned::new(ServerConnection::new(serving.clone()).unwrap(), stream);
    listen(move |stream| connection(begin(stream), answer.clone())).called_as(&Caller::Certified(calling))
}

fn connection(stream: impl Read + Write, answer: impl Fn(&str, &str) -> Answer) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_string();
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (status, text) = answer(&path, std::str::from_utf8(&body).ok()?);
        if status == 0 {
            return None;
        }
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        reader.get_mut().write_all(head.as_bytes()).ok()?;
    }
}
