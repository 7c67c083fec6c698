//! Every client command in secure mode, in the directory of the cloud: with nothing said but the port offset it acts as the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::cloud::{BINARY, Cloud, Launch};
use crate::support::double::Double;
use crate::support::ports::{HeldOffset, held_offset};

/// Commands of which each must end with exit code 0, in this order. `-> name` keeps the id of what it prints, which `{name}` stands
/// for afterwards; `{provider}` is a port where somebody answers, `{monitor}` Bodkin's own.
const BY_OPERATOR: &[&str] = &[
    "status",
    "service add heat --system sensor --address 127.0.0.1 --port {provider} --uri /heat -> heat",
    "service list --definition heat",
    "service list --state",
    "service show {heat}",
    "service update {heat} --metadata unit=celsius",
    "service replace {heat} heat --system sensor --address 127.0.0.1 --port {provider} --uri /heat --metadata unit=kelvin",
    "service query heat --metadata unit=kelvin --ping",
    "service test {heat}",
    "service definition add cold",
    "service definition list",
    "service definition show cold",
    "service definition rename cold colder",
    "service definition remove colder",
    "service interface add HTTP-SECURE-XML",
    "service interface list",
    "service interface show http-secure-xml",
    "service interface rename HTTP-SECURE-XML HTTP-SECURE-CBOR",
    "service interface remove HTTP-SECURE-CBOR",
    "system add display --address 127.0.0.1 --port 1",
    "system list",
    "system show display",
    "system update display --metadata room=7",
    "system replace display --name display --address 127.0.0.1 --port 2",
    "system test sensor",
    "auth add --consumer display --provider sensor --service heat -> rule",
    "auth list",
    "auth show {rule}",
    "auth test --consumer display --service heat",
    "auth explain --consumer display --service heat",
    "auth access --caller sysop --path /serviceregistry/mgmt",
    "auth intercloud add --cloud 1 --provider sensor --service heat -> intercloud",
    "auth intercloud list",
    "auth intercloud show {intercloud}",
    "auth intercloud test --cloud bodkin/local --provider sensor --service heat",
    "auth intercloud remove {intercloud}",
    "orchestrate heat --consumer display --explain",
    "rule add --consumer display --service heat --provider sensor -> entry",
    "rule list",
    "rule list --consumer display --service heat",
    "rule show {entry}",
    "rule move {entry} 1",
    "rule test --consumer display --service heat",
    "orchestrate heat --store --interface HTTP-INSECURE-JSON --consumer display",
    "rule remove {entry}",
    "auth remove {rule}",
    // The operator is a system too: it publishes and listens as itself.
    "service add notes --system sysop --address 127.0.0.1 --port 3",
    "auth add --consumer sysop --provider sysop --service notes",
    "event publish NOTE something --system sysop",
    "event replay NOTE --since 0",
    "event tail NOTE --since 0 --count 1",
    "event list",
    "event log",
    "event subscribe NOTE --system sysop --notify-uri /notes",
    "event subscriptions -> subscription",
    "event show {subscription}",
    "event replace {subscription} NOTE --system sysop --notify-uri /other",
    "event pause {subscription}",
    "event resume {subscription}",
    "event dead list",
    "event dead replay --all",
    "event dead remove --all",
    "event remove {subscription}",
    "event unsubscribe NOTE --system sysop",
    "relay add 127.0.0.1:5573 --own -> relay",
    "relay list",
    "cloud introduce --relay {relay} --out own.toml",
    "cloud list",
    "cloud shared-events",
    "cloud heard-events",
    "relay remove {relay}",
    "cloud sessions",
    "log gatekeeper",
    "log gateway",
    "log serviceregistry",
    "log authorization",
    "log orchestrator",
    "log eventhandler",
    "onboard secret add --system newcomer --out secret",
    "onboard secret list",
    "onboard join https://127.0.0.1:{monitor} --secret-file secret --out newcomer",
    "onboard device add --device serial-1 --system other -> grant",
    "onboard secret remove {grant}",
    "dashboard",
    "dashboard --sign-out",
    "audit tail",
    "audit verify",
    "audit export --kind change",
    "service remove {heat}",
    "system remove display --yes",
];

