//! The dashboard's page for a browser without a certificate, the link of `bodkin dashboard`, and the session that it begins.

use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::pair::nodes::Pair;
use crate::support::cloud::{BINARY, System};
use crate::support::http::Answer;
use crate::support::patience::eventually;
use crate::support::secure::{CLOUD, Client, SecureCloud, system};
use serde_json::{Value, json};

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
/// Bytes of a live stream in the seconds of a test, with much to spare.
const STREAM_BYTES_MAX: u64 = 4 << 20;
const LINKS: &str = "/api/v1/dashboard/links";

/// One request of a browser that shows no certificate.
fn ask(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
    let mut connection = Client::new(None).connect(address).expect("a handshake");
    connection.request(method, target, headers, None).expect("an answer")
}

fn browse(secure: &SecureCloud, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
    ask(secure.cloud.address(System::Monitor), method, target, headers)
}

/// Where a link of the operator leads.
#[track_caller]
fn link(secure: &SecureCloud, form: &Value) -> String {
    let made = Client::system("sysop").expect(&secure.cloud, "POST", LINKS, Some(form), 201).json();
    made["path"].as_str().expect("a path").to_owned()
}

/// The cookie of a browser that has opened a link, as it sends it.
#[track_caller]
fn signed_in(secure: &SecureCloud) -> String {
    let answer = browse(secure, "GET", &link(secure, &json!({})), &[BROWSER]).expect_status(200);
    answer.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned()
}

#[track_caller]
fn audited(secure: &SecureCloud, kind: &str) -> String {
    Client::system("sysop").expect(&secure.cloud, "GET", &format!("/api/v1/audit?kind={kind}"), None, 200).text().to_owned()
}

/// A denial is answered before its entry is written.
fn is_denied(secure: &SecureCloud, why: &str) -> bool {
    eventually(|| audited(secure, "denial").contains(why))
}

#[test]
fn browser_without_certificate_gets_page() {
    let secure = SecureCloud::shared();
    let page = browse(&secure, "GET", "/", &[BROWSER]).expect_status(401);
    assert_eq!(page.header("content-type"), Some("text/html;charset=UTF-8"));
    for told in [CLOUD, "bodkin dashboard", "ssh -L", "--p12", "shown no certificate"] {
        assert!(page.text().contains(told), "{told} is not in {}", page.text());
    }
    for accept in ["*/*", "application/json", "text/html;q=0"] {
        let answer = browse(&secure, "GET", "/", &[("Accept", accept)]).expect_status(401);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{accept}");
    }
    let posted = browse(&secure, "POST", "/api/v1/topics", &[BROWSER]).expect_status(401);
    assert_eq!(posted.header("content-type"), Some("application/problem+json"));
}

