//! What other clouds are asked, and what they are answered (reference section 7: GSD, ICN).

use std::{sync::Arc, time::Instant};

use bodkin_arrowhead::{
    access::Access,
    audit::{Event, Kind},
    caller::Caller,
    dialogue::{SessionId, Subject},
    error::ArrowheadError,
    form::{
        GsdMultiPollRequest, GsdMultiPollResponse, GsdMultiQueryForm, GsdPollRequest, GsdPollResponse, GsdQueryForm, IcnProposalRequest,
        IcnRequestForm, ProviderConnectionRequest, SystemRequest,
    },
    gatekeeper::{
        DiscoveryRequest, DiscoveryResult, GrantedTunnel, Negotiated, NegotiationRequest, Proposal, Question, SeveralQuestion,
        SeveralRequest, TunnelWay, asked_clouds, asking_cloud, chosen_provider, cloud_request, collect, collect_several, relay_request,
        tunnel_relay,
    },
    gateway::{ConsumerConnection, ProviderConnection},
    json,
    orchestrator::{OrchestrationResponse, Sender},
    record::{Cloud, EntryView, Relay},
    snapshot::Snapshot,
    system::SystemKey,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::SYSTEM;
use crate::{
    answer::{Answer, Refusal},
    control::{Control, Result, now},
    gatekeeper::{AskingTime, Late, Part, choose},
    gateway::{Gateway, GrantPlace, OpenedTunnel},
    relay::RelayPlace,
    request::Request,
    trace::{cause, caused_by},
};

const INIT_GSD: &str = "/gatekeeper/init_gsd";
const INIT_MULTI_GSD: &str = "/gatekeeper/init_multi_gsd";
const INIT_ICN: &str = "/gatekeeper/init_icn";

/// What another cloud is answered.
#[derive(Debug)]
pub struct Answered {
    /// As it is sent.
    pub json: String,
    /// The queue id of the tunnel that was opened for it: it is of no use to anybody if the answer does not go.
    pub tunnel: Option<SessionId>,
}

impl From<String> for Answered {
    fn from(json: String) -> Self {
        Self { json, tunnel: None }
    }
}

/// What became of asking a cloud.
pub(in crate::control) type Asked<T> = std::result::Result<T, ArrowheadError>;

impl Control {
    /// The time that all other clouds have together which a request asks, from now on.
    pub(in crate::control) fn asking_time(&self) -> Result<AskingTime> {
        Ok(self.speaker()?.asking_time())
    }

    pub(in crate::control) async fn discover(&self, request: &Request) -> Result<Answer> {
        let form = self.form(SYSTEM, request)?;
        Ok(Answer::json(200, &self.discover_service(form, INIT_GSD, self.asking_time()?).await?))
    }

    /// Which other clouds offer a service.
    pub(in crate::control) async fn discover_service(&self, form: GsdQueryForm, origin: &str, time: AskingTime) -> Result<DiscoveryResult> {
        let needs_quality = form.need_qos_measurements.unwrap_or_default();
        let found = collect(self.discover_each(form, origin, time).await?)?;
        Ok(if needs_quality { self.with_verified_relays(found) } else { found })
    }

    /// The same, with what became of asking each.
    pub(in crate::control) async fn discover_each(
        &self,
        form: GsdQueryForm,
        origin: &str,
        time: AskingTime,
    ) -> Result<Vec<(Arc<Cloud>, Asked<GsdPollResponse>)>> {
        let asked = DiscoveryRequest::parse(form, origin)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let clouds = asked_clouds(&snapshot, &asked.preferred)?;
        let question = asked.question(self.asking_cloud(&snapshot)?, self.gateway.is_some());
        self.ask_each(&snapshot, clouds, Subject::GsdPoll, &question, time).await
    }

    pub(in crate::control) async fn discover_several(&self, request: &Request) -> Result<Answer> {
        let form: GsdMultiQueryForm = self.form(SYSTEM, request)?;
        let asked = SeveralRequest::parse(form, INIT_MULTI_GSD)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let clouds = asked_clouds(&snapshot, &asked.preferred)?;
        let question = asked.question(self.asking_cloud(&snapshot)?, self.gateway.is_some());
        let outcomes =
            self.ask_each::<GsdMultiPollResponse>(&snapshot, clouds, Subject::MultiGsdPoll, &question, self.asking_time()?).await?;
        Ok(Answer::json(200, &collect_several(outcomes)?))
    }

    pub(in crate::control) async fn negotiate(&self, request: &Request) -> Result<Answer> {
        let form = self.form(SYSTEM, request)?;
        Ok(Answer::json(200, &json!({"response": self.negotiate_service(form, INIT_ICN, self.asking_time()?).await?})))
    }

    /// What another cloud grants a consumer of this one.
    pub(in crate::control) async fn negotiate_service(&self, form: IcnRequestForm, origin: &str, time: AskingTime) -> Result<Vec<Value>> {
        let asked = NegotiationRequest::parse(form, origin)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let (target, requires_quality) = (asked.target(&snapshot)?, asked.requires_quality());
        let own_cloud = self.asking_cloud(&snapshot)?;
        let key = self.gateway.as_ref().map(|gateway| gateway.authentication_info());
        let proposal = asked.proposal(&snapshot, &target, own_cloud, key);
        let question = serde_json::to_string(&proposal).expect("a proposal is JSON");
        let asked = self.speaker()?.clone().ask_heeding(
            snapshot.clone(),
            &target,
            (Subject::IcnProposal, question),
            time,
            self.refuse_late(&target),
        );
        let text = asked.await?;
        // Whatever is wrong with it from here on: nobody comes by a tunnel that is not entered, and its gateway is told so.
        let grant = self.gateway.as_ref().and_then(|gateway| grant_of(gateway, &snapshot, &target, &text));
        let mut negotiated = Negotiated::read(read(&target, Subject::IcnProposal, &text)?, &target, self.gateway.is_some())?;
        negotiated.check_quality(requires_quality, &target)?;
        match negotiated {
            Negotiated::Direct(results) => Ok(results),
            Negotiated::Tunnel(tunnel) => {
                tunnel.check_provider(&proposal, &target)?;
                let consumer = proposal.requester_system.unwrap_or_default();
                // What is seldom is in no other request's way: the whole of an orchestration is one value.
                Ok(vec![Box::pin(self.enter_tunnel(&snapshot, (*tunnel, grant), consumer, (&target, time))).await?])
            }
        }
    }

    /// Opens the consumer's end of a tunnel that another cloud has opened; gives the result that leads to it.
    async fn enter_tunnel(
        &self,
        snapshot: &Snapshot,
        (tunnel, grant): (GrantedTunnel, Option<GrantPlace>),
        consumer: SystemRequest,
        (target, time): (&Cloud, AskingTime),
    ) -> Result<Value> {
        let gateway = self.tunnels()?;
        let own_cloud = snapshot.clouds().find(|cloud| cloud.own_cloud).map(|own| cloud_request(own)).unwrap_or_default();
        let relay = tunnel.relay(snapshot, target)?;
        let request = tunnel.connection(relay, consumer, own_cloud, target);
        let connection = ConsumerConnection::parse(&request, INIT_ICN)?;
        if let Some(grant) = grant {
            grant.leave();
        }
        let begun = Instant::now();
        let Ok(port) = timeout_at(time.until(), gateway.connect_consumer(connection)).await else {
            let (name, operator, at) = (&target.name, &target.operator, RelayPlace::from(&**relay));
            let told =
                format!("The tunnel that cloud {name}.{operator} has granted was not entered in time: the relay {at} has not answered.");
            return Err(ArrowheadError { error_code: 504, ..ArrowheadError::unavailable(told) }.into());
        };
        let port = port?;
        self.speaker()?.times.record(Subject::IcnProposal, Part::OpenConsumer, begun.elapsed());
        let result = tunnel.result(&gateway.as_provider(port));
        Ok(result.inspect_err(|_| gateway.close_unused_port(port, "the Gatekeeper, whom the grant is of no use to"))?)
    }

    /// Refuses tunnels that a cloud grants when nobody waits for them any more.
    fn refuse_late(&self, target: &Arc<Cloud>) -> Option<Late> {
        let (gateway, store, target) = (self.gateway.clone()?, self.store.clone(), target.clone());
        Some(Box::new(move |answer| drop(grant_of(&gateway, &store.snapshot(), &target, answer))))
    }

    /// This cloud, as it names itself to others.
    fn asking_cloud(&self, snapshot: &Snapshot) -> Result<bodkin_arrowhead::form::CloudRequest> {
        Ok(asking_cloud(snapshot, &self.speaker()?.authentication_info()))
    }

    /// Asks clouds the same at the same time, all in the request's `time`; gives what became of each, in their order.
    pub(super) async fn ask_each<T: DeserializeOwned>(
        &self,
        snapshot: &Arc<Snapshot>,
        clouds: Vec<Arc<Cloud>>,
        subject: Subject,
        question: &impl Serialize,
        time: AskingTime,
    ) -> Result<Vec<(Arc<Cloud>, Asked<T>)>> {
        let speaker = self.speaker()?;
        let question = serde_json::to_string(question).expect("a question is JSON");
        let ask = |cloud: Arc<Cloud>| {
            // A task of its own does not know what has caused it.
            let dialogue =
                caused_by(cause(), Box::pin(speaker.clone().ask(snapshot.clone(), cloud.clone(), (subject, question.clone()), time)));
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
        time: AskingTime,
    ) -> Result<Asked<T>> {
        let mut outcomes = self.ask_each(snapshot, vec![cloud.clone()], subject, question, time).await?;
        Ok(outcomes.pop().expect("one was asked").1)
    }

    /// Answers what another cloud asks, whose key has signed it. A refusal is the JSON of an error.
    pub async fn answer_question(&self, asker: &Arc<Cloud>, subject: Subject, question: &str) -> Answered {
        let answer = match subject {
            Subject::GsdPoll => self.answer_discovery(asker, question).await,
            Subject::MultiGsdPoll => self.answer_several(asker, question).await,
            Subject::IcnProposal => match self.answer_proposal(asker, question).await {
                Ok(answered) => return answered,
                Err(refusal) => Err(refusal),
            },
            Subject::AccessType => self.answer_access_type(asker, question, !self.gateway_is_mandatory),
            Subject::SystemAddressList => self.answer_system_addresses(asker, question),
            Subject::QosRelayTest => self.answer_relay_test(asker, question).await,
            Subject::SharedEvent => self.take_shared_event(asker, question).await,
        };
        let answer = answer.unwrap_or_else(|refusal| {
            let error = match refusal {
                Refusal::Arrowhead(error) | Refusal::Denied { error, .. } => error,
                Refusal::Malformed(_) | Refusal::NotJson(_) => {
                    ArrowheadError::invalid_parameter(format!("The question is no {}.", subject.as_str()))
                }
            };
            serde_json::to_string(&error).expect("an error is JSON")
        });
        Answered::from(answer)
    }

    async fn answer_discovery(&self, asker: &Cloud, question: &str) -> Result<String> {
        let question = Question::parse(asked::<GsdPollRequest>(question)?, asker, self.gateway_is_mandatory)?;
        let snapshot = Arc::clone(&self.store.snapshot());
        let mut offered = question.offered(&snapshot, asker);
        if question.pings_providers() {
            offered = self.pings.reachable(offered).await;
        }
        if question.needs_quality() {
            let is_measured = self.orchestrator.quality_interval.is_some();
            let found = is_measured.then_some(|view: &EntryView| self.qualities.of(&snapshot, view));
            return Ok(text(&question.measured_answer(&snapshot, &offered, found)));
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
    async fn answer_proposal(&self, asker: &Cloud, question: &str) -> Result<Answered> {
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
        self.tell_quality(&orchestration, &mut response).await?;
        let tunnel = match &proposal.consumer_gateway_key {
            Some(key) if self.gateway_is_mandatory => Box::pin(self.offer_tunnel(&mut response, &proposal, asker, consumer, key)).await?,
            _ => None,
        };
        let caller = bodkin_arrowhead::dialogue::gatekeeper_of(asker).to_string();
        let event =
            Event { detail: account, ..Event::new(Kind::Orchestration, &caller, None, Subject::IcnProposal.as_str()).answered(200) };
        self.audit.log().note(now(), event).await;
        let (relay, opened) = tunnel.unzip();
        let connection = opened.as_ref().map(connection_info);
        let answer = json!({"response": response.response, "useGateway": relay.is_some(), "relay": relay, "connectionInfo": connection});
        Ok(Answered { json: text(&answer), tunnel: opened.map(|opened| opened.queue_id) })
    }

    /// Opens the provider's end of a tunnel to one of the results, the others of which go; gives the relay that it goes by, and what the other gateway needs to know.
    async fn offer_tunnel(
        &self,
        response: &mut OrchestrationResponse,
        proposal: &Proposal,
        asker: &Cloud,
        consumer: SystemRequest,
        key: &str,
    ) -> Result<Option<(Arc<Relay>, OpenedTunnel)>> {
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
        let begun = Instant::now();
        let opened = self.tunnels()?.connect_provider(connection).await?;
        self.speaker()?.times.record(Subject::IcnProposal, Part::OpenProvider, begun.elapsed());
        response.response = vec![result];
        Ok(Some((relay.clone(), opened)))
    }
}

/// A question as it must be.
pub(super) fn asked<T: DeserializeOwned>(question: &str) -> Result<T> {
    json::parse_object(question).map_err(Refusal::malformed)
}

/// An answer as it is sent.
pub(super) fn text(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("answers have text keys and finite numbers")
}

/// What the other cloud's gateway needs to know of a tunnel's end.
fn connection_info(OpenedTunnel { queue_id, peer_name, key }: &OpenedTunnel) -> Value {
    json!({"queueId": queue_id.as_str(), "peerName": peer_name.to_string(), "providerGWPublicKey": key})
}

/// Where a cloud has opened a tunnel, by an answer of its; `None`: it has opened none that can be gone to.
fn grant_of(gateway: &Arc<Gateway>, snapshot: &Snapshot, target: &Cloud, answer: &str) -> Option<GrantPlace> {
    let way = TunnelWay::read(answer, target)?;
    let relay = RelayPlace::from(&**way.relay(snapshot)?);
    Some(GrantPlace::new(gateway, relay, way.queue_id, way.peer))
}

/// What another cloud has answered.
fn read<T: DeserializeOwned>(cloud: &Cloud, subject: Subject, answer: &str) -> Asked<T> {
    json::parse_object(answer).map_err(|error| {
        let (name, operator, subject) = (&cloud.name, &cloud.operator, subject.as_str());
        ArrowheadError::arrowhead(format!("Cloud {name}.{operator} has sent what is no answer to a {subject}: {error}."))
    })
}
