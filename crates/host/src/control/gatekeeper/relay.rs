//! Endpoints of the Gatekeeper about relays.

use std::sync::Arc;

use bodkin_arrowhead::{
    error::ArrowheadError,
    form::RelayRequest,
    gatekeeper::RelayPut,
    page::{self, Page, SortKey},
    record::{Relay, RelayId},
    snapshot::Snapshot,
};

use super::SYSTEM;
use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result, check_id, found, page_answer, page_request},
    request::Request,
};

const RELAYS: &str = "/gatekeeper/mgmt/relays";
const RELAY: &str = "/gatekeeper/mgmt/relays/{id}";
const RELAY_AT: &str = "/gatekeeper/mgmt/relays/{address}/{port}";

fn row(snapshot: &Snapshot, id: RelayId) -> Arc<Relay> {
    snapshot.relay(id).expect("what was just made or changed is there").clone()
}

impl Control {
    pub(in crate::control) fn list_relays(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, RELAYS)?;
        let snapshot = self.store.snapshot();
        let key = |field: &str, relay: &&Arc<Relay>| match field {
            "address" => Some(SortKey::Text(relay.address.to_string())),
            "port" => Some(SortKey::Number(relay.port.into())),
            _ => page::common_key(field, relay.id.0, &relay.timestamps),
        };
        page_answer(page::page(&asked, snapshot.relays(), &["address", "port"], key, |relay| relay.clone()))
    }

    pub(in crate::control) async fn add_relays(&self, request: &Request) -> Result<Answer> {
        let forms: Vec<Option<RelayRequest>> = self.forms(SYSTEM, request)?;
        if forms.is_empty() {
            return Err(ArrowheadError::bad_payload("The list of relays is empty.", RELAYS).into());
        }
        let parse = |form: Option<RelayRequest>| RelayPut::parse(form.unwrap_or_default(), RELAYS);
        let relays = forms.into_iter().map(parse).collect::<std::result::Result<Vec<_>, _>>()?;
        let made = self.write(
            SYSTEM,
            move |draft| draft.insert_relays(&relays),
            |snapshot, ids| ids.into_iter().map(|id| row(snapshot, id)).collect::<Vec<_>>(),
        );
        Ok(Answer::json(201, &Page::whole(made.await?)))
    }

    pub(in crate::control) fn show_relay(&self, id: i64) -> Result<Answer> {
        check_id(id, RELAY)?;
        Ok(Answer::json(200, &**found(self.store.snapshot().relay(RelayId(id)), "Relay", id)?))
    }

    /// `place` is address and port, with a slash between them.
    pub(in crate::control) fn show_relay_at(&self, place: &str) -> Result<Answer> {
        let (address, port) = place.split_once('/').expect("the path has both");
        let port: i64 = port.parse().map_err(|_| Refusal::malformed("the port in the path is not a number"))?;
        let out_of_range = |_| ArrowheadError::bad_payload(format!("Relay port must be between 0 and 65535, not {port}."), RELAY_AT);
        let port = u16::try_from(port).map_err(out_of_range)?;
        let missing = || {
            ArrowheadError::invalid_parameter(format!(
                "Relay with the following address and port does not exist: {}, {port}",
                address.trim()
            ))
        };
        let snapshot = self.store.snapshot();
        Ok(Answer::json(200, &**snapshot.relay_at(address, port).ok_or_else(missing)?))
    }

    pub(in crate::control) async fn replace_relay(&self, request: &Request, id: i64) -> Result<Answer> {
        check_id(id, RELAY)?;
        let put = RelayPut::parse(self.form(SYSTEM, request)?, RELAY)?;
        let changed =
            self.write(SYSTEM, move |draft| draft.update_relay(RelayId(id), &put), move |snapshot, ()| row(snapshot, RelayId(id)));
        Ok(Answer::json(200, &*changed.await?))
    }

    pub(in crate::control) async fn remove_relay(&self, id: i64) -> Result<Answer> {
        check_id(id, RELAY)?;
        self.change(SYSTEM, move |draft| draft.remove_relay(RelayId(id))).await
    }
}
