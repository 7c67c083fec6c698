//! Reads server-sent events by the rules of the WHATWG HTML standard, section 9.2, as far as `data` goes.
//!
//! Nothing is allocated once the two buffers have reached the size of the longest event.

/// Longest accepted line or event, in bytes.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// The stream sent a line or an event longer than [`EVENT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

impl std::fmt::Display for EventTooLong {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "an event of the stream is longer than {EVENT_BYTES_MAX} bytes")
    }
}

impl std::error::Error for EventTooLong {}

/// The event being read.
#[derive(Debug, Default)]
struct Event {
    /// Its `data`, each line followed by a line feed.
    data: Vec<u8>,
    /// The `id` that holds for it, and for those after it until another comes.
    id: Vec<u8>,
    /// The `id` of the last whole event: where the stream goes on after a break.
    whole_id: Vec<u8>,
}

/// The state between two pieces of a stream.
#[derive(Debug, Default)]
pub struct SseReader {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    event: Event,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    after_return: bool,
}

impl SseReader {
    /// Takes bytes of the stream and calls `told` with the data of each event they complete, in order.
    ///
    /// # Errors
    /// A line or an event is too long; the reader is of no use afterwards.
    pub fn take(&mut self, mut input: &[u8], mut told: impl FnMut(&[u8])) -> Result<(), EventTooLong> {
        if self.after_return && input.first() == Some(&b'\n') {
            input = &input[1..];
        }
        if !input.is_empty() {
            self.after_return = false;
        }
        while let Some(end) = input.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.line.is_empty() {
                self.event.end_line(&input[..end], &mut told)?;
            } else {
                self.line.extend_from_slice(&input[..end]);
                self.event.end_line(&self.line, &mut told)?;
                self.line.clear();
            }
            let returned = input[end] == b'\r';
            input = &input[end + 1..];
            match input.first() {
                Some(b'\n') if returned => input = &input[1..],
                None => self.after_return = returned,
                Some(_) => {}
            }
        }
        if self.line.len() + input.len() > EVENT_BYTES_MAX {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(input);
        Ok(())
    }

    /// The id of the last whole event; empty before the first.
    pub fn last_id(&self) -> &[u8] {
        &self.event.whole_id
    }
}

impl Event {
    fn end_line(&mut self, line: &[u8], told: &mut impl FnMut(&[u8])) -> Result<(), EventTooLong> {
        if line.is_empty() {
            self.whole_id.clone_from(&self.id);
            if let Some((_, event)) = self.data.split_last() {
                told(event);
                self.data.clear();
            }
            return Ok(());
        }
        if let Some(value) = line.strip_prefix(b"id:") {
            self.id.clear();
            self.id.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            return Ok(());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', value @ ..]) => value.strip_prefix(b" ").unwrap_or(value),
            _ => return Ok(()),
        };
        if self.data.len() + value.len() > EVENT_BYTES_MAX {
            return Err(EventTooLong);
        }
        self.data.extend_from_slice(value);
        self.data.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            reader.take(piece, |data| events.push(String::from_utf8(data.to_vec()).unwrap())).unwrap();
        }
        events
    }

    #[test]
    fn every_cut_gives_the_same_events() {
        let stream = b": hello\r\n\r\nevent: T\nid: 7\ndata: one\n\ndata:two\rdata:  three\r\rdata\n\ndatum: no\n\nid: 8\r\ndata: four\r\n\r\ndata: cut";
        for cut in 0..=stream.len() {
            for second in cut..=stream.len() {
                let told = events(&[&stream[..cut], &stream[cut..second], &stream[second..]]);
                assert_eq!(told, ["one", "two\n three", "", "four"], "{cut} {second}");
            }
        }
    }

    #[test]
    fn the_id_of_the_last_whole_event_is_kept() {
        let mut reader = SseReader::default();
        assert_eq!(reader.last_id(), b"");
        reader.take(b"id: 7-1\ndata: x\n\nid:8\ndata: cut", |_| {}).unwrap();
        assert_eq!(reader.last_id(), b"7-1", "an event that was cut has not come");
        reader.take(b"\n\n", |_| {}).unwrap();
        assert_eq!(reader.last_id(), b"8");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut reader = SseReader::default();
        let piece = vec![b'x'; EVENT_BYTES_MAX];
        assert_eq!(reader.take(&piece, |_| {}), Ok(()));
        assert_eq!(reader.take(b"x", |_| {}), Err(EventTooLong));
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut reader = SseReader::default();
        let line = [b"data:".as_slice(), &[b'x'; 1024], b"\n"].concat();
        let refused = (0..=EVENT_BYTES_MAX / 1024).any(|_| reader.take(&line, |_| {}).is_err());
        assert!(refused);
    }
}
