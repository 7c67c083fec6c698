//! What an event is caused by, in its metadata.

use std::{borrow::Cow, fmt::Write};

use super::{JsonText, MetadataText, Publication, PublishForm, each_pair};
use crate::trace::{Cause, METADATA_KEY, STATE_KEY};

/// How what an event is caused by begins, behind other metadata.
pub(super) const CAUSED: &str = ",\"traceparent\":\"";

/// The value of a key of metadata, escapes resolved; a repeated key's last value counts. `None`: there is none, or they are no object of scalars.
pub(crate) fn metadata_value<'a>(metadata: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    let mut found = None;
    let visit = |key: JsonText<'a>, value| {
        if key.text() == wanted {
            found = value;
        }
    };
    each_pair(metadata, visit).ok()?;
    found.map(JsonText::text)
}

/// Appends the pairs that say what an event is caused by; `is_empty`: nothing is in front of them.
pub(super) fn push_pairs(cause: &Cause, is_empty: bool, out: &mut String) {
    let comma = if is_empty { "" } else { "," };
    write!(out, "{comma}\"{METADATA_KEY}\":\"{}\"", cause.context).expect("a text takes everything");
    if let Some(state) = &cause.state {
        let mut buffer = String::new();
        let JsonText(literal) = JsonText::write(state.as_str(), &mut buffer);
        write!(out, ",\"{STATE_KEY}\":{literal}").expect("a text takes everything");
    }
}

impl Cause {
    /// Writes metadata that say nothing but this, instead of what is there.
    pub fn write_metadata(&self, out: &mut String) {
        out.clear();
        out.push('{');
        push_pairs(self, true, out);
        out.push('}');
    }
}

impl<'a> PublishForm<'a> {
    /// What its publisher says that it is caused by.
    pub fn cause(&self) -> Option<Cause> {
        Cause::of_metadata(self.meta_data?.0)
    }

    /// Has it carry a cause from here on, in metadata that are written into a buffer of the caller's. One that carries one already keeps its own.
    pub fn carry(&mut self, cause: &Cause, buffer: &'a mut String) {
        if self.cause().is_some() {
            return;
        }
        buffer.clear();
        // Checked metadata are an object: what is in it, and a brace. What was there under the keys is of no trace, and the last ones count.
        let inside = self.meta_data.map_or("{", |metadata| metadata.0[..metadata.0.len() - 1].trim_end());
        buffer.push_str(inside);
        push_pairs(cause, inside.ends_with('{'), buffer);
        if cause.state.is_none() && self.meta_data.is_some_and(|metadata| metadata.find(STATE_KEY).is_some()) {
            write!(buffer, ",\"{STATE_KEY}\":\"\"").expect("a text takes everything");
        }
        buffer.push('}');
        self.meta_data = Some(MetadataText(buffer));
    }
}

impl Publication<'_> {
    /// What it is caused by.
    pub fn cause(&self) -> Option<Cause> {
        Cause::of_metadata(self.metadata?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn carried(came: &str, state: &str) -> String {
        let event = format!(r#"{{"eventType":"a","metaData":{came},"payload":"x"}}"#);
        let mut buffer = "left over".to_owned();
        let mut form: PublishForm<'_> = json::parse_object(&event).unwrap();
        form.carry(&Cause::parse(CONTEXT.as_bytes(), [state.as_bytes()]).unwrap(), &mut buffer);
        form.meta_data.unwrap().0.to_owned()
    }

    #[test]
    fn metadata_of_a_cause_alone_say_it_and_nothing_else() {
        let mut written = "left over".to_owned();
        for state in ["", "a=\"1\\,b=2"] {
            let cause = Cause::parse(CONTEXT.as_bytes(), [state.as_bytes()]).unwrap();
            cause.write_metadata(&mut written);
            assert_eq!(Cause::of_metadata(&written), Some(cause), "{written}");
        }
        Cause::parse(CONTEXT.as_bytes(), []).unwrap().write_metadata(&mut written);
        assert_eq!(written, format!(r#"{{"traceparent":"{CONTEXT}"}}"#));
    }

    fn check(came: &str, expected: &str) {
        assert_eq!(carried(came, ""), expected, "{came}");
        serde_json::from_str::<MetadataText<'_>>(expected).unwrap();
    }

    #[test]
    fn metadata_keep_what_is_in_them() {
        let own = CONTEXT.replace("4bf", "5bf");
        check("null", &format!(r#"{{"traceparent":"{CONTEXT}"}}"#));
        check("{ }", &format!(r#"{{"traceparent":"{CONTEXT}"}}"#));
        check(r#"{ "room" : 7 }"#, &format!(r#"{{ "room" : 7,"traceparent":"{CONTEXT}"}}"#));
        check(r#"{"traceparent":"?"}"#, &format!(r#"{{"traceparent":"?","traceparent":"{CONTEXT}"}}"#));
        check(&format!(r#"{{"traceparent":"{own}"}}"#), &format!(r#"{{"traceparent":"{own}"}}"#));
        let twice = Cause::of_metadata(&format!(r#"{{"traceparent":"?","traceparent":"{CONTEXT}"}}"#)).unwrap();
        assert_eq!(twice.context.to_string(), CONTEXT);
    }

    #[test]
    fn what_is_said_of_a_trace_goes_with_it() {
        let told = carried(r#"{"room":"7"}"#, "a=\"1\\,b=2");
        assert_eq!(told, format!(r#"{{"room":"7","traceparent":"{CONTEXT}","tracestate":"a=\"1\\,b=2"}}"#));
        assert_eq!(Cause::of_metadata(&told).unwrap().state.unwrap().as_str(), "a=\"1\\,b=2");
        // An event of a trace keeps both of its own; what was said of no trace is not said of this one.
        let own = format!(r#"{{"traceparent":"{CONTEXT}","tracestate":"own=1"}}"#);
        assert_eq!(carried(&own, "a=1"), own);
        assert_eq!(Cause::of_metadata(&carried(r#"{"tracestate":"own=1"}"#, "")).unwrap().state, None);
        assert_eq!(Cause::of_metadata(&carried(r#"{"tracestate":"own=1"}"#, "a=1")).unwrap().state.unwrap().as_str(), "a=1");
    }
}
