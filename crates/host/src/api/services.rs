//! `GET /api/v1/services`: which services may still be there.

use bodkin_arrowhead::{
    page::{self, PageRequest},
    service_registry::ServiceLife,
};

use super::Api;
use crate::{answer::Answer, control, request::Request};

impl Api {
    /// Services in the order of ids, all of them or a page.
    pub(super) fn services(&self, request: &Request) -> Answer {
        let number = |name: &str| request.parameter(name).map(str::parse::<i64>).transpose();
        let (Ok(page), Ok(items)) = (number("page"), number("item_per_page")) else {
            return Answer::problem(400, "Not a page", "page and item_per_page are whole numbers.");
        };
        let asked = match PageRequest::parse(page, items, None, None, "") {
            Ok(asked) => asked,
            Err(error) => return Answer::problem(400, "Not a page", &error.error_message),
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
