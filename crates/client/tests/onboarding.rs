//! A new system's first call: only the cloud that its secret names is told the secret.

use std::{sync::LazyLock, time::Duration};

use bodkin_arrowhead::common_name::{CloudCommonName, SystemCommonName};
use bodkin_client::{CallError, Limits, onboard};
use bodkin_trust::{
    Authority, Fingerprint, Profile,
    onboarding::{OnboardingSecret, SecretValue},
    tls::{self, ClientCertificate, PeerCheck},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;

const DAY: Duration = Duration::from_secs(86_400);

static CLOUD: LazyLock<Authority> = LazyLock::new(|| {
    let root = Authority::root(tls::now(), DAY).unwrap();
    root.issue_cloud(&CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap(), tls::now(), DAY).unwrap()
});

fn secret(anchor: Fingerprint) -> OnboardingSecret {
    OnboardingSecret { grant: 1, value: SecretValue::generate().unwrap(), anchor }
}

/// A server with the certificate of `system`; gives its address, and the bodies that it is sent.
async fn server(system: &str, status: &str, body: &str) -> (String, mpsc::UnboundedReceiver<String>) {
    let name = SystemCommonName::parse(&format!("{system}.cloud.operator.arrowhead.eu")).unwrap();
    let identity = CLOUD.issue(&Profile::system(&name, &["127.0.0.1".to_owned()], tls::now(), DAY)).unwrap();
    let anchors = [CLOUD.certificate().clone()];
    let config = tls::server(&identity, &anchors, ClientCertificate::Optional, PeerCheck::default()).unwrap();
    let (acceptor, listener) = (TlsAcceptor::from(config), TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
    let address = listener.local_addr().unwrap().to_string();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (told, bodies) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let (mut read, mut block) = (Vec::new(), [0; 4096]);
            while !read.ends_with(b"}") {
                match stream.read(&mut block).await {
                    Ok(bytes @ 1..) => read.extend_from_slice(&block[..bytes]),
                    _ => break,
                }
            }
            if !read.is_empty() {
                let _ = told.send(String::from_utf8_lossy(&read).into_owned());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    (address, bodies)
}

#[tokio::test]
async fn the_cloud_that_the_secret_names_is_asked() {
    let answer = r#"{"systemName":"sensor-7","certificate":"PEM","notAfter":"2031-01-01T00:00:00Z"}"#;
    let (address, mut bodies) = server("serviceregistry", "201 Created", answer).await;
    let secret = secret(CLOUD.certificate().fingerprint());
    let onboarded = onboard(&address, Limits::default(), &secret, Some("sensor-7"), "CSR").await.unwrap();
    assert_eq!((onboarded.system_name.as_str(), onboarded.certificate.as_str()), ("sensor-7", "PEM"));
    let asked = bodies.recv().await.unwrap();
    assert!(asked.starts_with("POST /api/v1/onboarding ") && asked.contains(&*secret.reveal()) && asked.contains("CSR"), "{asked}");
}

#[tokio::test]
async fn nobody_else_is_told_the_secret() {
    let (of_cloud, mut told_cloud) = server("serviceregistry", "201 Created", "{}").await;
    let (of_system, mut told_system) = server("sensor-1", "201 Created", "{}").await;
    let elsewhere = secret(Fingerprint([7; 32]));
    let here = secret(CLOUD.certificate().fingerprint());
    for (address, secret, word) in [(&of_cloud, &elsewhere, "secret names"), (&of_system, &here, "core system")] {
        let refused = onboard(address, Limits::default(), secret, None, "CSR").await.unwrap_err();
        assert!(matches!(&refused, CallError::Tls { why, .. } if why.contains(word)), "{refused}");
    }
    assert!(told_cloud.try_recv().is_err() && told_system.try_recv().is_err());
}

#[tokio::test]
async fn a_refusal_is_told() {
    let problem = r#"{"type":"about:blank","title":"Not granted","status":401,"detail":"Show a secret that counts."}"#;
    let (address, _bodies) = server("serviceregistry", "401 Unauthorized", problem).await;
    let refused = onboard(&address, Limits::default(), &secret(CLOUD.certificate().fingerprint()), None, "CSR").await.unwrap_err();
    assert!(refused.is_denied() && refused.to_string().contains("Show a secret that counts."), "{refused}");
}
