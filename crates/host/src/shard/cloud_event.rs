//! CloudEvents at `/api/v1/events` of the Event Handler's port: published by POST in either mode of HTTP, heard by GET as an event stream.
//!
//! Both go the way of every other event; what is refused is told as a problem (RFC 9457).

use bodkin_arrowhead::{
    error::ArrowheadError,
    publication::cloud_event::{CloudEventError, HttpEvent, publish_form},
};

use super::{SYSTEM, Shard};
use crate::{
    answer::Answer,
    http::RawRequest,
    request::{Method, Request},
    route,
};

/// Methods that it takes.
const METHODS: [Method; 2] = [Method::Get, Method::Post];

impl Shard {
    /// Answers a request there.
    pub(super) fn cloud_event(&mut self, slot: usize, request: &Request, raw: &RawRequest<'_>) {
        let allow = || Some(("Allow", route::allow_for_options(&METHODS, false)));
        match request.method {
            Method::Post => self.publish_cloud_event(slot, raw),
            Method::Get => {
                // Whoever may hear events in one form may in the other.
                let stream = route::route(SYSTEM, Method::Get, "/eventhandler/events").expect("events can be heard");
                self.open_stream(slot, request, stream.access, raw);
            }
            Method::Options => self.write(slot, &Answer { header: allow(), ..Answer::empty(200) }, raw.keep_alive, false),
            _ => self.write(slot, &Answer { header: allow(), ..Answer::empty(405) }, raw.keep_alive, request.method == Method::Head),
        }
    }

    fn publish_cloud_event(&mut self, slot: usize, raw: &RawRequest<'_>) {
        let event = HttpEvent { content_type: raw.content_type, attributes: &raw.cloud_event, body: raw.body };
        let form = match publish_form(&event) {
            Ok(form) => form,
            Err(CloudEventError::Kind(told)) => return self.refuse_request(slot, raw, Answer::problem(415, "No CloudEvent", &told)),
            Err(CloudEventError::Wrong(told)) => return self.refuse_request(slot, raw, Answer::problem(400, "No CloudEvent", &told)),
        };
        // The same event as a publisher of the Event Handler's says it.
        let said = RawRequest {
            method: raw.method,
            target: raw.target,
            host: raw.host,
            content_type: "application/json",
            trace: raw.trace,
            keep_alive: raw.keep_alive,
            body: form.as_bytes(),
            ..RawRequest::default()
        };
        if let Err(refusal) = self.publish_form(slot, &said) {
            self.refuse_request(slot, raw, as_problem(refusal));
        }
    }
}

/// A refusal of the Event Handler's as one of Bodkin's own interface.
fn as_problem(refusal: Answer) -> Answer {
    let told = match serde_json::from_slice::<ArrowheadError>(&refusal.body) {
        Ok(error) => error.error_message,
        Err(_) => "The event was not taken.".to_owned(),
    };
    Answer { header: refusal.header, account: refusal.account, ..Answer::problem(refusal.status, "Not published", &told) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Refusal;

    #[test]
    fn a_refusal_keeps_its_status_its_words_and_when_to_come_back() {
        let refusal = Answer { header: Some(("Retry-After", "1".into())), ..Refusal::from(ArrowheadError::too_fast("Slower.")).into() };
        let problem = as_problem(refusal);
        let told: serde_json::Value = serde_json::from_slice(&problem.body).unwrap();
        assert_eq!((problem.status, &told["detail"], problem.content_type), (429, &"Slower.".into(), Some("application/problem+json")));
        assert!(problem.header.is_some_and(|(name, _)| name == "Retry-After"));
        let nothing = as_problem(Answer::empty(400));
        assert_eq!(nothing.status, 400);
    }
}
