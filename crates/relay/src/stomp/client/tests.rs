//! A session against what brokers say.

use super::*;

const NOW: Duration = Duration::from_secs(100);

/// What a broker says is taken; gives what is told.
fn heard(client: &mut Client, says: &str) -> (Vec<Event>, Result<(), SessionFault>) {
    let mut events = Vec::new();
    let received = client.receive(says.as_bytes(), NOW, &mut events);
    (events, received)
}

/// What is written next, and what is told with it.
fn written(client: &mut Client) -> (String, Vec<Event>) {
    let (mut out, mut events) = (Vec::new(), Vec::new());
    client.take_out(NOW, &mut out, &mut events);
    (String::from_utf8(out).unwrap(), events)
}

fn connected() -> Client {
    let mut client = Client::new(1, None);
    assert!(written(&mut client).0.starts_with("CONNECT\n"));
    assert_eq!(heard(&mut client, "CONNECTED\nversion:1.2\nheart-beat:10000,10000\n\n\0"), (vec![Event::Open], Ok(())));
    client
}

fn queue() -> Destination {
    Destination::queue("REQ-a").unwrap()
}

fn message(ack: &str, body: &str) -> String {
    format!("MESSAGE\nsubscription:3\nack:{ack}\nmessage-id:1\ndestination:/queue/REQ-a\n\n{body}\0")
}

#[test]
fn a_listener_is_confirmed_and_acknowledges_what_it_takes() {
    let mut client = connected();
    client.listen(3, &queue());
    let (subscribe, _) = written(&mut client);
    assert!(
        subscribe.contains("\nid:3\n") && subscribe.contains("receipt:1\n") && subscribe.contains("activemq.prefetchSize:8\n"),
        "{subscribe}"
    );
    assert_eq!(heard(&mut client, "RECEIPT\nreceipt-id:1\n\n\0"), (vec![Event::Listening(3)], Ok(())));
    let receipt = Receipt::Ack { ack: "x".into(), bytes: 2 };
    let expected = Event::Message { listener: 3, text: "hi".into(), receipt: receipt.clone() };
    assert_eq!(heard(&mut client, &message("x", "hi")), (vec![expected], Ok(())));
    assert_eq!(written(&mut client).0, "", "nothing is acknowledged before it is taken");
    client.taken(3, receipt);
    assert_eq!(written(&mut client).0, "ACK\nid:x\n\n\0");
    client.leave(3);
    assert_eq!(written(&mut client).0, "UNSUBSCRIBE\nid:3\n\n\0");
    assert_eq!(heard(&mut client, &message("y", "late")), (vec![], Ok(())), "it goes to somebody else");
}

#[test]
fn a_message_of_bytes_is_not_sent_to_a_broker() {
    let (mut client, mut events) = (connected(), Vec::new());
    written(&mut client);
    client.send_bytes(7, &queue(), vec![0, 1], NOW, &mut events);
    assert!(matches!(&events[..], [Event::NotSent { sending: 7, .. }]), "{events:?}");
    assert_eq!(written(&mut client).0, "");
}

#[test]
fn texts_go_in_their_order_and_none_before_the_session_is_open() {
    let mut client = Client::new(1, None);
    client.send(1, &queue(), "a".into(), NOW, &mut Vec::new());
    assert_eq!(written(&mut client).1, []);
    heard(&mut client, "CONNECTED\nversion:1.2\n\n\0").1.unwrap();
    client.send(2, &queue(), "b".into(), NOW, &mut Vec::new());
    client.send(3, &queue(), "c".into(), NOW, &mut Vec::new());
    client.give_up(2);
    let (bytes, events) = written(&mut client);
    assert_eq!(events, [Event::Sent(1), Event::Sent(3)]);
    let send = |text: &str| format!("SEND\ndestination:/queue/REQ-a\namq-msg-type:text\n\n{text}\0");
    assert_eq!(bytes, send("a") + &send("c"));
}

#[test]
fn messages_that_go_keep_within_the_bytes_that_wait() {
    let mut client = connected();
    let long = "x".repeat(OUT_BYTES_MAX);
    for sending in 0..3 {
        client.send(sending, &queue(), long.clone(), NOW, &mut Vec::new());
    }
    for sending in 0..3 {
        assert_eq!(written(&mut client).1, [Event::Sent(sending)], "one goes beyond, and the next waits");
    }
}

#[test]
fn a_refused_subscription_is_told_as_its_own_and_ends_the_session() {
    let mut client = connected();
    client.listen(3, &queue());
    let words = "not authorized to read from REQ-a".to_owned();
    let told = heard(&mut client, "ERROR\nreceipt-id:1\nmessage:not authorized to read from REQ-a\n\n\0");
    let over = Event::Over { listener: 3, refusal: Refusal { reason: None, words: words.clone() } };
    assert_eq!(told, (vec![over], Err(SessionFault::Refused(words))));
}

#[test]
fn a_broker_that_is_none_or_sends_too_much_or_nothing_is_given_up() {
    let garbage = heard(&mut Client::new(1, None), "\u{1}\u{2}HTTP/1.1 400\r\n").1;
    assert!(matches!(garbage, Err(SessionFault::Stomp(_))), "{garbage:?}");
    let early = heard(&mut Client::new(1, None), &message("x", "hi")).1;
    assert!(matches!(early, Err(SessionFault::Unexpected { .. })), "{early:?}");

    let mut client = connected();
    client.listen(3, &queue());
    let mut flood = (0..UNTAKEN_MAX).map(|number| heard(&mut client, &message(&number.to_string(), "x")).1);
    assert!(flood.all(|taken| taken.is_ok()));
    assert_eq!(heard(&mut client, &message("more", "x")).1, Err(SessionFault::NoCredit));

    let mut client = connected();
    assert!(client.beat(NOW + Duration::from_secs(4)).is_ok());
    assert_eq!(written(&mut client).0, "", "no beat is due");
    client.beat(NOW + Duration::from_secs(5)).unwrap();
    assert_eq!(written(&mut client).0, "\n");
    assert_eq!(client.beat(NOW + Duration::from_secs(20)), Err(SessionFault::Silent));
}
