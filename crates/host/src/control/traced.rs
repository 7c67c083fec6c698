//! Spans of requests.

use bodkin_arrowhead::{core_service::CoreSystem, trace::Cause};

use super::Control;
use crate::{
    answer::Answer,
    document,
    request::Request,
    route::Operation,
    trace::{Kind, Span, Value},
};

impl Control {
    /// A request's span, if it is traced and spans are told, and what causes all that its answer asks of others.
    pub(super) fn begin_answer(&self, request: &Request) -> (Option<Span>, Option<Cause>) {
        let span = self.traces.as_deref().and_then(|traces| traces.begin(request.trace.as_ref(), Kind::Server));
        let cause = span.as_ref().map(Span::cause).or_else(|| request.trace.clone());
        (span, cause)
    }

    /// Notes in the request's trace how long its answer took.
    pub(super) fn end_answer(
        &self,
        span: Option<Span>,
        system: CoreSystem,
        operation: Option<Operation>,
        request: &Request,
        answer: &Answer,
    ) {
        // Paths have names and numbers of things in them; operations are few.
        let name = operation.map_or_else(|| request.method.word().to_owned(), |operation| format!("{operation:?}"));
        self.end(span, name, ("bodkin.system", system.name()), request, answer);
    }

    /// The span of a request to Bodkin's own port, if it is of a trace that is sampled. That is looked at all the time: none begins there.
    pub(crate) fn begin_answer_here(&self, request: &Request) -> (Option<Span>, Option<Cause>) {
        let span = self.traces.as_deref().and_then(|traces| traces.begin_in(request.trace.as_ref(), Kind::Server));
        let cause = span.as_ref().map(Span::cause).or_else(|| request.trace.clone());
        (span, cause)
    }

    /// Notes in that request's trace how long its answer took; of a live stream, how long until it has begun.
    pub(crate) fn end_answer_here(&self, span: Option<Span>, request: &Request, answer: &Answer) {
        if span.is_none() {
            return;
        }
        let route = document::route_at(&request.path).unwrap_or_default();
        let name = format!("{} {route}", request.method.word()).trim_end().to_owned();
        self.end(span, name, ("http.route", &route), request, answer);
    }

    fn end(&self, span: Option<Span>, name: String, (key, value): (&'static str, &str), request: &Request, answer: &Answer) {
        let (Some(traces), Some(span)) = (&self.traces, span) else { return };
        let text = |text: &str| Value::Text(text.to_owned());
        let mut attributes = vec![
            ("http.request.method", text(request.method.word())),
            ("url.path", text(&request.path)),
            ("http.response.status_code", Value::Number(answer.status.into())),
        ];
        attributes.extend((!value.is_empty()).then(|| (key, text(value))));
        let failure = (answer.status >= 500).then(|| format!("answered {}", answer.status));
        traces.end(span, name, attributes, failure);
    }
}
