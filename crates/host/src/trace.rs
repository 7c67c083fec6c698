//! Traces: what took its time, and what has caused it, told to a collector of OpenTelemetry.
//!
//! A request says by its headers `traceparent` and `tracestate` which trace it is of; an event carries that in its metadata ([`bodkin_arrowhead::trace`]), a question to another
//! cloud in its sealed message. So far nobody needs a collector. Where one is configured, each step of what is sampled is a [`Span`]:
//!
//! ```text
//! publish ── dispatch            in the shard
//!         ├─ deliver             to a subscriber, or to another cloud
//!         └─ process ── dispatch ...             what a graph makes of it
//! Orchestrate ── ask ══ relay ══ answer        the last one in the other cloud
//! ```
//!
//! Ended spans wait in a queue until [`exporter`] takes them, now and then: nobody is woken for them, and none of them is waited for.

pub mod collector;
pub mod exporter;
mod otlp;

use std::{
    future::Future,
    hash::{BuildHasher, RandomState},
    num::{NonZeroU64, NonZeroU128},
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use bodkin_arrowhead::trace::{Cause, SpanId, TraceContext, TraceId, TraceState};
use tokio::sync::mpsc;

pub use self::collector::{Collector, CollectorError};

/// Ended spans that wait to be told; one more is dropped and counted.
pub const SPANS_WAITING_MAX: usize = 8_192;

/// Where traces are told, and which begin here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceConfig {
    /// Who is told.
    pub collector: Collector,
    /// Of requests that are of no trace, one in so many begins one; 0: none does.
    pub one_in: u64,
}

/// Whose doing a span is, in OpenTelemetry's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A step inside.
    Internal,
    /// An answer to somebody.
    Server,
    /// A question to somebody.
    Client,
    /// An event is sent to somebody.
    Producer,
    /// Events are worked on that were heard.
    Consumer,
}

/// Something that has begun.
#[derive(Clone, Debug)]
pub struct Span {
    context: TraceContext,
    /// What those who take part say of the trace; nothing is added to it here.
    state: Option<TraceState>,
    parent: Option<SpanId>,
    /// What else has caused it.
    links: Vec<Cause>,
    kind: Kind,
    /// In nanoseconds since 1970 (UTC).
    begun_ns: u64,
}

impl Span {
    /// What it causes says that it is caused by this.
    pub fn cause(&self) -> Cause {
        Cause { context: self.context, state: self.state.clone() }
    }

    /// Has it be caused by these too, beside its parent.
    pub fn linked(self, links: Vec<Cause>) -> Self {
        Self { links, ..self }
    }

    /// Has it begun earlier, in nanoseconds since 1970 (UTC).
    pub fn begun_at(self, begun_ns: u64) -> Self {
        Self { begun_ns, ..self }
    }
}

/// What is told of a span beside its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// Whether it is so.
    Flag(bool),
}

/// Names, as OpenTelemetry has them where it has some, and values.
pub type Attributes = Vec<(&'static str, Value)>;

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    span: Span,
    name: String,
    attributes: Attributes,
    /// Why it has failed; `None`: it has not.
    failure: Option<String>,
    ended_ns: u64,
}

/// What became of spans since the start.
#[derive(Debug, Default)]
pub struct SpanCounts {
    /// The collector has taken them.
    pub told: AtomicU64,
    /// The queue was full.
    pub dropped: AtomicU64,
    /// The collector was not there, or has not taken them.
    pub failed: AtomicU64,
}

/// Where spans begin and end.
#[derive(Debug)]
pub struct Traces {
    queue: mpsc::Sender<Ended>,
    one_in: u64,
    /// Identities are drawn from it.
    draws: RandomState,
    drawn: AtomicU64,
    /// For whoever watches.
    pub counts: SpanCounts,
}

impl Traces {
    /// Gives what ends as well.
    pub fn new(one_in: u64) -> (Self, mpsc::Receiver<Ended>) {
        let (queue, ended) = mpsc::channel(SPANS_WAITING_MAX);
        let (draws, drawn, counts) = (RandomState::new(), AtomicU64::new(0), SpanCounts::default());
        (Self { queue, one_in, draws, drawn, counts }, ended)
    }

    /// Begins a span of what came from outside: of the trace that it says, if that is sampled; if it says none, of a new one now and then.
    pub fn begin(&self, said: Option<&Cause>, kind: Kind) -> Option<Span> {
        let is_drawn = || self.one_in > 0 && self.draw().is_multiple_of(self.one_in);
        match said {
            Some(_) => self.begin_in(said, kind),
            None if is_drawn() => {
                let trace = u128::from(self.draw()) << 64 | u128::from(self.draw());
                Some(self.span(TraceId(NonZeroU128::new(trace).unwrap_or(NonZeroU128::MIN)), None, None, kind))
            }
            None => None,
        }
    }

