//! Spans of requests.

use bodkin_arrowhead::{core_service::CoreSystem, trace::TraceContext};

use super::Control;
use crate::{
    answer::Answer,
    request::Request,
    route::Operation,
    trace::{Kind, Span, Value},
};

impl Control {
    /// A request's span, if it is traced and spans are told, and what causes all that its answer asks of others.
    pub(super) fn begin_answer(&self, request: &Request) -> (Option<Span>, Option<TraceContext>) {
        let span = self.traces.as_deref().and_then(|traces| traces.begin(request.trace, Kind::Server));
        let cause = span.as_ref().map(Span::context).or(request.trace);
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
        let (Some(traces), Some(span)) = (&self.traces, span) else { return };
        let text = |text: &str| Value::Text(text.to_owned());
        let attributes = vec![
            ("http.request.method", text(request.method.word())),
            ("url.path", text(&request.path)),
            ("http.response.status_code", Value::Number(answer.status.into())),
            ("bodkin.system", text(system.name())),
        ];
        // Paths have names and numbers of things in them; operations are few.
        let name = operation.map_or_else(|| request.method.word().to_owned(), |operation| format!("{operation:?}"));
        let failure = (answer.status >= 500).then(|| format!("answered {}", answer.status));
        traces.end(span, name, attributes, failure);
    }
}
