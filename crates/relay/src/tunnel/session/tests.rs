use std::collections::VecDeque;

use proptest::prelude::*;

use super::{super::PLAIN_REQUESTS_MAX, *};

const TERMS: Terms = Terms { idle: Duration::from_secs(60), opening: Duration::from_secs(30) };

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pair() -> (Session, Session) {
    let mut provider = Session::new(Side::Provider, TERMS, true, at(0));
    let mut consumer = Session::new(Side::Consumer, TERMS, true, at(0));
    assert_eq!((consumer.state(), provider.state()), (SessionState::Opening, SessionState::Opening));
    let mut events = Vec::new();
    provider.opened(TERMS.silent_ms(), at(0), &mut events);
    assert_eq!(events, [Event::Say(Frame::Ready(30_000))]);
    consumer.receive(Frame::Ready(30_000), at(0), &mut Vec::new()).unwrap();
    assert_eq!((consumer.state(), provider.state()), (SessionState::Open, SessionState::Open));
    (consumer, provider)
}

fn received(session: &mut Session, frame: Frame) -> Vec<Event> {
    let mut events = Vec::new();
    session.receive(frame, at(1), &mut events).unwrap();
    events
}

#[test]
fn session_is_in_use_with_a_connection_and_a_live_peer() {
    let (mut consumer, _) = pair();
    assert!(!consumer.is_in_use(at(0)), "nobody is connected");
    consumer.accept(at(100)).unwrap();
    assert!(consumer.is_in_use(at(100)) && consumer.is_in_use(at(114)));
    assert!(!consumer.is_in_use(at(115)), "half of the 30 s of silence are over");
    consumer.receive(Frame::KeepAlive, at(116), &mut Vec::new()).unwrap();
    assert!(consumer.is_in_use(at(130)));
    for _ in 1..CONNECTIONS_MAX {
        consumer.accept(at(117)).unwrap();
    }
    assert!(!consumer.is_in_use(at(117)), "there is capacity for no other connection");
}

#[test]
fn a_connection_ends_in_each_direction_by_itself_and_the_session_goes_on() {
    let (mut consumer, mut provider) = pair();
    for number in 1..=3 {
        assert_eq!(consumer.accept(at(1)), Some(number));
        assert_eq!(received(&mut provider, Frame::Connect(number)), [Event::Connect(number)]);
        assert_eq!(received(&mut provider, Frame::Bytes(number, vec![1])), [Event::Bytes(number, vec![1])]);
        assert_eq!(consumer.end(number, at(2)), Some(Frame::End(number)));
        assert_eq!(consumer.end(number, at(2)), None);
        assert_eq!(received(&mut provider, Frame::End(number)), [Event::End(number)]);
        assert_eq!((consumer.state(), provider.state()), (SessionState::HalfClosed, SessionState::HalfClosed));
        assert_eq!(received(&mut consumer, Frame::Bytes(number, vec![2])), [Event::Bytes(number, vec![2])]);
        assert_eq!(provider.end(number, at(3)), Some(Frame::End(number)));
        assert_eq!(received(&mut consumer, Frame::End(number)), [Event::End(number)]);
        assert_eq!((consumer.connections(), provider.connections()), (0, 0));
        assert_eq!((consumer.state(), provider.state()), (SessionState::Open, SessionState::Open));
    }
    // What was on its way is passed over.
    assert_eq!(received(&mut consumer, Frame::Bytes(2, vec![2])), []);
    assert_eq!(received(&mut consumer, Frame::Reset(2, String::new())), []);
}

#[test]
fn a_connection_that_broke_is_given_up_and_no_other() {
    let (mut consumer, mut provider) = pair();
    for number in 1..=2 {
        consumer.accept(at(1)).unwrap();
        received(&mut provider, Frame::Connect(number));
    }
    let told = provider.reset(1, "it is gone", at(1)).unwrap();
    assert_eq!(received(&mut consumer, told), [Event::Reset(1, "it is gone".into())]);
    assert_eq!((consumer.connections(), provider.connections(), provider.reset(1, "", at(1))), (1, 1, None));
}

