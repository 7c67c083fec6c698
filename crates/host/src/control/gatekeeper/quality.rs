//! Endpoints of the Gatekeeper for the QoS Monitor, and what another cloud's is answered.

use std::{sync::Arc, time::Instant};

use bodkin_arrowhead::{
    common_name::SystemCommonName,
    dialogue::{SessionId, Subject},
    error::ArrowheadError,
    form::{AccessType, CloudRequest, RelayTestAnswer, RelayTestProposal, RequesterCloudForm, SystemAddresses},
    gatekeeper::{
        CloudAccess, DiscoveryResult, Proposal, PublicCloudView, RelayPut, RelayTestReport, asking_cloud, check_questioner, relay_request,
        system_addresses, target_cloud, tested_relay,
    },
    orchestrator::{Orchestration, OrchestrationResponse},
    page::Page,
    record::{Cloud, Relay},
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
    relay::RelayPlace,
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
        let addresses: SystemAddresses =
            self.ask_one(&snapshot, &cloud, Subject::SystemAddressList, &question, self.asking_time()?).await??;
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
        let outcomes = self.ask_each::<AccessType>(&snapshot, clouds, Subject::AccessType, &question, self.asking_time()?).await?;
        let access = outcomes.into_iter().map(|(cloud, answer)| CloudAccess::new(&cloud, answer)).collect();
        Ok(Answer::json(200, &Page::whole(access)))
    }

    /// Whether another cloud is there, and reached without a gateway.
    pub async fn access_type(&self, snapshot: &Arc<Snapshot>, cloud: &Arc<Cloud>) -> std::result::Result<AccessType, ArrowheadError> {
        let asked = async {
            let question = RequesterCloudForm { requester_cloud: Some(asking_cloud(snapshot, &self.speaker()?.authentication_info())) };
            self.ask_one(snapshot, cloud, Subject::AccessType, &question, self.asking_time()?).await
        };
        asked.await.unwrap_or_else(|refusal| Err(told(refusal)))
    }

    /// A QoS Monitor that gives its key takes part itself, and learns where; otherwise the Gatekeepers test the relay.
    pub(in crate::control) async fn test_relay(&self, request: &Request) -> Result<Answer> {
        let mut form: RelayTestProposal = self.form(SYSTEM, request)?;
        let Some(relay) = form.relay.clone() else {
            return Err(ArrowheadError::bad_payload("Relay is null or blank.", INIT_RELAY_TEST).into());
        };
        let snapshot = Arc::clone(&self.store.snapshot());
        let cloud = target_cloud(&snapshot, form.target_cloud.as_ref(), INIT_RELAY_TEST)?;
        if form.sender_qos_monitor_public_key.as_deref().is_none_or(|key| key.trim().is_empty()) {
            let relay = tested_relay(&snapshot, &RelayPut::parse(relay, INIT_RELAY_TEST)?)?.clone();
            return Ok(Answer::json(200, &self.relay_trips(&snapshot, &cloud, &relay).await?));
        }
        form.requester_cloud = Some(asking_cloud(&snapshot, &self.speaker()?.authentication_info()));
        let answer: Value = self.ask_one(&snapshot, &cloud, Subject::QosRelayTest, &form, self.asking_time()?).await??;
        Ok(Answer::json(200, &answer))
    }

    /// Tests a relay together with another cloud: first this one measures, and then, behind `SWITCH`, the other one.
    ///
    /// # Errors
    /// 400 where the other cloud does not know the relay; 502 where the relay or the other side does not do its part; 503 where there are too many tests;
    /// 504 where the other cloud does not answer.
    pub async fn test_relay_with(
        &self,
        snapshot: &Arc<Snapshot>,
        cloud: &Arc<Cloud>,
        relay: &Relay,
    ) -> std::result::Result<RelayTestReport, ArrowheadError> {
        self.relay_trips(snapshot, cloud, relay).await.map_err(told)
    }

    async fn relay_trips(&self, snapshot: &Arc<Snapshot>, cloud: &Arc<Cloud>, relay: &Relay) -> Result<RelayTestReport> {
        let speaker = self.speaker()?;
        let of_tests = speaker.test_place(cloud)?;
        let own_key = speaker.authentication_info();
        let question = RelayTestProposal {
            requester_cloud: Some(asking_cloud(snapshot, &own_key)),
            target_cloud: Some(CloudRequest {
                operator: Some(cloud.operator.as_str().to_owned()),
                name: Some(cloud.name.as_str().to_owned()),
                ..CloudRequest::default()
            }),
            relay: Some(relay_request(relay)),
            sender_qos_monitor_public_key: Some(own_key),
        };
        let answer: RelayTestAnswer = self.ask_one(snapshot, cloud, Subject::QosRelayTest, &question, self.asking_time()?).await??;
        let name = format!("{}.{}", cloud.name, cloud.operator);
        let garbage = || {
            let words = format!(
                "Cloud {name} has joined the test without saying where: queueId, peerName and receiverQoSMonitorPublicKey are expected."
            );
            ArrowheadError { error_code: 502, ..ArrowheadError::arrowhead(words) }
        };
        let queue_id = answer.queue_id.as_deref().and_then(|id| SessionId::parse(id.trim()).ok()).ok_or_else(garbage)?;
        let peer_name = answer.peer_name.as_deref().and_then(|name| SystemCommonName::parse(name.trim()).ok()).ok_or_else(garbage)?;
        let key = answer.receiver_qos_monitor_public_key.ok_or_else(garbage)?;
        let place = RelayPlace::from(relay);
        let test = speaker.begin_test((cloud, of_tests), &place, (&queue_id, &peer_name, &key)).await?;
        // It comes to its end, and its queues are removed, even if nobody waits for it.
        let trips = tokio::spawn(test.ask()).await.map_err(|_| ArrowheadError::unavailable("This cloud stops."))??;
        let report = trips.report(name, place.to_string());
        self.qualities.relays.note(cloud.id, place, report.lost, Instant::now());
        Ok(report)
    }

    /// Says of each cloud that offers something which relays have lost nothing in a test with it.
    pub(super) fn with_verified_relays(&self, found: DiscoveryResult) -> DiscoveryResult {
        let (snapshot, now) = (Arc::clone(&self.store.snapshot()), Instant::now());
        found.verified_by(|cloud| {
            let has_passed = |relay: &&Arc<Relay>| self.qualities.relays.have_verified(cloud.id, &RelayPlace::from(&***relay), now);
            snapshot.relays().filter(has_passed).cloned().collect()
        })
    }

    /// Tells another cloud of results that they keep what it requires, and, where nobody does who could be had otherwise, that.
    pub(super) async fn tell_quality(&self, orchestration: &Orchestration, response: &mut OrchestrationResponse) -> Result<()> {
        let Some(required) = orchestration.told_limits() else { return Ok(()) };
        response.tell_kept();
        if response.response.is_empty() && self.would_grant(&orchestration.without_limits()).await? {
            return Err(Proposal::nobody_keeps(&required).into());
        }
        Ok(())
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

    /// Where a QoS Monitor would take part, the Gatekeeper does.
    pub(super) async fn answer_relay_test(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question: RelayTestProposal = asked(question)?;
        check_questioner(question.requester_cloud.as_ref(), asker)?;
        let missing = |what: &str| ArrowheadError::bad_payload(format!("{what} is null or blank."), INIT_RELAY_TEST);
        let relay = RelayPut::parse(question.relay.ok_or_else(|| missing("Relay"))?, INIT_RELAY_TEST)?;
        let key = question.sender_qos_monitor_public_key.filter(|key| !key.trim().is_empty());
        let key = key.ok_or_else(|| missing("Public key of the QoS Monitor"))?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let place = RelayPlace::from(&**tested_relay(&snapshot, &relay)?);
        let speaker = self.speaker()?;
        let joined = speaker.join_test(asker, &place, key.trim()).await?;
        let answer = RelayTestAnswer {
            queue_id: Some(joined.queue_id.as_str().to_owned()),
            peer_name: Some(joined.peer_name.to_string()),
            receiver_qos_monitor_public_key: Some(speaker.authentication_info()),
        };
        tokio::spawn(joined.test.answer());
        Ok(text(&answer))
    }
}

/// A refusal as an error of the Gatekeeper's.
fn told(refusal: Refusal) -> ArrowheadError {
    match refusal {
        Refusal::Arrowhead(error) | Refusal::Denied { error, .. } => error,
        Refusal::Malformed(_) | Refusal::NotJson(_) => ArrowheadError::arrowhead("The question could not be made."),
    }
}
