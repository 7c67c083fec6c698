//! Tests of relays by two clouds, where no QoS Monitor does it: this gatekeeper's part, of either side.

use std::{future::Future, sync::Arc, time::Duration};

use bodkin_arrowhead::{
    common_name::SystemCommonName,
    dialogue::SessionId,
    error::ArrowheadError,
    gatekeeper::{ECHO_MAX, RoundTrips, TEST_MESSAGE_BYTES, TEST_MESSAGES, TURN_MAX},
    gateway::control_queue,
    record::Cloud,
};
use bodkin_relay::tunnel::Control;
use bodkin_trust::{
    RelayMessage, draw_session,
    jose::{SealingKey, UnusableKey, VerifyingKey},
};
use tokio::time::{Instant, sleep, timeout};

use super::{Fault, Gatekeeper, Partner, STRAY_MESSAGES_MAX};
use crate::{
    relay::{Destination, Heard, Messages, Relay, RelayPlace},
    shares::Place,
};

/// Tests at the same time, of both sides; one more is refused.
pub(super) const TESTS_MAX: usize = 4;
/// Of these, those with one cloud.
pub(super) const TESTS_OF_ONE_MAX: usize = 3;
/// Before queues are removed whose last message the other side may still be reading.
const LINGER: Duration = Duration::from_secs(1);

/// One side of a test.
pub struct RelayTest {
    gatekeeper: Arc<Gatekeeper>,
    relay: Arc<dyn Relay>,
    other: Arc<Partner>,
    queue_id: SessionId,
    out: Destination,
    out_control: Destination,
    into: [Destination; 2],
    data: Messages,
    control: Messages,
    _place: Place,
}

/// Of a test that is asked for what the asking side has to know.
pub struct JoinedTest {
    /// The asked side.
    pub test: RelayTest,
    /// By what its queues are known.
    pub queue_id: SessionId,
    /// By whose name they are called.
    pub peer_name: SystemCommonName,
}

impl Gatekeeper {
    /// Begins the asked side of a test with a cloud, whose messages are sealed by the key `other_key`.
    ///
    /// # Errors
    /// 400 where the key is none; 502 where the relay cannot be used; 503 where there are too many tests.
    pub async fn join_test(self: &Arc<Self>, cloud: &Cloud, place: &RelayPlace, other_key: &str) -> Result<JoinedTest, ArrowheadError> {
        let of_tests = self.test_place(cloud)?;
        let (queue_id, peer_name) = (draw_session(), self.own_name().clone());
        let queues = [queue_id.response_queue(&peer_name), queue_id.request_queue(&peer_name)];
        let test = self.test((cloud, of_tests), place, other_key, queue_id.clone(), queues).await?;
        Ok(JoinedTest { test, queue_id, peer_name })
    }

    /// A place for a test with a cloud: whoever asks for one has it before the other cloud joins, and waits.
    ///
    /// # Errors
    /// 503 where there are too many tests.
    pub fn test_place(&self, cloud: &Cloud) -> Result<Place, ArrowheadError> {
        let full = |full| ArrowheadError::unavailable(format!("Tests of relays are under way, {full}, and no more at the same time."));
        self.tests.try_take(&format!("{}.{}", cloud.name, cloud.operator)).map_err(full)
    }

    /// Begins the asking side of a test that another cloud has joined.
    ///
    /// # Errors
    /// 400 where the key is none; 502 where the relay cannot be used.
    pub async fn begin_test(
        self: &Arc<Self>,
        (cloud, of_tests): (&Cloud, Place),
        place: &RelayPlace,
        joined: (&SessionId, &SystemCommonName, &str),
    ) -> Result<RelayTest, ArrowheadError> {
        let (queue_id, peer_name, other_key) = joined;
        let queues = [queue_id.request_queue(peer_name), queue_id.response_queue(peer_name)];
        self.test((cloud, of_tests), place, other_key, queue_id.clone(), queues).await
    }

    async fn test(
        self: &Arc<Self>,
        (cloud, of_tests): (&Cloud, Place),
        place: &RelayPlace,
        other_key: &str,
        queue_id: SessionId,
        [out, into]: [String; 2],
    ) -> Result<RelayTest, ArrowheadError> {
        let refused = |error: UnusableKey| ArrowheadError::invalid_parameter(format!("The public key for a test of a relay: {error}."));
        let other = Arc::new(Partner {
            sealing: SealingKey::from_authentication_info(other_key).map_err(refused)?,
            verifying: VerifyingKey::from_authentication_info(other_key).map_err(refused)?,
            ..Partner::new(cloud)?
        });
        let queue = |name: &str| {
            let refused = |error| ArrowheadError::invalid_parameter(format!("A queue of the test cannot be named: {error}."));
            Destination::queue(name).map_err(refused)
        };
        let relay = self.links.link(place);
        let into = [queue(&into)?, queue(&control_queue(&into))?];
        let unusable = |fault: Fault| untested(&*relay, &fault.to_string());
        let (data, control) = (
            self.listen(&*relay, &into[0], self.patient()).await.map_err(unusable)?,
            self.listen(&*relay, &into[1], self.patient()).await.map_err(unusable)?,
        );
        let (out, out_control) = (queue(&out)?, queue(&control_queue(&out))?);
        Ok(RelayTest { gatekeeper: self.clone(), relay, other, queue_id, out, out_control, into, data, control, _place: of_tests })
    }
}

fn untested(relay: &dyn Relay, why: &str) -> ArrowheadError {
    ArrowheadError {
        error_code: 502,
        ..ArrowheadError::arrowhead(format!("The test of the relay {} came to nothing: {why}.", relay.place()))
    }
}

