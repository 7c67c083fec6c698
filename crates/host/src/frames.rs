//! The bytes a subscriber gets for an event, made at most once for each form, in buffers that are kept.

use std::{fmt::Write as _, io::Write, ops::Range};

use bodkin_arrowhead::publication::{Publication, cloud_event::Outgoing};
use bodkin_broker::{
    Epoch, EventId,
    wire::{EventHeader, Flags, HEADER_BYTES},
};
use bodkin_zmtp::FrameHead;
use bytes::Bytes;

use crate::{listening::StreamForm, resume_token::ResumeToken};

/// Frames of the event that is being published.
#[derive(Default)]
pub struct Frames {
    payload: Frame,
    event: Frame,
    cloud_event: Frame,
    json: Frame,
    message: EventMessage,
    /// With the metadata, for peers that ask for them.
    full_message: EventMessage,
    shared: Option<Bytes>,
    text: String,
    /// Resume token behind the event's id on streams.
    token: String,
    /// In which this node leads.
    epoch: Epoch,
}

#[derive(Default)]
struct Frame {
    bytes: Vec<u8>,
    made: bool,
}

/// An event as a ZMTP message of three frames, event type, payload, header, or of four, with its metadata behind them.
#[derive(Default)]
pub struct EventMessage {
    bytes: Vec<u8>,
    event_type: Range<usize>,
    payload: Range<usize>,
    header: Range<usize>,
    made: bool,
}

impl EventMessage {
    /// All of it, as it goes to every peer without boxes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The event type as published.
    pub fn event_type(&self) -> &[u8] {
        &self.bytes[self.event_type.clone()]
    }

    /// Where the event type is in [`Self::bytes`].
    pub fn event_type_at(&self) -> usize {
        self.event_type.start
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.payload.clone()]
    }

    /// The header.
    pub fn header(&self) -> &[u8] {
        &self.bytes[self.header.clone()]
    }

    /// The frames behind the event type, as they go to every peer without boxes.
    pub fn behind_event_type(&self) -> &[u8] {
        &self.bytes[self.event_type.end..]
    }

    /// Appends a frame; gives where its payload is.
    fn push(&mut self, payload: &[u8], more: bool) -> Range<usize> {
        self.bytes.extend_from_slice(FrameHead::message(payload.len(), more).as_bytes());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        start..self.bytes.len()
    }
}

impl Frames {
    /// Has the headers of messages say that this node leads in `epoch`.
    pub fn lead_in(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// Forgets the last event.
    pub fn clear(&mut self) {
        self.payload.made = false;
        self.event.made = false;
        self.cloud_event.made = false;
        self.json.made = false;
        self.message.made = false;
        self.full_message.made = false;
        self.shared = None;
        self.token.clear();
    }

    /// Puts a resume token behind the event's id in its frames on streams.
    pub fn set_token(&mut self, token: &ResumeToken) {
        write!(self.token, "{token}").expect("a text takes everything");
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
            StreamForm::CloudEvent => {
                if !self.cloud_event.made {
                    self.make_cloud_event(id, publication);
                }
                &self.cloud_event.bytes
            }
        }
    }

    /// Returns the frame that [`Self::stream`] made, with another resume token behind the id.
    pub fn made_with_token(&self, form: StreamForm, token: &ResumeToken) -> Vec<u8> {
        let made = self.made(form);
        let end = made.iter().position(|byte| *byte == b'\n').expect("a frame begins with its id");
        let id = &made[..end - self.token.len()];
        let mut frame = Vec::with_capacity(made.len() + self.token.len());
        frame.extend_from_slice(id);
        write!(frame, "{token}").expect("a vector takes everything");
        frame.extend_from_slice(&made[end..]);
        frame
    }

    /// The frame as [`Self::stream`] made it.
    pub fn made(&self, form: StreamForm) -> &[u8] {
        match form {
            StreamForm::Payload => &self.payload.bytes,
            StreamForm::Event => &self.event.bytes,
            StreamForm::CloudEvent => &self.cloud_event.bytes,
        }
    }

    /// The event as a ZMTP message; of those who ask for metadata it has them, where there are any.
    pub fn message(&mut self, id: EventId, publication: &Publication<'_>, with_metadata: bool) -> &EventMessage {
        match publication.metadata().filter(|_| with_metadata) {
            Some(metadata) => {
                if !self.full_message.made {
                    let message = std::mem::take(&mut self.full_message);
                    self.full_message = self.make_message(message, id, publication, Some(metadata));
                }
                &self.full_message
            }
            None => {
                if !self.message.made {
                    let message = std::mem::take(&mut self.message);
                    self.message = self.make_message(message, id, publication, None);
                }
                &self.message
            }
        }
    }

    /// The message as [`Self::message`] made it.
    pub fn made_message(&self, with_metadata: bool) -> &EventMessage {
        if with_metadata && self.full_message.made { &self.full_message } else { &self.message }
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
        write!(out, "id: {id}{}\nevent: ", self.token).expect("a vector takes everything");
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

    fn make_message(
        &mut self,
        mut message: EventMessage,
        id: EventId,
        publication: &Publication<'_>,
        metadata: Option<&str>,
    ) -> EventMessage {
        message.bytes.clear();
        self.text.clear();
        publication.event_type().push_to(&mut self.text);
        message.event_type = message.push(self.text.trim().as_bytes(), true);
        let payload = publication.payload().plain().unwrap_or_else(|| {
            self.text.clear();
            publication.payload().push_to(&mut self.text);
            &self.text
        });
        message.payload = message.push(payload.as_bytes(), true);
        let EventId { publisher, incarnation, sequence, .. } = id;
        let created_utc_ns = publication.facts().time.unix_nanos();
        let derived = publication.is_derived() || publication.is_of_fleet();
        let flags = Flags { derived, marked: publication.is_marked(), ..Flags::default() };
        let header = EventHeader { flags, publisher, incarnation, sequence, created_utc_ns, epoch: self.epoch };
        message.bytes.extend_from_slice(FrameHead::message(HEADER_BYTES, metadata.is_some()).as_bytes());
        let start = message.bytes.len();
        header.encode(&mut message.bytes);
        message.header = start..start + HEADER_BYTES;
        if let Some(metadata) = metadata {
            message.push(metadata.as_bytes(), false);
        }
        message.made = true;
        message
    }

    /// `id:` and `data:` (the event as JSON).
    fn make_event(&mut self, id: EventId, publication: &Publication<'_>) {
        self.json(publication);
        let json = std::str::from_utf8(&self.json.bytes).expect("JSON is UTF-8");
        let out = &mut self.event.bytes;
        out.clear();
        writeln!(out, "id: {id}{}", self.token).expect("a vector takes everything");
        push_data(out, json);
        self.event.made = true;
    }

    /// `id:` and `data:` (the event as a CloudEvent in JSON).
    fn make_cloud_event(&mut self, id: EventId, publication: &Publication<'_>) {
        let out = &mut self.cloud_event.bytes;
        out.clear();
        let identity = id.to_string();
        write!(out, "id: {identity}{}\ndata: ", self.token).expect("a vector takes everything");
        let begin = out.len();
        Outgoing::new(&identity, publication).push_json(out);
        // White space in the publisher's JSON may have line ends, which would end the stream's line.
        if out[begin..].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let json = String::from_utf8(out.split_off(begin)).expect("JSON of texts is UTF-8");
            out.truncate(begin - b"data: ".len());
            push_data(out, &json);
        } else {
            out.extend_from_slice(b"\n\n");
        }
        self.cloud_event.made = true;
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
