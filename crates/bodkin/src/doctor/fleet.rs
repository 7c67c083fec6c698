//! The fleet's servers: is one reached, is the stream as it has to be, may this edge publish there?

pub mod monitoring;

use bodkin_host::fleet::{FleetConfig, FleetConsumer, FleetLook, FleetStream};

use super::{client_certificate, finding::Finding};
use crate::settings::Settings;

const CHECK: &str = "fleet";
/// Servers that a stream is on so that one may fail.
const REPLICAS_MIN: u8 = 3;
const WHERE: &str = "docs/how-to/fleet.md says how";

/// Looks at them, if events are forwarded. `monitors`: where servers say how they sync.
pub fn examine(settings: &Settings, monitors: &[String]) -> Vec<Finding> {
    // That it cannot be read is told with the other options.
    let Ok(Some(config)) = settings.fleet() else { return Vec::new() };
    let looks: Vec<(String, Result<FleetLook, String>)> =
        config.place.servers.iter().map(|server| (server.to_string(), config.look(server))).collect();
    let mut findings: Vec<Finding> = client_certificate::examine(CHECK, &config.place).into_iter().collect();
    findings.extend(looks.iter().map(|(server, look)| reached(server, look)));
    let lacks = looks.iter().all(|(_, look)| look.is_err());
    if lacks {
        return findings;
    }
    let first = looks.iter().find_map(|(_, look)| look.as_ref().ok()).expect("one is reached");
    if config.only_takes() && !settings.marks_any() {
        let told =
            "no lane names an event type, and no topic of the file is marked fleet: this edge only takes, and its stream is not looked at";
        findings.push(Finding::ok(CHECK, told.to_owned()));
    } else {
        findings.push(stream(&config, &first.stream));
        if monitors.is_empty() {
            // Their protocol does not tell.
            let told = "whether its servers sync before they acknowledge (sync_interval: always) was not asked";
            let advice = "name the ports at which they are monitored: --nats-monitors http://HOST:8222,...";
            findings.push(Finding::warning(CHECK, told, advice));
        }
        findings.extend(first.refused.iter().map(|(lane, why)| {
            let told = format!("lane {lane}: this edge may not publish or read it: {why}");
            Finding::problem(CHECK, told, format!("give the user these rights; {WHERE}"))
        }));
    }
    findings.extend(first.from.as_ref().map(|from| events_from(&config, from)));
    findings
}

/// Whether events can come from the fleet.
fn events_from(config: &FleetConfig, from: &Result<FleetConsumer, String>) -> Finding {
    let stream = config.from.as_ref().map_or("", |from| &*from.stream);
    let edge = &config.edge;
    match from {
        Ok(FleetConsumer { is_there: true, waiting }) => Finding::ok(
            CHECK,
            format!("events come by stream {stream}, consumer {edge}, which may be pulled from and acknowledged to; {waiting} wait there"),
        ),
        Ok(FleetConsumer { is_there: false, .. }) => Finding::warning(
            CHECK,
            format!("stream {stream} has no consumer {edge} yet"),
            format!("bodkin up makes it, if this edge may; otherwise make it; {WHERE}"),
        ),
        Err(why) => {
            Finding::problem(CHECK, format!("events cannot come by stream {stream}: {why}"), format!("give the user these rights; {WHERE}"))
        }
    }
}

fn reached(server: &str, look: &Result<FleetLook, String>) -> Finding {
    match look {
        Ok(FleetLook { greeted, .. }) => {
            Finding::ok(CHECK, format!("{server} is nats-server {} ({}), and takes this edge", greeted.version, greeted.server))
        }
        Err(why) => Finding::problem(
            CHECK,
            format!("{server} is not reached, or does not take this edge: {why}"),
            "see that it runs and is reached from here, and that user and password, token, key or client certificate are those it knows",
        ),
    }
}

fn stream(config: &FleetConfig, stream: &Result<FleetStream, String>) -> Finding {
    let name = &config.stream;
    let FleetStream { replicas, on_disk, forgets, unusable, subjects, messages } = match stream {
        Ok(stream) => stream,
        Err(why) if config.create.is_some() => {
            return Finding::warning(CHECK, format!("stream {name}: {why}"), "bodkin up makes it; see that this edge may");
        }
        Err(why) => return Finding::problem(CHECK, format!("stream {name}: {why}"), format!("make it, or set create_replicas; {WHERE}")),
    };
    let place = if *on_disk { "on disk" } else { "in memory" };
    let told = format!("stream {name} has {}, is on {replicas} servers, {place}, and has {messages} messages", subjects.join(", "));
    if let Some(why) = unusable {
        return Finding::problem(CHECK, format!("{told}; {why}"), "set it up anew");
    }
    if !on_disk || *replicas < REPLICAS_MIN {
        let told = format!("{told}: what it acknowledges can be lost with one server");
        return Finding::warning(CHECK, told, format!("have it on disk, on {REPLICAS_MIN} servers or 5; {WHERE}"));
    }
    let forgets = if *forgets { "; old events go from it" } else { "" };
    Finding::ok(CHECK, format!("{told}{forgets}"))
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn what_is_found_is_judged() {
        let settings: Settings = toml::from_str("[fleet]\nservers = ['nats://127.0.0.1:9']\nedge = 'e'\n").expect("settings");
        let config = settings.fleet().expect("a fleet").expect("one");
        let good =
            FleetStream { replicas: 3, on_disk: true, forgets: false, unusable: None, subjects: vec!["fleet.*.*".to_owned()], messages: 7 };
        for (told, verdict, words) in [
            (Ok(good.clone()), Verdict::Ok, "on 3 servers, on disk"),
            (Ok(FleetStream { forgets: true, ..good.clone() }), Verdict::Ok, "old events go"),
            (Ok(FleetStream { replicas: 1, ..good.clone() }), Verdict::Warning, "with one server"),
            (Ok(FleetStream { on_disk: false, ..good.clone() }), Verdict::Warning, "in memory"),
            (Ok(FleetStream { unusable: Some("it is sealed"), ..good }), Verdict::Problem, "it is sealed"),
            (Err("stream not found (10059)".to_owned()), Verdict::Problem, "not found"),
        ] {
            let finding = stream(&config, &told);
            assert!(finding.verdict == verdict && finding.found.contains(words), "{finding}");
        }
        for (told, verdict, words) in [
            (Ok(FleetConsumer { is_there: true, waiting: 3 }), Verdict::Ok, "3 wait there"),
            (Ok(FleetConsumer { is_there: false, waiting: 0 }), Verdict::Warning, "no consumer e yet"),
            (Err("Permissions Violation".to_owned()), Verdict::Problem, "Permissions Violation"),
        ] {
            let finding = events_from(&config, &told);
            assert!(finding.verdict == verdict && finding.found.contains(words), "{finding}");
        }
        let found = examine(&settings, &[]);
        assert!(found.len() == 1 && found[0].verdict == Verdict::Problem && found[0].found.contains("nats://127.0.0.1:9"), "{found:?}");
    }
}
