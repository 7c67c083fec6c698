use std::{net::IpAddr, sync::LazyLock};

use bodkin_arrowhead::common_name::CloudCommonName;
use bodkin_trust::TrustDirectory;
use tempfile::TempDir;

use super::*;
use crate::{host_name::OwnNames, security::SecurityConfig};

const MINUTE: Duration = Duration::from_secs(60);

/// A cloud's directory and certificates, which take long to make.
static CLOUD: LazyLock<(TempDir, TrustDirectory, Arc<Security>)> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    let directory = TrustDirectory::new(place.path());
    directory.init(&CloudCommonName::parse("plant.example.arrowhead.eu").unwrap(), bodkin_trust::tls::now()).unwrap();
    let config = SecurityConfig {
        directory: directory.clone(),
        key_stores: None,
        device_authorities: None,
        cloud: None,
        operator: None,
        verify_host_names: false,
        host_names: Vec::new(),
    };
    let security = Security::open(config).unwrap();
    (place, directory, security)
});

/// A process that has just begun, and an operator.
struct Bench {
    sign_in: SignIn,
    gate: Gate,
    operator: Peer,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let (_, directory, security) = &*CLOUD;
        let gate = Gate::new(OwnNames::new(["cloud.example"]), Vec::new(), 8440, true);
        let operator = Peer::issued_for_test(directory, "sysop");
        Self { sign_in: SignIn::new(security.clone(), 8440), gate, operator, now: Instant::now() }
    }

    fn link(&self) -> Token {
        self.sign_in.make_link(&self.operator, Some(&local()), MINUTE, self.now).unwrap()
    }

    fn enter(&self, token: &Token, now: Instant) -> Result<String, SignInError> {
        self.sign_in.enter(token.reveal(), Some(&local()), now).map(|(cookie, _)| cookie)
    }

    /// Looks the cookie of a request with this method and origin up.
    fn worth(&self, cookie: &str, method: &str, origin: Option<&str>, sender: &Sender, now: Instant) -> &'static str {
        let pair = cookie.split(';').next().unwrap();
        let raw = RawRequest { method, origin, host: "127.0.0.1:8440", cookie: Some(pair), ..RawRequest::default() };
        match self.sign_in.session(&raw, Some(sender), &self.gate, now) {
            Cookie::None => "none",
            Cookie::Session(session) => {
                assert_eq!(session.peer.caller.system().unwrap().as_str(), "sysop");
                "session"
            }
            Cookie::Foreign => "foreign",
        }
    }
}

fn sender(peer: &str, local: &str) -> Sender {
    let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
    Sender { peer: ip(peer), local: ip(local), forwarded: Vec::new(), forwarded_for: Vec::new() }
}

fn local() -> Sender {
    sender("127.0.0.1", "127.0.0.1")
}

#[test]
fn link_signs_in_once() {
    let bench = Bench::new();
    let token = bench.link();
    let cookie = bench.enter(&token, bench.now).unwrap();
    assert!(cookie.starts_with("__Host-bodkin-8440=") && cookie.ends_with("; Path=/; Max-Age=28800; Secure; HttpOnly; SameSite=Strict"));
    assert!(!cookie.contains(token.reveal()), "the cookie is another secret than the link's");
    assert_eq!(bench.worth(&cookie, "GET", None, &local(), bench.now), "session");
    assert_eq!(bench.enter(&token, bench.now), Err(SignInError::Unknown));
    for other in ["", "0", &"0".repeat(64)] {
        assert_eq!(bench.sign_in.enter(other, Some(&local()), bench.now).unwrap_err(), SignInError::Unknown, "{other}");
    }
}

#[test]
fn links_and_sessions_expire() {
    let bench = Bench::new();
    let (early, late) = (bench.link(), bench.link());
    let second = Duration::from_secs(1);
    let cookie = bench.enter(&early, bench.now + MINUTE - second).unwrap();
    assert_eq!(bench.enter(&late, bench.now + MINUTE), Err(SignInError::Unknown));
    let end = bench.now + MINUTE - second + SESSION_LIFETIME;
    assert_eq!(bench.worth(&cookie, "GET", None, &local(), end - second), "session");
    assert_eq!(bench.worth(&cookie, "GET", None, &local(), end), "none");
}

