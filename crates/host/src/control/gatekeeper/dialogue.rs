//! What other clouds are asked, and what they are answered (reference section 7: GSD, ICN).

use std::sync::Arc;

use bodkin_arrowhead::{
    access::Access,
    audit::{Event, Kind},
    caller::Caller,
    dialogue::Subject,
    error::ArrowheadError,
    form::{
        GsdMultiPollRequest, GsdMultiPollResponse, GsdMultiQueryForm, GsdPollRequest, GsdPollResponse, GsdQueryForm, IcnProposalRequest,
        IcnProposalResponse, IcnRequestForm,
    },
    gatekeeper::{
        DiscoveryRequest, DiscoveryResult, NegotiationRequest, Proposal, Question, SeveralQuestion, SeveralRequest, asked_clouds,
        asking_cloud, collect, collect_several, direct_results,
    },
    json,
    orchestrator::Sender,
    record::Cloud,
    snapshot::Snapshot,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::SYSTEM;
use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result, now},
    request::Request,
};

const INIT_GSD: &str = "/gatekeeper/init_gsd";
const INIT_MULTI_GSD: &str = "/gatekeeper/init_multi_gsd";
const INIT_ICN: &str = "/gatekeeper/init_icn";
/// This cloud tunnels nothing: it neither asks for a gateway nor offers one.
const HAS_GATEWAY: bool = false;

type Asked<T> = std::result::Result<T, ArrowheadError>;

impl Control {
    pub(in crate::control) async fn discover(&self, request: &Request) -> Result<Answer> {
        let form = self.form(SYSTEM, request)?;
        Ok(Answer::json(200, &self.discover_service(form, INIT_GSD).await?))
    }

    /// Which other clouds offer a service.
    pub(in crate::control) async fn discover_service(&self, form: GsdQueryForm, origin: &str) -> Result<DiscoveryResult> {
        let asked = DiscoveryRequest::parse(form, origin)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let clouds = asked_clouds(&snapshot, &asked.preferred)?;
        let question = asked.question(self.asking_cloud(&snapshot)?, HAS_GATEWAY);
        Ok(collect(self.ask_each::<GsdPollResponse>(&snapshot, clouds, Subject::GsdPoll, &question).await?)?)
    }

    pub(in crate::control) async fn discover_several(&self, request: &Request) -> Result<Answer> {
        let form: GsdMultiQueryForm = self.form(SYSTEM, request)?;
        let asked = SeveralRequest::parse(form, INIT_MULTI_GSD)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let clouds = asked_clouds(&snapshot, &asked.preferred)?;
        let question = asked.question(self.asking_cloud(&snapshot)?, HAS_GATEWAY);
        let outcomes = self.ask_each::<GsdMultiPollResponse>(&snapshot, clouds, Subject::MultiGsdPoll, &question).await?;
        Ok(Answer::json(200, &collect_several(outcomes)?))
    }

    pub(in crate::control) async fn negotiate(&self, request: &Request) -> Result<Answer> {
        let form = self.form(SYSTEM, request)?;
        Ok(Answer::json(200, &json!({"response": self.negotiate_service(form, INIT_ICN).await?})))
    }

    /// What another cloud grants a consumer of this one.
    pub(in crate::control) async fn negotiate_service(&self, form: IcnRequestForm, origin: &str) -> Result<Vec<Value>> {
        let asked = NegotiationRequest::parse(form, origin)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let target = asked.target(&snapshot)?;
        let proposal = asked.proposal(&snapshot, &target, self.asking_cloud(&snapshot)?, None);
        let answer: IcnProposalResponse = self.ask_one(&snapshot, &target, Subject::IcnProposal, &proposal).await??;
        Ok(direct_results(answer, &target)?)
    }

    /// This cloud, as it names itself to others.
    fn asking_cloud(&self, snapshot: &Snapshot) -> Result<bodkin_arrowhead::form::CloudRequest> {
        Ok(asking_cloud(snapshot, &self.speaker()?.authentication_info()))
    }

    /// Asks clouds the same at the same time; gives what became of each, in their order.
    pub(super) async fn ask_each<T: DeserializeOwned>(
        &self,
        snapshot: &Arc<Snapshot>,
        clouds: Vec<Arc<Cloud>>,
        subject: Subject,
        question: &impl Serialize,
    ) -> Result<Vec<(Arc<Cloud>, Asked<T>)>> {
        let speaker = self.speaker()?;
        let question = serde_json::to_string(question).expect("a question is JSON");
        let ask = |cloud: Arc<Cloud>| {
            let dialogue = tokio::spawn(speaker.clone().ask(snapshot.clone(), cloud.clone(), subject, question.clone()));
            (cloud, dialogue)
        };
        let dialogues: Vec<_> = clouds.into_iter().map(ask).collect();
        let mut outcomes = Vec::with_capacity(dialogues.len());
        for (cloud, dialogue) in dialogues {
            let answer = dialogue.await.unwrap_or_else(|_| Err(ArrowheadError::unavailable("This cloud stops.")));
            let answer = answer.and_then(|text| read(&cloud, subject, &text));
            outcomes.push((cloud, answer));
        }
        Ok(outcomes)
    }

