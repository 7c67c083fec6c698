//! Endpoints of the Gatekeeper (reference section 7): clouds, and what is asked of them. [`relay`] has those of relays, [`dialogue`] what needs other clouds.

mod dialogue;
mod quality;
mod relay;
mod shared;

use std::sync::Arc;

use bodkin_arrowhead::{
    core_service::CoreSystem,
    error::ArrowheadError,
    form::{CloudRequest, RelayAssignmentRequest},
    gatekeeper::{CloudPut, CloudView, RelayAssignment},
    page::{self, Page, SortKey},
    record::{Cloud, CloudId},
    snapshot::Snapshot,
};

pub use self::dialogue::Answered;
use super::{Control, Result, check_id, found, page_answer, page_request};
use crate::{answer::Answer, gatekeeper::Gatekeeper, request::Request};

const SYSTEM: CoreSystem = CoreSystem::Gatekeeper;
const CLOUDS: &str = "/gatekeeper/mgmt/clouds";
const CLOUD: &str = "/gatekeeper/mgmt/clouds/{id}";
const ASSIGN: &str = "/gatekeeper/mgmt/clouds/assign";

fn view(snapshot: &Snapshot, id: CloudId) -> CloudView {
    CloudView::new(snapshot, snapshot.cloud(id).expect("what was just made or changed is there"))
}

impl Control {
    /// Who speaks with other clouds.
    fn speaker(&self) -> Result<&Arc<Gatekeeper>> {
        let none = || {
            let why = "there is none in insecure mode, and beside key stores only with gatekeeper.p12";
            ArrowheadError::arrowhead(format!("This cloud has no Gatekeeper: {why}."))
        };
        Ok(self.gatekeeper.as_ref().ok_or_else(none)?)
    }

    pub(super) fn list_clouds(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, CLOUDS)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, cloud: &&Arc<Cloud>| match field {
            "operator" => Some(SortKey::Text(cloud.operator.as_str().to_owned())),
            "name" => Some(SortKey::Text(cloud.name.as_str().to_owned())),
            _ => page::common_key(field, cloud.id.0, &cloud.timestamps),
        };
        page_answer(page::page(&asked, snapshot.clouds(), &["operator", "name"], key, |cloud| CloudView::new(&snapshot, cloud)))
    }

    pub(super) async fn add_clouds(&self, request: &Request) -> Result<Answer> {
        let forms: Vec<Option<CloudRequest>> = self.forms(SYSTEM, request)?;
        if forms.is_empty() {
            return Err(ArrowheadError::bad_payload("The list of clouds is empty.", CLOUDS).into());
        }
        let parse = |form: Option<CloudRequest>| CloudPut::parse(form.unwrap_or_default(), CLOUDS);
        let clouds = forms.into_iter().map(parse).collect::<std::result::Result<Vec<_>, _>>()?;
        let made = self.write(
            SYSTEM,
            move |draft| draft.insert_clouds(&clouds),
            |snapshot, ids| ids.into_iter().map(|id| view(snapshot, id)).collect::<Vec<_>>(),
        );
        Ok(Answer::json(201, &Page::whole(made.await?)))
    }

    pub(super) fn show_cloud(&self, id: i64) -> Result<Answer> {
        check_id(id, CLOUD)?;
        let snapshot = self.store.snapshot();
        let cloud = found(snapshot.cloud(CloudId(id)), "Cloud", id)?;
        Ok(Answer::json(200, &CloudView::new(&snapshot, cloud)))
    }

    pub(super) async fn replace_cloud(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, CLOUD)?;
        let put = CloudPut::parse(self.form(SYSTEM, request)?, CLOUD)?;
        let changed =
            self.write(SYSTEM, move |draft| draft.update_cloud(CloudId(id), &put), move |snapshot, ()| view(snapshot, CloudId(id)));
        Ok(Answer::json(200, &changed.await?))
    }

    pub(super) async fn remove_cloud(&self, id: i64) -> Result<Answer> {
        check_id(id, CLOUD)?;
        self.change(SYSTEM, move |draft| draft.remove_cloud(CloudId(id))).await
    }

    pub(super) async fn assign_relays(&self, request: &Request) -> Result<Answer> {
        let form: RelayAssignmentRequest = self.form(SYSTEM, request)?;
        let (id, further) = RelayAssignment::parse_further(&form, ASSIGN)?;
        let changed = self.write(SYSTEM, move |draft| draft.assign_relays(id, &further), move |snapshot, ()| view(snapshot, id));
        Ok(Answer::json(200, &changed.await?))
    }

    /// `names` are operator and name, with a slash between them.
    pub(super) fn show_cloud_named(&self, names: &str) -> Result<Answer> {
        let (operator, name) = names.split_once('/').expect("the path has both");
        let snapshot = self.store.snapshot();
        let missing = || {
            ArrowheadError::invalid_parameter(format!(
                "Cloud with the following operator and name does not exist: {}, {}",
                operator.trim(),
                name.trim()
            ))
        };
        let cloud = snapshot.cloud_by_name(operator, name).ok_or_else(missing)?;
        Ok(Answer::json(200, &CloudView::new(&snapshot, cloud).with_public_relays(&snapshot)))
    }
}
