//! `GET /api/v1/quality`: how good services and their providers were measured to be.

use std::sync::Arc;

use bodkin_arrowhead::{
    orchestrator::Measured,
    page,
    record::{Entry, EntryId},
    snapshot::Snapshot,
    utc::UtcTime,
};
use serde::Serialize;

use super::{Api, asked_page};
use crate::{answer::Answer, control::Endpoint, request::Request};

/// A service as it is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceQuality {
    id: EntryId,
    service_definition: String,
    provider: String,
    address: String,
    port: u16,
    /// The request by which it is asked; none where it is not.
    probe: Option<String>,
    /// What the limits of orchestrations are held against; none while nothing is measured.
    decisive: Option<&'static str>,
    service: Option<MeasuredQuality>,
    echo: Option<MeasuredQuality>,
}

/// Measurements of one kind. Times are in ms, of answered attempts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MeasuredQuality {
    min_ms: Option<f64>,
    mean_ms: Option<f64>,
    max_ms: Option<f64>,
    p99_ms: Option<f64>,
    jitter_ms: Option<f64>,
    predicted_ms: Option<f64>,
    recent_loss_percent: f64,
    loss_percent: f64,
    sent: u64,
    received: u64,
    last_answer: Option<UtcTime>,
    trouble: Option<String>,
}

impl MeasuredQuality {
    fn new(measured: &Measured, trouble: Option<String>) -> Self {
        let answered = |ms: f64| (measured.received > 0).then_some(ms);
        Self {
            min_ms: answered(measured.response_min_ms),
            mean_ms: answered(measured.response_mean_ms),
            max_ms: answered(measured.response_max_ms),
            p99_ms: answered(measured.response_p99_ms),
            jitter_ms: answered(measured.jitter_ms),
            predicted_ms: measured.predicted_ms,
            recent_loss_percent: measured.recent_loss_percent,
            loss_percent: measured.loss_percent,
            sent: measured.sent_all,
            received: measured.received_all,
            last_answer: measured.last_answer,
            trouble,
        }
    }
}

impl Api {
    /// Services in the order of ids, all of them or a page.
    pub(super) fn quality(&self, request: &Request) -> Answer {
        let asked = match asked_page(request) {
            Ok(asked) => asked,
            Err(refusal) => return refusal,
        };
        let snapshot = self.store.snapshot();
        let page = page::page(&asked, snapshot.entries(), &[], |_, _| None, |entry| self.quality_of(&snapshot, entry));
        Answer::json(200, &page.expect("ids can be sorted by"))
    }

    fn quality_of(&self, snapshot: &Snapshot, entry: &Arc<Entry>) -> ServiceQuality {
        let (qualities, view) = (&self.control.qualities, snapshot.view(entry));
        let (found, endpoint) = (qualities.of(snapshot, &view), Endpoint::of(&view.provider));
        // Without enable_qos nothing is asked, however a service could be.
        let probe = self.control.orchestrator.quality_interval.and_then(|_| qualities.probe(&view));
        let trouble = probe.as_ref().and_then(|probe| qualities.services.trouble(probe));
        ServiceQuality {
            id: entry.id,
            service_definition: view.definition.service_definition.to_string(),
            provider: view.provider.system_name.to_string(),
            address: view.provider.address.as_str().to_owned(),
            port: view.provider.port,
            probe: probe.map(|probe| format!("{} {}", probe.method.as_str(), probe.path)),
            decisive: found.decisive().map(|(by, _)| by.as_str()),
            service: found.service.as_ref().map(|measured| MeasuredQuality::new(measured, trouble)),
            echo: found.echo.as_ref().map(|measured| MeasuredQuality::new(measured, qualities.echoes.trouble(&endpoint))),
        }
    }
}
