use std::{fs, io::Write, net::TcpListener, os::unix::fs::PermissionsExt, sync::LazyLock, time::Duration};

use bodkin_arrowhead::common_name::CloudCommonName;
use bodkin_trust::{
    Authority, Profile,
    file::write_private,
    tls::{ClientCertificate, PeerCheck, server},
};
use rustls::ServerConnection;
use tempfile::TempDir;

use super::{
    super::{Connection, NatsServer},
    *,
};

const DAY: Duration = Duration::from_secs(86_400);
const SETTINGS: CertificateSettings = CertificateSettings { certificate: "certificate_file", key: "certificate_key_file" };

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let name = CloudCommonName::parse("one.test.arrowhead.eu").expect("a name");
    Authority::root(now().minus(9 * DAY), 99 * DAY).and_then(|root| root.issue_cloud(&name, now().minus(9 * DAY), 99 * DAY)).expect("a CA")
});
static IDENTITY: LazyLock<Identity> = LazyLock::new(|| issue(now()));

/// An identity of `edge-7` that is valid for a day.
fn issue(from: UtcTime) -> Identity {
    let profile = Profile { name: "edge-7".to_owned(), alternative_names: Vec::new(), now: from, lifetime: DAY };
    AUTHORITY.issue(&profile).expect("a certificate")
}

/// The files of an identity.
struct Place(TempDir);

impl Place {
    fn with(identity: &Identity) -> Self {
        let place = Self(TempDir::new().expect("a directory"));
        place.put(identity);
        place
    }

    fn put(&self, identity: &Identity) {
        let CertificateFiles { certificate, key } = self.files();
        write_private(&key, identity.key().to_pem().as_bytes()).expect("written");
        write_private(&certificate, identity.chain_to_pem().as_bytes()).expect("written");
    }

    fn files(&self) -> CertificateFiles {
        CertificateFiles { certificate: self.0.path().join("edge.pem"), key: self.0.path().join("edge.key") }
    }

    fn tls(&self) -> Result<NatsTls, NatsTlsError> {
        NatsTls::new(vec![AUTHORITY.certificate().clone()], Some(self.files()), SETTINGS)
    }
}

#[test]
fn configuration_is_made_again_only_for_other_files() {
    let place = Place::with(&IDENTITY);
    let tls = place.tls().expect("files");
    let config = || tls.load().expect("files").0;
    let first = config();
    assert!(Arc::ptr_eq(&first, &config()));
    place.put(&issue(now()));
    let second = config();
    assert!(!Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &config()));
}

#[test]
fn unusable_file_is_reported_with_setting_and_remedy() {
    let place = Place::with(&IDENTITY);
    let tls = place.tls().expect("files");
    let CertificateFiles { certificate, key } = place.files();
    let other = issue(now());
    let garbage = |path| write_private(path, b"nothing").expect("written");
    let cases: [(&dyn Fn(), &str, &str); 6] = [
        (&|| fs::remove_file(&certificate).expect("removed"), "certificate_file: ", "put the file there"),
        (&|| fs::remove_file(&key).expect("removed"), "certificate_key_file: ", "put the file there"),
        (&|| garbage(&certificate), "certificate_file: ", "; replace the file"),
        (&|| garbage(&key), "certificate_key_file: ", "; replace the file"),
        (&|| fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("set"), "certificate_key_file: ", "chmod 600"),
        (
            &|| write_private(&key, other.key().to_pem().as_bytes()).expect("written"),
            "certificate_key_file: ",
            "does not belong to the certificate of edge-7; replace the file",
        ),
    ];
    for (damage, setting, remedy) in cases {
        damage();
        for error in [tls.load().map(drop).expect_err(remedy), place.tls().map(drop).expect_err(remedy)] {
            let error = error.to_string();
            assert!(error.starts_with(setting) && error.contains(remedy), "{error}");
            assert!(error.contains("/edge."), "the path is named: {error}");
        }
        place.put(&IDENTITY);
        tls.load().expect("the files are repaired");
    }
}

