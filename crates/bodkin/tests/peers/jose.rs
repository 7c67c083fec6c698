//! Tokens and two JOSE libraries, joserfc (Python) and jose4j (Java, which Arrowhead's own core systems use): they open ours,
//! we open theirs, and nobody opens what is wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use bodkin_arrowhead::authorization::token::{Grant, TokenClaims, TokenFault};
use bodkin_arrowhead::common_name::SystemCommonName;
use bodkin_arrowhead::name::{InterfaceName, ServiceDefinition};
use bodkin_arrowhead::utc::UtcTime;
use bodkin_trust::jose::{SealingKey, SigningKey, seal_claims};
use bodkin_trust::{KeySize, PrivateKey, TokenSigner, TokenVerifier, base64};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::maven;
use crate::program::python;
use crate::support::skip;

/// Names the Python that `./x test --all` has installed joserfc for.
const PYTHON_VARIABLE: &str = "BODKIN_JOSERFC";
const LIFETIME: Duration = Duration::from_secs(600);

/// The keys, in a folder that the other library reads them from.
struct Keys {
    folder: TempDir,
    provider: PrivateKey,
    authorization: PrivateKey,
    other: PrivateKey,
}

impl Keys {
    fn new() -> Self {
        let key = || PrivateKey::generate(KeySize::Bits2048).expect("a key");
        let folder = TempDir::new().expect("a temporary directory");
        let keys = Self { folder, provider: key(), authorization: key(), other: key() };
        for (name, key) in [("provider", &keys.provider), ("authorization", &keys.authorization), ("other", &keys.other)] {
            let write = |file: String, text: &str| fs::write(keys.folder.path().join(file), text).expect("a key is written");
            write(format!("{name}.pem"), &key.to_pem());
            let body = base64::encode(&key.public_key_info());
            write(format!("{name}-public.pem"), &format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"));
        }
        keys
    }

    fn verifier(&self) -> TokenVerifier {
        TokenVerifier::new(&self.provider, &base64::encode(&self.authorization.public_key_info())).expect("RSA keys")
    }
}

/// A program that opens and makes tokens.
struct Peer<'k> {
    command: Vec<String>,
    keys: &'k Keys,
}

impl Peer<'_> {
    fn run(&self, what: &str, lines: &[String]) -> Vec<String> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).arg(what).arg(self.keys.folder.path());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the peer starts");
        // Its answers are longer than a pipe holds: it must be read while it is written to.
        let mut input = process.stdin.take().expect("standard input is piped");
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = process.wait_with_output().expect("the peer ends");
        writer.join().expect("the writer does not panic").expect("the peer reads all");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    /// What it reads in tokens; `None` for those that it refuses.
    fn open(&self, tokens: &[String]) -> Vec<Option<Value>> {
        let lines = self.run("open", tokens);
        assert_eq!(lines.len(), tokens.len(), "{lines:?}");
        lines.iter().map(|line| (line != "refused").then(|| serde_json::from_str(line).expect("claims are JSON"))).collect()
    }

    /// Tokens of every kind that it can make with these claims, by the claims' name and the kind.
    fn make(&self, claims: &BTreeMap<&str, Value>) -> BTreeMap<(String, String), String> {
        let lines: Vec<String> = claims.iter().map(|(name, claims)| format!("{name} {claims}")).collect();
        let tokens = self.run("make", &lines);
        let token = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, kind, token] = words[..] else { panic!("{line}") };
            ((name.to_owned(), kind.to_owned()), token.to_owned())
        };
        tokens.iter().map(token).collect()
    }
}

fn now() -> UtcTime {
    UtcTime::from_system_time(SystemTime::now()).expect("a clock that is right")
}

fn consumer() -> SystemCommonName {
    SystemCommonName::parse("display.cloud.operator.arrowhead.eu").expect("a name")
}

fn grant() -> Grant {
    Grant {
        consumer: consumer(),
        service: ServiceDefinition::from_stored("temperature"),
        interface: InterfaceName::from_stored("HTTP-SECURE-JSON"),
    }
}

