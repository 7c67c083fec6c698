//! What is asked of every request before its operation: is the name that it calls us by ours, and may the page that sends
//! it, if a page does, read the answer (reference 1.3, by an allow-list instead of any origin)?

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bodkin_store::{Store, leader::LeaderPlace};

use crate::{
    answer::{Answer, Permission},
    config::HostConfig,
    dashboard::follower,
    host_name::{self, OwnNames},
    http::{RawRequest, RequestReader},
    pair::Leadership,
    security::machine_name,
    seldom::Seldom,
    server::Port,
};

/// Seconds a browser may keep what a preflight told it, as upstream's.
const PREFLIGHT_AGE_S: u32 = 600;
/// Request headers that pages may send: upstream's, and those that open an event stream.
const ALLOWED_HEADERS: &str = "Origin, Content-Type, Accept, Authorization, Last-Event-ID, eventtype, traceparent, tracestate";
/// Methods that pages may use.
const ALLOWED_METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/// Before each trouble of the pair in the answer of a node that does not lead.
const TROUBLE: &str = " TROUBLE: ";
/// What a node tells that does not lead, too.
const WATCHED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];
/// Methods that change nothing: a page of any origin may send them, and does not read the answer.
const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
/// How old the leader's address may be in the answer of a standby.
const LEADER_AGE_MAX: Duration = Duration::from_secs(1);

/// The origin of a page, as browsers write it: scheme, host, and the port where it is not the scheme's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(Arc<str>);

/// A text that is no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no origin: write scheme, host and port only, such as http://localhost:3000")]
pub struct OriginError(String);

impl Origin {
    /// Takes an origin as an operator writes it. There is none for any page: with credentials that were everybody's right.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let refused = || OriginError(text.to_owned());
        let lower = text.trim().to_ascii_lowercase();
        let (scheme, authority) = lower.split_once("://").ok_or_else(refused)?;
        let is_plain = !authority.contains(['/', '?', '#', '@', '*', ' ', ',']);
        let name = host_name::name_of(authority).filter(|name| is_plain && !name.is_empty()).ok_or_else(refused)?;
        let usual = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(refused()),
        };
        let port = authority[name.len()..].trim_start_matches('.');
        let port = if port == usual || port == ":" { "" } else { port };
        Ok(Self(format!("{scheme}://{name}{port}").into()))
    }
}

/// The page that may read an answer; its origin is repeated in the answer.
pub type Reader = Option<Arc<str>>;

/// How far a request comes.
#[derive(Debug)]
pub struct Admission {
    /// Who may read the answer besides clients that are no pages of other origins.
    pub reader: Reader,
    /// The answer, where the request goes no further: a foreign name, a preflight, or what a foreign page would change.
    pub answer: Option<Box<Answer>>,
    /// True if this node does not lead its pair, which is why the request goes no further.
    pub is_standby: bool,
}

/// The checks.
pub struct Gate {
    names: OwnNames,
    origins: Vec<Origin>,
    /// Where the dashboard is served; its pages are ours.
    dashboard_port: u16,
    /// What the origin of each page of ours begins with.
    scheme: &'static str,
    /// Whether this node of the reliable pair leads; `None` of a cloud by itself.
    leadership: Option<Arc<Leadership>>,
    refused: Seldom,
    refused_pages: Seldom,
    /// Where the leader was when an answer last named it; `None` if nobody has led.
    leader: Mutex<Option<(Instant, Option<LeaderPlace>)>>,
}

impl Gate {
    /// Of a node with this configuration, whose ports are these. Where the machine tells no name of its own there is none to take.
    pub fn of(config: &HostConfig, addresses: &[SocketAddr]) -> Self {
        let machine = machine_name();
        let listen = config.listen.to_string();
        let own = [machine.as_str(), &config.domain_name, &listen].into_iter().chain(config.host_names.iter().map(String::as_str));
        let dashboard_port = addresses[Port::MONITOR].port();
        let gate = Self::new(OwnNames::new(own), config.cors_origins.clone(), dashboard_port, config.security.is_some());
        match &config.pair {
            None => gate,
            Some(pair) => gate.led_by(pair.leadership().clone()),
        }
    }

