//! `/api/v1/certificates`: what the cloud's authority has issued, until when that counts, and what is revoked.

use std::sync::Arc;

use bodkin_arrowhead::utc::UtcTime;
use bodkin_trust::{DirectoryError, ledger::Issued};
use serde::Serialize;

use super::{Api, BASE, list, onboarding::blocking};
use crate::{
    answer::Answer,
    control::now,
    onboarding::{Onboarding, RevokeError},
    request::{Method, Request},
};

/// Certificates of an answer that does not ask for fewer.
const ITEMS: usize = 1_000;
/// Certificates of an answer, whatever is asked.
const ITEMS_MAX: usize = 10_000;

/// A certificate as it is told.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CertificateView {
    /// `valid`, `expired` or `revoked`.
    state: &'static str,
    #[serde(flatten)]
    issued: Issued,
    /// What the operator who has just revoked it has to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl CertificateView {
    /// `node` is this one's name, where several share the account.
    fn new(issued: &Issued, node: Option<&str>, now: UtcTime) -> Self {
        let mut issued = issued.clone();
        issued.node = issued.node.or_else(|| node.map(str::to_owned));
        Self { state: issued.state(now), issued, warning: None }
    }
}

impl Api {
    /// Answers a request at or below `certificates`; that method and path fit was seen before.
    pub(super) async fn certificates(&self, request: &Request) -> Answer {
        let Some(onboarding) = self.onboarding.onboarding.clone() else {
            let told =
                "This cloud has no authority of its own: it runs in insecure mode, or with key stores whose issuer keeps the account.";
            return Answer::problem(409, told);
        };
        let mut parts = request.path.strip_prefix(BASE).unwrap_or_default().split('/').skip(1);
        match (parts.next(), request.method) {
            (Some(serial), Method::Post) => revoke(onboarding, serial.to_owned()).await,
            _ => list_certificates(onboarding, request).await,
        }
    }
}

/// The newest first.
async fn list_certificates(onboarding: Arc<Onboarding>, request: &Request) -> Answer {
    let (page, items) = match window(request) {
        Ok(window) => window,
        Err(told) => return Answer::problem(400, told),
    };
    let state = request.parameter("state").unwrap_or_default().to_owned();
    if !["", "valid", "expired", "revoked"].contains(&state.as_str()) {
        return Answer::problem(400, &format!("state is valid, expired or revoked, not '{state}'."));
    }
    // A ledger may be large: one is read at a time, and the next request waits for its turn.
    let _reading = onboarding.reading.lock().await;
    let reader = onboarding.clone();
    let read = blocking(move || {
        reader.ledger().map(|ledger| {
            let at = now();
            let wanted = || ledger.issued().iter().rev().filter(|issued| state.is_empty() || issued.state(at) == state);
            let views = wanted().skip(page.saturating_mul(items)).take(items).map(|issued| CertificateView::new(issued, reader.node(), at));
            (views.collect::<Vec<_>>(), wanted().count())
        })
    });
    match read.await {
        Some(Ok((views, count))) => list(&views, count as u64),
        Some(Err(error)) => Answer::problem(503, &format!("{error}.")),
        None => Answer::problem(503, "The local cloud is shutting down."),
    }
}

/// The page's number and the certificates of each.
fn window(request: &Request) -> Result<(usize, usize), &'static str> {
    let number = |name, otherwise| request.parameter(name).map_or(Ok(otherwise), str::parse::<usize>);
    match (number("page", 0), number("item_per_page", ITEMS)) {
        (Ok(page), Ok(items @ 1..=ITEMS_MAX)) => Ok((page, items)),
        _ => Err("page is a whole number from 0, and item_per_page one from 1 to 10000."),
    }
}

/// Revokes a certificate; one that is revoked stays so.
async fn revoke(onboarding: Arc<Onboarding>, serial: String) -> Answer {
    let _reading = onboarding.reading.lock().await;
    let revoker = onboarding.clone();
    let revoked = blocking(move || {
        let at = now();
        revoker.revoke(&serial, at)?;
        let ledger = revoker.ledger()?;
        let revoked = ledger.find(&serial).map(|issued| CertificateView::new(issued, revoker.node(), at));
        Ok(revoked.ok_or(DirectoryError::Unknown(serial))?)
    });
    match revoked.await {
        Some(Ok(view)) => Answer::json(200, &CertificateView { warning: view.issued.revocation_warning(), ..view }),
        Some(Err(RevokeError::Directory(error @ DirectoryError::Unknown(_)))) => Answer::problem(404, &format!("{error}.")),
        Some(Err(error)) => Answer::problem(503, &format!("{error}.")),
        None => Answer::problem(503, "The local cloud is shutting down."),
    }
}
