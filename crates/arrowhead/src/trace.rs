//! The W3C's trace context (`traceparent` and `tracestate`, <https://www.w3.org/TR/trace-context/>): which trace something is of, and what of it has caused it.
//!
//! An event carries it in its metadata, under [`METADATA_KEY`] and [`STATE_KEY`]: so it is in the event log, at the Backup, in what another cloud is told, and in what subscribers
//! are sent, and Arrowhead's own systems hand it on as they do all metadata. (CloudEvents have an extension with these two names.)

mod state;

use std::{
    fmt,
    num::{NonZeroU64, NonZeroU128},
};

use serde_json::value::RawValue;

pub use self::state::{MEMBERS_MAX, STATE_CHARACTERS_MAX, STATE_KEY, TraceState};

/// The key of an event's metadata under which it carries its context; the header's name too.
pub const METADATA_KEY: &str = "traceparent";
/// Bytes of a context of version 00.
const LENGTH: usize = 55;
/// The flag that says that what has caused this is recorded.
const SAMPLED: u8 = 1;

/// A trace, among all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub NonZeroU128);

/// Something that takes its time in a trace, among all of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub NonZeroU64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a `traceparent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// What of it has caused this.
    pub span: SpanId,
    /// Whether that is recorded, so that what it causes should be too.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Reads one; `None`: it is none, and there is no trace. Of a later version the parts are read that are in the first.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (context, behind) = text.split_at_checked(LENGTH)?;
        let is_hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let [version, trace, span, flags] = [&context[..2], &context[3..35], &context[36..52], &context[53..]];
        let are_apart = [2, 35, 52].iter().all(|at| context[*at] == b'-');
        let is_whole = match version {
            b"ff" => false,
            b"00" => behind.is_empty(),
            _ => behind.first().is_none_or(|byte| *byte == b'-'),
        };
        if !is_whole || !are_apart || ![version, trace, span, flags].into_iter().all(is_hex) {
            return None;
        }
        let digits = |part| std::str::from_utf8(part).ok();
        let flags = u8::from_str_radix(digits(flags)?, 16).ok()?;
        Some(Self {
            trace: TraceId(NonZeroU128::new(u128::from_str_radix(digits(trace)?, 16).ok()?)?),
            span: SpanId(NonZeroU64::new(u64::from_str_radix(digits(span)?, 16).ok()?)?),
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

/// What has caused something: a place in a trace, and what is said of that trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The place.
    pub context: TraceContext,
    /// What those who take part say of the trace.
    pub state: Option<TraceState>,
}

impl From<TraceContext> for Cause {
    fn from(context: TraceContext) -> Self {
        Self { context, state: None }
    }
}

impl Cause {
    /// What both texts say, the second one in as many fields as there are. Where the first is no context there is no cause, whatever the second says.
    pub fn parse<'f>(parent: &[u8], state: impl IntoIterator<Item = &'f [u8]>) -> Option<Self> {
        Some(Self { context: TraceContext::parse(parent)?, state: TraceState::parse(state) })
    }

    /// That of an event whose JSON is as [`push_event_json`](crate::publication::Publication::push_event_json) writes it. No more is looked at than what is in front of the
    /// payload; `None`: it has none, or is written otherwise.
    pub fn of_event(json: &[u8]) -> Option<Self> {
        let behind_type = literal(json.strip_prefix(b"{\"eventType\":")?)?.1;
        let (metadata, _) = literal(behind_type.strip_prefix(b",\"metaData\":")?)?;
        Self::of_metadata(metadata)
    }

    /// That of an event's metadata, a JSON object of scalars.
    pub fn of_metadata(metadata: &str) -> Option<Self> {
        if !metadata.contains(METADATA_KEY) {
            return None;
        }
        let value = |key| super::publication::metadata_value(metadata, key);
        let context = TraceContext::parse(value(METADATA_KEY)?.as_bytes())?;
        let state = if metadata.contains(STATE_KEY) { value(STATE_KEY) } else { None };
        Some(Self { context, state: state.and_then(|state| TraceState::parse([state.as_bytes()])) })
    }
}

