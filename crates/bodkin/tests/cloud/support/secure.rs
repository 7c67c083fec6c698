//! A cloud in secure mode, and clients with certificates.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::Duration;

use bodkin_arrowhead::{common_name::CloudCommonName, name::SystemName, utc::UtcTime};
use bodkin_trust::{
    Authority, Certificate, Identity, PrivateKey, TrustDirectory,
    authority::Profile,
    base64,
    key::KeySize,
    revocation::Revoked,
    tls::{self, ServerCheck},
};
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::arrowhead::{number, service, system as system_form};
use super::cloud::{Cloud, Launch, System, system_of};
use super::http::{Answer, Connection};

/// A day.
pub const DAY: Duration = Duration::from_secs(86_400);
/// Every cloud of these tests.
pub const CLOUD: &str = "testcloud1.aitia.arrowhead.eu";
/// Systems whose identities a cloud makes itself.
const OWN_SYSTEMS: [&str; 7] = ["serviceregistry", "authorization", "orchestrator", "eventhandler", "gatekeeper", "gateway", "sysop"];

/// What takes long to make: the authorities, the core systems' keys, and one key that every client of the tests has.
struct Made {
    trust: TempDir,
    root: Authority,
    client_key: Arc<PrivateKey>,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let place = TempDir::new().expect("a temporary directory");
    let trust = TrustDirectory::new(place.path());
    // Long enough ago to have issued what has expired.
    trust.init(&cloud_name(CLOUD), tls::now().minus(100 * DAY)).expect("a cloud's authority");
    for system in OWN_SYSTEMS {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        trust.ensure_identity(&SystemName::from_stored(system), &names, tls::now(), 90 * DAY).expect("an identity");
    }
    let read = |name: &str| fs::read(place.path().join(name)).expect("it was made");
    let root = Authority::new(Identity::from_pem(&read("root.crt"), &read("root.key")).expect("the root")).expect("an authority");
    Made { trust: place, root, client_key: Arc::new(PrivateKey::generate(KeySize::Bits2048).expect("a key")) }
});

fn cloud_name(name: &str) -> CloudCommonName {
    CloudCommonName::parse(name).expect("a cloud's name")
}

/// The authority of every cloud of these tests.
pub fn authority() -> Authority {
    TrustDirectory::new(MADE.trust.path()).authority().expect("it was made")
}

/// Another cloud of the same root.
pub fn other_authority(name: &str) -> Authority {
    MADE.root.issue_cloud(&cloud_name(name), tls::now(), DAY).expect("an authority")
}

/// Whom clients trust.
pub fn anchor() -> Certificate {
    authority().certificate().clone()
}

/// The identity of `name`, a whole common name, that counts from `from` on; all have the same key.
pub fn issue(authority: &Authority, name: &str, alternative_names: &[&str], from: UtcTime, lifetime: Duration) -> Identity {
    let key = MADE.client_key.clone();
    let alternative_names = alternative_names.iter().map(|name| (*name).to_owned()).collect();
    let profile = Profile { name: name.to_owned(), alternative_names, now: from, lifetime };
    let certificate = authority.certify(&profile, &key.public_key_info()).expect("a certificate");
    Identity::new(authority.chain_of(certificate), key).expect("they belong together")
}

/// The identity of a system of the cloud.
pub fn system(name: &str) -> Identity {
    issue(&authority(), &format!("{name}.{CLOUD}"), &["localhost", "127.0.0.1"], tls::now(), DAY)
}

/// The key of every client.
pub fn client_key() -> Arc<PrivateKey> {
    MADE.client_key.clone()
}

/// The trust directory that every cloud of these tests has a copy of.
pub fn trust() -> &'static Path {
    MADE.trust.path()
}

/// Puts the trust directory of the cloud there.
pub fn put_trust(place: &Path) -> TrustDirectory {
    copy(MADE.trust.path(), place);
    TrustDirectory::new(place)
}

/// The public key of every client, as systems are registered with it.
pub fn public_key() -> String {
    base64::encode(&MADE.client_key.public_key_info())
}

/// A client with a certificate, or without.
#[derive(Clone)]
pub struct Client(Arc<ClientConfig>);

impl Client {
    /// Shows this certificate; resumes sessions where it can.
    pub fn new(identity: Option<&Identity>) -> Self {
        Self(tls::client(identity, &[anchor()], ServerCheck::HostName).expect("a configuration"))
    }

    /// The same in another cloud than that of these tests.
    pub fn believing(identity: &Identity, anchor: Certificate) -> Self {
        Self(tls::client(Some(identity), &[anchor], ServerCheck::HostName).expect("a configuration"))
    }

