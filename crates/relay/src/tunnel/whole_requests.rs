//! HTTP requests of a tunnel that has no frames, kept whole: upstream's gateway writes each message to the provider as it comes, so that a request that is cut would
//! come in pieces there.

/// Longest request that is kept whole; of a longer one the pieces go as they come.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// Longest head that is waited for.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Gathers what a consumer says.
#[derive(Clone, Debug, Default)]
pub struct WholeRequests {
    kept: Vec<u8>,
    /// It is no HTTP, or nothing that says how long it is.
    is_raw: bool,
}

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// It is not whole.
    Cut,
    /// The request has so many bytes, its head among them.
    Request(usize),
    /// Nothing that can be kept whole.
    Other,
}

impl WholeRequests {
    /// Takes a piece; gives what is to be sent, a message each.
    pub fn take(&mut self, piece: &[u8]) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        self.kept.extend_from_slice(piece);
        while !self.is_raw && !self.kept.is_empty() {
            match head(&self.kept) {
                Head::Cut => break,
                Head::Request(length) if length > REQUEST_BYTES_MAX => self.is_raw = true,
                Head::Request(length) if length <= self.kept.len() => {
                    let rest = self.kept.split_off(length);
                    messages.push(std::mem::replace(&mut self.kept, rest));
                }
                Head::Request(_) => break,
                Head::Other => self.is_raw = true,
            }
        }
        if self.is_raw && !self.kept.is_empty() {
            messages.push(std::mem::take(&mut self.kept));
        }
        messages
    }

    /// Nothing more comes: what is left of it.
    pub fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }
}

/// Whether a message begins an HTTP request that says how long it is.
pub(super) fn is_request(message: &[u8]) -> bool {
    matches!(head(message), Head::Request(_))
}

/// A request as its message has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// Who asks wants the connection to end behind the answer.
    pub(super) is_last: bool,
}

/// A message that is one request, from its beginning to its end.
pub(super) fn whole_request(message: &[u8]) -> Option<Request<'_>> {
    if head(message) != Head::Request(message.len()) {
        return None;
    }
    let end = message.windows(HEAD_END.len()).position(|window| window == HEAD_END)?;
    let mut lines = std::str::from_utf8(&message[..end]).ok()?.split("\r\n");
    let (method, _) = lines.next()?.split_once(' ')?;
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let is_last = fields.any(|(name, value)| name.eq_ignore_ascii_case("connection") && names(value, "close"));
    Some(Request { method, is_last })
}

/// Whether a list of words has this one.
pub(super) fn names(list: &str, word: &str) -> bool {
    list.split(',').any(|named| named.trim().eq_ignore_ascii_case(word))
}

fn head(bytes: &[u8]) -> Head {
    let method = bytes.iter().position(|byte| !byte.is_ascii_uppercase());
    match method {
        // The first word of a request is one of the methods that there are.
        Some(0) => return Head::Other,
        Some(end) if bytes[end] != b' ' || end > 16 => return Head::Other,
        None if bytes.len() > 16 => return Head::Other,
        _ => {}
    }
    let Some(end) = bytes.windows(HEAD_END.len()).position(|window| window == HEAD_END) else {
        return if bytes.len() > HEAD_BYTES_MAX { Head::Other } else { Head::Cut };
    };
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return Head::Other };
    let mut lines = text.split("\r\n");
    if !lines.next().is_some_and(|line| line.ends_with(" HTTP/1.1")) {
        return Head::Other;
    }
    let mut length = 0;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") || name.eq_ignore_ascii_case("upgrade") {
            return Head::Other;
        }
        if name.eq_ignore_ascii_case("content-length") {
            let Ok(bytes) = value.trim().parse::<usize>() else { return Head::Other };
            length = bytes;
        }
    }
    Head::Request((end + HEAD_END.len()).saturating_add(length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    const POST: &[u8] = b"POST /a HTTP/1.1\r\nhost: h\r\ncontent-LENGTH: 5\r\n\r\n12345";

    #[test]
    fn what_is_no_request_of_a_known_length_goes_as_it_comes() {
        for raw in [
            &b"\x16\x03\x01"[..],
            b"get / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.0\r\n\r\n",
            b"HELLO\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\nbegin",
        ] {
            let mut requests = WholeRequests::default();
            assert_eq!(requests.take(raw), [raw.to_vec()], "{raw:?}");
            assert_eq!(requests.take(GET), [GET.to_vec()], "it stays so");
        }
        let mut requests = WholeRequests::default();
        let long = [b"GET /".as_slice(), &vec![b'a'; HEAD_BYTES_MAX]].concat();
        assert_eq!(requests.take(&long), [long]);
    }

    #[test]
    fn what_is_left_is_given_at_the_end() {
        let mut requests = WholeRequests::default();
        assert_eq!(requests.take(&POST[..POST.len() - 1]), Vec::<Vec<u8>>::new());
        assert_eq!((requests.end(), requests.end()), (POST[..POST.len() - 1].to_vec(), Vec::new()));
    }

    proptest! {
        #[test]
        fn however_requests_are_cut_each_is_one_message(which in proptest::collection::vec(any::<bool>(), 1..6), cut in 1..20_usize) {
            let expected: Vec<Vec<u8>> = which.iter().map(|gets| if *gets { GET } else { POST }.to_vec()).collect();
            let mut requests = WholeRequests::default();
            let messages: Vec<Vec<u8>> = expected.concat().chunks(cut).flat_map(|piece| requests.take(piece)).collect();
            prop_assert_eq!(messages, expected);
            prop_assert!(requests.end().is_empty());
        }
    }
}
