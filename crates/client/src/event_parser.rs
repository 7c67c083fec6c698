//! Server-sent events as bytes: the parsing rules of WHATWG's event-stream format, without the socket.

use std::{collections::VecDeque, mem};

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The last `id` the stream gave, or the one that it continues after; empty if there is none.
    pub id: String,
    /// The `event` field; `message` if the stream gave none.
    pub event: String,
    /// The `data` lines, joined with line feeds.
    pub data: String,
}

/// What a stream gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// An event.
    Event(Event),
    /// The text of a comment, without the space in front of it.
    Comment(String),
}

/// A line, or the data of one event, is longer than the parser's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line or the data of an event is longer than {limit_bytes} bytes")]
pub struct EventTooLong {
    /// The limit, in bytes.
    pub limit_bytes: usize,
}

/// Takes a stream in pieces of any size and gives its events and comments.
///
/// Call [`Self::push`] with what was received, then [`Self::pop`] until there is nothing.
#[derive(Debug)]
pub struct EventParser {
    limit_bytes: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_carriage_return: bool,
    first_line: bool,
    id: String,
    event: String,
    data: String,
    ready: VecDeque<Part>,
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl EventParser {
    /// A parser at the start of a stream. `limit_bytes` bounds a line and the data of an event.
    pub fn new(limit_bytes: usize) -> Self {
        Self::after("", limit_bytes)
    }

    /// A parser of a stream that continues after the event with this id. Until the stream gives another id, its events have this one (WHATWG HTML,
    /// section 9.2.6: the last event ID outlives a connection), so that a client that loses the connection again asks for the same events.
    pub fn after(id: &str, limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            line: Vec::new(),
            after_carriage_return: false,
            first_line: true,
            id: id.to_owned(),
            event: String::new(),
            data: String::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next whole event or comment.
    pub fn pop(&mut self) -> Option<Part> {
        self.ready.pop_front()
    }

    /// Takes the next bytes of the stream. After an error the stream cannot be continued.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        if mem::take(&mut self.after_carriage_return) {
            match rest.split_first() {
                Some((b'\n', after)) => rest = after,
                Some(_) => {}
                None => self.after_carriage_return = true,
            }
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.extend_line(&rest[..end])?;
            self.end_line()?;
            let carriage_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if carriage_return {
                self.after_carriage_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend_line(rest)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > self.limit_bytes {
            return Err(EventTooLong { limit_bytes: self.limit_bytes });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), EventTooLong> {
        let mut bytes = mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if mem::take(&mut self.first_line) { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        if line.is_empty() {
            self.dispatch();
        } else {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            self.take_field(field, value.strip_prefix(' ').unwrap_or(value))?;
        }
        // Keeps the buffer for the next line.
        bytes.clear();
        self.line = bytes;
        Ok(())
    }

    /// A comment is a line with an empty field; `retry` and unknown fields are ignored.
    fn take_field(&mut self, field: &str, value: &str) -> Result<(), EventTooLong> {
        match field {
            "data" => {
                if self.data.len() + value.len() > self.limit_bytes {
                    return Err(EventTooLong { limit_bytes: self.limit_bytes });
                }
                self.data.push_str(value);
                self.data.push('\n');
            }
            "" => self.ready.push_back(Part::Comment(value.to_owned())),
            "event" => value.clone_into(&mut self.event),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            _ => {}
        }
        Ok(())
    }

    /// A blank line ends an event; one without any `data` line is none.
    fn dispatch(&mut self) {
        let event = mem::take(&mut self.event);
        if self.data.pop().is_some() {
            let event = if event.is_empty() { "message".to_owned() } else { event };
            self.ready.push_back(Part::Event(Event { id: self.id.clone(), event, data: mem::take(&mut self.data) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT_BYTES: usize = 64;

    fn parts(pieces: &[&[u8]]) -> Result<Vec<Part>, EventTooLong> {
        let mut parser = EventParser::new(LIMIT_BYTES);
        let mut parts = Vec::new();
        for piece in pieces {
            parser.push(piece)?;
            parts.extend(std::iter::from_fn(|| parser.pop()));
        }
        Ok(parts)
    }

    fn parse(pieces: &[&[u8]]) -> Result<Vec<Event>, EventTooLong> {
        let event = |part| if let Part::Event(event) = part { Some(event) } else { None };
        Ok(parts(pieces)?.into_iter().filter_map(event).collect())
    }

    fn check(stream: &str, expected: &[(&str, &str, &str)]) {
        let expected: Vec<Event> =
            expected.iter().map(|(id, event, data)| Event { id: (*id).into(), event: (*event).into(), data: (*data).into() }).collect();
        assert_eq!(parse(&[stream.as_bytes()]).unwrap(), expected, "{stream:?}");
    }

    #[test]
    fn fields_make_events_as_the_standard_says() {
        check("data: a\n\n", &[("", "message", "a")]);
        check("event: load\nid: 7\ndata: 12\n\n", &[("7", "load", "12")]);
        check("data:no space\n\ndata:  two\n\n", &[("", "message", "no space"), ("", "message", " two")]);
        check("data: a\ndata\ndata: b\n\n", &[("", "message", "a\n\nb")]);
        check(": comment\n\nretry: 10\nnonsense: x\ndata: a\n\n", &[("", "message", "a")]);
        check("event: lost\n\ndata: a\n\n", &[("", "message", "a")]);
        check("data\n\n", &[("", "message", "")]);
        check("data: unfinished\n", &[]);
    }

    #[test]
    fn comments_keep_their_place() {
        let told = parts(&[b"retry: 10\n: live\n\n:heartbeat\ndata: a\n\n"]).unwrap();
        assert_eq!(told[..2], [Part::Comment("live".into()), Part::Comment("heartbeat".into())]);
        assert!(matches!(&told[2..], [Part::Event(event)] if event.data == "a"));
    }

    #[test]
    fn an_id_stays_until_another_one_and_never_holds_nul() {
        check(
            "id: 1\ndata: a\n\ndata: b\n\nid: 2\u{0}\ndata: c\n\nid\ndata: d\n\n",
            &[("1", "message", "a"), ("1", "message", "b"), ("1", "message", "c"), ("", "message", "d")],
        );
    }

    #[test]
    fn notice_before_first_event_keeps_former_id() {
        let mut parser = EventParser::after("7", LIMIT_BYTES);
        parser.push(b"event: bodkin-guarantee\ndata: {}\n\nid: 8\ndata: a\n\n").unwrap();
        let ids = std::iter::from_fn(|| parser.pop()).map(|part| if let Part::Event(event) = part { event.id } else { String::new() });
        assert_eq!(ids.collect::<Vec<_>>(), ["7", "8"]);
    }

    #[test]
    fn any_line_end_and_one_byte_order_mark_are_understood() {
        check("\u{feff}data: a\r\rdata: b\r\n\r\ndata: c\n\r\n", &[("", "message", "a"), ("", "message", "b"), ("", "message", "c")]);
        check("data: a\n\n\u{feff}data: b\n\n", &[("", "message", "a")]);
    }

    #[test]
    fn any_cut_of_the_stream_gives_the_same_events() {
        let stream = "\u{feff}event: größe\r\nid: 1\r\ndata: 1\r\ndata: 2\r\n\r\n: x\r\rdata: ü\n\ndata: end\r\n\r\n".as_bytes();
        let whole = parse(&[stream]).unwrap();
        assert_eq!(whole.len(), 3);
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(parse(&pieces).unwrap(), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_stream_without_end_of_line_or_event_is_stopped_at_the_limit() {
        let too_long = Err(EventTooLong { limit_bytes: LIMIT_BYTES });
        assert_eq!(parse(&[&[b'x'; LIMIT_BYTES + 1]]), too_long);
        assert_eq!(parse(&[&[b'x'; LIMIT_BYTES], b"x"]), too_long);
        let lines = b"data: 0123456789\n".repeat(10);
        assert_eq!(parse(&[&lines]), too_long);
    }
}
