//! What the audit log costs an orchestration: microseconds for its entry, on the thread that answers and on the log's own.
//!
//! `cargo run --release -p bodkin-host --example audit_cost`

use std::time::{Duration, Instant, SystemTime};

use bodkin_arrowhead::{audit::Event, caller::Caller, service_registry::Sender, utc::UtcTime};
use bodkin_host::{
    AUDIT_LIMITS,
    answer::Answer,
    audit::{Act, Audit, start_event, stop_event},
    request::{Method, Request},
};
use bodkin_store::audit::AuditLog;
use serde_json::{Map, Value, json};

const ORCHESTRATIONS: u32 = 10_000;

fn main() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (log, thread) = AuditLog::open(place.path(), AUDIT_LIMITS, None, now(), start_event("cost")).expect("the log opens");
    let audit = Audit::new(log.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let each = |act: Act| {
        let begun = Instant::now();
        for _ in 0..ORCHESTRATIONS {
            let answer = Answer { account: Some(Box::new(account())), ..Answer::empty(200) };
            runtime.block_on(audit.carry_out(act, &request(), |why| Answer::text(503, why), async { answer }));
        }
        begun.elapsed() / ORCHESTRATIONS
    };
    let (unaudited, audited) = (each(Act::Other), each(Act::Orchestration));
    let begun = Instant::now();
    for _ in 0..ORCHESTRATIONS / 100 {
        runtime.block_on(log.record(now(), Event::own(bodkin_arrowhead::audit::Kind::Change, "x"))).expect("the disk takes it");
    }
    let synced = begun.elapsed() / (ORCHESTRATIONS / 100);
    thread.close(now(), stop_event());
    let processor = processor_time() / ORCHESTRATIONS;
    println!("an orchestration's account: {unaudited:?}; with its entry in the queue: {audited:?}");
    println!("all of it, the writing too: {processor:?} of processor time each; a change that waits for the disk: {synced:?}");
}

fn account() -> Map<String, Value> {
    let given = json!({"provider": "sensor-7@10.0.0.7:8080", "service": "temperature", "interfaces": ["HTTP-SECURE-JSON"],
        "because": "Service Registry, authorization rule 17"});
    let account = json!({"consumer": "display@10.0.0.9:9000", "asked": "temperature", "given": [given]});
    account.as_object().expect("it is one").clone()
}

fn request() -> Request {
    let peer = "10.0.0.9".parse().expect("an address");
    Request {
        caller: Caller::Anonymous,
        sender: Some(Sender { peer, local: peer, forwarded: Vec::new(), forwarded_for: Vec::new() }),
        method: Method::Post,
        path: "/orchestrator/orchestration".into(),
        query: Vec::new(),
        url: String::new(),
        content_type: String::new(),
        bearer: None,
        if_none_match: None,
        accepts_html: false,
        is_forged: false,
        trace: None,
        says_empty: false,
        body: Vec::new(),
    }
}

/// Processor time of this process, its threads and the kernel's work for them included.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn now() -> UtcTime {
    UtcTime::from_system_time(SystemTime::now()).expect("the clock is right")
}