#[test]
fn no_more_connections_than_there_is_room_for() {
    let (mut consumer, mut provider) = pair();
    for number in 1..=CONNECTIONS_MAX as u32 {
        assert_eq!(consumer.accept(at(1)), Some(number));
        received(&mut provider, Frame::Connect(number));
    }
    assert_eq!((consumer.has_room(), consumer.accept(at(1))), (false, None));
    let refused = received(&mut provider, Frame::Connect(9));
    assert!(matches!(&refused[..], [Event::Say(Frame::Reset(9, words))] if words.contains("8 connections")), "{refused:?}");
    consumer.reset(3, "", at(1)).unwrap();
    assert_eq!(consumer.accept(at(1)), Some(9));
}

#[test]
fn connections_that_are_given_up_hold_no_more_than_there_is_room_for_until_they_are_gone() {
    let (_, mut provider) = pair();
    let mut held = BTreeSet::new();
    for number in 1..=100 {
        let events = received(&mut provider, Frame::Connect(number));
        match &events[..] {
            [Event::Connect(connected)] => assert!(*connected == number && held.insert(number)),
            [Event::Say(Frame::Reset(refused, words))] => assert!(*refused == number && words.contains("have not ended yet"), "{words}"),
            other => panic!("{other:?}"),
        }
        received(&mut provider, Frame::Bytes(number, vec![1]));
        received(&mut provider, Frame::Reset(number, String::new()));
        assert!(held.len() <= CONNECTIONS_HELD_MAX && provider.connections() == 0);
    }
    assert_eq!(held.len(), CONNECTIONS_HELD_MAX);
    provider.gone(1);
    assert_eq!(received(&mut provider, Frame::Connect(101)), [Event::Connect(101)]);
    // Nothing is held that has not been connected, or is gone already.
    provider.gone(1);
    provider.gone(50);
    assert!(matches!(received(&mut provider, Frame::Connect(102))[..], [Event::Say(Frame::Reset(102, _))]));
}

#[test]
fn without_frames_too_a_session_holds_no_more_connections_than_there_is_room_for() {
    let mut provider = Session::new(Side::Provider, TERMS, false, at(0));
    let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut connected = 0;
    let over = (0..10_000).find_map(|_| {
        let mut events = Vec::new();
        let received = provider.receive_plain(request.to_vec(), at(1), &mut events);
        connected += events.iter().filter(|event| matches!(event, Event::Connect(_))).count();
        received.err()
    });
    assert!(matches!(&over, Some(Reason::Fault(why)) if why.contains("before those that it had have ended")), "{over:?}");
    assert_eq!(connected, CONNECTIONS_HELD_MAX);
}

#[test]
fn what_may_not_come_ends_the_session() {
    let check = |at_consumer: bool, before: &[Frame], frame: Frame, told: &str| {
        let (mut consumer, mut provider) = pair();
        consumer.accept(at(1)).unwrap();
        received(&mut provider, Frame::Connect(1));
        let session = if at_consumer { &mut consumer } else { &mut provider };
        before.iter().for_each(|frame| drop(received(session, frame.clone())));
        let refused = session.receive(frame.clone(), at(1), &mut Vec::new()).unwrap_err();
        assert!(matches!(&refused, Reason::Fault(words) if words.contains(told)), "{frame:?}: {refused}");
    };
    check(true, &[], Frame::Connect(2), "opens");
    check(false, &[], Frame::Connect(1), "opens");
    check(false, &[], Frame::Ready(1), "opens");
    check(false, &[], Frame::Bytes(2, vec![1]), "never was");
    check(false, &[Frame::End(1)], Frame::Bytes(1, vec![1]), "behind their end");
    check(false, &[Frame::End(1)], Frame::End(1), "twice");
    check(true, &[], Frame::Credit(1, 1), "more than it was sent");
    let piece = super::super::PIECE_BYTES_MAX;
    let full = vec![Frame::Bytes(1, vec![0; piece]); WINDOW_BYTES as usize / piece];
    check(true, &full, Frame::Bytes(1, vec![0]), "more than it may");
    let (mut consumer, _) = pair();
    assert_eq!(consumer.receive(Frame::Close("why".into()), at(1), &mut Vec::new()), Err(Reason::Peer("why".into())));
}

