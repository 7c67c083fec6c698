//! Dialogues that this cloud begins.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::{
    dialogue::{self, Subject},
    error::ArrowheadError,
    form::Advertisement,
    gatekeeper::dialogue_relay,
    record::Cloud,
    snapshot::Snapshot,
    trace::Cause,
};
use bodkin_trust::{RelayMessage, draw_session};
use tokio::time::{Instant, timeout};

use super::{DIALOGUES_MAX, Fault, Gatekeeper, Part, Partner, Queues, choose, topic};
use crate::relay::{Relay, RelayError, RelayPlace};

/// How long the first of several calls is waited for, the next ones twice as long each. Only who asks whether a cloud is there calls several times, for a call is lost that is made
/// before anybody listens; whoever is slow is called once, not to be made slower. Each call is a dialogue of its own: no cloud takes one twice.
const CALL_AGAIN_MIN: Duration = Duration::from_secs(1);
/// What a call is answered with.
const ACKNOWLEDGEMENT: &str = "an acknowledgement of the call";

/// What another cloud is asked.
struct Question {
    subject: Subject,
    json: String,
    /// What has caused it.
    cause: Option<Cause>,
}

impl Gatekeeper {
    /// Asks another cloud. The dialogue comes to its end, and its queues are removed, even if nobody waits for the answer any more.
    ///
    /// # Errors
    /// The other cloud's own error; 504 with its name where it does not answer in time; 503 where it cannot be asked now; 400 where it cannot be asked
    /// with what is known of it.
    pub async fn ask(
        self: Arc<Self>,
        snapshot: Arc<Snapshot>,
        cloud: Arc<Cloud>,
        subject: Subject,
        question: String,
    ) -> Result<String, ArrowheadError> {
        let relay = self.links.link(&RelayPlace::from(&**dialogue_relay(&snapshot, &cloud, choose)?));
        let partner = Arc::new(Partner::new(&cloud)?);
        drop(snapshot);
        let (cause, span) = self.begin_asking();
        let dialogue = tokio::spawn(async move {
            let told = partner.told();
            let Ok(place) = timeout(self.patience, self.places(subject).acquire()).await else {
                let (limit, patience) = (DIALOGUES_MAX, self.patience.as_secs_f32());
                let why = format!(
                    "Cloud {told} was not asked: {limit} dialogues like it are under way, and none has ended within {patience} s. Try again."
                );
                self.end_asking(span, &partner, subject, Some(why.clone()));
                return Err(ArrowheadError::unavailable(why));
            };
            self.counts.asked.fetch_add(1, Relaxed);
            let asked = Question { subject, json: question, cause };
            let answer = self.call(&*relay, &partner, &asked).await;
            self.end_asking(span, &partner, subject, answer.as_ref().err().map(Fault::to_string));
            self.counts.failed.fetch_add(answer.is_err().into(), Relaxed);
            drop(place);
            let answer = answer.map_err(|fault| self.refusal(&told, &relay.place().to_string(), &fault))?;
            dialogue::answer(&answer).map(str::to_owned)
        });
        dialogue.await.unwrap_or_else(|_| Err(ArrowheadError::unavailable("This cloud stops.")))
    }

    /// One dialogue, or several until one of them is heard, in no more time than one may take to be heard.
    async fn call(&self, relay: &dyn Relay, partner: &Arc<Partner>, asked: &Question) -> Result<String, Fault> {
        let deadline = Instant::now() + self.patience;
        let mut within = CALL_AGAIN_MIN;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_last = asked.subject != Subject::AccessType || within >= left;
            match self.converse(relay, partner, asked, if is_last { left } else { within }).await {
                Err(Fault::Silence(ACKNOWLEDGEMENT)) if !is_last => within *= 2,
                done => return done,
            }
        }
    }

    /// The whole dialogue; its queues are removed. The call has to be heard within this time.
    async fn converse(
        &self,
        relay: &dyn Relay,
        partner: &Arc<Partner>,
        Question { subject, json, cause }: &Question,
        heard_within: Duration,
    ) -> Result<String, Fault> {
        let subject = *subject;
        let session = draw_session();
        let queues = Queues::new(&session, &partner.name)?;
        let begun = Instant::now();
        let said = async {
            let mut answers = self.listen(relay, &queues.response).await?;
            let call = Advertisement {
                sender_cn: Some(self.own.to_string()),
                sender_public_key: Some(self.authentication_info()),
                recipient_cn: Some(partner.name.to_string()),
                session_id: Some(self.seal(RelayMessage::Call(session.clone()), partner).await?),
            };
            self.send(relay, &topic(), serde_json::to_string(&call).expect("a call is JSON")).await?;
            let is_heard =
                |message| matches!(message, RelayMessage::Acknowledgement(acknowledged) if acknowledged == session).then_some(());
            self.hear(&mut answers, partner, (ACKNOWLEDGEMENT, heard_within), is_heard).await?;
            let acknowledged = Instant::now();
            let question = RelayMessage::Dialogue { subject, session: session.clone(), json: json.clone(), cause: cause.clone() };
            let question = self.seal(question, partner).await?;
            self.send(relay, &queues.request, question).await?;
            let is_answer = |message| match message {
                RelayMessage::Dialogue { subject: about, session: of, json, .. } if about == subject && of == session => Some(json),
                _ => None,
            };
            let answer = self.hear(&mut answers, partner, ("an answer", self.patience), is_answer).await?;
            for (part, took) in [(Part::Call, acknowledged - begun), (Part::Answer, acknowledged.elapsed()), (Part::Whole, begun.elapsed())]
            {
                self.times.record(subject, part, took);
            }
            Ok(answer)
        };
        let answer = said.await;
        self.remove(relay, &queues.request).await;
        self.remove(relay, &queues.response).await;
        answer
    }

    /// What whoever has asked is told.
    fn refusal(&self, cloud: &str, relay: &str, fault: &Fault) -> ArrowheadError {
        let patience = self.patience.as_secs_f32();
        match fault {
            Fault::Silence(awaited) => ArrowheadError::timeout(format!(
                "Cloud {cloud} has not answered by the relay {relay}: waited {patience} s for {awaited}. Is its Gatekeeper there, and does it know this cloud's key?"
            )),
            // It has removed the queues, as who gives up does.
            Fault::Relay(RelayError::Removed(_)) => ArrowheadError::timeout(format!(
                "Cloud {cloud} has ended the dialogue by the relay {relay} before it has answered: a message to it was lost or late, or it stops. Try again."
            )),
            Fault::Relay(_) | Fault::Interrupted | Fault::Stopping => {
                ArrowheadError::unavailable(format!("Cloud {cloud} cannot be asked by the relay {relay} now: {fault}. Try again."))
            }
            Fault::Garbage(_) | Fault::Closed => {
                ArrowheadError::arrowhead(format!("Cloud {cloud} was asked by the relay {relay}: {fault}."))
            }
            Fault::Seal(_) | Fault::Name(_) => ArrowheadError::invalid_parameter(format!("Cloud {cloud} cannot be asked: {fault}.")),
        }
    }
}
