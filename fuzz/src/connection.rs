//! Bytes of a connection: requests at the server, their targets, an event stream at the client.

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_client::{EventParser, Part};
use bodkin_host::{
    http::RequestReader,
    request::{Method, split_target},
    route,
};

/// Longest body that the reader under test takes, in bytes; small, so that the limit is met.
const BODY_BYTES_MAX: usize = 256;
/// Longest line and data of an event that the parser under test takes, in bytes.
const EVENT_BYTES_MAX: usize = 64;

/// What a reader made of a connection: method, target, host, body of each request, and whether it ended in a refusal.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    requests: Vec<(String, String, String, Vec<u8>)>,
    refused: bool,
}

fn read_in_pieces(bytes: &[u8], piece: usize) -> Taken {
    let mut reader = RequestReader::new(BODY_BYTES_MAX);
    let mut taken = Taken { requests: Vec::new(), refused: false };
    for mut part in bytes.chunks(piece) {
        while !part.is_empty() {
            let space = reader.space().expect("the reader has no quota");
            let length = space.len().min(part.len());
            space[..length].copy_from_slice(&part[..length]);
            part = &part[length..];
            reader.fill(length);
        }
        loop {
            match reader.next() {
                Ok(Some(request)) => {
                    assert!(request.body.len() <= BODY_BYTES_MAX, "a body beyond the limit");
                    let words = (request.method.to_owned(), request.target.to_owned(), request.host.to_owned());
                    taken.requests.push((words.0, words.1, words.2, request.body.to_owned()));
                }
                Ok(None) => break,
                Err(error) => {
                    let (status, told) = error.told();
                    assert!((400..=505).contains(&status) && !told.is_empty());
                    return Taken { refused: true, ..taken };
                }
            }
        }
        reader.take_expects_continue();
        reader.shrink(0);
    }
    taken
}

/// A piece's length, then what a client sends: however it is cut, the same requests come out of it.
pub fn http_request(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    let whole = read_in_pieces(bytes, bytes.len().max(1));
    for piece in [1, usize::from(piece).max(1)] {
        assert_eq!(read_in_pieces(bytes, piece), whole, "in pieces of {piece}");
    }
}

/// A request's target, for every system and method.
pub fn request_target(bytes: &[u8]) {
    let Ok(target) = std::str::from_utf8(bytes) else { return };
    let (path, parameters) = split_target(target);
    assert!(target.starts_with(&*path) || target.contains('%'), "{path} is not the path of {target}");
    assert!(!path.contains(['?', '#']) || target.contains('%'), "{path} has a query");
    assert!(parameters.len() <= target.len(), "more parameters than bytes");
    for system in [CoreSystem::ServiceRegistry, CoreSystem::Authorization, CoreSystem::Orchestrator, CoreSystem::EventHandler] {
        for method in [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch, Method::Delete, Method::Other] {
            // Either way it is an answer; what must not happen is a panic.
            let _ = route::route(system, method, &path);
        }
    }
}

fn events_in_pieces(bytes: &[u8], piece: usize) -> (Vec<Part>, bool) {
    let mut parser = EventParser::new(EVENT_BYTES_MAX);
    let mut events = Vec::new();
    for part in bytes.chunks(piece) {
        let pushed = parser.push(part);
        events.extend(std::iter::from_fn(|| parser.pop()));
        if pushed.is_err() {
            return (events, true);
        }
    }
    (events, false)
}

/// A piece's length, then what a server sends: however it is cut, the same events and comments come out of it.
pub fn event_stream(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    let whole = events_in_pieces(bytes, bytes.len().max(1));
    for part in &whole.0 {
        let Part::Event(event) = part else { continue };
        assert!(event.data.len() <= EVENT_BYTES_MAX && !event.id.contains(['\n', '\r', '\0']), "{event:?}");
    }
    for piece in [1, usize::from(piece).max(1)] {
        assert_eq!(events_in_pieces(bytes, piece), whole, "in pieces of {piece}");
    }
}