/// The same in a cloud with a flexible store.
const WITH_FLEXIBLE_STORE: &[&str] = &[
    "rule flexible add --service heat --consumer display --provider sensor -> one",
    "rule flexible add --service heat --consumer display --provider probe",
    "rule flexible list",
    "rule flexible show {one}",
    "rule flexible remove {one}",
    "rule flexible remove --all",
];

/// What is run between two clouds (`clouds`, `shared_events`).
const WITH_ANOTHER_CLOUD: &[&str] = &[
    "cloud add",
    "cloud ping",
    "cloud test-relay",
    "cloud remove",
    "cloud share-event",
    "cloud unshare-event",
    "cloud accept-event",
    "cloud refuse-event",
];

/// What needs a reliable pair (`pair::hand_over`).
const WITH_A_PAIR: &[&str] = &["pair hand-over"];

/// What needs the fleet's stream (`fleet::second_edge_of_one_name_stops_until_adopted` among the peers).
const WITH_THE_FLEET: &[&str] = &["fleet adopt"];

/// A cloud, and its directory.
struct Session {
    place: TempDir,
    _cloud: Cloud,
    offset: HeldOffset,
    values: BTreeMap<String, String>,
}

impl Session {
    fn start<const N: usize>(flags: [&str; N]) -> Self {
        let (place, offset) = (TempDir::new().expect("a temporary directory"), held_offset());
        let cloud = Launch::new().secure().data(&place.path().join(".bodkin")).port_offset(offset.get()).flags(flags).start();
        let values = BTreeMap::from([("monitor".to_owned(), (8440 + offset.get()).to_string())]);
        Self { place, _cloud: cloud, offset, values }
    }

    /// Carries a line out; gives its exit code and what it printed and said.
    fn run(&mut self, line: &str) -> (Option<i32>, String) {
        let (line, kept) = line.split_once(" -> ").map_or((line, None), |(line, name)| (line, Some(name)));
        let words = self.values.iter().fold(line.to_owned(), |line, (name, value)| line.replace(&format!("{{{name}}}"), value));
        let mut command = Command::new(BINARY);
        command.args(words.split_whitespace()).current_dir(self.place.path()).env("BODKIN_PORT_OFFSET", self.offset.get().to_string());
        command.args(kept.map(|_| "--output=json"));
        let output = command.output().expect("the binary starts");
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if let (Some(name), Ok(printed)) = (kept, serde_json::from_slice::<Value>(&output.stdout)) {
            let id = printed.get("id").or_else(|| printed.pointer("/data/0/id")).unwrap_or_else(|| panic!("{line} has no id: {printed}"));
            self.values.insert(name.to_owned(), id.to_string());
        }
        (output.status.code(), told)
    }

    #[track_caller]
    fn done(&mut self, line: &str) -> String {
        let (code, told) = self.run(line);
        assert_eq!(code, Some(0), "{line}: {told}");
        told
    }
}

/// Every command below `words` that has none below it.
fn leaves(words: &str, found: &mut BTreeSet<String>) {
    let output = Command::new(BINARY).args(words.split_whitespace()).arg("--help").output().expect("the binary starts");
    let help = String::from_utf8(output.stdout).expect("text");
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = below.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")));
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    if names.is_empty() {
        found.insert(words.to_owned());
    }
    names.into_iter().for_each(|name| leaves(format!("{words} {name}").trim(), found));
}

#[test]
fn the_operator_does_from_the_command_line_what_is_the_operators() {
    let provider = Double::start(vec![("GET /heat", 200, Value::Null)]);
    let mut session = Session::start([]);
    session.values.insert("provider".to_owned(), provider.address().port().to_string());
    for line in BY_OPERATOR {
        session.done(line);
    }
    let mut flexible = Session::start(["--use-flexible-store"]);
    for line in WITH_FLEXIBLE_STORE {
        flexible.done(line);
    }
    assert!(flexible.done("rule flexible list").contains("the flexible orchestration store is empty"));
}

