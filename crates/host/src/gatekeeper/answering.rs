//! Dialogues that other clouds begin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::{
    dialogue::{NotCalled, SessionId, Subject, caller},
    error::ArrowheadError,
    form::Advertisement,
    json,
    record::Cloud,
    snapshot::Snapshot,
};
use bodkin_trust::{RelayMessage, SealError};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{CALL_BYTES_MAX, Fault, Gatekeeper, Part, Partner, Queues, topic};
use crate::{
    control::{Answered, Control},
    relay::{Heard, RETRY_MIN, Relay, RelayPlace},
};

/// How often it is looked for relays that were made known, or are not wanted any more.
const LOOK: Duration = Duration::from_secs(1);

/// Longest time between two attempts to listen at a relay, which begin with [`RETRY_MIN`]: a relay that lets this cloud in at last is not kept waiting for long.
const LISTEN_AGAIN_MAX: Duration = Duration::from_secs(10);

/// Listens at every relay of every other cloud, and answers, until the task is aborted. Returns at once where there is no Gatekeeper.
pub async fn answer_calls(control: Arc<Control>) {
    let Some(gatekeeper) = control.gatekeeper.clone() else { return };
    let mut listeners = JoinSet::new();
    let mut listening = BTreeMap::new();
    loop {
        let wanted = places(&control.store.snapshot());
        listening.retain(|place, listener: &mut tokio::task::AbortHandle| {
            let stays = wanted.contains(place);
            if !stays {
                listener.abort();
            }
            stays
        });
        gatekeeper.links.keep(&wanted);
        for place in wanted {
            let listen = || listeners.spawn(gatekeeper.clone().listen_at(gatekeeper.links.link(&place), control.clone()));
            listening.entry(place.clone()).or_insert_with(listen);
        }
        tokio::time::sleep(LOOK).await;
        // Those that were aborted.
        while listeners.try_join_next().is_some() {}
    }
}

/// Where gatekeepers of other clouds are met.
fn places(snapshot: &Snapshot) -> BTreeSet<RelayPlace> {
    let others = snapshot.clouds().filter(|cloud| !cloud.own_cloud && cloud.secure);
    let relays = others.flat_map(|cloud| snapshot.relays_of(cloud)).filter(|relay| relay.is_for_gatekeepers());
    relays.map(|relay| RelayPlace::from(&**relay)).collect()
}

impl Gatekeeper {
    /// Hears the calls at one relay, for ever.
    async fn listen_at(self: Arc<Self>, relay: Arc<dyn Relay>, control: Arc<Control>) {
        let (topic, mut pause) = (topic(), RETRY_MIN);
        loop {
            match relay.listen(&topic).await {
                Ok(mut messages) => {
                    tracing::info!(system = "gatekeeper", relay = %relay.place(), "listening to the gatekeepers of other clouds");
                    pause = RETRY_MIN;
                    loop {
                        match messages.next().await {
                            Ok(Heard::Message(call)) => self.clone().called(call, &relay, &control),
                            // Who has called meanwhile calls again; gatekeepers call by texts.
                            Ok(Heard::Interrupted | Heard::Bytes(_)) => {}
                            Err(error) => break self.tell_relay(&*relay, &error.to_string()),
                        }
                    }
                }
                Err(error) => self.tell_relay(&*relay, &error.to_string()),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LISTEN_AGAIN_MAX);
        }
    }

    fn tell_relay(&self, relay: &dyn Relay, error: &str) {
        if let Some(times) = self.told.due(&format!("{} {error}", relay.place())) {
            tracing::warn!(system = "gatekeeper", relay = %relay.place(), error, times, "other clouds cannot call by this relay");
        }
    }

    /// Takes a call, if it is one for this cloud. Who is no neighbour is told nothing.
    fn called(self: Arc<Self>, call: String, relay: &Arc<dyn Relay>, control: &Arc<Control>) {
        let not_taken = |why: String| {
            self.counts.not_answered.fetch_add(1, Relaxed);
            if let Some(times) = self.told.due(&why) {
                tracing::warn!(system = "gatekeeper", relay = %relay.place(), why, times, "a call was not taken");
            }
        };
        if call.len() > CALL_BYTES_MAX {
            return not_taken(format!("a call has at most {CALL_BYTES_MAX} bytes, and one has come that is longer"));
        }
        let Ok(call) = json::parse_object::<Advertisement>(&call) else { return not_taken("what has come is no call".to_owned()) };
        let snapshot = control.store.snapshot();
        let cloud = match caller(&snapshot, &call, &self.own) {
            Ok(id) => snapshot.cloud(id).expect("it was found there").clone(),
            Err(NotCalled::Other) => return,
            Err(refused) => return not_taken(refused.to_string()),
        };
        let partner = match Partner::new(&cloud) {
            Ok(partner) => Arc::new(partner),
            Err(error) => return not_taken(error.error_message),
        };
        let waiting = match self.calls.try_take(&partner.told()) {
            Ok(waiting) => waiting,
            Err(full) => return not_taken(format!("calls wait already, {full}, and cloud {} has called once more", partner.told())),
        };
        let (gatekeeper, relay, control) = (self.clone(), relay.clone(), control.clone());
        tokio::spawn(async move {
            // Who has waited for longer has given up.
            let Ok(place) = timeout(gatekeeper.patience, gatekeeper.answered.take(&partner.told())).await else {
                return gatekeeper.tell(&partner, "has called, and its turn has not come in time");
            };
            let sealed = call.session_id.unwrap_or_default();
            match gatekeeper.answer(&*relay, &partner, sealed, &cloud, &control).await {
                Ok(true) => _ = gatekeeper.counts.answered.fetch_add(1, Relaxed),
                Ok(false) => _ = gatekeeper.counts.not_answered.fetch_add(1, Relaxed),
                Err(fault) => {
                    gatekeeper.counts.not_answered.fetch_add(1, Relaxed);
                    gatekeeper.tell(&partner, &format!("has called, and was not answered: {fault}"));
                }
            }
            drop((place, waiting));
        });
    }