    /// Lets the pages of `origins` and of our own `dashboard_port` in.
    pub fn new(names: OwnNames, origins: Vec<Origin>, dashboard_port: u16, is_secure: bool) -> Self {
        let scheme = if is_secure { "https://" } else { "http://" };
        let (refused, refused_pages, leader) = (Seldom::default(), Seldom::default(), Mutex::default());
        Self { names, origins, dashboard_port, scheme, leadership: None, refused, refused_pages, leader }
    }

    /// Of a node of the reliable pair: while it does not lead, only those come in who watch it.
    pub fn led_by(self, leadership: Arc<Leadership>) -> Self {
        Self { leadership: Some(leadership), ..self }
    }

    /// Whether this node may take what changes something: it leads, or has no pair.
    pub fn leads(&self) -> bool {
        Leadership::may_act(self.leadership.as_deref())
    }

    /// Whether requests go further at present.
    fn takes_requests(&self) -> bool {
        self.leadership.as_ref().is_none_or(|leadership| leadership.takes_requests())
    }

    /// Checks one request to a core system.
    pub fn admit(&self, raw: &RawRequest<'_>) -> Admission {
        self.admit_watching(raw, &[])
    }

    /// Checks one request to Bodkin's own port, where a node that does not lead has a page that says so.
    pub fn admit_at_monitor(&self, raw: &RawRequest<'_>) -> Admission {
        self.admit_watching(raw, &follower::FILES)
    }

    /// Checks one request; `shown` is told by a node that does not lead, too.
    fn admit_watching(&self, raw: &RawRequest<'_>, shown: &[&str]) -> Admission {
        if !self.names.accept(raw.host) {
            if let Some(times) = self.refused.due() {
                tracing::warn!(
                    host = raw.host,
                    times,
                    "a request under a name that is not ours was refused; if it is, name it in host_names"
                );
            }
            return Admission { reader: None, answer: Some(Box::new(misdirected(raw.host))), is_standby: false };
        }
        if !self.takes_requests() && !WATCHED.contains(&raw.target) && !shown.contains(&raw.target) {
            let is_monitor = !shown.is_empty();
            return Admission { reader: None, answer: Some(Box::new(self.fenced(is_monitor))), is_standby: true };
        }
        let coded = raw.content_coding.filter(|_| !raw.body.is_empty()).map(unknown_coding);
        let Some(origin) = raw.origin else { return Admission { reader: None, answer: coded.map(Box::new), is_standby: false } };
        let reader = self.reader(origin, raw.host);
        let answer = match raw.asked_method.filter(|_| raw.method == "OPTIONS") {
            Some(method) => Some(preflight(method, reader.is_some())),
            // Not every change needs a preflight: browsers send a page's POST without a body as it is.
            None if reader.is_none() && !SAFE_METHODS.contains(&raw.method) && !self.is_own_page(origin, raw.host) => {
                Some(self.refuse_page(origin))
            }
            None => coded,
        };
        Admission { reader, answer: answer.map(Box::new), is_standby: false }
    }

    /// Adds to the answer of a standby the leader's address, if it is known. A request of Bodkin's own interface (`is_own`) gets
    /// problem details, which have the address as the member `leader`.
    ///
    /// Reads the database at most once a second.
    pub async fn standby_answer(&self, store: &Store, answer: Answer, is_own: bool) -> Answer {
        let leader = self.last_leader(store).await;
        let told = match &leader {
            Some(place) => format!("The leader was last at {}", follower::url(place, &place.host)),
            None => "The leader's address is not known here yet.".to_owned(),
        };
        let text = String::from_utf8_lossy(&answer.body);
        let (refusal, troubles) = text.split_at(text.find(TROUBLE).unwrap_or(text.len()));
        let text = format!("{refusal} This node is a standby. {told}{troubles}");
        if !is_own {
            return Answer { body: text.into_bytes(), ..answer };
        }
        let leader = leader.map(|place| ("leader".to_owned(), follower::host_and_port(&place, &place.host).into()));
        Answer { header: answer.header, ..Answer::problem_with(answer.status, &text, leader.into_iter().collect()) }
    }