#[test]
fn link_is_for_this_machine() {
    let bench = Bench::new();
    let forwarded = Sender { forwarded_for: vec!["192.0.2.1".into()], ..local() };
    let token = bench.link();
    for other in [sender("192.0.2.1", "192.0.2.7"), sender("192.0.2.1", "127.0.0.1"), forwarded] {
        let made = bench.sign_in.make_link(&bench.operator, Some(&other), MINUTE, bench.now);
        assert_eq!(made.unwrap_err(), LinkError::Elsewhere);
        assert_eq!(bench.sign_in.enter(token.reveal(), Some(&other), bench.now).unwrap_err(), SignInError::Elsewhere);
    }
    let cookie = bench.enter(&token, bench.now).expect("a refused browser does not use the link up");
    assert_eq!(bench.worth(&cookie, "GET", None, &sender("192.0.2.1", "192.0.2.7"), bench.now), "none");
    for own in [sender("::1", "::1"), sender("192.0.2.7", "192.0.2.7"), sender("::ffff:127.0.0.1", "::ffff:127.0.0.1")] {
        assert_eq!(bench.worth(&cookie, "GET", None, &own, bench.now), "session");
    }
}

#[test]
fn changes_need_the_dashboards_own_origin() {
    let bench = Bench::new();
    let cookie = bench.enter(&bench.link(), bench.now).unwrap();
    let worth = |method: &str, origin: Option<&str>| bench.worth(&cookie, method, origin, &local(), bench.now);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        assert_eq!(worth(method, Some("https://127.0.0.1:8440")), "session", "{method}");
        for origin in [None, Some("https://127.0.0.1:8443"), Some("http://127.0.0.1:8440"), Some("null"), Some("https://evil.example")] {
            assert_eq!(worth(method, origin), "foreign", "{method} {origin:?}");
        }
    }
    assert_eq!(worth("GET", None), "session");
    assert_eq!(worth("GET", Some("https://127.0.0.1:9000")), "foreign", "another port of this host is the same site");
}

#[test]
fn pending_links_and_sessions_are_bounded() {
    let bench = Bench::new();
    let links: Vec<Token> = (0..LINKS_MAX).map(|_| bench.link()).collect();
    let refused = bench.sign_in.make_link(&bench.operator, Some(&local()), MINUTE, bench.now);
    assert_eq!(refused.unwrap_err(), LinkError::TooMany);
    bench.enter(&links[0], bench.now).unwrap();
    bench.link();
    let bench = Bench::new();
    let cookies: Vec<String> = (0..=SESSIONS_MAX).map(|_| bench.enter(&bench.link(), bench.now).unwrap()).collect();
    assert_eq!(bench.worth(&cookies[0], "GET", None, &local(), bench.now), "none", "the oldest ends");
    assert!(cookies[1..].iter().all(|cookie| bench.worth(cookie, "GET", None, &local(), bench.now) == "session"));
    assert_eq!(bench.sign_in.end_all(bench.now), SESSIONS_MAX);
    assert_eq!(bench.worth(&cookies[1], "GET", None, &local(), bench.now), "none");
}

#[test]
fn revoked_certificate_ends_links_and_sessions() {
    let bench = Bench::new();
    let (used, pending) = (bench.link(), bench.link());
    let cookie = bench.enter(&used, bench.now).unwrap();
    CLOUD.2.revoke([bench.operator.serial().unwrap()].into());
    assert_eq!(bench.worth(&cookie, "GET", None, &local(), bench.now), "none");
    assert_eq!(bench.enter(&pending, bench.now), Err(SignInError::Certificate));
}

#[test]
fn link_needs_a_certificate() {
    let bench = Bench::new();
    let refused = bench.sign_in.make_link(&Peer::anonymous(), Some(&local()), MINUTE, bench.now);
    assert_eq!(refused.unwrap_err(), LinkError::NoCertificate);
}

#[test]
fn cookie_is_found_by_its_whole_name() {
    assert_eq!(value_of("a=1; __Host-bodkin-8440=x; b=2", "__Host-bodkin-8440"), Some("x"));
    assert_eq!(value_of("__Host-bodkin-84401=x", "__Host-bodkin-8440"), None);
    assert_eq!(value_of("", "__Host-bodkin-8440"), None);
}
