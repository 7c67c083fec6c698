//! The trace that an event is of, in its metadata.

use std::{borrow::Cow, fmt::Write};

use super::{JsonText, MetadataText, Publication, PublishForm, each_pair};
use crate::trace::{METADATA_KEY, TraceContext};

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

impl<'a> PublishForm<'a> {
    /// The trace that its publisher says it is of.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::of_metadata(self.meta_data?.0)
    }

    /// Has it carry a context from here on, in metadata that are written into a buffer of the caller's. One that carries one already keeps its own.
    pub fn carry(&mut self, context: TraceContext, buffer: &'a mut String) {
        if self.trace().is_some() {
            return;
        }
        buffer.clear();
        // Checked metadata are an object: what is in it, and a brace. What was there under the key is none, and the last one counts.
        let inside = self.meta_data.map_or("{", |metadata| metadata.0[..metadata.0.len() - 1].trim_end());
        let comma = if inside.ends_with('{') { "" } else { "," };
        write!(buffer, "{inside}{comma}\"{METADATA_KEY}\":\"{context}\"}}").expect("a text takes everything");
        self.meta_data = Some(MetadataText(buffer));
    }
}

impl Publication<'_> {
    /// The trace that it is of.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::of_metadata(self.metadata?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn check(came: &str, carried: &str) {
        let event = format!(r#"{{"eventType":"a","metaData":{came},"payload":"x"}}"#);
        let mut buffer = "left over".to_owned();
        let mut form: PublishForm<'_> = json::parse_object(&event).unwrap();
        form.carry(TraceContext::parse(CONTEXT.as_bytes()).unwrap(), &mut buffer);
        assert_eq!(form.meta_data.unwrap().0, carried, "{came}");
        serde_json::from_str::<MetadataText<'_>>(carried).unwrap();
    }

    #[test]
    fn metadata_keep_what_is_in_them() {
        let own = CONTEXT.replace("4bf", "5bf");
        check("null", &format!(r#"{{"traceparent":"{CONTEXT}"}}"#));
        check("{ }", &format!(r#"{{"traceparent":"{CONTEXT}"}}"#));
        check(r#"{ "room" : 7 }"#, &format!(r#"{{ "room" : 7,"traceparent":"{CONTEXT}"}}"#));
        check(r#"{"traceparent":"?"}"#, &format!(r#"{{"traceparent":"?","traceparent":"{CONTEXT}"}}"#));
        check(&format!(r#"{{"traceparent":"{own}"}}"#), &format!(r#"{{"traceparent":"{own}"}}"#));
        assert_eq!(TraceContext::of_metadata(&format!(r#"{{"traceparent":"?","traceparent":"{CONTEXT}"}}"#)).unwrap().to_string(), CONTEXT);
    }
}
