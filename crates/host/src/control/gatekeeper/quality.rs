//! Endpoints of the Gatekeeper for the QoS Monitor, and what another cloud's is answered.

use std::sync::Arc;

use bodkin_arrowhead::{
    dialogue::Subject,
    error::ArrowheadError,
    form::{AccessType, CloudRequest, RelayTestProposal, RequesterCloudForm, SystemAddresses},
    gatekeeper::{CloudAccess, PublicCloudView, asking_cloud, check_questioner, no_quality_monitor, system_addresses, target_cloud},
    page::Page,
    record::Cloud,
    snapshot::Snapshot,
};
use serde_json::Value;

use super::{
    SYSTEM,
    dialogue::{asked, text},
};
use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result},
    request::Request,
};

const COLLECT_ADDRESSES: &str = "/gatekeeper/collect_system_addresses";
const COLLECT_ACCESS_TYPES: &str = "/gatekeeper/collect_access_types";
const INIT_RELAY_TEST: &str = "/gatekeeper/init_relay_test";

impl Control {
    pub(in crate::control) fn pull_clouds(&self) -> Answer {
        let snapshot = self.store.snapshot();
        let clouds = snapshot.clouds().map(|cloud| PublicCloudView::new(&snapshot, cloud)).collect();
        Answer::json(200, &Page::whole(clouds))
    }

    pub(in crate::control) async fn collect_system_addresses(&self, request: &Request) -> Result<Answer> {
        let form: CloudRequest = self.form(SYSTEM, request)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = target_cloud(&snapshot, Some(&form), COLLECT_ADDRESSES)?;
        let question = RequesterCloudForm { requester_cloud: Some(asking_cloud(&snapshot, &self.speaker()?.authentication_info())) };
        let addresses: SystemAddresses = self.ask_one(&snapshot, &cloud, Subject::SystemAddressList, &question).await??;
        Ok(Answer::json(200, &addresses))
    }

    pub(in crate::control) async fn collect_access_types(&self, request: &Request) -> Result<Answer> {
        let forms: Vec<Option<CloudRequest>> = self.forms(SYSTEM, request)?;
        if forms.is_empty() {
            return Err(ArrowheadError::bad_payload("The list of clouds is empty.", COLLECT_ACCESS_TYPES).into());
        }
        let snapshot = Arc::clone(&self.store.snapshot());
        let target = |form: &Option<CloudRequest>| target_cloud(&snapshot, form.as_ref(), COLLECT_ACCESS_TYPES);
        let clouds = forms.iter().map(target).collect::<std::result::Result<Vec<_>, _>>()?;
        let question = RequesterCloudForm { requester_cloud: Some(asking_cloud(&snapshot, &self.speaker()?.authentication_info())) };
        let outcomes = self.ask_each::<AccessType>(&snapshot, clouds, Subject::AccessType, &question).await?;
        let access = outcomes.into_iter().map(|(cloud, answer)| CloudAccess::new(&cloud, answer)).collect();
        Ok(Answer::json(200, &Page::whole(access)))
    }

    /// Whether another cloud is there, and reached without a gateway.
    pub async fn access_type(&self, snapshot: &Arc<Snapshot>, cloud: &Arc<Cloud>) -> std::result::Result<AccessType, ArrowheadError> {
        let asked = async {
            let question = RequesterCloudForm { requester_cloud: Some(asking_cloud(snapshot, &self.speaker()?.authentication_info())) };
            self.ask_one(snapshot, cloud, Subject::AccessType, &question).await
        };
        asked.await.unwrap_or_else(|refusal| match refusal {
            Refusal::Arrowhead(error) | Refusal::Denied { error, .. } => Err(error),
            Refusal::Malformed | Refusal::NotJson => Err(ArrowheadError::arrowhead("The question could not be made.")),
        })
    }

    pub(in crate::control) async fn test_relay(&self, request: &Request) -> Result<Answer> {
        let form: RelayTestProposal = self.form(SYSTEM, request)?;
        let missing = |what: &str| ArrowheadError::bad_payload(format!("{what} is null or blank."), INIT_RELAY_TEST);
        if form.relay.is_none() {
            return Err(missing("Relay").into());
        }
        if form.sender_qos_monitor_public_key.as_deref().is_none_or(|key| key.trim().is_empty()) {
            return Err(missing("Public key of the QoS Monitor").into());
        }
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = target_cloud(&snapshot, form.target_cloud.as_ref(), INIT_RELAY_TEST)?;
        let asker = asking_cloud(&snapshot, &self.speaker()?.authentication_info());
        let question = RelayTestProposal { requester_cloud: Some(asker), ..form };
        let answer: Value = self.ask_one(&snapshot, &cloud, Subject::QosRelayTest, &question).await??;
        Ok(Answer::json(200, &answer))
    }

    pub(super) fn answer_access_type(&self, asker: &Cloud, question: &str, direct_access: bool) -> Result<String> {
        let question: RequesterCloudForm = asked(question)?;
        check_questioner(question.requester_cloud.as_ref(), asker)?;
        Ok(text(&AccessType { direct_access: Some(direct_access) }))
    }

    pub(super) fn answer_system_addresses(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question: RequesterCloudForm = asked(question)?;
        check_questioner(question.requester_cloud.as_ref(), asker)?;
        Ok(text(&system_addresses(&self.store.snapshot(), asker)))
    }

    /// The test is the QoS Monitor's, and there is none in this cloud.
    pub(super) fn answer_relay_test(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question: RelayTestProposal = asked(question)?;
        check_questioner(question.requester_cloud.as_ref(), asker)?;
        Err(no_quality_monitor().into())
    }
}
