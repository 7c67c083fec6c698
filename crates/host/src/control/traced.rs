//! Spans of requests.

use std::future::Future;

use bodkin_arrowhead::core_service::CoreSystem;

use super::Control;
use crate::{
    answer::Answer,
    request::Request,
    route::Operation,
    trace::{self, Kind, Value},
};

impl Control {
    /// Answers, and notes in the request's trace how long that took. What the answer asks of others is of the same trace.
    pub(super) async fn traced(
        &self,
        system: CoreSystem,
        operation: Option<Operation>,
        request: &Request,
        answer: impl Future<Output = Answer>,
    ) -> Answer {
        let begun = self.traces.as_deref().and_then(|traces| Some((traces, traces.begin(request.trace, Kind::Server)?)));
        let cause = begun.as_ref().map(|(_, span)| span.context()).or(request.trace);
        let answer = trace::caused_by(cause, answer).await;
        if let Some((traces, span)) = begun {
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
        answer
    }
}
