//! Operations of Bodkin's own port (`docs/formats/monitor.md`).

use super::description::{Content, Description, Tag::Bodkin, get};

/// A row each.
pub const OPERATIONS: &[Description] = &[
    get(Bodkin, "healthz", "", "Whether the process answers.").saying(Content::Text),
    get(Bodkin, "readyz", "", "Whether every listener answers.").saying(Content::Text),
    get(Bodkin, "metrics", "", "Prometheus's text form.").saying(Content::Text),
    get(Bodkin, "api/v1/stages", "Stages", "Histograms of the stages of an answer's making."),
    get(Bodkin, "api/v1/event-log", "EventLog", "What the event log holds."),
    get(Bodkin, "api/v1/event-types", "Page[EventTypeState]", "Every event type since the start."),
];
