//! NATS between the nodes of a shared database: is a server reached, is the stream as it has to be, may this node publish, pull and acknowledge there?

use std::{fs, path::Path};

use bodkin_host::{
    NatsPlace, NodeStream, NodeStreamTerms,
    fleet::{FleetConsumer, FleetLook, FleetStream, Greeted},
    node_events::NodeEvents,
};
use bodkin_store::shared::look;

use super::{client_certificate, finding::Finding};
use crate::settings::Settings;

const CHECK: &str = "node events";
/// Servers that a stream is on so that one may fail.
const REPLICAS_MIN: u8 = 3;
const WHERE: &str = "docs/how-to/several-nodes.md says how";
/// A node without a name, which is drawn at its first start: no node has it.
const NO_NODE: &str = "0000000000000000";
/// The same of a cloud without tables.
const NO_CLOUD: &str = "00000000000000000000000000000000";

/// Looks at the servers of events between nodes, and at their stream if one keeps the events.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    // Settings that cannot be read are reported with the other options.
    let (Ok(Some(place)), Ok(terms)) = (settings.node_events(), settings.node_stream()) else { return Vec::new() };
    let database = settings.shared_database().ok().flatten();
    let cloud = database.and_then(|database| Some(look(&database).ok()?.cloud?.to_string())).unwrap_or_else(|| NO_CLOUD.to_owned());
    let node = settings.data.as_deref().and_then(node_of).unwrap_or_else(|| NO_NODE.to_owned());
    let found = match terms {
        Some(terms) => look_at(&place, &terms, &NodeStream::new(place.clone(), &terms, &cloud, &node)),
        None => look_without_stream(&place, &cloud, &node),
    };
    client_certificate::examine(CHECK, &place).into_iter().chain(found).collect()
}

/// Looks whether servers that keep no events accept this node and its subscription.
fn look_without_stream(place: &NatsPlace, cloud: &str, node: &str) -> Vec<Finding> {
    let look = |server| NodeEvents::look(place, server, (cloud, node));
    place.servers.iter().map(|server| reached(&server.to_string(), look(server).as_ref())).collect()
}

/// What the node of a data directory is called, where it was started once.
pub(super) fn node_of(data: &Path) -> Option<String> {
    let name = fs::read_to_string(data.join("node")).ok()?.trim().to_owned();
    (name.len() == 16 && u64::from_str_radix(&name, 16).is_ok()).then_some(name)
}

fn look_at(place: &NatsPlace, terms: &NodeStreamTerms, stream: &NodeStream) -> Vec<Finding> {
    let looks: Vec<(String, Result<FleetLook, String>)> =
        place.servers.iter().map(|server| (server.to_string(), stream.look(server))).collect();
    let mut findings: Vec<Finding> = looks.iter().map(|(server, look)| reached(server, look.as_ref().map(|look| &look.greeted))).collect();
    if let Some(first) = looks.into_iter().find_map(|(_, look)| look.ok()) {
        findings.extend(judge(terms, &stream.lane.terms(0).subject.to_string(), first));
    }
    findings
}

fn reached(server: &str, look: Result<&Greeted, &String>) -> Finding {
    match look {
        Ok(look) => Finding::ok(CHECK, format!("{server} is nats-server {} ({}), and takes this node", look.version, look.server)),
        Err(why) => Finding::problem(
            CHECK,
            format!("{server} is not reached, or does not take this node: {why}"),
            "see that it runs and is reached from here, and that user and password, token, key or client certificate are those it knows",
        ),
    }
}

fn judge(terms: &NodeStreamTerms, subject: &str, look: FleetLook) -> Vec<Finding> {
    let name = &terms.stream;
    let rights = |told: String| Finding::problem(CHECK, told, format!("give the user these rights; {WHERE}"));
    let mut findings = vec![stream(terms, subject, &look.stream)];
    findings.extend(look.refused.iter().map(|(_, why)| rights(format!("this node may not publish to stream {name}, or read it: {why}"))));
    // Without a stream there is nothing to be taken from.
    if look.stream.is_ok() {
        findings.extend(look.from.map(|from| match from {
            Ok(FleetConsumer { is_there: true, waiting }) => {
                Finding::ok(CHECK, format!("this node may take from stream {name}; {waiting} messages wait for it"))
            }
            Ok(FleetConsumer { is_there: false, .. }) => {
                Finding::ok(CHECK, format!("stream {name} has no consumer of this node yet; bodkin up makes it"))
            }
            Err(why) => rights(format!("this node cannot take from stream {name}: {why}")),
        }));
    }
    findings
}

