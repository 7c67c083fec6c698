//! `GET /api/v1/services`: which services may still be there.

use bodkin_arrowhead::{page, service_registry::ServiceLife};

use super::{Api, asked_page};
use crate::{answer::Answer, control, request::Request};

impl Api {
    /// Services in the order of ids, all of them or a page.
    pub(super) fn services(&self, request: &Request) -> Answer {
        let asked = match asked_page(request) {
            Ok(asked) => asked,
            Err(refusal) => return refusal,
        };
        let (snapshot, now) = (self.store.snapshot(), control::now());
        let life = |entry| {
            let view = snapshot.view(entry);
            let probe = self.probes.of(&view.provider);
            ServiceLife::new(view, probe.as_ref(), &self.deregistration, now)
        };
        let page = page::page(&asked, snapshot.entries(), &[], |_, _| None, life);
        Answer::json(200, &page.expect("ids can be sorted by"))
    }
}