    /// The whole dialogue; gives whether there was one. Its queues are the caller's to remove, unless it is not there any more.
    async fn answer(
        &self,
        relay: &dyn Relay,
        partner: &Arc<Partner>,
        sealed: String,
        cloud: &Arc<Cloud>,
        control: &Control,
    ) -> Result<bool, Fault> {
        let called = |message| if let RelayMessage::Call(session) = message { Some(session) } else { None };
        let session = match self.open(sealed, partner, called).await? {
            Ok(Some(session)) => session,
            Ok(None) => {
                self.tell(partner, "calls with a message that is no call");
                return Ok(false);
            }
            Err(fault) => {
                self.tell(partner, &format!("is said to call, and the call is not taken: {fault}"));
                return Ok(false);
            }
        };
        let queues = Queues::new(&session, &self.own)?;
        let said = async {
            let mut questions = self.listen(relay, &queues.request, self.patient()).await?;
            let heard = self.seal(RelayMessage::Acknowledgement(session.clone()), partner).await?;
            self.send(relay, &queues.response, heard, self.patient()).await?;
            let is_question = |message| match message {
                RelayMessage::Dialogue { subject, session: of, json, cause } if of == session => Some(Ok((subject, json, cause))),
                RelayMessage::Unknown { subject, session: of, .. } if of == session => Some(Err(subject)),
                _ => None,
            };
            let asked = self.hear(&mut questions, partner, ("a question", self.patient()), is_question).await?;
            let (subject, question, cause) = match asked {
                Ok(asked) => asked,
                Err(unknown) => {
                    let refusal = self.refuse_unknown(partner, unknown, &session).await?;
                    return self.send(relay, &queues.response, refusal, self.patient()).await;
                }
            };
            let begun = Instant::now();
            let answered = match self.fixed.of(subject) {
                Some(fixed) => Answered::from(fixed.to_owned()),
                None => self.trace_answer(partner, subject, cause, Box::pin(control.answer_question(cloud, subject, &question))).await,
            };
            self.times.record(subject, Part::Decide, begun.elapsed());
            let Answered { json, tunnel } = answered;
            // What nobody learns of is closed at once.
            let opened = tunnel.map(|queue_id| OpenedFor { control, queue_id, is_told: false });
            let (answer, is_whole) = self.seal_answer(partner, subject, &session, json).await?;
            self.send(relay, &queues.response, answer, self.patient()).await?;
            if let Some(opened) = opened.filter(|_| is_whole) {
                opened.told();
            }
            Ok(())
        };
        let said: Result<(), Fault> = said.await;
        if said.is_err() {
            self.remove(relay, &queues.request).await;
            self.remove(relay, &queues.response).await;
        }
        said.map(|()| true)
    }

    /// A question of a kind that is not known here, as one of a later version may be, is told to be none, rather than waited for.
    async fn refuse_unknown(&self, partner: &Arc<Partner>, subject: String, session: &SessionId) -> Result<String, Fault> {
        self.tell(partner, "asks what this version does not know");
        let told = ArrowheadError::invalid_parameter(format!("This cloud's Gatekeeper knows no question of the kind {subject:?}."));
        let json = serde_json::to_string(&told).expect("an error is JSON");
        self.seal(RelayMessage::Unknown { subject, session: session.clone(), json }, partner).await
    }

    /// An answer that is too long is told to be; gives whether it is the answer.
    async fn seal_answer(
        &self,
        partner: &Arc<Partner>,
        subject: Subject,
        session: &SessionId,
        answer: String,
    ) -> Result<(String, bool), Fault> {
        let message = |json: String| RelayMessage::Dialogue { subject, session: session.clone(), json, cause: None };
        match self.seal(message(answer), partner).await {
            Err(Fault::Seal(error @ SealError::TooLong(_))) => {
                let told = ArrowheadError::arrowhead(format!("The answer cannot be sent: {error}. Ask for less."));
                let sealed = self.seal(message(serde_json::to_string(&told).expect("an error is JSON")), partner).await?;
                Ok((sealed, false))
            }
            sealed => Ok((sealed?, true)),
        }
    }
}

/// A tunnel that an answer leads to: it is closed, unless the answer has gone.
struct OpenedFor<'c> {
    control: &'c Control,
    queue_id: SessionId,
    is_told: bool,
}

impl OpenedFor<'_> {
    fn told(mut self) {
        self.is_told = true;
    }
}

impl Drop for OpenedFor<'_> {
    fn drop(&mut self) {
        if let Some(gateway) = self.control.gateway.as_ref().filter(|_| !self.is_told) {
            gateway.close(self.queue_id.as_str(), "the Gatekeeper, whose answer could not be sent");
        }
    }
}