fn stream(terms: &NodeStreamTerms, subject: &str, stream: &Result<FleetStream, String>) -> Finding {
    let name = &terms.stream;
    let stream = match stream {
        Ok(stream) => stream,
        Err(why) if terms.create.is_some() => {
            return Finding::warning(CHECK, format!("stream {name}: {why}"), "bodkin up makes it; see that this node may");
        }
        Err(why) => {
            return Finding::problem(CHECK, format!("stream {name}: {why}"), format!("make it, or set node_events_replicas; {WHERE}"));
        }
    };
    let FleetStream { replicas, on_disk, forgets, unusable, subjects, messages } = stream;
    let place = if *on_disk { "on disk" } else { "in memory" };
    let told = format!("stream {name} has {}, is on {replicas} servers, {place}, and has {messages} messages", subjects.join(", "));
    if let Some(why) = unusable {
        return Finding::problem(CHECK, format!("{told}; {why}"), "set it up anew");
    }
    if !stream.takes(subject) {
        return Finding::problem(CHECK, format!("{told}, and not {subject}, by which this node hands events on"), "add it to its subjects");
    }
    if !forgets {
        let advice = "give it an age (max_age), or bytes and discard = old";
        return Finding::warning(CHECK, format!("{told}; nothing goes from it: once it is full, it takes nothing more"), advice);
    }
    if !on_disk || *replicas < REPLICAS_MIN {
        let told = format!("{told}: what it acknowledges can be lost with one server");
        return Finding::warning(CHECK, told, format!("have it on disk, on {REPLICAS_MIN} servers or 5; {WHERE}"));
    }
    Finding::ok(
        CHECK,
        format!(
            "{told}. Whether its servers sync before they acknowledge (sync_interval: always) is told by --nats-monitors http://HOST:8222,..."
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bodkin_host::NodeStreamLimits;

    use super::{super::Verdict, *};

    const SUBJECT: &str = "bodkin.c0.nodes.b2.log";

    #[test]
    fn what_is_found_is_judged() {
        let limits = NodeStreamLimits { replicas: 3, bytes_max: 1 << 30, age_max: Duration::from_secs(60) };
        let terms = |create| NodeStreamTerms { stream: "NODES".to_owned(), create };
        let good = FleetStream {
            replicas: 3,
            on_disk: true,
            forgets: true,
            unusable: None,
            subjects: vec!["bodkin.c0.nodes.*.*".to_owned()],
            messages: 7,
        };
        for (told, verdict, words) in [
            (Ok(good.clone()), Verdict::Ok, "--nats-monitors"),
            (Ok(FleetStream { forgets: false, ..good.clone() }), Verdict::Warning, "nothing goes from it"),
            (Ok(FleetStream { replicas: 1, ..good.clone() }), Verdict::Warning, "with one server"),
            (Ok(FleetStream { on_disk: false, ..good.clone() }), Verdict::Warning, "in memory"),
            (Ok(FleetStream { unusable: Some("it is sealed"), ..good.clone() }), Verdict::Problem, "it is sealed"),
            (
                Ok(FleetStream { subjects: vec!["bodkin.c1.>".to_owned()], ..good.clone() }),
                Verdict::Problem,
                "and not bodkin.c0.nodes.b2.log",
            ),
            (Err("stream not found (10059)".to_owned()), Verdict::Problem, "not found"),
        ] {
            let finding = stream(&terms(None), SUBJECT, &told);
            assert!(finding.verdict == verdict && finding.found.contains(words), "{finding}");
        }
        let none = Err("stream not found (10059)".to_owned());
        assert_eq!(stream(&terms(Some(limits)), SUBJECT, &none).verdict, Verdict::Warning, "it is made");
        let look = FleetLook {
            greeted: Greeted { server: "n1".to_owned(), version: "2".to_owned() },
            stream: Ok(good),
            refused: vec![("log".to_owned(), "Permissions Violation for Publish".to_owned())],
            from: Some(Err("Permissions Violation for Subscription".to_owned())),
        };
        let found = judge(&terms(None), SUBJECT, look);
        let verdicts: Vec<_> = found.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Ok, Verdict::Problem, Verdict::Problem], "{found:?}");
    }
}