    async fn last_leader(&self, store: &Store) -> Option<LeaderPlace> {
        let known = self.leader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some((at, leader)) if at.elapsed() < LEADER_AGE_MAX => leader,
            _ => {
                // A database that cannot be read is no reason to say nothing.
                let leader = store.read(|draft| draft.leader()).await.ok().flatten();
                *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), leader.clone()));
                leader
            }
        }
    }

    /// Nothing was done; clients know that by `Retry-After`, which no 503 of unknown outcome has. At Bodkin's own port the answer also
    /// says what is wrong with the pair, because `bodkin status` shows it.
    fn fenced(&self, is_monitor: bool) -> Answer {
        let has_no_leader = self.leadership.as_ref().is_some_and(|leadership| leadership.has_no_leader());
        let troubles = self.leadership.iter().filter(|_| is_monitor).flat_map(|leadership| leadership.troubles().texts());
        let text = if has_no_leader {
            "No leader of the pair is found. Ask the other node, or this one again in a moment."
        } else {
            "Another node of the pair leads, or is about to. Ask it, or this one again in a moment."
        };
        let text = text.to_owned();
        let answer = Answer::text(503, troubles.fold(text, |text, trouble| format!("{text}{TROUBLE}{trouble}.")));
        Answer { header: Some(("Retry-After", "1".to_owned())), ..answer }
    }

    fn refuse_page(&self, origin: &str) -> Answer {
        if let Some(times) = self.refused_pages.due() {
            tracing::warn!(origin, times, "a page of another origin may change nothing; if it is yours, name it in cors_origins");
        }
        foreign_page()
    }

    /// Who may read the refusal of a request that did not become whole.
    pub fn reader_of(&self, reader: &RequestReader) -> Reader {
        let (origin, host) = reader.page().filter(|(_, host)| self.names.accept(host))?;
        self.reader(origin, host)
    }

    /// The origin, if its pages may read what we answer.
    fn reader(&self, origin: &str, host: &str) -> Reader {
        let listed = self.origins.iter().find(|listed| *listed.0 == *origin).map(|listed| listed.0.clone());
        listed.or_else(|| self.is_dashboard(origin, host).then(|| origin.into()))
    }

    /// Whether an origin is our dashboard: under a name of ours, or the one under which its browser reaches us just now.
    fn is_dashboard(&self, origin: &str, host: &str) -> bool {
        let Some(authority) = origin.strip_prefix(self.scheme) else { return false };
        let (Some(name), Some((_, port))) = (host_name::name_of(authority), authority.rsplit_once(':')) else { return false };
        let is_here = || host_name::name_of(host).is_some_and(|here| here.eq_ignore_ascii_case(name));
        port.parse() == Ok(self.dashboard_port) && (self.names.contain(name) || is_here())
    }

    /// Returns true if no page but one of this very port can have sent a request: it names that origin, or it names none and changes nothing.
    pub fn is_from_own_page(&self, raw: &RawRequest<'_>) -> bool {
        match raw.origin {
            Some(origin) => self.is_own_page(origin, raw.host),
            // Browsers leave it out of a page's own reads only, and of what the address bar opens.
            None => SAFE_METHODS.contains(&raw.method),
        }
    }

    /// Whether an origin is that which is called: a page of this very port, whose browser needs no leave to read.
    fn is_own_page(&self, origin: &str, host: &str) -> bool {
        origin.strip_prefix(self.scheme).is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    }
}

/// Does not say which names are known: whoever reads it may be the attacker's page.
fn misdirected(host: &str) -> Answer {
    Answer::text(421, format!("'{host}' is no name of this server. Call it by its IP address, or start it with --host-names."))
}

/// Refuses a body that would have to be decoded first (RFC 9110, section 15.5.16).
fn unknown_coding(coding: &str) -> Answer {
    let text = format!("The content coding '{coding}' is not accepted: send the body without Content-Encoding.");
    Answer { header: Some(("Accept-Encoding", "identity".to_owned())), ..Answer::text(415, text) }
}

/// The answer to a browser that asks whether a page's request may be sent (Fetch standard, CORS-preflight). The path plays
/// no part: what is not there is told to the request itself.
fn preflight(method: &str, allowed: bool) -> Answer {
    match ALLOWED_METHODS.iter().find(|known| **known == method) {
        Some(known) if allowed => Answer { permission: Some(Box::new(Permission::Method(known))), ..Answer::empty(200) },
        Some(_) => foreign_page(),
        None => Answer::text(403, format!("Pages may use {}.", ALLOWED_METHODS.join(", "))),
    }
}

