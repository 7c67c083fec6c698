//! Quotas of clients, and connections with many channels, over TLS.

use bodkin_relay::native::{Channel as ChannelId, Role};

use super::*;

/// Bytes of a greeting and of frames behind it.
fn hello(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    [Frame::Greeting { newest: 1, oldest: 1 }].iter().chain(frames).for_each(|frame| write(frame, &mut bytes));
    bytes
}

/// A client of this cloud that has said hello.
async fn client(lab: &Lab, cloud: usize, frames: &[Frame<'_>]) -> AsyncChannel {
    let mut channel = raw(lab, lab.clouds[cloud].tls(&lab.relay.key())).await;
    channel.write_all(&hello(frames)).await.unwrap();
    channel
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_quota_are_refused_by_name() {
    let lab = Lab::new(HubLimits { client_connections_max: 2, ..HubLimits::default() });
    let (_first, _second) = (client(&lab, 0, &[]).await, client(&lab, 0, &[]).await);
    until("both are connected", || lab.server().counts().hub.connections == 2).await;
    let mut third = client(&lab, 0, &[]).await;
    let said = last_words(&mut third).await;
    assert!(String::from_utf8_lossy(&said).contains("client_connections_max: "), "{:?}", String::from_utf8_lossy(&said));
    let relays = lab.clouds[1].relays();
    let other = relays.link(&lab.place());
    let mut messages = other.listen(&queue("q")).await.expect("another key has a quota of its own");
    other.send(&queue("q"), "hello".into()).await.unwrap();
    assert_eq!(message(&mut messages).await, "hello");
    let [(name, limit, 1)] = &lab.server().refusals()[..] else { panic!("{:?}", lab.server().refusals()) };
    assert_eq!(*limit, Limit::ClientConnections);
    let (common_name, digits) = name.split_once('#').expect("both parts");
    assert_eq!((common_name, digits.len()), ("gatekeeper.one.company.arrowhead.eu", FINGERPRINT_DIGITS));
    let counts = lab.server().counts().hub;
    assert_eq!((counts.clients, counts.clients_at_limit), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_connection_with_many_channels_frees_them() {
    let lab = Lab::new(HubLimits { client_topic_listeners_max: usize::MAX, ..HubLimits::default() });
    let topic = Destination::topic("General").unwrap();
    let opened: Vec<_> =
        (1..=4_000).map(|channel| Frame::Open { channel: ChannelId(channel), role: Role::Listen, destination: topic.clone() }).collect();
    let greedy = client(&lab, 0, &opened).await;
    until("all are open", || lab.server().counts().hub.channels == 4_000).await;
    let relays = lab.clouds[1].relays();
    let other = relays.link(&lab.place());
    let mut messages = other.listen(&topic).await.unwrap();
    drop(greedy);
    other.send(&topic, "still here".into()).await.unwrap();
    assert_eq!(message(&mut messages).await, "still here");
    until("they are released", || lab.server().counts().hub.channels <= 2).await;
    assert_eq!(lab.server().refusals(), []);
}

#[test]
fn client_name_shows_no_control_characters() {
    let cloud = CloudCommonName::parse("one.company.arrowhead.eu").unwrap();
    let authority =
        Authority::root(tls::now(), Duration::from_secs(60)).unwrap().issue_cloud(&cloud, tls::now(), Duration::from_secs(60)).unwrap();
    let name = format!("x\u{202e}\"\n{}", "y".repeat(40));
    let profile = Profile { name, alternative_names: Vec::new(), now: tls::now(), lifetime: Duration::from_secs(60) };
    let identity = authority.issue(&profile).unwrap();
    let client = ClientName::of(&[identity.certificate().der().clone()]).unwrap();
    assert!(client.name.starts_with(&format!("x?\"?{}#", "y".repeat(40))), "{}", client.name);
    assert!(ClientName::of(&[]).is_err());
}