fn they_open_ours(keys: &Keys, peer: &Peer<'_>) {
    let signer = |key| TokenSigner::new(key).expect("an RSA key");
    let sealing = |key: &PrivateKey| SealingKey::new(&key.public_key_info()).expect("an RSA key");
    let issue = |authorization, provider, now| signer(authorization).issue(&grant(), &sealing(provider), now, LIFETIME).expect("a token");
    let right = issue(&keys.authorization, &keys.provider, now());
    let endless = TokenClaims { exp: None, ..TokenClaims::new("id".into(), &grant(), now(), LIFETIME) };
    let endless = seal_claims(&endless, &SigningKey::new(&keys.authorization).expect("an RSA key"), &sealing(&keys.provider));
    let tampered = |place: usize| {
        let other = if right.as_bytes()[place] == b'A' { 'B' } else { 'A' };
        format!("{}{other}{}", &right[..place], &right[place + 1..])
    };
    let points: Vec<usize> = right.match_indices('.').map(|(place, _)| place).collect();
    let wrong = [
        issue(&keys.other, &keys.provider, now()),
        issue(&keys.authorization, &keys.other, now()),
        issue(&keys.authorization, &keys.provider, now().minus(2 * LIFETIME)),
        issue(&keys.authorization, &keys.provider, now().plus(2 * LIFETIME)),
        endless.expect("a token"),
        tampered(points[0] + 10),
        tampered(points[1] + 10),
        tampered(points[2] + 10),
        tampered(points[3] + 10),
        right[..right.len() - 8].to_owned(),
        right[..points[3]].to_owned(),
    ];
    let opened = peer.open(&[&[right.clone()][..], &wrong].concat());
    let claims = keys.verifier().verify(&right, &consumer(), now()).expect("our own token counts");
    assert_eq!(opened[0], Some(serde_json::to_value(claims).expect("claims are JSON")));
    let taken: Vec<usize> = (0..wrong.len()).filter(|number| opened[number + 1].is_some()).collect();
    assert_eq!(taken, [0; 0], "these must be refused");
}

fn we_open_theirs(keys: &Keys, peer: &Peer<'_>, kinds: usize) {
    let seconds = now().unix_seconds();
    let claims = |nbf: u64, exp: u64| {
        json!({"jti": "rQ7x", "iss": "Authorization", "iat": nbf, "nbf": nbf, "exp": exp, "cid": "display.cloud.operator",
            "sid": "temperature", "iid": "HTTP-SECURE-JSON"})
    };
    let good = claims(seconds - 60, seconds + 600);
    let with = |member: &str, value: Value| {
        let mut claims = good.clone();
        claims[member] = value;
        claims
    };
    let mut endless = good.clone();
    endless.as_object_mut().expect("an object").remove("exp");
    let made = peer.make(&BTreeMap::from([
        ("good", good.clone()),
        ("expired", claims(seconds - 1200, seconds - 600)),
        ("early", claims(seconds + 600, seconds + 1200)),
        ("endless", endless),
        ("issuer", with("iss", json!("Orchestrator"))),
        ("consumer", with("cid", json!("other.cloud.operator"))),
        ("identity", with("jti", json!(""))),
    ]));
    assert_eq!(made.len(), 7 * kinds);
    let verifier = keys.verifier();
    for ((name, kind), token) in &made {
        let expected = match (name.as_str(), kind.as_str()) {
            ("good", "right") => None,
            ("expired", "right") => Some(TokenFault::Expired),
            ("early", "right") => Some(TokenFault::NotYet),
            ("endless", "right") => Some(TokenFault::Endless),
            ("issuer", "right") => Some(TokenFault::Issuer),
            ("consumer", "right") => Some(TokenFault::Consumer),
            ("identity", "right") => Some(TokenFault::Identity),
            _ => Some(TokenFault::Unreadable),
        };
        let verified = verifier.verify(token, &consumer(), now());
        assert_eq!(verified.err().map(|refused| refused.fault()), expected, "{name} {kind}");
    }
    let endless = &made[&("endless".to_owned(), "right".to_owned())];
    assert!(keys.verifier().allowing_endless().verify(endless, &consumer(), now()).is_ok());
}

fn source(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/jose").join(file).display().to_string()
}

#[test]
#[ignore = "peer: ./x test --all"]
fn joserfc_opens_our_tokens_and_we_open_its() {
    let Some(python) = python(PYTHON_VARIABLE, "joserfc", "joserfc_opens_our_tokens_and_we_open_its") else { return };
    let keys = Keys::new();
    let peer = Peer { command: vec![python, source("peer.py")], keys: &keys };
    they_open_ours(&keys, &peer);
    we_open_theirs(&keys, &peer, 13);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn jose4j_opens_our_tokens_and_we_open_its() {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match maven::build("jose", place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note("jose4j_opens_our_tokens_and_we_open_its", &reason),
    };
    let keys = Keys::new();
    let peer = Peer { command: ["java", "-cp", &class_path, "Peer"].map(str::to_owned).into(), keys: &keys };
    they_open_ours(&keys, &peer);
    we_open_theirs(&keys, &peer, 15);
}
