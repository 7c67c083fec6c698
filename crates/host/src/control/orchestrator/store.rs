//! Management of the orchestration store (reference 5.4).

use std::sync::Arc;

use bodkin_arrowhead::{
    form::{PriorityRequest, StoreRequest, StoreSearchRequest},
    orchestrator::{
        StoreKind,
        store::{Reordering, StoreEntryView, StoreInsertion, StoreSearch},
    },
    page::{self, Page, PageRequest, SortKey},
    record::{StoreEntry, StoreEntryId},
    snapshot::Snapshot,
};

use super::SYSTEM;
use crate::{
    answer::Answer,
    control::{Control, Result, check_id, found, page_answer, page_request},
    request::Request,
};

const STORE: &str = "/orchestrator/mgmt/store";
const ENTRY: &str = "/orchestrator/mgmt/store/{id}";
const TOP_PRIORITY: &str = "/orchestrator/mgmt/store/all_top_priority";
const BY_CONSUMER: &str = "/orchestrator/mgmt/store/all_by_consumer";
const MODIFY: &str = "/orchestrator/mgmt/store/modify_priorities";

impl Control {
    pub(in crate::control) fn list_store_entries(&self, request: &Request) -> Result<Answer> {
        self.needs_store(StoreKind::Plain, STORE)?;
        let asked = page_request(request, STORE)?;
        let snapshot = self.store.snapshot();
        page_of(&snapshot, &asked, snapshot.store_entries())
    }

    pub(in crate::control) fn list_top_store_entries(&self, request: &Request) -> Result<Answer> {
        self.needs_store(StoreKind::Plain, TOP_PRIORITY)?;
        let asked = page_request(request, TOP_PRIORITY)?;
        let snapshot = self.store.snapshot();
        let tops: Vec<_> = snapshot.store_entries().filter(|entry| entry.priority == 1).collect();
        page_of(&snapshot, &asked, tops.into_iter())
    }

    pub(in crate::control) fn search_store_entries(&self, request: &Request) -> Result<Answer> {
        let form: StoreSearchRequest = self.form(SYSTEM, request)?;
        self.needs_store(StoreKind::Plain, BY_CONSUMER)?;
        let asked = page_request(request, BY_CONSUMER)?;
        let search = StoreSearch::parse(form, BY_CONSUMER)?;
        let snapshot = self.store.snapshot();
        page_of(&snapshot, &asked, search.find(&snapshot)?.into_iter())
    }

    pub(in crate::control) fn show_store_entry(&self, id: i64) -> Result<Answer> {
        self.needs_store(StoreKind::Plain, ENTRY)?;
        check_id(id, ENTRY)?;
        let snapshot = self.store.snapshot();
        let entry = found(snapshot.store_entry(StoreEntryId(id)), "Orchestration store entry", id)?;
        Ok(Answer::json(200, &StoreEntryView::new(&snapshot, entry)))
    }

    pub(in crate::control) async fn add_store_entries(&self, request: &Request) -> Result<Answer> {
        let forms: Vec<Option<StoreRequest>> = self.forms(SYSTEM, request)?;
        self.needs_store(StoreKind::Plain, STORE)?;
        let insertions = StoreInsertion::parse_list(forms, &self.naming, STORE)?;
        let made = self.write(
            SYSTEM,
            move |draft| draft.insert_store_entries(&insertions),
            |snapshot, ids| {
                let made = ids.into_iter().map(|id| snapshot.store_entry(id).expect("what was just made is there"));
                made.map(|entry| StoreEntryView::new(snapshot, entry)).collect::<Vec<_>>()
            },
        );
        Ok(Answer::json(200, &Page::whole(made.await?)))
    }

    pub(in crate::control) async fn reorder_store_entries(&self, request: &Request) -> Result<Answer> {
        let form: PriorityRequest = self.form(SYSTEM, request)?;
        self.needs_store(StoreKind::Plain, MODIFY)?;
        let reordering = Reordering::parse(form, MODIFY)?;
        self.change(SYSTEM, move |draft| draft.reorder_store_entries(&reordering)).await
    }

    pub(in crate::control) async fn remove_store_entry(&self, id: i64) -> Result<Answer> {
        self.needs_store(StoreKind::Plain, ENTRY)?;
        check_id(id, ENTRY)?;
        self.change(SYSTEM, move |draft| draft.remove_store_entry(StoreEntryId(id))).await
    }
}

fn page_of<'s>(snapshot: &Snapshot, asked: &PageRequest, entries: impl ExactSizeIterator<Item = &'s Arc<StoreEntry>>) -> Result<Answer> {
    let key = |field: &str, entry: &&Arc<StoreEntry>| match field {
        "priority" => Some(SortKey::Number(entry.priority.into())),
        _ => page::common_key(field, entry.id.0, &entry.timestamps),
    };
    page_answer(page::page(asked, entries, &["priority"], key, |entry| StoreEntryView::new(snapshot, entry)))
}