    /// What it is configured with.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.0.clone()
    }

    /// The system of this name.
    pub fn system(name: &str) -> Self {
        Self::new(Some(&system(name)))
    }

    /// The same, of this version of TLS only.
    pub fn only(&self, version: &'static rustls::SupportedProtocolVersion, identity: &Identity) -> Self {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(anchor().der().clone()).expect("an anchor");
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(identity.key().pkcs8().to_vec());
        let chain = identity.chain().iter().map(|certificate| certificate.der().clone()).collect();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key.into())
            .expect("an identity");
        config.alpn_protocols = vec![tls::PROTOCOL.to_vec()];
        Self(Arc::new(config))
    }

    /// Connects and does the handshake. A server of TLS 1.3 refuses a certificate behind it: that is seen by the first read.
    pub fn connect(&self, address: SocketAddr) -> io::Result<Connection> {
        let name = ServerName::from(address.ip());
        let session = ClientConnection::new(self.0.clone(), name).map_err(io::Error::other)?;
        Connection::open_with(address, |socket| {
            let mut stream = StreamOwned::new(session, socket);
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
            Ok(stream)
        })
    }

    /// One request on a new connection.
    pub fn call(&self, cloud: &Cloud, method: &str, target: &str, body: Option<&Value>) -> io::Result<Answer> {
        let bytes = body.map(|value| value.to_string().into_bytes());
        let headers: &[(&str, &str)] = if body.is_some() { &[("Content-Type", "application/json")] } else { &[] };
        self.connect(cloud.address(system_of(target)))?.request(method, target, headers, bytes.as_deref())
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub fn expect(&self, cloud: &Cloud, method: &str, target: &str, body: Option<&Value>, status: u16) -> Answer {
        let answer = self.call(cloud, method, target, body);
        answer.unwrap_or_else(|error| panic!("{method} {target}: {error}; it said: {}", cloud.stderr())).expect_status(status)
    }

    /// Why `of` does not serve it.
    #[track_caller]
    pub fn refused(&self, cloud: &Cloud, of: System) -> io::Error {
        let echo = format!("/{}/echo", of.name());
        match self.connect(cloud.address(of)).and_then(|mut connection| connection.request("GET", &echo, &[], None)) {
            Ok(answer) => panic!("{} answers {}", of.name(), answer.status),
            Err(error) => error,
        }
    }
}

/// A cloud in secure mode and its trust directory; both end when it is dropped.
pub struct SecureCloud {
    /// The cloud.
    pub cloud: Cloud,
    place: TempDir,
}

impl SecureCloud {
    /// Starts one with these flags.
    #[track_caller]
    pub fn start<const N: usize>(flags: [&str; N]) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        put_trust(&place.path().join("trust"));
        let cloud = Launch::new().secure().data(place.path()).flags(flags).start();
        Self { cloud, place }
    }

    /// The one that tests share while any of them runs.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<SecureCloud>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shared.upgrade().unwrap_or_else(|| {
            let cloud = Arc::new(Self::start([]));
            *shared = Arc::downgrade(&cloud);
            cloud
        })
    }

    /// A file of its trust directory.
    pub fn trust(&self, file: &str) -> std::path::PathBuf {
        self.place.path().join("trust").join(file)
    }

    /// Writes the list of what is revoked: these.
    pub fn revoke(&self, identities: &[&Identity]) {
        let revoked = |identity: &&Identity| Revoked { serial: identity.certificate().serial().to_vec(), since: tls::now() };
        let revoked: Vec<Revoked> = identities.iter().map(revoked).collect();
        let list = authority().revocation_list(&revoked, tls::now(), tls::now().plus(DAY)).expect("a list");
        replace(&self.trust("revoked.crl"), list.as_bytes());
    }
}

/// Replaces a file as a whole.
pub fn replace(path: &Path, content: &[u8]) {
    let beside = path.with_extension("beside");
    fs::write(&beside, content).expect("a file is written");
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).expect("rights are set");
    fs::rename(&beside, path).expect("a file is renamed");
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().is_file() {
            // With its rights; a socket of a process that runs is nothing to copy.
            fs::copy(entry.path(), target).expect("a file is copied");
        }
    }
}

/// Registers a publisher, with a service that rules can name, and gives its id and the service definition's.
#[track_caller]
pub fn register_publisher(cloud: &Cloud, publisher: &Client, name: &str) -> (i64, i64) {
    let form = service(&format!("{name}-service"), system_form(name, 1));
    let entry = publisher.expect(cloud, "POST", "/serviceregistry/register", Some(&form), 201).json();
    (number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"))
}

/// Registers a system and gives its id.
#[track_caller]
pub fn register(cloud: &Cloud, client: &Client, form: &Value) -> i64 {
    number(&client.expect(cloud, "POST", "/serviceregistry/register-system", Some(form), 201).json(), "/id")
}

/// Lets a consumer hear a publisher; gives the rule's id.
#[track_caller]
pub fn allow(cloud: &Cloud, consumer: i64, (provider, definition): (i64, i64)) -> i64 {
    let rule = json!({"consumerId": consumer, "providerIds": [provider], "serviceDefinitionIds": [definition], "interfaceIds": [2]});
    let answer = Client::system("sysop").expect(cloud, "POST", "/authorization/mgmt/intracloud", Some(&rule), 201).json();
    number(&answer, "/data/0/id")
}
