//! The bytes a subscriber gets for an event, made at most once for each form, in buffers that are kept.

use std::io::Write;

use bodkin_arrowhead::publication::Publication;
use bodkin_broker::EventId;
use bytes::Bytes;

use crate::listening::StreamForm;

/// Frames of the event that is being published.
#[derive(Default)]
pub struct Frames {
    payload: Frame,
    event: Frame,
    json: Frame,
    shared: Option<Bytes>,
    text: String,
}

#[derive(Default)]
struct Frame {
    bytes: Vec<u8>,
    made: bool,
}

impl Frames {
    /// Forgets the last event.
    pub fn clear(&mut self) {
        self.payload.made = false;
        self.event.made = false;
        self.json.made = false;
        self.shared = None;
    }

    /// The event's frame on a stream.
    pub fn stream(&mut self, form: StreamForm, id: EventId, publication: &Publication<'_>) -> &[u8] {
        match form {
            StreamForm::Payload => {
                if !self.payload.made {
                    self.make_payload(id, publication);
                }
                &self.payload.bytes
            }
            StreamForm::Event => {
                if !self.event.made {
                    self.make_event(id, publication);
                }
                &self.event.bytes
            }
        }
    }

    /// The frame as [`Self::stream`] made it.
    pub fn made(&self, form: StreamForm) -> &[u8] {
        match form {
            StreamForm::Payload => &self.payload.bytes,
            StreamForm::Event => &self.event.bytes,
        }
    }

    /// The event as JSON, as it is pushed.
    pub fn json(&mut self, publication: &Publication<'_>) -> &[u8] {
        if !self.json.made {
            self.json.bytes.clear();
            publication.push_event_json(&mut self.json.bytes);
            self.json.made = true;
        }
        &self.json.bytes
    }

    /// The JSON that [`Self::json`] made, to be shared among push tasks.
    pub fn shared_json(&mut self) -> Bytes {
        self.shared.get_or_insert_with(|| Bytes::copy_from_slice(&self.json.bytes)).clone()
    }

    /// `id:`, `event:` (the event type as published) and `data:` (the payload).
    fn make_payload(&mut self, id: EventId, publication: &Publication<'_>) {
        let out = &mut self.payload.bytes;
        out.clear();
        write!(out, "id: {id}\nevent: ").expect("a vector takes everything");
        self.text.clear();
        publication.event_type().push_to(&mut self.text);
        // A line end would begin a field of the event type's choosing.
        out.extend(self.text.trim().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        out.push(b'\n');
        match publication.payload().plain() {
            Some(text) => push_data(out, text),
            None => {
                self.text.clear();
                publication.payload().push_to(&mut self.text);
                push_data(out, &self.text);
            }
        }
        self.payload.made = true;
    }

    /// `id:` and `data:` (the event as JSON).
    fn make_event(&mut self, id: EventId, publication: &Publication<'_>) {
        self.json(publication);
        let json = std::str::from_utf8(&self.json.bytes).expect("JSON is UTF-8");
        let out = &mut self.event.bytes;
        out.clear();
        writeln!(out, "id: {id}").expect("a vector takes everything");
        push_data(out, json);
        self.event.made = true;
    }
}

/// Appends a text as `data:` lines and ends the event. Any of the three line ends becomes the stream's own.
fn push_data(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = rest.find(['\n', '\r']) else { break };
        out.extend_from_slice(&rest.as_bytes()[..end]);
        out.push(b'\n');
        rest = rest[end..].strip_prefix("\r\n").unwrap_or(&rest[end + 1..]);
    }
    out.extend_from_slice(rest.as_bytes());
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_text_is_a_data_line() {
        let data = |text: &str| {
            let mut out = Vec::new();
            push_data(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(data("21.5"), "data: 21.5\n\n");
        assert_eq!(data("a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
        assert_eq!(data("a\n"), "data: a\ndata: \n\n");
        assert_eq!(data("\n\nevent: x"), "data: \ndata: \ndata: event: x\n\n");
    }
}