#[test]
fn no_client_command_is_forgotten() {
    let mut found = BTreeSet::new();
    for command in [
        "status",
        "service",
        "system",
        "auth",
        "rule",
        "orchestrate",
        "dashboard",
        "event",
        "cloud",
        "relay",
        "pair",
        "fleet",
        "log",
        "audit",
        "onboard",
    ] {
        leaves(command, &mut found);
    }
    // It needs no cloud: it is below, and `relay` has its tests.
    assert!(found.remove("relay serve"));
    assert!(found.len() > 50 && found.contains("event dead replay"), "{found:?}");
    let is_run = |command: &String| {
        BY_OPERATOR.iter().chain(WITH_FLEXIBLE_STORE).any(|line| line.starts_with(&format!("{command} ")) || line == command)
    };
    let needs_more =
        |command: &String| [WITH_ANOTHER_CLOUD, WITH_A_PAIR, WITH_THE_FLEET].concat().iter().any(|needs_more| needs_more == command);
    let forgotten: Vec<_> = found.iter().filter(|command| !is_run(command) && !needs_more(command)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
    // Those are all but those that need no cloud.
    let mut all = BTreeSet::new();
    leaves("", &mut all);
    let others: BTreeSet<_> = all.difference(&found).filter_map(|command| command.split(' ').next()).collect();
    assert_eq!(
        others,
        BTreeSet::from([
            "backup",
            "bench",
            "cert",
            "completions",
            "db",
            "demo",
            "doctor",
            "graph",
            "man",
            "model",
            "relay",
            "simulate",
            "topic",
            "up",
            "witness"
        ])
    );
}

#[test]
fn a_system_does_for_itself_what_is_its_own() {
    const DENIED: Option<i32> = Some(3);
    let mut session = Session::start([]);
    session.done("cert issue --system gauge --out own");
    for line in [
        "system add gauge --address 127.0.0.1 --port 9",
        "service add pressure --system gauge --address 127.0.0.1 --port 9",
        "service query orchestration-service",
        "event publish PRESSURE 3 --system gauge@127.0.0.1:9",
        "event subscribe PRESSURE --system gauge@127.0.0.1:9 --notify-uri /pressure",
        "event unsubscribe PRESSURE --system gauge@127.0.0.1:9",
        "event replay PRESSURE --since 0",
        "event replay PRESSURE --since 0 --system gauge@127.0.0.1:9",
    ] {
        session.done(&format!("{line} --cert own/gauge.crt"));
    }
    for (line, told) in [
        ("event publish PRESSURE 3 --system gauge", "name it NAME@HOST:PORT"),
        ("event publish PRESSURE 3 --system sensor@127.0.0.1:9", "is unauthorized to access"),
        ("service add pressure --system sensor --address 127.0.0.1 --port 9", "is unauthorized to access"),
        ("service query pressure", "is unauthorized to access"),
    ] {
        let (code, said) = session.run(&format!("{line} --cert own/gauge.crt"));
        assert!(code == DENIED && said.contains(told), "{line}: {code:?} {said}");
    }
    // As the operator, which manages and publishes nothing; by ZMTP without keys, which no further attempt mends; and by plain HTTP.
    for (line, expected, told) in [
        ("event publish PRESSURE 3 --system gauge", DENIED, "gauge publishes with its own certificate, named by --cert"),
        ("event publish PRESSURE 3 --system gauge --realtime", Some(1), "give the system's by --curve FILE"),
        ("event tail PRESSURE --realtime", Some(1), "and the cloud's by --server-key KEY"),
        (
            "event tail PRESSURE --realtime --curve absent.curve --server-key -LY?}eBkHDcI{nKgPvY+/GCP/kSs8WO<Q2bYA]VT",
            Some(1),
            "absent.curve",
        ),
        ("status --insecure", Some(1), "it speaks TLS, as a cloud in secure mode does: leave out --insecure"),
        ("service list --insecure", Some(1), "leave out --insecure"),
        ("event tail PRESSURE --insecure", Some(1), "leave out --insecure"),
    ] {
        let (code, said) = session.run(line);
        assert!(code == expected && said.matches("mechanism").count() <= 1 && said.contains(told), "{line}: {code:?} {said}");
    }
}