/// The JSON value in front, and what is behind it.
fn literal(json: &[u8]) -> Option<(&str, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(json).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    Some((value.get(), &json[values.byte_offset()..]))
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, if self.is_sampled { SAMPLED } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_recommendations_example_is_read_and_written() {
        let context = TraceContext::parse(EXAMPLE.as_bytes()).unwrap();
        assert_eq!(context.trace.0.get(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span.0.get(), context.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), EXAMPLE);
        let other = EXAMPLE.replace("-01", "-fe");
        assert_eq!(TraceContext::parse(other.as_bytes()).unwrap().to_string(), EXAMPLE.replace("-01", "-00"));
    }

    /// The texts that others may hold themselves against (`vectors/traces`).
    #[test]
    fn what_is_handed_on_is_as_the_vectors_say() {
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("../../../vectors/traces/context.json")).expect("the vectors are JSON");
        assert!(rows.len() > 10);
        for row in rows {
            let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
            let fields: Vec<String> = row["tracestate"].as_array().expect("a list").iter().filter_map(text).collect();
            let came = Cause::parse(row["traceparent"].as_str().expect("a text").as_bytes(), fields.iter().map(|field| field.as_bytes()));
            let handed_on = came.map(|cause| (cause.context.to_string(), cause.state.map(|state| state.to_string())));
            let expected = row["handed_on"].as_object().map(|to| (text(&to["traceparent"]).expect("a text"), text(&to["tracestate"])));
            assert_eq!(handed_on, expected, "{row}");
        }
    }

    #[test]
    fn what_is_none_is_no_context() {
        let upper = EXAMPLE.replace('f', "F");
        let (no_trace, no_span) =
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), format!("00-{}-{}-01", "a".repeat(32), "0".repeat(16)));
        let longer = format!("{EXAMPLE}-what");
        for text in
            ["", "00", &EXAMPLE[..54], &EXAMPLE.replacen("00", "ff", 1), &EXAMPLE.replace('-', "_"), &upper, &no_trace, &no_span, &longer]
        {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(TraceContext::parse(&[0xff; LENGTH]), None);
        // What a later version adds is behind a dash.
        assert!(TraceContext::parse(longer.replacen("00", "cc", 1).as_bytes()).is_some());
        assert!(TraceContext::parse(format!("{EXAMPLE}x").replacen("00", "cc", 1).as_bytes()).is_none());
    }

    #[test]
    fn an_event_has_its_context_in_its_metadata_and_nowhere_else() {
        let event = |metadata: &str, payload: &str| {
            format!(r#"{{"eventType":"h\"ot","metaData":{metadata},"payload":"{payload}","timeStamp":"2026-01-01T00:00:00Z"}}"#)
        };
        let carried = format!(r#"{{"room":"7","traceparent":"{EXAMPLE}"}}"#);
        assert_eq!(Cause::of_event(event(&carried, "1").as_bytes()).unwrap().context.to_string(), EXAMPLE);
        for json in [
            event("null", EXAMPLE),
            event("{}", EXAMPLE),
            event(r#"{"a":"traceparent"}"#, EXAMPLE),
            event(r#"{"traceparent":"none"}"#, "1"),
            format!(r#"{{"payload":"1","metaData":{carried}}}"#),
            "{\"eventType\":".to_owned(),
            String::new(),
        ] {
            assert_eq!(Cause::of_event(json.as_bytes()), None, "{json}");
        }
        // What is said of a trace goes with it, and of none is worth nothing.
        let state =
            |metadata: &str| Cause::of_event(event(metadata, "1").as_bytes()).map(|cause| cause.state.map(|state| state.to_string()));
        assert_eq!(state(&format!(r#"{{"tracestate":"a=\"1\"","traceparent":"{EXAMPLE}"}}"#)), Some(Some("a=\"1\"".to_owned())));
        assert_eq!(state(&format!(r#"{{"tracestate":"A","traceparent":"{EXAMPLE}"}}"#)), Some(None));
        assert_eq!(state(r#"{"tracestate":"a=1"}"#), None);
    }
}