    /// Asks one cloud.
    pub(super) async fn ask_one<T: DeserializeOwned>(
        &self,
        snapshot: &Arc<Snapshot>,
        cloud: &Arc<Cloud>,
        subject: Subject,
        question: &impl Serialize,
    ) -> Result<Asked<T>> {
        let mut outcomes = self.ask_each(snapshot, vec![cloud.clone()], subject, question).await?;
        Ok(outcomes.pop().expect("one was asked").1)
    }

    /// Answers what another cloud asks, whose key has signed it. A refusal is the JSON of an error.
    pub async fn answer_question(&self, asker: &Arc<Cloud>, subject: Subject, question: &str) -> String {
        let answer = match subject {
            Subject::GsdPoll => self.answer_discovery(asker, question).await,
            Subject::MultiGsdPoll => self.answer_several(asker, question).await,
            Subject::IcnProposal => self.answer_proposal(asker, question).await,
            Subject::AccessType => self.answer_access_type(asker, question, !HAS_GATEWAY),
            Subject::SystemAddressList => self.answer_system_addresses(asker, question),
            Subject::QosRelayTest => self.answer_relay_test(asker, question),
        };
        answer.unwrap_or_else(|refusal| {
            let error = match refusal {
                Refusal::Arrowhead(error) | Refusal::Denied { error, .. } => error,
                Refusal::Malformed | Refusal::NotJson => {
                    ArrowheadError::invalid_parameter(format!("The question is no {}.", subject.as_str()))
                }
            };
            serde_json::to_string(&error).expect("an error is JSON")
        })
    }

    async fn answer_discovery(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question = Question::parse(asked::<GsdPollRequest>(question)?, asker, HAS_GATEWAY)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let mut offered = question.offered(&snapshot, asker);
        if question.pings_providers() {
            offered = self.pings.reachable(offered).await;
        }
        Ok(text(&question.answer(&snapshot, &offered)))
    }

    async fn answer_several(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question = SeveralQuestion::parse(&asked::<GsdMultiPollRequest>(question)?, asker, HAS_GATEWAY)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let mut offered = question.offered(&snapshot, asker);
        self.pings.retain_reachable(question.pinged(&mut offered)).await;
        Ok(text(&question.answer(&snapshot, &offered)))
    }

    /// The own Orchestrator decides, asked by the own Gatekeeper, as it would be on its port.
    async fn answer_proposal(&self, asker: &Cloud, question: &str) -> Result<String> {
        let form: IcnProposalRequest = asked(question)?;
        Proposal::parse(&form, asker, HAS_GATEWAY)?;
        let own = self.speaker()?.own_name();
        let gatekeeper = Caller::certified(&own.to_string(), &own.cloud);
        let admitted = Access::OwnNeeds.admit(&gatekeeper).map_err(|denial| denial.error(INIT_ICN))?;
        let form = admitted.permit(Proposal::orchestration(form, asker)).map_err(|denial| denial.error(INIT_ICN))?;
        let orchestration = self.parse_orchestration(form, Sender::Requester)?;
        let (response, account) = self.orchestrate_here(&orchestration).await?;
        let caller = bodkin_arrowhead::dialogue::gatekeeper_of(asker).to_string();
        let event =
            Event { detail: account, ..Event::new(Kind::Orchestration, &caller, None, Subject::IcnProposal.as_str()).answered(200) };
        self.audit.log().note(now(), event).await;
        Ok(text(&json!({"response": response.response, "useGateway": false, "relay": null, "connectionInfo": null})))
    }
}

/// A question as it must be.
pub(super) fn asked<T: DeserializeOwned>(question: &str) -> Result<T> {
    json::parse_object(question).map_err(|_| Refusal::Malformed)
}

/// An answer as it is sent.
pub(super) fn text(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("answers have text keys and finite numbers")
}

/// What another cloud has answered.
fn read<T: DeserializeOwned>(cloud: &Cloud, subject: Subject, answer: &str) -> Asked<T> {
    json::parse_object(answer).map_err(|error| {
        let (name, operator, subject) = (&cloud.name, &cloud.operator, subject.as_str());
        ArrowheadError::arrowhead(format!("Cloud {name}.{operator} has sent what is no answer to a {subject}: {error}."))
    })
}