fn foreign_page() -> Answer {
    Answer::text(403, "Pages of this origin may not call. Allow them with --cors-origins.")
}

/// Appends the headers that let a page of `origin` read the answer; to a preflight also what it may send.
pub fn push_reader(out: &mut Vec<u8>, origin: &str, preflight_method: Option<&str>) {
    let mut push = |parts: &[&str]| parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    push(&["Vary: Origin\r\nVary: Access-Control-Request-Method\r\nVary: Access-Control-Request-Headers\r\n"]);
    push(&["Access-Control-Allow-Origin: ", origin, "\r\nAccess-Control-Allow-Credentials: true\r\n"]);
    if let Some(method) = preflight_method {
        push(&["Access-Control-Allow-Methods: ", method, "\r\nAccess-Control-Allow-Headers: ", ALLOWED_HEADERS]);
        push(&["\r\nAccess-Control-Max-Age: ", &PREFLIGHT_AGE_S.to_string(), "\r\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        let origins = ["http://tool.example:3000", "https://tool.example"].map(|text| Origin::parse(text).unwrap());
        Gate::new(OwnNames::new(["cloud.example"]), origins.to_vec(), 8440, false)
    }

    #[test]
    fn origins_are_taken_as_browsers_write_them() {
        let check = |text: &str, expected: &str| assert_eq!(*Origin::parse(text).unwrap().0, *expected, "{text}");
        check("http://localhost:3000", "http://localhost:3000");
        check(" HTTPS://Tool.Example:443 ", "https://tool.example");
        check("http://tool.example:80", "http://tool.example");
        check("http://[::1]:3000", "http://[::1]:3000");
        for text in
            ["*", "null", "", "tool.example", "http://", "http://a/", "http://a/b", "ftp://a", "http://a:b", "http://*", "http://u@a"]
        {
            assert!(Origin::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pages_of_the_list_and_of_our_dashboard_may_read() {
        let gate = gate();
        let reads = |origin: &str, host: &str| gate.reader(origin, host).is_some();
        let origins = ["http://tool.example:3000", "https://tool.example", "http://localhost:8440", "http://127.0.0.1:8440"];
        origins.iter().for_each(|origin| assert!(reads(origin, "127.0.0.1:8443"), "{origin}"));
        assert!(reads("http://cloud.example:8440", "127.0.0.1:8443"));
        assert!(reads("http://192.168.7.9:8440", "192.168.7.9:8443"), "the dashboard under the address that its browser uses");
        let foreign = [
            "null",
            "http://192.168.7.9:8440",
            "http://tool.example",
            "https://localhost:8440",
            "http://localhost:8441",
            "http://localhost",
            "http://evil.example:8440",
            "http://localhost:8440.evil.example",
            "http://tool.example:3000.evil.example",
        ];
        foreign.iter().for_each(|origin| assert!(!reads(origin, "127.0.0.1:8443"), "{origin}"));
    }

    #[test]
    fn pages_of_others_change_nothing() {
        let status = |gate: &Gate, method: &'static str, origin: Option<&'static str>| {
            let raw = RawRequest { method, origin, host: "127.0.0.1:8440", ..RawRequest::default() };
            gate.admit(&raw).answer.map(|answer| answer.status)
        };
        let (plain, secure) = (gate(), Gate::new(OwnNames::default(), Vec::new(), 8440, true));
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE"] {
            for origin in ["http://evil.example", "null", "https://127.0.0.1:8440", "http://127.0.0.1:8443", "http://127.0.0.1:84400"] {
                assert_eq!(status(&plain, method, Some(origin)), Some(403), "{method} {origin}");
            }
            assert_eq!(status(&secure, method, Some("http://127.0.0.1:8440")), Some(403), "{method}");
            for origin in [None, Some("http://127.0.0.1:8440"), Some("http://tool.example:3000")] {
                assert_eq!(status(&plain, method, origin), None, "{method} {origin:?}");
            }
            assert_eq!(status(&secure, method, Some("https://127.0.0.1:8440")), None, "{method}");
        }
        for method in SAFE_METHODS {
            assert_eq!(status(&plain, method, Some("http://evil.example")), None, "{method}");
        }
    }
}
