//! The event stream format by the WHATWG rules: one leading BOM, lines ended by CR, LF or CR LF, comments,
//! `data` of several lines, `id` that stays, `retry` of digits only, no event without data, nothing at a cut end.

/// What a stream told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A dispatched event.
    Event(Event),
    /// A comment line without its colon.
    Comment(String),
    /// A reconnection time in milliseconds.
    Retry(u64),
}

/// An event as an `EventSource` would hear it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The `event` field, `message` without one.
    pub event_type: String,
    /// The `data` lines joined by line feeds.
    pub data: String,
    /// The last `id` field.
    pub id: String,
}

/// The reader's state between two pieces of the stream.
#[derive(Default)]
pub struct Reader {
    line: Vec<u8>,
    after_carriage_return: bool,
    started: bool,
    event_type: String,
    data: String,
    id: String,
}

impl Reader {
    /// Takes a piece cut anywhere and appends what it told.
    pub fn feed(&mut self, piece: &[u8], told: &mut Vec<Told>) {
        for &byte in piece {
            let ends_carriage_return = std::mem::take(&mut self.after_carriage_return);
            match byte {
                b'\n' if ends_carriage_return => {}
                b'\n' => self.end_line(told),
                b'\r' => {
                    self.after_carriage_return = true;
                    self.end_line(told);
                }
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self, told: &mut Vec<Told>) {
        let bytes = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&bytes).into_owned();
        if !self.started {
            self.started = true;
            line = line.strip_prefix('\u{feff}').map(String::from).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(told);
        }
        if let Some(comment) = line.strip_prefix(':') {
            return told.push(Told::Comment(comment.to_string()));
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        self.field(field, value.strip_prefix(' ').unwrap_or(value), told);
    }

    fn field(&mut self, field: &str, value: &str, told: &mut Vec<Told>) {
        match field {
            "event" => self.event_type = value.to_string(),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => self.id = value.to_string(),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                told.extend(value.parse().ok().map(Told::Retry));
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, told: &mut Vec<Told>) {
        let event_type = std::mem::take(&mut self.event_type);
        let mut data = std::mem::take(&mut self.data);
        if data.is_empty() {
            return;
        }
        data.pop();
        let event_type = if event_type.is_empty() { "message".to_string() } else { event_type };
        told.push(Told::Event(Event { event_type, data, id: self.id.clone() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &str) -> Vec<Told> {
        let mut whole = Vec::new();
        Reader::default().feed(stream.as_bytes(), &mut whole);
        // However the stream is cut, the same is told.
        let (mut reader, mut cut) = (Reader::default(), Vec::new());
        stream.as_bytes().chunks(1).for_each(|byte| reader.feed(byte, &mut cut));
        assert_eq!(whole, cut);
        whole
    }

    fn event(event_type: &str, data: &str, id: &str) -> Told {
        Told::Event(Event { event_type: event_type.into(), data: data.into(), id: id.into() })
    }

    #[test]
    fn lines_end_by_any_of_three_forms_and_data_lines_are_joined() {
        let expected = vec![event("x", "a\nb", "")];
        assert_eq!(read("event: x\ndata: a\ndata: b\n\n"), expected);
        assert_eq!(read("event: x\rdata: a\rdata: b\r\r"), expected);
        assert_eq!(read("\u{feff}event: x\r\ndata: a\r\ndata: b\r\n\r\n"), expected);
    }

    #[test]
    fn an_id_stays_and_an_event_without_data_is_none() {
        assert_eq!(read("id: 7\n\nevent: lost\n\ndata:one\n\ndata\n\n"), [event("message", "one", "7"), event("message", "", "7")]);
    }

    #[test]
    fn comments_and_retry_are_told_and_a_cut_event_is_not() {
        assert_eq!(read(": hello\nretry: 10\nretry: ten\nunknown: x\ndata: cut\n"), [Told::Comment(" hello".into()), Told::Retry(10)]);
    }
}
