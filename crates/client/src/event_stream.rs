//! An event stream of the Event Handler.

use http::{Method, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{
    connection::Connection,
    error::CallError,
    event_parser::{Event, EventParser, Part},
};

/// Events as the Event Handler sends them, over a connection of their own. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Events {
    address: String,
    body: Incoming,
    parser: EventParser,
    end: Option<CallError>,
}

impl Events {
    /// Opens the stream at `path`, which continues after the event `after` if that is not empty; returns when the Event Handler has accepted it, of
    /// a pair that of the node that leads.
    pub(crate) async fn open(event_handler: &Connection, path: &str, after: &str) -> Result<Self, CallError> {
        let mut search = event_handler.search();
        loop {
            match Self::open_once(event_handler, path, after).await {
                Err(error) => search.go_on(error, true).await?,
                opened => return opened,
            }
        }
    }

    async fn open_once(event_handler: &Connection, path: &str, after: &str) -> Result<Self, CallError> {
        // The kept connection stays free for calls.
        let connection = event_handler.twin();
        let mut request = connection.request(&Method::GET, path, None)?;
        request.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static("text/event-stream"));
        let mut sender = connection.connect().await?;
        let response = connection.head(&mut sender, request).await?;
        connection.leading(&response)?;
        if response.status() != StatusCode::OK {
            return Err(connection.refusal(&connection.body(path, response).await?));
        }
        let parser = EventParser::after(after, connection.limits().event_bytes_max);
        Ok(Self { address: connection.address(), body: response.into_body(), parser, end: None })
    }

    /// Waits for the next event, without a limit of its own: an event type may be silent for hours. `None` when the
    /// stream has ended; [`Self::end`] then says why. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Part::Event(event) = self.next_part().await? {
                return Some(event);
            }
        }
    }

    /// As [`Self::next`], comments too: Bodkin's Event Handler tells `live` when a replay has reached the present, and
    /// `heartbeat` when there was nothing else to send.
    pub async fn next_part(&mut self) -> Option<Part> {
        loop {
            if let Some(part) = self.parser.pop() {
                return Some(part);
            }
            if self.end.is_some() {
                return None;
            }
            self.end = match self.body.frame().await {
                Some(Ok(frame)) => match frame.data_ref().map(|bytes| self.parser.push(bytes)) {
                    Some(Err(too_long)) => {
                        Some(CallError::EventTooLong { address: self.address.clone(), limit_bytes: too_long.limit_bytes })
                    }
                    Some(Ok(())) | None => None,
                },
                Some(Err(error)) => Some(self.broken(&format!("the event stream broke ({error})"))),
                None => Some(CallError::StreamEnded { address: self.address.clone() }),
            };
        }
    }

    /// Why the stream has ended, once [`Self::next`] gave `None`.
    pub fn end(&self) -> Option<&CallError> {
        self.end.as_ref()
    }

    fn broken(&self, why: &str) -> CallError {
        CallError::Unreachable { address: self.address.clone(), why: why.to_owned() }
    }
}