#[test]
fn link_signs_browser_in_once() {
    let secure = SecureCloud::start([]);
    let path = link(&secure, &json!({}));
    let entered = browse(&secure, "GET", &path, &[BROWSER]).expect_status(200);
    let cookie = entered.header("set-cookie").expect("a cookie").to_owned();
    let port = secure.cloud.address(System::Monitor).port();
    assert!(cookie.starts_with(&format!("__Host-bodkin-{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=28800; Secure; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(entered.text().contains("Signed in as sysop") && entered.header("location").is_none(), "{}", entered.text());

    let pair = cookie.split(';').next().expect("a pair");
    for target in ["/", "/dashboard.js", "/api/v1/overview", "/serviceregistry/mgmt/systems"] {
        browse(&secure, "GET", target, &[("Cookie", &format!("other=1; {pair}")), BROWSER]).expect_status(200);
    }
    browse(&secure, "GET", &path, &[BROWSER]).expect_status(401);
    browse(&secure, "GET", &path, &[]).expect_status(401);
    browse(&secure, "POST", &link(&secure, &json!({})), &[]).expect_status(405);
    for token in ["", "00", &"0".repeat(64)] {
        let page = browse(&secure, "GET", &format!("/dashboard/enter?token={token}"), &[BROWSER]).expect_status(401);
        assert!(page.text().contains("This link was used before, has expired, or never existed."), "{}", page.text());
    }
    browse(&secure, "GET", "/api/v1/overview", &[("Cookie", &format!("{pair}0"))]).expect_status(401);

    let secret = path.split_once("token=").expect("a token").1;
    assert!(is_denied(&secure, "never existed"));
    let (changes, denials) = (audited(&secure, "change"), audited(&secure, "denial"));
    for told in ["POST /api/v1/dashboard/links", "GET /dashboard/enter?token=(left out)"] {
        assert!(changes.contains(told), "{told} is not in {changes}");
    }
    assert!(changes.contains(&format!("sysop.{CLOUD}")) && !format!("{changes}{denials}").contains(secret));
}

#[test]
fn link_expires() {
    let secure = SecureCloud::shared();
    let path = link(&secure, &json!({"expiresInSeconds": 1}));
    let until = Instant::now() + Duration::from_millis(1_050);
    std::thread::sleep(until - Instant::now());
    browse(&secure, "GET", &path, &[BROWSER]).expect_status(401);
    for seconds in [0, 61] {
        let form = json!({"expiresInSeconds": seconds});
        Client::system("sysop").expect(&secure.cloud, "POST", LINKS, Some(&form), 400);
    }
}

/// A proxy on this machine forwards for a browser elsewhere; the address of the connection itself is tested in `host::dashboard`.
#[test]
fn link_is_for_this_machine() {
    let secure = SecureCloud::start([]);
    let path = link(&secure, &json!({}));
    browse(&secure, "GET", &path, &[("X-Forwarded-For", "192.0.2.1"), BROWSER]).expect_status(403);
    let cookie = signed_in(&secure);
    browse(&secure, "GET", "/api/v1/overview", &[("Cookie", &cookie), ("Forwarded", "for=192.0.2.1")]).expect_status(401);
    let mut operator = Client::system("sysop").connect(secure.cloud.address(System::Monitor)).expect("a handshake");
    let answer = operator.request("POST", LINKS, &[("X-Forwarded-For", "192.0.2.1")], None).expect("an answer").expect_status(403);
    assert!(answer.text().contains("on the cloud's own machine only"), "{}", answer.text());
    assert!(is_denied(&secure, "on the cloud's own machine only"));
}

#[test]
fn changes_by_cookie_need_own_origin() {
    let secure = SecureCloud::start(["--cors-origins", "https://tool.example"]);
    let (cookie, address) = (signed_in(&secure), secure.cloud.address(System::Monitor));
    let own = format!("https://{address}");
    let remove = |origin: Option<&str>| {
        let origin = origin.map(|origin| ("Origin", origin));
        let headers: Vec<(&str, &str)> = [("Cookie", cookie.as_str())].into_iter().chain(origin).collect();
        browse(&secure, "DELETE", "/api/v1/topics?event_type=NONE", &headers).status
    };
    let elsewhere = format!("https://{}", secure.cloud.address(System::ServiceRegistry));
    for origin in [None, Some("https://evil.example"), Some("https://tool.example"), Some(elsewhere.as_str()), Some("null")] {
        assert_eq!(remove(origin), 403, "{origin:?}");
    }
    assert_eq!(remove(Some(&own)), 404, "there is no such topic, and the dashboard may say so");
    assert!(is_denied(&secure, "a page of another origin, or none, used the operator's session"));
    // A link would extend the session's time.
    let refused = browse(&secure, "POST", LINKS, &[("Cookie", &cookie), ("Origin", &own)]).expect_status(403);
    assert!(refused.text().contains("bodkin dashboard"), "{}", refused.text());
}

#[test]
fn links_are_for_the_operator() {
    let secure = SecureCloud::shared();
    Client::system("display").expect(&secure.cloud, "POST", LINKS, None, 403);
    browse(&secure, "POST", LINKS, &[]).expect_status(401);
}

#[test]
fn revocation_and_sign_out_end_sessions() {
    let secure = SecureCloud::start([]);
    let operator = system("sysop");
    let made = Client::new(Some(&operator)).expect(&secure.cloud, "POST", LINKS, Some(&json!({})), 201).json();
    let entered = browse(&secure, "GET", made["path"].as_str().expect("a path"), &[BROWSER]).expect_status(200);
    let revoked = entered.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let kept = signed_in(&secure);
    let status = |cookie: &str| browse(&secure, "GET", "/api/v1/overview", &[("Cookie", cookie)]).status;
    assert_eq!([&revoked, &kept].map(|cookie| status(cookie)), [200, 200]);
    secure.revoke(&[&operator]);
    assert!(eventually(|| status(&revoked) == 401), "the session outlives its certificate");
    assert_eq!(status(&kept), 200);
    let stdout = String::from_utf8(bodkin(&secure, &["dashboard", "--sign-out"]).stdout).expect("text");
    assert_eq!((stdout.trim(), status(&kept)), ("sessions ended: 1", 401));
}

/// A live stream is one request, and ends with the session all the same.
#[test]
fn live_stream_ends_with_session() {
    let secure = SecureCloud::start([]);
    let cookie = signed_in(&secure);
    let mut connection = Client::new(None).connect(secure.cloud.address(System::Monitor)).expect("a handshake");
    connection.send_request("GET", "/api/v1/live?of=/api/v1/overview", &[("Cookie", &cookie)], None).expect("it is sent");
    assert_eq!(connection.read_head().expect("a head").status, 200);
    bodkin(&secure, &["dashboard", "--sign-out"]);
    let mut rest = Vec::new();
    connection.wait_at_most(Duration::from_secs(10)).expect("a time limit");
    // An end, whether TLS was closed or cut; a stream that lasts runs into the time limit or the size limit.
    let ended = connection.transport().take(STREAM_BYTES_MAX).read_to_end(&mut rest);
    let is_over = ended.as_ref().map_or_else(|error| error.kind() == ErrorKind::UnexpectedEof, |bytes| (*bytes as u64) < STREAM_BYTES_MAX);
    assert!(is_over, "the stream outlives the session: {ended:?}");
}

#[test]
fn standby_signs_nobody_in() {
    let (_pair, _witness, standby, primary) = Pair::secure("").begin();
    let operator = Client::system("sysop");
    let made = primary.call_by(&operator, System::Monitor, "POST", LINKS, Some(&json!({}))).expect("an answer").expect_status(201).json();
    let path = made["path"].as_str().expect("a path");
    ask(standby.address(System::Monitor), "GET", path, &[BROWSER]).expect_status(503);
    standby.call_by(&operator, System::Monitor, "POST", LINKS, None).expect("an answer").expect_status(503);
    ask(primary.address(System::Monitor), "GET", path, &[BROWSER]).expect_status(200);
}

#[test]
fn command_prints_link() {
    let secure = SecureCloud::start([]);
    let output = bodkin(&secure, &["dashboard", "--valid-s", "30"]);
    let told = String::from_utf8(output.stdout).expect("text");
    let url = told.lines().next().expect("a link");
    let path = url.strip_prefix(&format!("https://{}", secure.cloud.address(System::Monitor))).unwrap_or_else(|| panic!("{told}"));
    assert!(told.contains("valid once, for 30 s"), "{told}");
    browse(&secure, "GET", path, &[BROWSER]).expect_status(200);
    let opened = bodkin(&secure, &["dashboard", "--open"]);
    assert!(!opened.status.success() && String::from_utf8_lossy(&opened.stderr).contains("on a terminal only"));
}

fn bodkin(secure: &SecureCloud, words: &[&str]) -> Output {
    let data = secure.trust("").ancestors().nth(1).expect("the data").to_owned();
    let mut command = Command::new(BINARY);
    command.args(words).env("BODKIN_DATA", data).env("BODKIN_MONITOR", secure.cloud.address(System::Monitor).to_string());
    command.output().expect("the binary starts")
}
