use super::super::plan::Terms;
use super::*;

fn line(transport: Transport, loss_tolerance: Option<u32>, is_durable: bool) -> Line {
    let second = Duration::from_secs(1);
    let terms = Terms { period: second, deadline: second, loss_tolerance, retention: 1, is_durable };
    Line { transport, topic: "T".into(), system: "s".into(), terms }
}

/// A ledger of one line and one subscriber, with so many published events.
fn ledger(line: Line, subscriber: Transport, published: u64) -> Ledger {
    let mut ledger = Ledger::new(&[line], &[subscriber]);
    (1..=published).for_each(|sequence| assert_eq!(ledger.publish(0), sequence));
    ledger
}

fn accept(ledger: &mut Ledger, sequences: &[u64]) {
    sequences.iter().for_each(|sequence| ledger.accept(0, *sequence, Instant::now()));
}

fn receive(ledger: &mut Ledger, subscriber: Transport, sequences: &[u64]) {
    sequences.iter().for_each(|sequence| ledger.receive(subscriber, 0, *sequence, false, Instant::now()));
}

#[test]
fn accepted_event_that_does_not_arrive_is_breach() {
    let mut ledger = ledger(line(Transport::Http, Some(0), false), Transport::Required, 5);
    accept(&mut ledger, &[1, 2, 3, 5]);
    receive(&mut ledger, Transport::Required, &[1, 2]);
    let breaches = ledger.breaches(&[5]);
    assert_eq!(breaches.len(), 1);
    assert!(breaches[0].came.starts_with("2 answered events missing (numbers 3, 5)"), "{breaches:?}");
    assert_eq!(ledger.breaches(&[2]), [], "events after the cut are not counted");
    receive(&mut ledger, Transport::Required, &[3, 5]);
    assert_eq!(ledger.breaches(&[5]), [], "the answer to 4 is open: it may be missing");
    receive(&mut ledger, Transport::Required, &[4]);
    assert_eq!(ledger.breaches(&[5]), [], "or arrive");
}

#[test]
fn second_arrival_of_one_event_is_breach() {
    let mut ledger = ledger(line(Transport::Req, Some(0), false), Transport::Required, 1);
    accept(&mut ledger, &[1]);
    receive(&mut ledger, Transport::Required, &[1, 1]);
    assert!(ledger.breaches(&[1])[0].came.contains("1 twice"));
}

#[test]
fn answered_event_behind_later_one_is_breach() {
    for transport in [Transport::Http, Transport::Req] {
        for is_late in [false, true] {
            let mut ledger = ledger(line(transport, Some(0), false), Transport::Required, 3);
            receive(&mut ledger, Transport::Required, &[1, 3]);
            ledger.receive(Transport::Required, 0, 2, is_late, Instant::now());
            accept(&mut ledger, &[1, 3]);
            assert_eq!(ledger.breaches(&[3]), [], "the answer to 2 is open: it may arrive at any time");
            accept(&mut ledger, &[2]);
            let breaches = ledger.breaches(&[3]);
            assert!(
                breaches.iter().any(|breach| breach.came.contains("1 out of order (numbers 2)")),
                "{transport:?} {is_late}: {breaches:?}"
            );
        }
    }
}

#[test]
fn refused_event_that_arrives_is_breach() {
    let mut ledger = ledger(line(Transport::Http, None, false), Transport::Prefix, 2);
    ledger.refuse(0, 1, "503 another node leads", true);
    ledger.refuse(0, 2, "503 not answered", false);
    receive(&mut ledger, Transport::Prefix, &[2]);
    assert_eq!(ledger.breaches(&[2]), []);
    receive(&mut ledger, Transport::Prefix, &[1]);
    assert!(ledger.breaches(&[2])[0].expected.contains("refused with nothing done"));
}

#[test]
fn refusal_without_reason_is_breach() {
    let mut ledger = ledger(line(Transport::Http, None, false), Transport::Required, 1);
    ledger.refuse(0, 1, " ", true);
    assert!(ledger.breaches(&[1])[0].expected.contains("has a reason"));
}

#[test]
fn dealer_losses_are_held_against_tolerance() {
    for (tolerance, is_broken) in [(Some(3), false), (Some(1), true), (None, false)] {
        let mut ledger = ledger(line(Transport::Dealer, tolerance, false), Transport::Required, 6);
        ledger.exceed(0, 4);
        receive(&mut ledger, Transport::Required, &[1, 5, 6]);
        assert_eq!(!ledger.breaches(&[6]).is_empty(), is_broken, "{tolerance:?}");
        assert_eq!(ledger.losses(0).events, 2, "the excess event is not counted");
    }
}

#[test]
fn cover_accepts_open_events_only() {
    let mut ledger = ledger(line(Transport::Dealer, Some(0), true), Transport::Stream, 4);
    ledger.exceed(0, 2);
    receive(&mut ledger, Transport::Stream, &[1]);
    ledger.cover(0, 3, Instant::now());
    let breaches = ledger.breaches(&[4]);
    assert!(breaches[0].came.starts_with("1 answered events missing (numbers 3)"), "{breaches:?}");
}

#[test]
fn stream_may_miss_events_it_reports() {
    let mut ledger = ledger(line(Transport::Http, Some(0), false), Transport::Stream, 3);
    accept(&mut ledger, &[1, 2, 3]);
    receive(&mut ledger, Transport::Stream, &[1, 3, 3]);
    assert_eq!(ledger.breaches(&[3]).len(), 1);
    ledger.report_loss(Transport::Stream, 0);
    assert_eq!(ledger.breaches(&[3]), []);
}

#[test]
fn promises_depend_on_both_transports() {
    for transport in [Transport::Push, Transport::Pub] {
        assert_eq!(promise(&line(transport, Some(0), true), Transport::Required, false), Promise::AtMostOnce);
        assert_eq!(promise(&line(transport, Some(0), true), Transport::Stream, false), Promise::Nothing);
    }
    assert_eq!(promise(&line(Transport::Dealer, None, true), Transport::Stream, false), Promise::Nothing);
    for (is_durable, has_failed_over, promised) in
        [(true, true, Promise::Arrives), (true, false, Promise::Arrives), (false, false, Promise::Arrives), (false, true, Promise::Nothing)]
    {
        assert_eq!(promise(&line(Transport::Http, Some(0), is_durable), Transport::Callback, has_failed_over), promised);
    }
    assert_eq!(promise(&line(Transport::Req, Some(3), false), Transport::Required, false), Promise::AtMostOnce);
    assert_eq!(promise(&line(Transport::Dealer, Some(3), false), Transport::Required, false), Promise::Losses(3));
}

#[test]
fn publisher_without_new_answer_is_named() {
    let mut ledger = ledger(line(Transport::Http, Some(0), false), Transport::Required, 1);
    let start = Instant::now();
    ledger.refuse(0, 1, "503 the topic keeps 2 streams", true);
    assert!(ledger.without_answer(start)[0].came.contains("keeps 2 streams"));
    ledger.accept(0, 1, start + Duration::from_millis(1));
    assert_eq!(ledger.without_answer(start), []);
}

#[test]
fn silence_is_longest_time_between_answers() {
    let start = Instant::now();
    let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
    let answers: Vec<Instant> = [0, 10, 20, 70, 80, 200].map(at).to_vec();
    let silence = |from, until| longest_silence(&answers, at(from), at(until)).as_millis();
    assert_eq!(silence(25, 100), 120, "a gap that ends after the window is counted whole");
    assert_eq!(silence(25, 75), 45);
    assert_eq!(silence(300, 400), 100, "no answer in the window");
}
