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
        IcnProposalResponse, IcnRequestForm, ProviderConnectionRequest, SystemRequest,
    },
    gatekeeper::{
        DiscoveryRequest, DiscoveryResult, GrantedTunnel, Negotiated, NegotiationRequest, Proposal, Question, SeveralQuestion,
        SeveralRequest, asked_clouds, asking_cloud, chosen_provider, cloud_request, collect, collect_several, relay_request, tunnel_relay,
    },
    gateway::{ConsumerConnection, ProviderConnection},
    json,
    orchestrator::{OrchestrationResponse, Sender},
    record::{Cloud, Relay},
    snapshot::Snapshot,
    system::SystemKey,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::SYSTEM;
use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result, now},
    gatekeeper::choose,
    gateway::OpenedTunnel,
    request::Request,
    trace::{cause, caused_by},
};

const INIT_GSD: &str = "/gatekeeper/init_gsd";
const INIT_MULTI_GSD: &str = "/gatekeeper/init_multi_gsd";
const INIT_ICN: &str = "/gatekeeper/init_icn";

/// What became of asking a cloud.
pub(in crate::control) type Asked<T> = std::result::Result<T, ArrowheadError>;

impl Control {
    pub(in crate::control) async fn discover(&self, request: &Request) -> Result<Answer> {
        let form = self.form(SYSTEM, request)?;
        Ok(Answer::json(200, &self.discover_service(form, INIT_GSD).await?))
    }

    /// Which other clouds offer a service.
    pub(in crate::control) async fn discover_service(&self, form: GsdQueryForm, origin: &str) -> Result<DiscoveryResult> {
        Ok(collect(self.discover_each(form, origin).await?)?)
    }

    /// The same, with what became of asking each.
    pub(in crate::control) async fn discover_each(
        &self,
        form: GsdQueryForm,
        origin: &str,
    ) -> Result<Vec<(Arc<Cloud>, Asked<GsdPollResponse>)>> {
        let asked = DiscoveryRequest::parse(form, origin)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let clouds = asked_clouds(&snapshot, &asked.preferred)?;
        let question = asked.question(self.asking_cloud(&snapshot)?, self.gateway.is_some());
        self.ask_each(&snapshot, clouds, Subject::GsdPoll, &question).await
    }

    pub(in crate::control) async fn discover_several(&self, request: &Request) -> Result<Answer> {
        let form: GsdMultiQueryForm = self.form(SYSTEM, request)?;
        let asked = SeveralRequest::parse(form, INIT_MULTI_GSD)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let clouds = asked_clouds(&snapshot, &asked.preferred)?;
        let question = asked.question(self.asking_cloud(&snapshot)?, self.gateway.is_some());
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
        let own_cloud = self.asking_cloud(&snapshot)?;
        let key = self.gateway.as_ref().map(|gateway| gateway.authentication_info());
        let proposal = asked.proposal(&snapshot, &target, own_cloud, key);
        let answer: IcnProposalResponse = self.ask_one(&snapshot, &target, Subject::IcnProposal, &proposal).await??;
        match Negotiated::read(answer, &target, self.gateway.is_some())? {
            Negotiated::Direct(results) => Ok(results),
            Negotiated::Tunnel(tunnel) => {
                let consumer = proposal.requester_system.unwrap_or_default();
                // What is seldom is in no other request's way: the whole of an orchestration is one value.
                Ok(vec![Box::pin(self.enter_tunnel(&snapshot, *tunnel, consumer, &target)).await?])
            }
        }
    }

    /// Opens the consumer's end of a tunnel that another cloud has opened; gives the result that leads to it.
    async fn enter_tunnel(&self, snapshot: &Snapshot, tunnel: GrantedTunnel, consumer: SystemRequest, target: &Cloud) -> Result<Value> {
        let gateway = self.tunnels()?;
        let own_cloud = snapshot.clouds().find(|cloud| cloud.own_cloud).map(|own| cloud_request(own)).unwrap_or_default();
        let request = tunnel.connection(tunnel.relay(snapshot, target)?, consumer, own_cloud, target);
        let port = gateway.connect_consumer(ConsumerConnection::parse(&request, INIT_ICN)?).await?;
        Ok(tunnel.result(&gateway.as_provider(port))?)
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
            // A task of its own does not know what has caused it.
            let dialogue = caused_by(cause(), Box::pin(speaker.clone().ask(snapshot.clone(), cloud.clone(), subject, question.clone())));
            let dialogue = tokio::spawn(dialogue);
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
            Subject::AccessType => self.answer_access_type(asker, question, !self.gateway_is_mandatory),
            Subject::SystemAddressList => self.answer_system_addresses(asker, question),
            Subject::QosRelayTest => self.answer_relay_test(asker, question).await,
            Subject::SharedEvent => self.take_shared_event(asker, question).await,
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
        let question = Question::parse(asked::<GsdPollRequest>(question)?, asker, self.gateway_is_mandatory)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let mut offered = question.offered(&snapshot, asker);
        if question.pings_providers() {
            offered = self.pings.reachable(offered).await;
        }
        Ok(text(&question.answer(&snapshot, &offered)))
    }

