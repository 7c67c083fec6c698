//! Spans as OTLP/HTTP has them in JSON: the protocol's `ExportTraceServiceRequest` in the JSON form of Protocol Buffers, in which identities are hexadecimal digits and
//! whole numbers of 64 bits are texts (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).

use bodkin_arrowhead::trace::{Cause, TraceState};
use serde_json::{Value as Json, json};

use super::{Ended, Kind, Value};

/// Who tells of the spans, and whose they are.
const SCOPE: &str = "bodkin";
/// The protocol's `STATUS_CODE_ERROR`.
const STATUS_ERROR: u64 = 2;

/// The body that tells a collector of these spans; `instance` is the cloud that they are of.
pub(super) fn body(instance: &str, spans: &[Ended]) -> Vec<u8> {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let version = env!("CARGO_PKG_VERSION");
    let resource = [text("service.name", "bodkin"), text("service.version", version), text("service.instance.id", instance)];
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scope = json!({"name": SCOPE, "version": version});
    let body = json!({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": spans}]}]});
    body.to_string().into_bytes()
}

fn span(ended: &Ended) -> Json {
    let Ended { span, name, attributes, failure, ended_ns } = ended;
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
        Kind::Producer => 4,
        Kind::Consumer => 5,
    };
    let attributes: Vec<Json> = attributes.iter().map(|(key, value)| json!({"key": key, "value": any_value(value)})).collect();
    let links: Vec<Json> = span.links.iter().map(link).collect();
    let status = failure.as_ref().map_or_else(|| json!({}), |why| json!({"code": STATUS_ERROR, "message": why}));
    json!({
        "traceId": span.context.trace.to_string(),
        "spanId": span.context.span.to_string(),
        "traceState": span.state.as_ref().map_or("", TraceState::as_str),
        "parentSpanId": span.parent.map_or_else(String::new, |parent| parent.to_string()),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": span.begun_ns.to_string(),
        // A clock that was put back makes no span end before it begins.
        "endTimeUnixNano": (*ended_ns).max(span.begun_ns).to_string(),
        "attributes": attributes,
        "links": links,
        "status": status,
    })
}

fn link(to: &Cause) -> Json {
    json!({
        "traceId": to.context.trace.to_string(),
        "spanId": to.context.span.to_string(),
        "traceState": to.state.as_ref().map_or("", TraceState::as_str),
    })
}

fn any_value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Flag(flag) => json!({"boolValue": flag}),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Traces, *};

    #[test]
    fn spans_are_told_in_the_protocols_json() {
        let (traces, mut queue) = Traces::new(0);
        let cause = |state: &'static [u8]| Cause::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", [state]).unwrap();
        let span = traces.begin_in(Some(&cause(b"a=1")), Kind::Client).unwrap().begun_at(u64::MAX).linked(vec![cause(b"")]);
        let attributes = vec![("a", Value::Text("\"".into())), ("b", Value::Number(u64::MAX)), ("c", Value::Flag(true))];
        traces.end(span.clone(), "ask".into(), attributes, Some("late".into()));
        let body: Json = serde_json::from_slice(&body("one.test", &[queue.try_recv().unwrap()])).unwrap();
        let told = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let expected = json!({
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "parentSpanId": "00f067aa0ba902b7", "spanId": span.context.span.to_string(),
            "traceState": "a=1",
            "name": "ask", "kind": 3, "startTimeUnixNano": u64::MAX.to_string(), "endTimeUnixNano": u64::MAX.to_string(),
            "attributes": [
                {"key": "a", "value": {"stringValue": "\""}}, {"key": "b", "value": {"intValue": u64::MAX.to_string()}},
                {"key": "c", "value": {"boolValue": true}},
            ],
            "links": [{"traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7", "traceState": ""}],
            "status": {"code": 2, "message": "late"},
        });
        assert_eq!(told, &expected);
        let resource = body["resourceSpans"][0]["resource"]["attributes"].as_array().unwrap();
        assert!(resource.contains(&json!({"key": "service.instance.id", "value": {"stringValue": "one.test"}})), "{resource:?}");
    }
}
