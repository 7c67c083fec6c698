//! A request that came in on the Event Handler's port: publish and event streams are served here, any other goes to the control plane as a value, whose answer is written.

use tokio::sync::mpsc::error::TrySendError;

use super::{SYSTEM, Shard, connection::Phase};
use crate::{
    answer::Answer,
    audit,
    control::Control,
    http::{Persistence, RawRequest, RequestReader},
    inbox::ConnectionKey,
    listening::CLOUD_EVENTS,
    problem,
    request::{Method, Request},
    route::{self, Operation},
};

/// Requests that may wait for the control plane; one more is answered 503.
pub const CONTROL_REQUESTS_MAX: usize = 4096;

/// A request on its way to the control plane.
pub struct ControlRequest {
    /// Who waits for the answer.
    pub connection: ConnectionKey,
    /// What is asked.
    pub request: Request,
    /// The denial that it is answered with once the audit log knows of it; `None`: it is to be carried out.
    pub denial: Option<Answer>,
}

impl Shard {
    pub(super) fn request(&mut self, slot: usize, raw: &RawRequest<'_>) {
        let admission = self.context.gate.admit(raw);
        self.connections[slot].page = admission.reader;
        self.connections[slot].is_own = problem::is_told_at(raw.target);
        if let Some(answer) = admission.answer {
            return self.write(slot, &answer, raw.keep_alive, raw.method == "HEAD");
        }
        if raw.method == "POST" && raw.target == "/eventhandler/publish" {
            return self.publish(slot, raw);
        }
        let request = Request::from_raw(raw, self.connections[slot].client.peer.caller.clone());
        match route::route(SYSTEM, request.method, &request.path) {
            _ if request.path == CLOUD_EVENTS => self.cloud_event(slot, &request, raw),
            Ok(route) if route.operation == Operation::Publish => self.publish(slot, raw),
            Ok(route) if route.operation == Operation::EventStream => self.open_stream(slot, &request, route.access, raw),
            Ok(_) | Err(_) => self.ask_control(slot, request, raw, None),
        }
    }

    /// Refuses a request whose head is enough to refuse it; its body is not read. Returns true if it did.
    pub(super) fn refuse_by_head(&mut self, slot: usize, reader: &RequestReader) -> bool {
        // A head that cannot be read is an error of the whole request.
        let Ok(Some(raw)) = reader.head() else { return false };
        let raw = RawRequest { keep_alive: Persistence::Close, ..raw };
        let request = Request::from_raw(&raw, self.connections[slot].client.peer.caller.clone());
        let is_refused = self.context.gate.admit(&raw).answer.is_some() || !Control::admits(SYSTEM, &request);
        if is_refused {
            self.request(slot, &raw);
        }
        is_refused
    }

    /// Hands a request over to the control plane, or only the denial that it is answered with: to tell it may take waiting.
    fn ask_control(&mut self, slot: usize, request: Request, raw: &RawRequest<'_>, denial: Option<Answer>) {
        let keep_alive = raw.keep_alive;
        let connection = &mut self.connections[slot];
        let request = match connection.ends() {
            Some((peer, local)) => request.over(raw, peer, local),
            None => request,
        };
        let is_head = request.method == Method::Head;
        let key = ConnectionKey { slot, serial: connection.serial };
        match self.context.control.try_send(ControlRequest { connection: key, request, denial }) {
            Ok(()) => connection.phase = Phase::Waiting { keep_alive, is_head },
            Err(error) => {
                let told = match error {
                    TrySendError::Full(_) => format!("{CONTROL_REQUESTS_MAX} requests are waiting. Try again later."),
                    TrySendError::Closed(_) => "The local cloud is shutting down.".to_owned(),
                };
                self.write(slot, &Answer::text(503, told), keep_alive, is_head);
            }
        }
    }

    /// Answers what the shard refuses; a denial goes by way of the audit log.
    pub(super) fn refuse_request(&mut self, slot: usize, raw: &RawRequest<'_>, refusal: Answer) {
        if refusal.reason().is_some() {
            let request = Request::from_raw(raw, self.connections[slot].client.peer.caller.clone());
            self.malformed.note(SYSTEM, &request, &refusal);
        }
        if !audit::is_denial(refusal.status) {
            return self.write(slot, &refusal, raw.keep_alive, raw.method == "HEAD");
        }
        let request = Request::from_raw(raw, self.connections[slot].client.peer.caller.clone());
        self.ask_control(slot, request, raw, Some(refusal));
    }

    pub(super) fn answered(&mut self, key: ConnectionKey, answer: &Answer) {
        let Some(connection) = self.connections.get_mut(key.slot).filter(|connection| connection.serial == key.serial) else { return };
        if let Phase::Waiting { keep_alive, is_head } = connection.phase {
            connection.phase = Phase::Requests;
            self.write(key.slot, answer, keep_alive, is_head);
            self.serve(key.slot);
            self.resume(key.slot);
        }
    }
}