    async fn answer_several(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question = SeveralQuestion::parse(&asked::<GsdMultiPollRequest>(question)?, asker, self.gateway_is_mandatory)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let mut offered = question.offered(&snapshot, asker);
        self.pings.retain_reachable(question.pinged(&mut offered)).await;
        Ok(text(&question.answer(&snapshot, &offered)))
    }

    /// The own Orchestrator decides, asked by the own Gatekeeper, as it would be on its port.
    async fn answer_proposal(&self, asker: &Cloud, question: &str) -> Result<String> {
        let form: IcnProposalRequest = asked(question)?;
        let proposal = Proposal::parse(&form, asker, self.gateway_is_mandatory)?;
        let consumer = form.requester_system.clone().unwrap_or_default();
        let own = self.speaker()?.own_name();
        let gatekeeper = Caller::certified(&own.to_string(), &own.cloud);
        let admitted = Access::OwnNeeds.admit(&gatekeeper).map_err(|denial| denial.error(INIT_ICN))?;
        let form = admitted.permit(Proposal::orchestration(form, asker)).map_err(|denial| denial.error(INIT_ICN))?;
        let mut orchestration = self.parse_orchestration(form, Sender::Requester)?;
        if self.gateway_is_mandatory {
            // It is the Gateway whose certificate the provider sees.
            orchestration = orchestration.carried_by(self.tunnels()?.own_name().system.clone());
        }
        let (mut response, account) = self.orchestrate_here(&orchestration).await?;
        let tunnel = match &proposal.consumer_gateway_key {
            Some(key) if self.gateway_is_mandatory => Box::pin(self.offer_tunnel(&mut response, &proposal, asker, consumer, key)).await?,
            _ => None,
        };
        let caller = bodkin_arrowhead::dialogue::gatekeeper_of(asker).to_string();
        let event =
            Event { detail: account, ..Event::new(Kind::Orchestration, &caller, None, Subject::IcnProposal.as_str()).answered(200) };
        self.audit.log().note(now(), event).await;
        let (relay, connection) = tunnel.unzip();
        Ok(text(&json!({"response": response.response, "useGateway": relay.is_some(), "relay": relay, "connectionInfo": connection})))
    }

    /// Opens the provider's end of a tunnel to one of the results, the others of which go; gives the relay that it goes by, and what the other gateway needs to know.
    async fn offer_tunnel(
        &self,
        response: &mut OrchestrationResponse,
        proposal: &Proposal,
        asker: &Cloud,
        consumer: SystemRequest,
        key: &str,
    ) -> Result<Option<(Arc<Relay>, Value)>> {
        let providers: Vec<SystemKey> = response.response.iter().map(|result| SystemKey::of(result.provider())).collect();
        let Some(chosen) = chosen_provider(&providers, &proposal.preferred, choose) else { return Ok(None) };
        let result = response.response.swap_remove(chosen);
        let snapshot = Arc::clone(&self.store.snapshot());
        let relay = tunnel_relay(&snapshot, asker, &proposal.relays, choose)?;
        let own_cloud = snapshot.clouds().find(|cloud| cloud.own_cloud).map(|own| cloud_request(own)).unwrap_or_default();
        let request = ProviderConnectionRequest {
            relay: Some(relay_request(relay)),
            consumer: Some(consumer),
            provider: Some(SystemRequest::from(&**result.provider())),
            consumer_cloud: Some(cloud_request(asker)),
            provider_cloud: Some(own_cloud),
            service_definition: Some(result.service_definition().to_owned()),
            consumer_gw_public_key: Some(key.to_owned()),
        };
        let connection = ProviderConnection::parse(&request, INIT_ICN)?;
        let OpenedTunnel { queue_id, peer_name, key } = self.tunnels()?.connect_provider(connection).await?;
        response.response = vec![result];
        let told = json!({"queueId": queue_id.as_str(), "peerName": peer_name.to_string(), "providerGWPublicKey": key});
        Ok(Some((relay.clone(), told)))
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
