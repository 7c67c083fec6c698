//! The subscriber: each promise by name.

mod schedule;

use super::{Received::*, Session::*, *};
use crate::wire::Flags;

const AFTER_NS: u64 = 100;
const PUBLISHER: PublisherId = PublisherId(26);

struct Trial {
    subscriber: Subscriber,
    topic: TopicKey,
    now: u64,
    outputs: Vec<Output>,
}

impl Trial {
    fn new(acknowledge_every: u32, loss_tolerance: u32, beginning: Beginning) -> Self {
        let acknowledge_after = Duration::from_nanos(AFTER_NS);
        let mut subscriber = Subscriber::new(SubscriberConfig { acknowledge_every, acknowledge_after, window: 64, streams_max: 2 });
        let topic = subscriber.subscribe(Some(loss_tolerance), beginning);
        let mut trial = Self { subscriber, topic, now: 0, outputs: Vec::new() };
        trial.take(Input::Leader { session: One, epoch: Epoch(1), is_leader: true });
        trial.outputs.clear();
        trial
    }

    fn take(&mut self, input: Input) {
        self.subscriber.step(Instant::from_nanos(self.now), input, &mut self.outputs);
    }

    fn receive(&mut self, session: Session, header: EventHeader) -> Received {
        self.subscriber.receive(Instant::from_nanos(self.now), session, self.topic, &header, &mut self.outputs)
    }

    fn event(&mut self, sequence: u64) -> Received {
        self.receive(One, header(1, sequence, 1))
    }

    fn told(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    fn lost(&self, from: u64, run: u64, exceeds: bool) -> Output {
        let (topic, incarnation) = (self.topic, Incarnation(1));
        Output::Lost { topic, publisher: PUBLISHER, incarnation, from: Sequence(from), run, exceeds }
    }

    fn acknowledged(&self, session: Session, through: u64) -> Output {
        let (topic, incarnation) = (self.topic, Incarnation(1));
        Output::Acknowledge { session, topic, publisher: PUBLISHER, incarnation, through: Sequence(through) }
    }
}

const KEY: StreamKey = StreamKey(0);

fn header(incarnation: u64, sequence: u64, epoch: u64) -> EventHeader {
    EventHeader {
        flags: Flags::default(),
        publisher: PUBLISHER,
        incarnation: Incarnation(incarnation),
        sequence: Sequence(sequence),
        created_utc_ns: 0,
        epoch: Epoch(epoch),
    }
}

#[test]
fn numbers_that_a_graph_has_passed_over_are_no_losses() {
    let mut trial = Trial::new(100, 0, Beginning::First);
    let derived = |sequence| EventHeader { flags: Flags { derived: true, ..Flags::default() }, ..header(1, sequence, 1) };
    for (sequence, what) in [(8, New(KEY)), (16, New(KEY)), (8, Duplicate), (40, New(KEY))] {
        assert_eq!(trial.receive(One, derived(sequence)), what);
    }
    assert_eq!((trial.told(), trial.subscriber.counters(KEY).lost, trial.subscriber.counters(KEY).received), (vec![], 0, 3));
}

#[test]
fn losses_are_counted_in_rows_and_told() {
    let mut trial = Trial::new(100, 2, Beginning::Present);
    // What comes, what it is, and what is told.
    let rows = [
        (5, New(KEY), None),
        (6, New(KEY), None),
        (6, Duplicate, None),
        (9, New(KEY), Some((7, 2, false))),
        (13, New(KEY), Some((10, 3, true))),
        (8, Late(KEY), None),
        (8, Duplicate, None),
        (4, Old, None),
        (200, New(KEY), Some((14, 186, true))),
        (136, Old, None),
        (137, Late(KEY), None),
    ];
    for (sequence, received, lost) in rows {
        let told = lost.map(|(from, run, exceeds)| trial.lost(from, run, exceeds));
        assert_eq!((trial.event(sequence), trial.told()), (received, Vec::from_iter(told)), "event {sequence}");
    }
    let expected = StreamCounters { received: 7, lost: 189, longest_run: 186, exceeded: 2, duplicates: 4 };
    assert_eq!(trial.subscriber.counters(KEY), expected);
}

#[test]
fn a_stream_begins_with_what_comes_or_with_its_first_event() {
    let mut present = Trial::new(100, 0, Beginning::Present);
    assert_eq!((present.event(3), present.told()), (New(KEY), vec![]));
    let mut first = Trial::new(100, 0, Beginning::First);
    assert_eq!((first.event(3), first.told()), (New(KEY), vec![first.lost(1, 2, true)]));
}

#[test]
fn the_last_events_loss_is_seen_by_the_word_about_it() {
    let mut trial = Trial::new(100, 1, Beginning::Present);
    let last = |sequence| EventHeader { flags: Flags { last: true, ..Flags::default() }, ..header(1, sequence, 1) };
    assert_eq!((trial.receive(One, last(3)), trial.told()), (Last, vec![]), "that was before its time");
    assert_eq!((trial.event(4), trial.told()), (New(KEY), vec![]));
    assert_eq!((trial.receive(One, last(4)), trial.told()), (Last, vec![]));
    assert_eq!((trial.receive(One, last(6)), trial.told()), (Last, vec![trial.lost(5, 2, true)]));
    assert_eq!((trial.event(6), trial.event(7)), (Late(KEY), New(KEY)));
    trial.now = AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told(), [trial.acknowledged(One, 7)]);
    trial.receive(One, last(7));
    trial.now = 2 * AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told(), [], "there is nothing new to acknowledge");
}

