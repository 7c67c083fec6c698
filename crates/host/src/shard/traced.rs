//! Spans of what the shard does for an event that is of a trace. What is of none costs a look at whether there is a collector.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_arrowhead::{publication::Publication, trace::Cause};
use bodkin_broker::{SlotId, graph::Graph};

use super::Shard;
use crate::graph::Made;
use crate::trace::{Kind, Span, Value, now_ns};

/// A publish request that is of a trace.
pub(super) struct Publishing {
    span: Span,
}

/// How an event has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Zmtp,
}

/// An event that goes out.
pub(super) struct Dispatching {
    span: Span,
    /// What has caused the event.
    cause: Cause,
    delivered_before: u64,
}

impl Publishing {
    /// What the event says that it is caused by.
    pub fn cause(&self) -> Cause {
        self.span.cause()
    }
}

impl Dispatching {
    /// What has caused the event.
    pub fn cause(&self) -> Cause {
        self.cause.clone()
    }
}

impl Shard {
    /// Begins to serve a publish request, if that is told.
    pub(super) fn begin_publish(&self, said: Option<&Cause>) -> Option<Publishing> {
        let traces = self.context.push.traces.as_deref()?;
        Some(Publishing { span: traces.begin(said, Kind::Server)? })
    }

    /// The event is in the queues, or kept until it is its turn, or refused with this status. Its type is the one that was authorised last.
    pub(super) fn end_publish(&self, publishing: Option<Publishing>, transport: Transport, status: u16) {
        let (Some(traces), Some(Publishing { span })) = (&self.context.push.traces, publishing) else { return };
        let mut attributes = vec![("messaging.destination.name", Value::Text(self.scratch.event_type.clone()))];
        match transport {
            Transport::Http => attributes.extend([
                ("http.request.method", Value::Text("POST".to_owned())),
                ("http.response.status_code", Value::Number(status.into())),
            ]),
            Transport::Zmtp => {
                attributes.push(("network.protocol.name", Value::Text("zmtp".to_owned())));
                attributes.extend((status != 200).then(|| ("error.type", Value::Text(status.to_string()))));
            }
        }
        traces.end(span, "publish".to_owned(), attributes, (status >= 500).then(|| format!("answered {status}")));
    }

    /// Begins to hand an event over to its subscribers.
    pub(super) fn begin_dispatch(&self, publication: &Publication<'_>) -> Option<Dispatching> {
        let traces = self.context.push.traces.as_deref()?;
        let cause = publication.cause()?;
        let span = traces.begin_in(Some(&cause), Kind::Internal)?;
        Some(Dispatching { span, cause, delivered_before: self.context.counts.delivered.load(Relaxed) })
    }

    /// The same of an event that was kept until it was its turn: so long has that taken. One that goes out once more is not told again.
    pub(super) fn begin_kept_dispatch(&self, slot: SlotId) -> Option<Dispatching> {
        self.context.push.traces.as_deref()?;
        let kept = self.real_time.kept(slot);
        if kept.is_out {
            return None;
        }
        let dispatching = self.begin_dispatch(&kept.publication())?;
        // What a Backup has kept for another node was not taken in here.
        let taken_ns = if kept.taken_ns == 0 { now_ns() } else { kept.taken_ns };
        Some(Dispatching { span: dispatching.span.begun_at(taken_ns), ..dispatching })
    }

    /// It is in its subscribers' queues.
    pub(super) fn end_dispatch(&self, dispatching: Option<Dispatching>, event_type: &str, is_late: Option<bool>) {
        let (Some(traces), Some(Dispatching { span, delivered_before, .. })) = (&self.context.push.traces, dispatching) else { return };
        let receivers = self.context.counts.delivered.load(Relaxed).saturating_sub(delivered_before);
        let mut attributes =
            vec![("messaging.destination.name", Value::Text(event_type.to_owned())), ("bodkin.receivers", Value::Number(receivers))];
        attributes.extend(is_late.map(|is_late| ("bodkin.late", Value::Flag(is_late))));
        traces.end(span, "dispatch".to_owned(), attributes, None);
    }

    /// Begins to publish what a graph has made of events, in the trace of the first of what has caused it, with links to the others; gives what the result is caused by, too.
    pub(super) fn begin_process(&self, made: &Made) -> (Option<Span>, Option<Cause>) {
        let Some((first, others)) = made.causes.split_first() else { return (None, None) };
        let begun = self.context.push.traces.as_deref().and_then(|traces| traces.begin_in(Some(first), Kind::Consumer));
        let span = begun.map(|span| span.begun_at(made.since_ns).linked(others.to_vec()));
        let cause = span.as_ref().map_or_else(|| first.clone(), Span::cause);
        (span, Some(cause))
    }

    /// The result is published, or was refused.
    pub(super) fn end_process(&self, span: Option<Span>, graph: &Graph, output: usize, failure: Option<String>) {
        let (Some(traces), Some(span)) = (&self.context.push.traces, span) else { return };
        let text = |text: &str| Value::Text(text.to_owned());
        let attributes = vec![
            ("messaging.operation.type", text("process")),
            ("messaging.destination.name", text(&graph.outputs()[output].topic)),
            ("bodkin.graph", text(&graph.name)),
        ];
        traces.end(span, "process".to_owned(), attributes, failure);
    }

    /// When an event was taken that is kept; 0 where nobody is told.
    pub(super) fn taken_ns(&self) -> u64 {
        self.context.push.traces.as_ref().map_or(0, |_| now_ns())
    }
}
