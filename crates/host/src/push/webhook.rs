//! What is said to a sink of CloudEvents before and with them (CloudEvents' HTTP 1.1 Web Hooks for Event Delivery, version 1.0.2): it is asked whether it wants any, and events follow
//! no faster than it allows.

use std::{
    io::Write,
    num::NonZeroU32,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{common_name::CloudCommonName, publication::cloud_event::ContentMode};

use super::{
    link::PushError,
    response::{Permission, Response},
};
use crate::control::Endpoint;

/// What a sink of CloudEvents has asked for.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Where attributes are.
    pub mode: ContentMode,
    /// Who posts: the name of this cloud, whichever of its nodes it is.
    pub origin: CloudCommonName,
}

/// The path at a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sink {
    endpoint: Endpoint,
    path: String,
}

impl Sink {
    /// A path at a subscriber.
    pub fn new(endpoint: Endpoint, path: &str) -> Self {
        Self { endpoint, path: path.to_owned() }
    }
}

/// What a sink has said when it was asked.
#[derive(Debug, Default)]
pub struct Grant {
    /// Which one has granted it; none has, or it does no more.
    of: Option<Sink>,
    /// Between two requests.
    interval: Duration,
    /// When the next request may go.
    next: Option<Instant>,
}

impl Grant {
    /// Whether this sink wants events.
    pub fn is_of(&self, sink: &Sink) -> bool {
        self.of.as_ref() == Some(sink)
    }

    /// Takes the answer of a sink that was asked.
    pub fn take(&mut self, sink: Sink, answer: &Response, origin: &CloudCommonName) -> Result<(), PushError> {
        *self = Self::default();
        match answer.permission {
            Permission::Granted { per_minute } => {
                self.of = Some(sink);
                self.interval = per_minute.map_or(Duration::ZERO, |rate: NonZeroU32| Duration::from_secs(60) / rate.get());
                Ok(())
            }
            _ if answer.status == 429 || answer.status >= 500 => Err(PushError::Status(*answer, "")),
            Permission::Silent => {
                Err(PushError::NotWanted { status: answer.status, origin: origin.to_string(), told: "without WebHook-Allowed-Origin" })
            }
            Permission::OfAnother => {
                Err(PushError::NotWanted { status: answer.status, origin: origin.to_string(), told: "for another origin" })
            }
        }
    }

    /// A sink that is gone has to be asked again.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// How long to wait for the next request.
    pub fn pause(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// Whether requests may follow each other at once.
    pub fn is_unlimited(&self) -> bool {
        self.interval.is_zero()
    }

    /// Notes that so many requests went.
    pub fn spend(&mut self, now: Instant, requests: usize) {
        if !self.interval.is_zero() {
            self.next = Some(now + self.interval * u32::try_from(requests).unwrap_or(u32::MAX));
        }
    }
}

/// Writes the question whether a sink wants events.
pub fn write_question(out: &mut Vec<u8>, path: &str, host: std::fmt::Arguments<'_>, origin: &CloudCommonName) {
    let question = format_args!("OPTIONS {path} HTTP/1.1\r\nHost: {host}\r\nWebHook-Request-Origin: {origin}\r\nContent-Length: 0\r\n\r\n");
    out.write_fmt(question).expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::address::Address;

    use super::*;

    fn origin() -> CloudCommonName {
        CloudCommonName::parse("works.acme.arrowhead.eu").unwrap()
    }

    fn answer(status: u16, permission: Permission) -> Response {
        Response { status, keeps_alive: true, retry_after: None, permission }
    }

    fn sink(path: &str) -> Sink {
        Sink::new(Endpoint { address: Address::from_stored("127.0.0.1"), port: 9 }, path)
    }

    #[test]
    fn only_the_sink_that_has_said_so_is_sent_events() {
        let mut grant = Grant::default();
        assert!(!grant.is_of(&sink("/in")));
        for none in [answer(200, Permission::Silent), answer(200, Permission::OfAnother), answer(405, Permission::Silent)] {
            let told = grant.take(sink("/in"), &none, &origin()).unwrap_err().to_string();
            assert!(told.contains("OPTIONS") && told.contains("works.acme") && !grant.is_of(&sink("/in")), "{told}");
        }
        // Consent is what the header says, and not the status.
        grant.take(sink("/in"), &answer(404, Permission::Granted { per_minute: None }), &origin()).unwrap();
        assert!(grant.is_of(&sink("/in")) && !grant.is_of(&sink("/other")) && grant.is_unlimited());
        grant.end();
        assert!(!grant.is_of(&sink("/in")));
    }

    #[test]
    fn a_sink_that_cannot_answer_now_is_asked_later() {
        let busy = Response { retry_after: Some(Duration::from_secs(7)), ..answer(429, Permission::Silent) };
        let error = Grant::default().take(sink("/in"), &busy, &origin()).unwrap_err();
        assert!(matches!(error, PushError::Status(response, _) if response.retry_after == Some(Duration::from_secs(7))), "{error}");
    }

    #[test]
    fn requests_keep_to_the_rate_that_was_allowed() {
        let (mut grant, now) = (Grant::default(), Instant::now());
        grant.take(sink("/in"), &answer(200, Permission::Granted { per_minute: NonZeroU32::new(120) }), &origin()).unwrap();
        assert_eq!((grant.pause(now), grant.is_unlimited()), (Duration::ZERO, false));
        grant.spend(now, 1);
        assert_eq!(grant.pause(now), Duration::from_millis(500));
        assert_eq!(grant.pause(now + Duration::from_millis(500)), Duration::ZERO);
    }
}