#[test]
fn acknowledgements_are_cumulative_after_so_many_or_so_long_or_when_asked() {
    let mut trial = Trial::new(3, 0, Beginning::Present);
    trial.event(1);
    trial.event(2);
    assert_eq!((trial.told(), trial.subscriber.next_timer()), (vec![], Some(Instant::from_nanos(AFTER_NS))));
    trial.event(3);
    assert_eq!(trial.told(), [trial.acknowledged(One, 3)]);
    trial.now = 50;
    trial.event(4);
    trial.now = AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told(), [trial.acknowledged(One, 4)]);
    assert_eq!(trial.subscriber.next_timer(), None);
    trial.event(4);
    assert_eq!(trial.subscriber.next_timer(), Some(Instant::from_nanos(2 * AFTER_NS)), "what comes again was not acknowledged");
    trial.now = 2 * AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told(), [trial.acknowledged(One, 4)]);
    let asked = EventHeader { flags: Flags { acknowledge: true, ..Flags::default() }, ..header(1, 5, 1) };
    trial.receive(One, asked);
    assert_eq!(trial.told(), [trial.acknowledged(One, 5)]);
    trial.event(7);
    trial.now = 3 * AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told(), [trial.lost(6, 1, true), trial.acknowledged(One, 7)], "nobody waits for what is lost");
}

