//! The client against a relay that says what it likes; `hub::tests` has it with our own.

use super::*;
use crate::native::MESSAGE_COST;

const NOW: Duration = Duration::from_secs(100);

fn open() -> Client {
    let mut client = Client::new(NOW);
    let greeting = Frame::Greeting { newest: 1, oldest: 1 };
    assert_eq!(heard(&mut client, &[greeting]), (vec![Event::Open], Ok(())));
    written(&mut client);
    client
}

fn heard(client: &mut Client, frames: &[Frame<'_>]) -> (Vec<Event>, Result<(), SessionFault>) {
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    frames.iter().for_each(|frame| write(frame, &mut bytes));
    let received = client.receive(&bytes, NOW, &mut events);
    (events, received)
}

fn written(client: &mut Client) -> (Vec<u8>, Vec<Event>) {
    let (mut out, mut events) = (Vec::new(), Vec::new());
    client.take_out(NOW, &mut out, &mut events);
    (out, events)
}

fn queue() -> Destination {
    Destination::queue("REQ-a").unwrap()
}

#[test]
fn a_message_goes_when_there_is_credit_and_the_next_ones_while_it_lasts() {
    let mut client = open();
    let send = |client: &mut Client, sending, text: &str| client.send(sending, &queue(), text.to_owned(), NOW, &mut Vec::new());
    send(&mut client, 1, "abc");
    assert_eq!(written(&mut client).1, [], "without credit nothing goes");
    heard(&mut client, &[Frame::Credit { channel: Channel(1), bytes: 1 }]).1.unwrap();
    send(&mut client, 2, "d");
    send(&mut client, 3, "e");
    assert_eq!(written(&mut client).1, [Event::Sent(1)], "one may exceed it");
    heard(&mut client, &[Frame::Credit { channel: Channel(1), bytes: MESSAGE_COST + 2 }]).1.unwrap();
    assert_eq!(written(&mut client).1, [], "which is paid from the next credit");
    client.give_up(2);
    heard(&mut client, &[Frame::Credit { channel: Channel(1), bytes: 1 }]).1.unwrap();
    let mut expected = Vec::new();
    write(&Frame::Message { channel: Channel(1), bytes: b"e" }, &mut expected);
    assert_eq!(written(&mut client), (expected, vec![Event::Sent(3)]), "what was given up does not go");
}

#[test]
fn an_unused_channel_is_closed_and_the_next_message_opens_another() {
    let mut client = open();
    client.send(1, &queue(), "a".into(), NOW, &mut Vec::new());
    heard(&mut client, &[Frame::Credit { channel: Channel(1), bytes: 1 }]).1.unwrap();
    assert_eq!(written(&mut client).1, [Event::Sent(1)]);
    client.beat(NOW + Duration::from_secs(9)).unwrap();
    assert!(written(&mut client).0.is_empty());
    client.beat(NOW + Duration::from_secs(10)).unwrap();
    let mut expected = Vec::new();
    write(&Frame::Close { channel: Channel(1) }, &mut expected);
    assert_eq!(written(&mut client).0, expected);
    let crossing = [Frame::Credit { channel: Channel(1), bytes: 9 }, Frame::Close { channel: Channel(1) }];
    assert_eq!(heard(&mut client, &crossing), (vec![], Ok(())));
    client.send(2, &queue(), "b".into(), NOW, &mut Vec::new());
    let mut expected = Vec::new();
    write(&Frame::Open { channel: Channel(2), role: Role::Send, destination: queue() }, &mut expected);
    assert_eq!(written(&mut client).0, expected);
}

#[test]
fn a_relay_that_breaks_the_rules_is_given_up() {
    let message = |channel, bytes| Frame::Message { channel: Channel(channel), bytes };
    let mut client = open();
    client.listen(1, &queue());
    let long = vec![b'x'; WINDOW_BYTES as usize];
    let (events, received) = heard(&mut client, &[message(1, &long), message(1, b"more")]);
    assert_eq!((events.len(), received), (1, Err(SessionFault::NoCredit)), "what was told in front of it counts");

    let mut client = open();
    client.listen(1, &queue());
    client.send(1, &queue(), "a".into(), NOW, &mut Vec::new());
    for frames in [
        vec![message(9, b"x")],
        vec![message(2, b"x")],
        vec![Frame::Credit { channel: Channel(1), bytes: 1 }],
        vec![Frame::Close { channel: Channel(9) }],
        vec![Frame::Greeting { newest: 1, oldest: 1 }],
        vec![Frame::Remove { destination: queue() }],
        vec![Frame::Open { channel: Channel(9), role: Role::Send, destination: queue() }],
    ] {
        let (events, received) = heard(&mut client, &frames);
        assert!(
            events.is_empty() && matches!(received, Err(SessionFault::Unexpected { .. } | SessionFault::Unknown { .. })),
            "{frames:?} {received:?}"
        );
    }
    for greeting in [Frame::Greeting { newest: 9, oldest: 2 }, Frame::Greeting { newest: 0, oldest: 1 }] {
        let received = heard(&mut Client::new(NOW), &[greeting]).1;
        assert!(matches!(received, Err(SessionFault::Version { .. })), "{received:?}");
    }
    let garbage = Client::new(NOW).receive(b"HTTP/1.1 400 Bad Request\r\n", NOW, &mut Vec::new());
    assert!(matches!(garbage, Err(SessionFault::Frame(_))), "{garbage:?}");
}

#[test]
fn what_is_no_text_is_passed_over_and_paid_for() {
    let mut client = open();
    client.listen(5, &queue());
    written(&mut client);
    let (events, received) = heard(&mut client, &[Frame::Message { channel: Channel(1), bytes: &[0xff, 0xfe] }]);
    assert_eq!((events, received), (vec![Event::NoText(5)], Ok(())));
    let mut expected = Vec::new();
    write(&Frame::Credit { channel: Channel(1), bytes: MESSAGE_COST + 2 }, &mut expected);
    assert_eq!(written(&mut client).0, expected);
}

#[test]
fn what_begins_with_a_zero_byte_is_a_message_of_bytes_both_ways() {
    let mut client = open();
    client.listen(5, &queue());
    written(&mut client);
    // Bytes that would be a text without it, and others.
    for bytes in [&b"\0abc"[..], &[0, 0xff, 0xfe], &[0]] {
        let (events, received) = heard(&mut client, &[Frame::Message { channel: Channel(1), bytes }]);
        let receipt = Receipt::Credit(MESSAGE_COST + bytes.len() as u32);
        assert_eq!((events, received), (vec![Event::Bytes { listener: 5, bytes: bytes.to_vec(), receipt }], Ok(())));
    }
    client.send_bytes(1, &queue(), vec![0, 0xff], NOW, &mut Vec::new());
    written(&mut client);
    assert_eq!(heard(&mut client, &[Frame::Credit { channel: Channel(2), bytes: 100 }]), (vec![], Ok(())));
    let mut expected = Vec::new();
    write(&Frame::Message { channel: Channel(2), bytes: &[0, 0xff] }, &mut expected);
    assert_eq!(written(&mut client), (expected, vec![Event::Sent(1)]));
}

#[test]
fn many_destinations_cost_the_longest_unused_its_channel() {
    let mut client = open();
    let name = |number: usize| Destination::queue(&format!("q{number}")).unwrap();
    for number in 0..SENDERS_MAX {
        let now = NOW + Duration::from_millis(number as u64);
        client.send(number as u64, &name(number), "a".into(), now, &mut Vec::new());
    }
    let mut events = Vec::new();
    client.send(u64::MAX, &name(SENDERS_MAX), "a".into(), NOW, &mut events);
    assert!(
        matches!(&events[..], [Event::NotSent { refusal: Refusal { reason: Some(Reason::Full), .. }, .. }]),
        "each has a message: {events:?}"
    );
    heard(&mut client, &[Frame::Credit { channel: Channel(3), bytes: 1 }]).1.unwrap();
    written(&mut client);
    events.clear();
    client.send(u64::MAX, &name(SENDERS_MAX), "a".into(), NOW, &mut events);
    assert_eq!((events, client.senders.len()), (vec![], SENDERS_MAX), "one of them has gone");
    assert!(!client.senders.contains_key(&name(2)));
}
