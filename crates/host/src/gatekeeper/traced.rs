//! Spans of dialogues: what is asked says in its sealed message which trace it is of, so that the other cloud's answer is of the same.

use std::{future::Future, pin::Pin, sync::Arc};

use bodkin_arrowhead::{dialogue::Subject, trace::Cause};

use super::{Gatekeeper, Partner};
use crate::trace::{self, Attributes, Kind, Span, Traces, Value};

impl Gatekeeper {
    /// Has dialogues be told of.
    pub fn telling(self, traces: Option<Arc<Traces>>) -> Self {
        Self { traces, ..self }
    }

    /// What a dialogue that begins now is caused by, and its own span where there is one.
    pub(super) fn begin_asking(&self) -> (Option<Cause>, Option<Span>) {
        let cause = trace::cause();
        let span = self.traces.as_deref().and_then(|traces| traces.begin_in(cause.as_ref(), Kind::Client));
        (span.as_ref().map(Span::cause).or(cause), span)
    }

    pub(super) fn end_asking(&self, span: Option<Span>, partner: &Partner, subject: Subject, failure: Option<String>) {
        if let (Some(traces), Some(span)) = (&self.traces, span) {
            traces.end(span, format!("ask {}", subject.as_str()), attributes(partner), failure);
        }
    }

    /// Answers a question, which says what has caused it.
    pub(super) async fn trace_answer<T>(
        &self,
        partner: &Partner,
        subject: Subject,
        cause: Option<Cause>,
        answer: Pin<Box<impl Future<Output = T>>>,
    ) -> T {
        let begun = self.traces.as_deref().and_then(|traces| Some((traces, traces.begin_in(cause.as_ref(), Kind::Server)?)));
        let cause = begun.as_ref().map(|(_, span)| span.cause()).or(cause);
        let answer = trace::caused_by(cause, answer).await;
        if let Some((traces, span)) = begun {
            traces.end(span, format!("answer {}", subject.as_str()), attributes(partner), None);
        }
        answer
    }
}

fn attributes(partner: &Partner) -> Attributes {
    vec![("bodkin.cloud", Value::Text(partner.told()))]
}