#[test]
fn a_new_leader_is_told_what_is_there_and_the_old_one_is_not_believed() {
    let mut trial = Trial::new(100, 0, Beginning::Present);
    trial.event(1);
    trial.take(Input::Connected(Two));
    assert_eq!(trial.told(), [], "it has not said whether it leads");
    trial.take(Input::Leader { session: Two, epoch: Epoch::NONE, is_leader: false });
    assert_eq!(trial.told(), [Output::Attach { session: Two }], "who follows is to know it, too");
    trial.take(Input::Leader { session: Two, epoch: Epoch(2), is_leader: true });
    assert_eq!(trial.told(), [], "it goes on with what it has noted");
    let watermark = Watermark { publisher: PUBLISHER, incarnation: Incarnation(1), through: Sequence(1) };
    assert_eq!(trial.subscriber.watermarks(trial.topic).collect::<Vec<_>>(), [watermark]);
    assert_eq!(trial.event(2), StaleEpoch);
    assert_eq!(trial.receive(Two, header(1, 2, 2)), New(KEY));
    trial.now = AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told(), [trial.acknowledged(Two, 2)]);
    trial.take(Input::Leader { session: One, epoch: Epoch(1), is_leader: true });
    assert_eq!(trial.told(), [Output::StaleEpoch { session: One, epoch: Epoch(1) }]);
    trial.take(Input::Closed(Two));
    assert_eq!(trial.told(), [Output::Leaderless]);
    assert_eq!(trial.receive(One, header(1, 3, 3)), New(KEY), "an event of a higher epoch says who leads");
    assert_eq!((trial.told(), trial.subscriber.leader()), (vec![], Some(One)));
    trial.take(Input::Closed(One));
    trial.take(Input::Connected(One));
    trial.take(Input::Leader { session: One, epoch: Epoch(3), is_leader: true });
    assert_eq!(trial.told(), [Output::Leaderless, Output::Attach { session: One }], "a new connection knows nothing");
}

#[test]
fn acknowledgement_without_leader_is_sent_to_the_next() {
    let mut trial = Trial::new(2, 0, Beginning::Present);
    let leads = |is_leader| Input::Leader { session: One, epoch: Epoch(1), is_leader };
    trial.event(1);
    trial.take(leads(false));
    assert_eq!(trial.told(), [Output::Leaderless]);
    trial.event(2);
    trial.now = AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!((trial.told(), trial.subscriber.next_timer()), (vec![], None), "nobody could be told");
    trial.take(leads(true));
    assert_eq!(trial.told(), [trial.acknowledged(One, 2)], "it sends nothing again in the same epoch");
}

#[test]
fn a_restarted_publisher_begins_anew_and_the_run_before_may_end_meanwhile() {
    let mut trial = Trial::new(100, 0, Beginning::Present);
    trial.event(8);
    assert_eq!(trial.receive(One, header(3, 1, 1)), New(KEY));
    assert_eq!(trial.event(9), New(KEY));
    assert_eq!(trial.told(), []);
    let watermark =
        |incarnation, through| Watermark { publisher: PUBLISHER, incarnation: Incarnation(incarnation), through: Sequence(through) };
    assert_eq!(trial.subscriber.watermarks(trial.topic).collect::<Vec<_>>(), [watermark(1, 9), watermark(3, 1)]);
    trial.now = AFTER_NS;
    trial.take(Input::Tick);
    assert_eq!(trial.told().len(), 2, "both runs are acknowledged");
    trial.receive(One, header(4, 2, 1));
    assert!(matches!(trial.told()[..], [Output::Lost { incarnation: Incarnation(4), run: 1, .. }]));
    assert_eq!(trial.event(10), OldIncarnation);
}

#[test]
fn only_new_streams_take_memory() {
    let mut trial = Trial::new(3, 0, Beginning::Present);
    trial.event(1);
    trial.outputs.reserve(100);
    let capacity = (trial.subscriber.due.capacity(), trial.subscriber.streams.capacity(), trial.outputs.capacity());
    for sequence in 2..1_000 {
        trial.now += 30;
        trial.event(sequence * 2);
        trial.take(Input::Tick);
        trial.outputs.clear();
    }
    assert_eq!((trial.subscriber.due.capacity(), trial.subscriber.streams.capacity(), trial.outputs.capacity()), capacity);
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let mut trial = Trial::new(100, 0, Beginning::Present);
    let of = |publisher| EventHeader { publisher: PublisherId(publisher), ..header(1, 1, 1) };
    assert_eq!([1, 2, 3, 2].map(|publisher| trial.receive(One, of(publisher))), [New(KEY), New(StreamKey(1)), TooManyStreams, Duplicate]);
    let streams: Vec<_> = trial.subscriber.streams().map(|(key, _, publisher)| (key, publisher.0)).collect();
    assert_eq!(streams, [(KEY, 1), (StreamKey(1), 2)]);
}
