//! Dialogues that this cloud begins.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::{
    dialogue::{self, SessionId, Subject},
    error::ArrowheadError,
    form::Advertisement,
    gatekeeper::dialogue_relay,
    record::Cloud,
    snapshot::Snapshot,
    trace::Cause,
};
use bodkin_trust::{RelayMessage, draw_session};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{AskingTime, Fault, Gatekeeper, Part, Partner, Queues, choose, topic};
use crate::relay::{Messages, Relay, RelayError, RelayPlace};

/// How long the first of several calls is waited for, the next ones twice as long each. Only who asks whether a cloud is there calls several times, for a call is lost that is made
/// before anybody listens; whoever is slow is called once, not to be made slower. Each call is a dialogue of its own: no cloud takes one twice.
const CALL_AGAIN_MIN: Duration = Duration::from_secs(1);
/// What a call is answered with.
const ACKNOWLEDGEMENT: &str = "an acknowledgement of the call";
/// For how many times what a step may take a late answer is waited for: whoever has taken a question has one to answer it, and what opening a tunnel takes besides.
const LATE_PATIENCES: u32 = 2;

/// What another cloud is asked.
struct Question {
    subject: Subject,
    json: String,
    /// What has caused it.
    cause: Option<Cause>,
    /// Whether a late answer is to be heard.
    is_heeded: bool,
}

/// Takes an answer for which nobody waits any more.
pub type Late = Box<dyn FnOnce(&str) + Send>;

/// A dialogue whose answer has not come, and may come yet.
struct Unfinished {
    session: SessionId,
    queues: Queues,
    answers: Messages,
}

/// Takes the answer of a dialogue.
fn is_answer(subject: Subject, session: &SessionId) -> impl Fn(RelayMessage) -> Option<String> {
    move |message| match message {
        RelayMessage::Dialogue { subject: about, session: of, json, .. } if about == subject && of == *session => Some(json),
        _ => None,
    }
}

impl Gatekeeper {
    /// Asks another cloud, no longer than this request's `time`. The dialogue comes to its end, and its queues are removed, even if nobody waits for the answer any more.
    ///
    /// # Errors
    /// The other cloud's own error; 504 with its name where it does not answer in time; 503 where it cannot be asked now; 400 where it cannot be asked
    /// with what is known of it.
    pub async fn ask(
        self: Arc<Self>,
        snapshot: Arc<Snapshot>,
        cloud: Arc<Cloud>,
        (subject, json): (Subject, String),
        time: AskingTime,
    ) -> Result<String, ArrowheadError> {
        self.ask_heeding(snapshot, &cloud, (subject, json), time, None).await
    }