impl RelayTest {
    /// The asking side: measures, and sends back what the other one measures by. Gives what was measured here.
    ///
    /// # Errors
    /// 502 where the relay or the other side does not do its part.
    pub async fn ask(mut self) -> Result<RoundTrips, ArrowheadError> {
        let tested = async {
            let trips = self.measure().await?;
            self.say(Control::Switch).await?;
            self.mirror(Control::Close).await?;
            Ok(trips)
        };
        let tested: Result<RoundTrips, Fault> = tested.await;
        let told = tested.map_err(|fault| untested(&*self.relay, &fault.to_string()));
        if told.is_err() {
            // The other side need not wait.
            let _ = self.say(Control::Close).await;
        }
        self.end().await;
        told
    }

    /// The asked side: sends back what the other one measures by, and then measures.
    pub async fn answer(mut self) {
        let tested = async {
            self.mirror(Control::Switch).await?;
            self.measure().await
        };
        let tested: Result<RoundTrips, Fault> = tested.await;
        let _ = self.say(Control::Close).await;
        let report = |trips: RoundTrips| trips.report(self.other.told(), self.relay.place().to_string());
        match tested.map(report) {
            Ok(report) => tracing::info!(
                system = "gatekeeper",
                cloud = report.cloud,
                relay = report.relay,
                sent = report.sent,
                lost = report.lost,
                mean_ms = report.mean_ms,
                max_ms = report.max_ms,
                "a relay was tested with another cloud"
            ),
            Err(fault) => self.gatekeeper.tell(&self.other, &format!("has begun a test of a relay that came to nothing: {fault}")),
        }
        self.end().await;
    }

    /// Sends messages, one after the other, each when the one before has come back or is lost.
    async fn measure(&mut self) -> Result<RoundTrips, Fault> {
        let mut trips = RoundTrips::default();
        for number in 0..TEST_MESSAGES {
            // As long as a test message of upstream's, and no two alike.
            let mut bytes: Vec<u8> = draw_session().as_str().bytes().cycle().take(TEST_MESSAGE_BYTES).collect();
            bytes[0] = number;
            let began = Instant::now();
            self.send(bytes.clone()).await?;
            let back = timeout(ECHO_MAX, self.until_back(&bytes)).await;
            trips.take(back.ok().transpose()?.map(|()| began.elapsed()));
        }
        Ok(trips)
    }

    async fn until_back(&mut self, sent: &[u8]) -> Result<(), Fault> {
        loop {
            match self.next().await? {
                Turn::Bytes(bytes) if bytes == sent => return Ok(()),
                // One that comes too late, or a word that is not due yet.
                Turn::Bytes(_) | Turn::Word(Control::Switch) => {}
                Turn::Word(Control::Close) => return Err(Fault::Closed),
            }
        }
    }

    /// Sends back what comes, until the other side says this.
    async fn mirror(&mut self, until: Control) -> Result<(), Fault> {
        let mirrored = async {
            loop {
                match self.next().await? {
                    Turn::Bytes(bytes) => self.send(bytes).await?,
                    Turn::Word(word) if word == until => return Ok(()),
                    Turn::Word(Control::Close) => return Err(Fault::Closed),
                    Turn::Word(Control::Switch) => {}
                }
            }
        };
        timeout(TURN_MAX, mirrored).await.unwrap_or(Err(Fault::Silence("the other side to do its part of the test", TURN_MAX)))
    }

    /// What comes next; a few messages that nobody of the test has sealed are passed over.
    async fn next(&mut self) -> Result<Turn, Fault> {
        for _ in 0..STRAY_MESSAGES_MAX {
            let (heard, is_word) = tokio::select! {
                heard = self.data.next() => (heard?, false),
                heard = self.control.next() => (heard?, true),
            };
            if heard == Heard::Interrupted {
                return Err(Fault::Interrupted);
            }
            // What is no text is no message of a test.
            let Heard::Message(text) = heard else { continue };
            if is_word {
                if let Some(word) = Control::parse(&text, self.queue_id.as_str()) {
                    return Ok(Turn::Word(word));
                }
                continue;
            }
            let bytes = |message| if let RelayMessage::Raw(bytes) = message { Some(bytes) } else { None };
            match self.gatekeeper.open(text, &self.other, bytes).await? {
                Ok(Some(bytes)) => return Ok(Turn::Bytes(bytes)),
                Ok(None) => self.gatekeeper.tell(&self.other, "sends something else than bytes in the test of a relay"),
                Err(fault) => self.gatekeeper.tell(&self.other, &format!("is said to send a message that is not taken: {fault}")),
            }
        }
        Err(Fault::Garbage("a message of the test"))
    }

    async fn send(&self, bytes: Vec<u8>) -> Result<(), Fault> {
        let sealed = self.gatekeeper.seal(RelayMessage::Raw(bytes), &self.other).await?;
        self.gatekeeper.send(&*self.relay, &self.out, sealed, self.gatekeeper.patient()).await
    }

    fn say(&self, word: Control) -> impl Future<Output = Result<(), Fault>> {
        self.gatekeeper.send(&*self.relay, &self.out_control, word.of(self.queue_id.as_str()), self.gatekeeper.patient())
    }

    /// Leaves nothing at the relay.
    async fn end(self) {
        let Self { gatekeeper, relay, into, data, control, .. } = self;
        sleep(LINGER).await;
        drop((data, control));
        for queue in &into {
            gatekeeper.remove(&*relay, queue).await;
        }
    }
}

/// What has come.
enum Turn {
    Bytes(Vec<u8>),
    Word(Control),
}