#[test]
fn certificate_out_of_date_is_used() {
    for from in [now().minus(3 * DAY), now().plus(3 * DAY)] {
        let place = Place::with(&issue(from));
        assert!(place.tls().is_ok(), "the server decides");
    }
}

fn alert(alert: AlertDescription) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Refusal::without_certificate(rustls::Error::AlertReceived(alert)))
}

#[test]
fn refusal_is_explained_with_reason_and_remedy() {
    let denied = || io::Error::other(Fault::Denied("'Authorization Violation'".to_owned()));
    let presented = |certificate| Presented { settings: SETTINGS, certificate };
    let file = || PathBuf::from("/edge.pem");
    let valid = presented(Some((file(), IDENTITY.certificate().clone())));
    let expired = presented(Some((file(), issue(now().minus(3 * DAY)).certificate().clone())));
    let early = presented(Some((file(), issue(now().plus(3 * DAY)).certificate().clone())));
    let none = presented(None);
    for (presented, error, words) in [
        (&valid, alert(AlertDescription::UnknownCA), "its issuer one.test.arrowhead.eu is not in the server's ca_file"),
        (&valid, alert(AlertDescription::BadCertificate), "its issuer one.test.arrowhead.eu is not in the server's ca_file"),
        (&valid, alert(AlertDescription::CertificateRevoked), "it is revoked"),
        (&valid, alert(AlertDescription::CertificateExpired), "not by the server's; correct the clocks"),
        (&valid, denied(), "user: \"CN=edge-7\""),
        (&expired, alert(AlertDescription::CertificateExpired), "it has expired at"),
        (&expired, io::ErrorKind::ConnectionReset.into(), "it has expired at"),
        (&early, alert(AlertDescription::CertificateExpired), "it is not valid before"),
        (&none, alert(AlertDescription::CertificateRequired), "set certificate_file and certificate_key_file"),
    ] {
        let told = presented.explain(error).to_string();
        assert!(told.contains(words), "{told}");
    }
    for (presented, error) in [
        (&valid, io::ErrorKind::ConnectionReset.into()),
        (&none, denied()),
        (&expired, alert(AlertDescription::InternalError)),
        (&expired, io::ErrorKind::TimedOut.into()),
    ] {
        let told = error.to_string();
        assert_eq!(presented.explain(error).to_string(), told, "the certificate is not the reason");
    }
}

/// A server of TLS 1.3 refuses the certificate after the handshake, and closes. Only writes follow.
#[test]
fn refusal_is_found_by_a_write_that_fails() {
    let profile =
        Profile { name: "hub".to_owned(), alternative_names: vec!["127.0.0.1".to_owned()], now: now().minus(DAY / 2), lifetime: DAY };
    let identity = AUTHORITY.issue(&profile).expect("a certificate");
    let other = Authority::root(now().minus(DAY / 2), DAY).expect("a CA");
    let config = server(&identity, &[other.certificate().clone()], ClientCertificate::Required, PeerCheck::default()).expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.write_all(b"INFO {}\r\n").expect("it is read");
        let mut session = ServerConnection::new(config).expect("a session");
        while session.complete_io(&mut socket).is_ok() {}
    });
    let place = Place::with(&IDENTITY);
    let (tls, poll) = (place.tls().expect("files"), mio::Poll::new().expect("a poll"));
    let hub = NatsServer { host: "127.0.0.1".to_owned(), port, is_tls: true };
    let mut connection = Connection::open(&hub, Some(&tls), poll.registry()).expect("the handshake ends");
    serving.join().expect("the server ends");
    let error = loop {
        connection.out().extend_from_slice(&[b'x'; 4096]);
        if let Err(error) = connection.write() {
            break connection.explain(error).to_string();
        }
    };
    assert!(error.contains("its issuer one.test.arrowhead.eu is not in the server's ca_file"), "{error}");
}