/// Looks at the times, each of them with what is expected.
fn look(session: &Session, expected: &[(u64, Look)]) {
    for (seconds, expected) in expected {
        assert_eq!(&session.look(at(*seconds)), expected, "at {seconds} s");
    }
}

#[test]
fn a_session_that_nobody_uses_ends_at_the_consumers_side_first() {
    let (consumer, provider) = pair();
    look(&consumer, &[(0, Look::Wait(at(120))), (119, Look::Wait(at(120))), (120, Look::Over(Reason::Unused(at(120))))]);
    look(&provider, &[(239, Look::Wait(at(240))), (240, Look::Over(Reason::Unused(at(240))))]);
    let (mut consumer, mut provider) = pair();
    consumer.accept(at(5)).unwrap();
    received(&mut provider, Frame::Connect(1));
    consumer.reset(1, "", at(10)).unwrap();
    provider.receive(Frame::Reset(1, String::new()), at(10), &mut Vec::new()).unwrap();
    look(&consumer, &[(69, Look::Wait(at(70))), (70, Look::Over(Reason::Idle(at(60))))]);
    look(&provider, &[(79, Look::Wait(at(80))), (80, Look::Over(Reason::Idle(at(70))))]);
}

#[test]
fn keep_alives_hold_a_silent_connection_for_as_long_as_both_gateways_are_there() {
    let (mut consumer, mut provider) = pair();
    consumer.accept(at(0)).unwrap();
    received(&mut provider, Frame::Connect(1));
    for seconds in (10..=600).step_by(10) {
        assert_eq!(consumer.look(at(seconds)), Look::KeepAlive, "at {seconds} s");
        consumer.said(at(seconds));
        consumer.receive(Frame::KeepAlive, at(seconds), &mut Vec::new()).unwrap();
        assert!(matches!(consumer.look(at(seconds + 9)), Look::Wait(_)));
    }
    // The other one is killed.
    consumer.said(at(625));
    look(&consumer, &[(629, Look::Wait(at(630))), (630, Look::Over(Reason::Silent(at(30))))]);
}

#[test]
fn a_gateway_that_waits_for_less_is_told_more_often() {
    let (mut consumer, _) = pair();
    consumer.receive(Frame::Ready(6_000), at(0), &mut Vec::new()).unwrap();
    consumer.accept(at(0)).unwrap();
    look(&consumer, &[(1, Look::Wait(at(2))), (2, Look::KeepAlive)]);
    consumer.receive(Frame::Ready(0), at(0), &mut Vec::new()).unwrap();
    assert_eq!(consumer.look(Duration::from_millis(49)), Look::Wait(Duration::from_millis(50)));
}

#[test]
fn a_gateway_that_never_answers_is_told() {
    let mut consumer = Session::new(Side::Consumer, TERMS, true, at(0));
    // It was not asked yet: its answer is not waited for.
    look(&consumer, &[(30, Look::Wait(at(120)))]);
    consumer.asked(at(40));
    consumer.asked(at(50));
    look(&consumer, &[(60, Look::Wait(at(70)))]);
    consumer.accept(at(61)).unwrap();
    consumer.said(at(65));
    look(&consumer, &[(69, Look::Wait(at(70))), (70, Look::Over(Reason::NoAnswer(at(30))))]);
}

#[test]
fn the_first_reason_stays() {
    let (mut consumer, _) = pair();
    consumer.close(Reason::Closed("the operator"));
    consumer.close(Reason::Stopping);
    assert_eq!((consumer.state(), consumer.has_room()), (SessionState::Closing, false));
    look(&consumer, &[(1, Look::Over(Reason::Closed("the operator")))]);
    consumer.closed();
    assert_eq!(consumer.state(), SessionState::Closed);
}

