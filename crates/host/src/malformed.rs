//! Log lines for requests that a core system answers as upstream's framework does: a status, and an empty body.

use bodkin_arrowhead::core_service::CoreSystem;

use crate::{answer::Answer, request::Request, seldom::SeldomOf};

/// Logs at most one such request of each core system a minute, with the number of those before it.
#[derive(Debug, Default)]
pub struct MalformedLog(SeldomOf);

impl MalformedLog {
    /// Logs an answer that gives its reason in a header only; other answers are ignored.
    pub fn note(&self, system: CoreSystem, request: &Request, answer: &Answer) {
        let Some(reason) = answer.reason() else { return };
        let Some(times) = self.0.due(system.name()) else { return };
        let (method, path, status) = (request.method.word(), &request.path, answer.status);
        let peer = request.sender.as_ref().map(|sender| tracing::field::display(sender.peer));
        let caller = request.caller.system().map(tracing::field::display);
        tracing::warn!(system = system.name(), method, path, status, reason, peer, caller, times, "malformed request rejected");
    }
}
