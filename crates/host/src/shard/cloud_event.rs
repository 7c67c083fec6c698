//! CloudEvents at `/api/v1/events` of the Event Handler's port: published by POST in either mode of HTTP, heard by GET as an event stream.
//!
//! Both go the way of every other event; what is refused is told as a problem (RFC 9457), which [`crate::problem`] makes of it. Who asks by OPTIONS whether it may post (CloudEvents' HTTP 1.1 Web Hooks, version 1.0.2) may if it may
//! publish; how fast is not limited here, for publishers that are too fast are told so (429).

use bodkin_arrowhead::publication::cloud_event::{CloudEventError, HttpEvent, publish_form};

use super::{SYSTEM, Shard};
use crate::{
    answer::{Answer, Permission},
    document,
    http::RawRequest,
    request::{Method, Request},
    route,
};

/// Letters of an origin: a host's name has 253 at the most, and a port may stand behind it.
const ORIGIN_LENGTH_MAX: usize = 259;

/// Methods that it takes.
const METHODS: [Method; 2] = [Method::Get, Method::Post];

impl Shard {
    /// Answers a request there.
    pub(super) fn cloud_event(&mut self, slot: usize, request: &Request, raw: &RawRequest<'_>) {
        let allow = || Some(("Allow", route::allow_for_options(&METHODS, false)));
        match request.method {
            Method::Post => match document::query::check_events(request) {
                Ok(()) => self.publish_cloud_event(slot, raw),
                Err(fault) => self.refuse_request(slot, raw, Answer::problem(400, &fault.to_string())),
            },
            Method::Get => {
                // Whoever may hear events in one form may in the other.
                let stream = route::route(SYSTEM, Method::Get, "/eventhandler/events").expect("events can be heard");
                self.open_stream(slot, request, stream.access, raw);
            }
            Method::Options => {
                let publishing = route::route(SYSTEM, Method::Post, "/eventhandler/publish").expect("events can be published");
                let may_publish = publishing.access.admit(&request.caller).is_ok();
                let origin = raw.webhook_origin.filter(|origin| may_publish && is_host(origin));
                let permission = origin.map(|origin| Box::new(Permission::Post { origin: origin.to_owned() }));
                self.write(slot, &Answer { header: allow(), permission, ..Answer::empty(200) }, raw.keep_alive, false);
            }
            _ => self.write(slot, &Answer { header: allow(), ..Answer::empty(405) }, raw.keep_alive, request.method == Method::Head),
        }
    }

    fn publish_cloud_event(&mut self, slot: usize, raw: &RawRequest<'_>) {
        let event = HttpEvent { content_type: raw.content_type, attributes: &raw.cloud_event, body: raw.body };
        let form = match publish_form(&event) {
            Ok(form) => form,
            Err(CloudEventError::Kind(told)) => return self.refuse_request(slot, raw, Answer::problem(415, &told)),
            Err(CloudEventError::Wrong(told)) => return self.refuse_request(slot, raw, Answer::problem(400, &told)),
        };
        // The same event as a publisher of the Event Handler's says it.
        let said = RawRequest {
            method: raw.method,
            target: raw.target,
            host: raw.host,
            content_type: "application/json",
            trace: raw.trace.clone(),
            keep_alive: raw.keep_alive,
            body: form.as_bytes(),
            ..RawRequest::default()
        };
        if let Err(refusal) = self.publish_form(slot, &said) {
            self.refuse_request(slot, raw, refusal);
        }
    }
}

/// Whether an origin is the name of a host, which is all that it may be (section 4.1.1 of Web Hooks): what is said back to its sender is nothing else.
fn is_host(origin: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    (1..=ORIGIN_LENGTH_MAX).contains(&origin.len()) && origin.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_name_of_a_host() {
        for origin in ["works.acme.arrowhead.eu", "10.0.0.1:8455", "[::1]:80", "my_host"] {
            assert!(is_host(origin), "{origin}");
        }
        for origin in ["", "*", "a b", "a, b", "http://works.acme", "h\u{f6}st", &"a".repeat(260)] {
            assert!(!is_host(origin), "{origin}");
        }
    }
}