    /// The same for a question whose answer leaves something behind at the other cloud, as a tunnel: one that comes too late, or for which nobody waits any more, is handed to `late`.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_heeding(
        self: Arc<Self>,
        snapshot: Arc<Snapshot>,
        cloud: &Cloud,
        (subject, json): (Subject, String),
        time: AskingTime,
        late: Option<Late>,
    ) -> Result<String, ArrowheadError> {
        let relay = self.links.link(&RelayPlace::from(&**dialogue_relay(&snapshot, cloud, choose)?));
        let partner = Arc::new(Partner::new(cloud)?);
        drop(snapshot);
        let (cause, span) = self.begin_asking();
        let (tell, told) = oneshot::channel();
        let asked = Question { subject, json, cause, is_heeded: late.is_some() };
        tokio::spawn(async move {
            let (answer, unfinished) = self.carry(&*relay, &partner, &asked, time).await;
            self.end_asking(span, &partner, subject, answer.as_ref().err().map(ArrowheadError::to_string));
            let untold = tell.send(answer).err().and_then(Result::ok);
            match (untold, unfinished, late) {
                (Some(answer), _, Some(late)) => late(&answer),
                (None, Some(unfinished), Some(late)) => self.await_late(&*relay, &partner, unfinished, (subject, late)).await,
                _ => {}
            }
        });
        told.await.unwrap_or_else(|_| Err(ArrowheadError::unavailable("This cloud stops.")))
    }

    /// A dialogue from its turn to its answer, and what is left open of it.
    async fn carry(
        &self,
        relay: &dyn Relay,
        partner: &Arc<Partner>,
        asked: &Question,
        time: AskingTime,
    ) -> (Result<String, ArrowheadError>, Option<Unfinished>) {
        let (told, begun, places) = (partner.told(), Instant::now(), self.places(asked.subject));
        let Ok(place) = timeout_at(time.wait(self.patience), places.take(&told)).await else {
            let (full, waited) = (places.full(&told), begun.elapsed().as_secs_f32());
            let why = format!(
                "Cloud {told} was not asked: dialogues like it are under way, {full}, and none has ended within {waited:.1} s. Try again."
            );
            return (Err(ArrowheadError::unavailable(why)), None);
        };
        self.times.record(asked.subject, Part::Wait, begun.elapsed());
        self.counts.asked.fetch_add(1, Relaxed);
        let (answer, unfinished) = self.call(relay, partner, asked, time).await;
        self.counts.failed.fetch_add(answer.is_err().into(), Relaxed);
        drop(place);
        let answer = answer.map_err(|fault| Self::refusal(&told, &relay.place().to_string(), &fault));
        (answer.and_then(|answer| dialogue::answer(&answer).map(str::to_owned)), unfinished)
    }

    /// One dialogue, or several until one of them is heard, in no more time than one may take to be heard.
    async fn call(
        &self,
        relay: &dyn Relay,
        partner: &Arc<Partner>,
        asked: &Question,
        time: AskingTime,
    ) -> (Result<String, Fault>, Option<Unfinished>) {
        let deadline = time.wait(self.patience);
        let mut within = CALL_AGAIN_MIN;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_last = asked.subject != Subject::AccessType || within >= left;
            match self.converse(relay, partner, asked, (if is_last { left } else { within }, time)).await {
                (Err(Fault::Silence(ACKNOWLEDGEMENT, _)), _) if !is_last => within *= 2,
                done => return done,
            }
        }
    }

    /// The whole dialogue; its queues are removed, unless its answer is still waited for. The call has to be heard within this time, and all of it be over in the request's.
    async fn converse(
        &self,
        relay: &dyn Relay,
        partner: &Arc<Partner>,
        Question { subject, json, cause, is_heeded }: &Question,
        (heard_within, time): (Duration, AskingTime),
    ) -> (Result<String, Fault>, Option<Unfinished>) {
        let subject = *subject;
        let session = draw_session();
        let queues = match Queues::new(&session, &partner.name) {
            Ok(queues) => queues,
            Err(fault) => return (Err(fault), None),
        };
        let begun = Instant::now();
        let mut listening = None;
        let said = async {
            let mut answers = self.listen(relay, &queues.response, time.wait(self.patience)).await?;
            let call = Advertisement {
                sender_cn: Some(self.own.to_string()),
                sender_public_key: Some(self.authentication_info()),
                recipient_cn: Some(partner.name.to_string()),
                session_id: Some(self.seal(RelayMessage::Call(session.clone()), partner).await?),
            };
            self.send(relay, &topic(), serde_json::to_string(&call).expect("a call is JSON"), time.wait(self.patience)).await?;
            let is_heard =
                |message| matches!(message, RelayMessage::Acknowledgement(acknowledged) if acknowledged == session).then_some(());
            self.hear(&mut answers, partner, (ACKNOWLEDGEMENT, time.wait(heard_within)), is_heard).await?;
            let acknowledged = Instant::now();
            let question = RelayMessage::Dialogue { subject, session: session.clone(), json: json.clone(), cause: cause.clone() };
            let question = self.seal(question, partner).await?;
            // From here on it may be answered.
            let answers = listening.insert(answers);
            self.send(relay, &queues.request, question, time.wait(self.patience)).await?;
            let answer = self.hear(answers, partner, ("an answer", time.wait(self.patience)), is_answer(subject, &session)).await?;
            for (part, took) in [(Part::Call, acknowledged - begun), (Part::Answer, acknowledged.elapsed()), (Part::Whole, begun.elapsed())]
            {
                self.times.record(subject, part, took);
            }
            Ok(answer)
        };
        let answer = said.await;
        match (&answer, listening) {
            (Err(Fault::Silence(..) | Fault::Interrupted), Some(answers)) if *is_heeded => {
                (answer, Some(Unfinished { session, queues, answers }))
            }
            _ => {
                self.forget(relay, &queues).await;
                (answer, None)
            }
        }
    }

    /// Hears what the other cloud answers behind the asker's time, so that what it has granted is not left there; its queues are removed then.
    async fn await_late(
        &self,
        relay: &dyn Relay,
        partner: &Arc<Partner>,
        Unfinished { session, queues, mut answers }: Unfinished,
        (subject, late): (Subject, Late),
    ) {
        // Beyond the limit the other cloud's gateway finds out by itself that nobody comes.
        if let Ok(_place) = self.late.try_take(&partner.told()) {
            let until = Instant::now() + self.patience * LATE_PATIENCES;
            loop {
                match self.hear(&mut answers, partner, ("a late answer", until), is_answer(subject, &session)).await {
                    Ok(answer) => break late(&answer),
                    Err(Fault::Interrupted) => {}
                    Err(_) => break,
                }
            }
        }
        self.forget(relay, &queues).await;
    }

    /// Leaves nothing of a dialogue at the relay.
    async fn forget(&self, relay: &dyn Relay, queues: &Queues) {
        self.remove(relay, &queues.request).await;
        self.remove(relay, &queues.response).await;
    }

    /// What whoever has asked is told.
    fn refusal(cloud: &str, relay: &str, fault: &Fault) -> ArrowheadError {
        match fault {
            Fault::Silence(awaited, waited) => ArrowheadError::timeout(format!(
                "Cloud {cloud} has not answered by the relay {relay}: waited {:.1} s for {awaited}. Is its Gatekeeper there, and does it know this cloud's key?",
                waited.as_secs_f32()
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