    /// Begins a span of what is caused inside, if it is of a trace that is sampled.
    pub fn begin_in(&self, cause: Option<&Cause>, kind: Kind) -> Option<Span> {
        let Cause { context, state } = cause.filter(|cause| cause.context.is_sampled)?;
        Some(self.span(context.trace, Some(context.span), state.clone(), kind))
    }

    fn span(&self, trace: TraceId, parent: Option<SpanId>, state: Option<TraceState>, kind: Kind) -> Span {
        let span = SpanId(NonZeroU64::new(self.draw()).unwrap_or(NonZeroU64::MIN));
        Span { context: TraceContext { trace, span, is_sampled: true }, state, parent, links: Vec::new(), kind, begun_ns: now_ns() }
    }

    /// A number that no other draw gives again, as far as chance goes. It need not be a secret.
    fn draw(&self) -> u64 {
        self.draws.hash_one(self.drawn.fetch_add(1, Relaxed))
    }

    /// Ends a span; `failure` says why it came to nothing. Never waits.
    pub fn end(&self, span: Span, name: String, attributes: Attributes, failure: Option<String>) {
        if self.queue.try_send(Ended { span, name, attributes, failure, ended_ns: now_ns() }).is_err() {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// For Prometheus: name, meaning and value of each.
    pub fn numbers(&self) -> [(&'static str, &'static str, u64); 3] {
        let SpanCounts { told, dropped, failed } = &self.counts;
        [
            ("bodkin_spans_told_total", "Spans of traces that the collector has taken.", told),
            ("bodkin_spans_dropped_total", "Spans that were dropped because too many waited for the collector.", dropped),
            ("bodkin_spans_failed_total", "Spans that the collector has not taken, or was not there for.", failed),
        ]
        .map(|(name, help, value)| (name, help, value.load(Relaxed)))
    }
}

/// The host's clock, in nanoseconds since 1970 (UTC).
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

tokio::task_local! {
    /// What a task's work is caused by.
    static CAUSE: Cause;
}

/// What the present task's work is caused by; `None`: it is of no trace.
pub fn cause() -> Option<Cause> {
    CAUSE.try_with(Cause::clone).ok()
}

/// Has what a future does be caused by this. It is on the heap, for each future around one has room for it again.
pub async fn caused_by<F: Future>(cause: Option<Cause>, work: Pin<Box<F>>) -> F::Output {
    match cause {
        Some(cause) => CAUSE.scope(cause, work).await,
        None => work.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(is_sampled: bool) -> Cause {
        let context = TraceContext { trace: TraceId(NonZeroU128::MAX), span: SpanId(NonZeroU64::MIN), is_sampled };
        Cause { context, state: TraceState::parse([&b"a=1"[..]]) }
    }

    #[test]
    fn what_is_not_sampled_has_no_span() {
        let (traces, _ended) = Traces::new(1);
        assert!(traces.begin(Some(&said(false)), Kind::Server).is_none());
        assert!(traces.begin_in(None, Kind::Internal).is_none());
        let span = traces.begin(Some(&said(true)), Kind::Server).unwrap();
        assert_eq!((span.context.trace, span.parent), (said(true).context.trace, Some(said(true).context.span)));
        assert_eq!(span.cause().state, said(true).state);
        let (one, other) = (traces.begin(None, Kind::Server).unwrap(), traces.begin(None, Kind::Server).unwrap());
        assert!(one.parent.is_none() && one.context.trace != other.context.trace && one.context.span != other.context.span);
        assert!(Traces::new(0).0.begin(None, Kind::Server).is_none());
    }

    #[test]
    fn one_in_so_many_requests_begins_a_trace() {
        let (traces, _ended) = Traces::new(10);
        let begun = (0..100_000).filter(|_| traces.begin(None, Kind::Server).is_some()).count();
        // Fifteen standard deviations of the binomial law at either side.
        assert!((8_600..11_400).contains(&begun), "{begun}");
    }

    #[test]
    fn a_span_too_many_is_counted_and_nobody_waits() {
        let (traces, mut ended) = Traces::new(0);
        let span = traces.begin_in(Some(&said(true)), Kind::Internal).unwrap();
        for _ in 0..=SPANS_WAITING_MAX {
            traces.end(span.clone(), String::new(), Vec::new(), None);
        }
        assert_eq!(traces.counts.dropped.load(Relaxed), 1);
        assert!(ended.try_recv().is_ok());
    }

    #[tokio::test]
    async fn a_task_knows_what_it_is_caused_by() {
        assert_eq!(cause(), None);
        assert_eq!(caused_by(Some(said(true)), Box::pin(async { cause() })).await, Some(said(true)));
        assert_eq!(caused_by(None, Box::pin(async { cause() })).await, None);
    }
}
