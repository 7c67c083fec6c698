//! Two clouds test a relay together, as two QoS Monitors would.

use bodkin_arrowhead::{
    gatekeeper::{TEST_MESSAGE_BYTES, TEST_MESSAGES},
    gateway::control_queue,
};
use bodkin_relay::tunnel::Control as Word;

use super::*;

fn proposal(key: &str) -> Value {
    json!({
        "targetCloud": {"operator": "aitia", "name": "two"}, "relay": {"address": "relay.example", "port": 5571}, "senderQoSMonitorPublicKey": key,
    })
}

/// Messages to the queues of a name that begins and ends so.
fn sent_to(relay: &MemoryRelay, begin: &str, end: &str) -> usize {
    let is_it = |to: &Destination| to.name().starts_with(begin) && to.name().ends_with(end);
    relay.sent().iter().filter(|(to, _)| is_it(to)).count()
}

#[tokio::test]
async fn two_gatekeepers_test_a_relay_one_after_the_other() {
    let (relay, one, _two) = neighbours().await;
    let report = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_relay_test", proposal("")).await;
    assert_eq!((&report["cloud"], &report["sent"], &report["lost"]), (&json!("two.aitia"), &json!(TEST_MESSAGES), &json!(0)), "{report}");
    let ms = |member: &str| report[member].as_f64().unwrap();
    assert!(0.0 < ms("minMs") && ms("minMs") <= ms("meanMs") && ms("meanMs") <= ms("maxMs"), "{report}");
    // One word of each: what the asking side has measured is over, and then the test.
    assert_eq!((sent_to(&relay, "REQ-", "-CONTROL"), sent_to(&relay, "RESP-", "-CONTROL")), (1, 1));
    let sent = relay.sent();
    let words: Vec<_> =
        sent.iter().filter(|(to, _)| to.name().ends_with("-CONTROL")).map(|(to, word)| (to.name(), format!("{word:?}"))).collect();
    assert!(words[0].1.contains(&Word::Switch.to_string()) && words[1].1.contains(&Word::Close.to_string()), "{words:?}");
    // Twice as many of each as one side measures by: its own, and what it sends back.
    let messages = 2 * usize::from(TEST_MESSAGES);
    let of_the_test = words[0].0.trim_end_matches("-CONTROL").rsplit('-').next().unwrap();
    for queue in ["REQ-", "RESP-"] {
        assert_eq!(sent_to(&relay, queue, of_the_test), messages, "{queue}");
    }
    until(&relay, "all queues are removed", |relay| relay.queues().is_empty()).await;
}

#[tokio::test]
async fn what_a_relay_loses_of_a_test_is_counted() {
    let (relay, one, _two) = neighbours().await;
    // Of the dialogue before the test three messages pass; then the third message of the test is lost.
    relay.lose_behind(3 + 4, 1);
    let report = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_relay_test", proposal("")).await;
    assert_eq!((&report["sent"], &report["lost"]), (&json!(TEST_MESSAGES), &json!(1)), "{report}");
    until(&relay, "all queues are removed", |relay| relay.queues().is_empty()).await;
}

#[tokio::test]
async fn a_relay_that_goes_away_in_a_test_is_told() {
    let (relay, one, _two) = neighbours().await;
    // Slow enough that the test is under way for a while.
    relay.delay(Duration::from_millis(50));
    let asked = tokio::spawn(one.try_ask(CoreSystem::Gatekeeper, Method::Post, "init_relay_test", proposal("")));
    let is_begun = |relay: &MemoryRelay| relay.queues().iter().any(|queue| queue.name().ends_with("-CONTROL")) && relay.sent().len() > 6;
    until(&relay, "the test is under way", is_begun).await;
    relay.set_down(true);
    let (status, answer) = asked.await.unwrap();
    assert_eq!(status, 502, "{answer}");
    assert!(answer["errorMessage"].as_str().unwrap().contains("The test of the relay relay.example:5571 came to nothing"), "{answer}");
}

/// A QoS Monitor of the first cloud takes part itself, by a key of its own.
#[tokio::test]
async fn a_monitor_of_quality_is_told_where_and_is_answered_and_measured() {
    let (relay, one, _two) = neighbours().await;
    let own = PrivateKey::generate(KeySize::Bits2048).unwrap();
    let key = base64::encode(&own.public_key_info());
    let joined = one.ask(CoreSystem::Gatekeeper, Method::Post, "init_relay_test", proposal(&key)).await;
    let (id, peer) = (joined["queueId"].as_str().unwrap(), joined["peerName"].as_str().unwrap());
    assert_eq!(peer, "gatekeeper.two.aitia.arrowhead.eu");
    let theirs = joined["receiverQoSMonitorPublicKey"].as_str().unwrap();
    let (sealing, verifying) =
        (SealingKey::from_authentication_info(theirs).unwrap(), VerifyingKey::from_authentication_info(theirs).unwrap());
    let (sealer, opener) = (MessageSealer::new(&own).unwrap(), MessageOpener::new(&own).unwrap());
    let (id, peer) = (SessionId::parse(id).unwrap(), SystemCommonName::parse(peer).unwrap());
    let (request, response) = (id.request_queue(&peer), id.response_queue(&peer));
    let queue = |name: &str| Destination::queue(name).unwrap();
    let mut answers = relay.listen(&queue(&response)).await.unwrap();
    let mut words = relay.listen(&queue(&control_queue(&response))).await.unwrap();
    let next =
        async |messages: &mut Messages| match tokio::time::timeout(PATIENCE, messages.next()).await.expect("something comes").unwrap() {
            Heard::Message(text) => text,
            other => panic!("{other:?}"),
        };
    let say = async |bytes: Vec<u8>| {
        let sealed = sealer.seal(&RelayMessage::Raw(bytes), &sealing, now()).unwrap();
        relay.send(&queue(&request), sealed).await.unwrap();
    };
    let open = |sealed: String| match opener.open(&sealed, ("neighbor", &verifying), now()).unwrap() {
        RelayMessage::Raw(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    for number in 0..3 {
        let mut bytes = vec![b'x'; TEST_MESSAGE_BYTES];
        bytes[0] = number;
        say(bytes.clone()).await;
        assert_eq!(open(next(&mut answers).await), bytes);
    }
    relay.send(&queue(&control_queue(&request)), Word::Switch.of(id.as_str())).await.unwrap();
    // Now the other side measures.
    for number in 0..TEST_MESSAGES {
        let bytes = open(next(&mut answers).await);
        assert_eq!((bytes.len(), bytes[0]), (TEST_MESSAGE_BYTES, number));
        say(bytes).await;
    }
    assert_eq!(next(&mut words).await, Word::Close.of(id.as_str()));
}