#[test]
fn without_frames_there_is_one_connection_of_bytes_as_they_come() {
    let mut provider = Session::new(Side::Provider, TERMS, true, at(0));
    let mut events = Vec::new();
    provider.receive_plain(vec![1], at(1), &mut events).unwrap();
    provider.receive_plain(vec![2], at(2), &mut events).unwrap();
    assert_eq!(events, [Event::Connect(1), Event::Bytes(1, vec![1]), Event::Bytes(1, vec![2])]);
    assert_eq!((provider.is_numbered(), provider.state()), (Some(false), SessionState::Open));
    assert_eq!(provider.taken(1, 1), None);
    // A silence is held while the connection is there, and not for ever: nothing says that the other gateway is.
    look(&provider, &[(62, Look::Wait(at(602))), (601, Look::Wait(at(602))), (602, Look::Over(Reason::Idle(at(600))))]);
    let mut consumer = Session::new(Side::Consumer, TERMS, false, at(0));
    assert_eq!((consumer.state(), consumer.accept(at(1)), consumer.accept(at(1))), (SessionState::Open, Some(1), None));
    let _ = consumer.end(1, at(2));
    consumer.receive_plain(vec![3], at(2), &mut Vec::new()).unwrap();
    let _ = consumer.reset(1, "", at(3));
    assert!(!consumer.has_room(), "there is no second one");
    let (mut numbered, _) = pair();
    assert!(numbered.receive_plain(vec![1], at(1), &mut Vec::new()).is_err());
}

#[test]
fn without_frames_a_provider_is_connected_to_anew_behind_so_many_requests() {
    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    let told = |first: &[u8]| {
        let mut provider = Session::new(Side::Provider, TERMS, true, at(0));
        let mut events = Vec::new();
        provider.receive_plain(first.to_vec(), at(1), &mut events).unwrap();
        for _ in 1..=2 * PLAIN_REQUESTS_MAX {
            provider.receive_plain(GET.to_vec(), at(1), &mut events).unwrap();
        }
        let bytes_of = |of| events.iter().filter(|event| matches!(event, Event::Bytes(number, _) if *number == of)).count();
        let bytes = [1, 2, 3].map(bytes_of);
        events.retain(|event| !matches!(event, Event::Bytes(..)));
        (provider, events, bytes)
    };
    let (mut provider, events, bytes) = told(GET);
    assert_eq!(events, [Event::Connect(1), Event::Connect(2), Event::Retire(1), Event::Connect(3)]);
    assert_eq!(bytes, [PLAIN_REQUESTS_MAX as usize, PLAIN_REQUESTS_MAX as usize, 1]);
    // The second may still answer; its end is not the session's.
    assert_eq!((provider.connections(), provider.credit(1), provider.credit(2) > 0), (2, 0, true));
    assert_eq!((provider.goes_on_without(2, at(2)), provider.goes_on_without(3, at(2)), provider.connections()), (true, false, 1));
    // What is no request of a known length is not counted.
    for first in [&b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"[..], b"hello", b""] {
        let (_, events, bytes) = told(first);
        assert_eq!((events, &bytes[1..]), (vec![Event::Connect(1)], &[0, 0][..]), "{first:?}");
    }
    let (mut numbered, _) = pair();
    assert!(!numbered.goes_on_without(1, at(1)));
}

