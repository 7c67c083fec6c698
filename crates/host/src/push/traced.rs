//! Spans of events that are sent, and the traces that they are said to be of.

use bodkin_arrowhead::trace::Cause;

use super::{
    link::{PushError, PushEvent, Target},
    response::Response,
};
use crate::trace::{Kind, Span, Value};

/// The traces of events that are being sent together.
#[derive(Debug, Default)]
pub struct Sending {
    /// Of each event, in their order; empty where no event is of a trace.
    each: Vec<Of>,
}

/// What is known of one event.
#[derive(Clone, Debug, Default)]
struct Of {
    /// What its sending is caused by: what the event says.
    cause: Option<Cause>,
    /// Its sending, where that is told.
    span: Option<Span>,
}

impl Sending {
    /// Begins to send events.
    pub fn begin(target: &Target<'_>, events: &[PushEvent]) -> Self {
        let mut each = Vec::new();
        for (at, event) in events.iter().enumerate() {
            let Some(cause) = Cause::of_event(&event.json) else { continue };
            each.resize_with(events.len(), Of::default);
            let span = target.traces.and_then(|traces| traces.begin_in(Some(&cause), Kind::Producer));
            each[at] = Of { cause: Some(cause), span };
        }
        Self { each }
    }

    /// What the receiver of an event is told that it is caused by.
    pub fn cause(&self, at: usize) -> Option<Cause> {
        let of = self.each.get(at)?;
        of.span.as_ref().map(Span::cause).or_else(|| of.cause.clone())
    }

    /// Ends it. Of the events in front there are answers; `error` is why there are no more.
    pub fn end(self, target: &Target<'_>, events: &[PushEvent], answers: &[Response], error: Option<&PushError>) {
        let Some(traces) = target.traces else { return };
        for (at, (of, event)) in self.each.into_iter().zip(events).enumerate() {
            let Some(span) = of.span else { continue };
            let text = |text: &str| Value::Text(text.to_owned());
            let to = target.neighbor.as_ref().map_or_else(|| target.subscriber.system_name.to_string(), |neighbor| neighbor.cloud());
            let mut attributes = vec![
                ("messaging.operation.type", text("send")),
                ("messaging.message.id", text(&event.id.to_string())),
                ("bodkin.subscriber", text(&to)),
            ];
            let failure = match answers.get(at) {
                Some(answer) => {
                    attributes.push(("http.response.status_code", Value::Number(answer.status.into())));
                    (!matches!(answer.status, 200..300)).then(|| format!("answered {}", answer.status))
                }
                None => Some(error.map_or_else(|| "it was not answered".to_owned(), PushError::to_string)),
            };
            traces.end(span, "deliver".to_owned(), attributes, failure);
        }
    }
}