#[test]
fn without_frames_a_provider_may_end_its_connection_behind_an_answer() {
    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1";
    let asked = |events: &mut Vec<Event>| {
        let mut provider = Session::new(Side::Provider, TERMS, true, at(0));
        provider.receive_plain(GET.to_vec(), at(1), events).unwrap();
        provider
    };
    let again = |provider: &mut Session| {
        let mut events = Vec::new();
        provider.receive_plain(GET.to_vec(), at(3), &mut events).unwrap();
        events
    };
    let anew = [Event::Connect(2), Event::Bytes(2, GET.to_vec())];
    let mut provider = asked(&mut Vec::new());
    provider.sent_plain(1, &ANSWER[..ANSWER.len() - 1]);
    assert!(!provider.goes_on_without(1, at(2)), "the answer is cut");
    provider.sent_plain(1, b"1");
    assert!(provider.goes_on_without(1, at(2)));
    // Nobody is connected: it may stay so for as long as between two connections of any session.
    assert_eq!((provider.connections(), provider.state()), (0, SessionState::Open));
    look(&provider, &[(71, Look::Wait(at(72))), (72, Look::Over(Reason::Idle(at(70))))]);
    assert_eq!(again(&mut provider), anew);
    // Its end is known, and its task is not done with it yet.
    let mut provider = asked(&mut Vec::new());
    provider.sent_plain(1, ANSWER);
    let _ = provider.end(1, at(2));
    assert_eq!(again(&mut provider), anew);
    assert!(provider.goes_on_without(1, at(3)));
    // It says that it ends it, and has not yet.
    let mut provider = asked(&mut Vec::new());
    provider.sent_plain(1, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(again(&mut provider), anew);
    // It stays: what comes is for it.
    let mut provider = asked(&mut Vec::new());
    provider.sent_plain(1, ANSWER);
    assert_eq!(again(&mut provider), [Event::Bytes(1, GET.to_vec())]);
    assert!(!provider.goes_on_without(1, at(3)), "it was asked once more");
    // What is no request leaves nothing to go on with.
    let mut provider = Session::new(Side::Provider, TERMS, true, at(0));
    provider.receive_plain(b"hello".to_vec(), at(1), &mut Vec::new()).unwrap();
    provider.sent_plain(1, ANSWER);
    assert!(!provider.goes_on_without(1, at(2)));
}

/// One of two ends that say things at random.
struct End {
    session: Session,
    out: VecDeque<Frame>,
    /// Of connection 1: sent, come, and come but not taken.
    sent: usize,
    come: usize,
    untaken: VecDeque<usize>,
}

impl End {
    fn turn(&mut self, choice: u8, other: &mut VecDeque<Frame>) {
        match choice % 4 {
            0 => {
                let bytes = self.session.credit(1).min(usize::from(choice) * 300 + 1);
                if bytes > 0 {
                    self.session.sent(1, bytes);
                    self.sent += bytes;
                    self.out.push_back(Frame::Bytes(1, vec![0; bytes]));
                }
            }
            1 => {
                let taken = self.untaken.pop_front().and_then(|bytes| self.session.taken(1, bytes));
                self.out.extend(taken);
            }
            _ => {
                let Some(frame) = other.pop_front() else { return };
                let mut events = Vec::new();
                self.session.receive(frame, at(1), &mut events).unwrap();
                for event in events {
                    if let Event::Bytes(1, piece) = event {
                        self.come += piece.len();
                        self.untaken.push_back(piece.len());
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn two_sessions_never_send_each_other_more_than_a_window_and_a_piece_and_come_on(choices in proptest::collection::vec((any::<bool>(), any::<u8>()), 0..600)) {
        let (mut consumer, mut provider) = pair();
        consumer.accept(at(0)).unwrap();
        received(&mut provider, Frame::Connect(1));
        let end = |session| End { session, out: VecDeque::new(), sent: 0, come: 0, untaken: VecDeque::new() };
        let (mut one, mut two) = (end(consumer), end(provider));
        for (is_one, choice) in choices {
            let (mine, theirs) = if is_one { (&mut one, &mut two) } else { (&mut two, &mut one) };
            mine.turn(choice, &mut theirs.out);
            let held: usize = mine.untaken.iter().sum();
            prop_assert!(held <= WINDOW_BYTES as usize + super::super::PIECE_BYTES_MAX);
        }
        // Whoever takes everything gets everything, and whoever has waited may send.
        for _ in 0..3 {
            while !one.out.is_empty() || !two.out.is_empty() || !one.untaken.is_empty() || !two.untaken.is_empty() {
                for choice in [2, 1] {
                    one.turn(choice, &mut two.out);
                    two.turn(choice, &mut one.out);
                }
            }
        }
        prop_assert_eq!((one.sent, two.sent), (two.come, one.come));
        prop_assert!(one.session.credit(1) > 0 && two.session.credit(1) > 0);
    }
}
