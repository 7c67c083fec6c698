//! Deadlines: the Primary's thread leaves an event waiting for as long as the machine says that it may.

use std::time::Duration;

use bodkin_broker::{
    Attachment, Authority, Epoch, Incarnation, Input, Instant, Overflow, Publication, PublisherId, Sequence, Shard, ShardLimits,
    StreamIdentity, TopicId, Wanted, Work,
};

use super::{Bound, Breach, Found, Nature, Script};

/// When the event is created, in units.
const CREATED: u32 = 64;
const TOPIC: &str = "A";
const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 4, topics_max: 4, queue_bytes_max: 1 << 20 };
const STREAM: StreamIdentity = StreamIdentity { topic: TopicId(0), publisher: PublisherId(1), incarnation: Incarnation(1) };

/// Tries every clock error and way with every wait up to one that is too long. What the machine calls in time has to arrive in time, and so
/// has what was dispatched at once, for the topic was admitted.
pub(super) fn search(bound: &Bound, nature: &Nature, deadline: u32) -> Found {
    let mut tried = 0;
    for (clock_ahead, publisher_broker) in nature.extremes() {
        for at in 0..=deadline + 2 {
            let script = Script { late_through: 0, clock_ahead, publisher_broker, heard: 1, at };
            tried += 1;
            let arrived = CREATED + publisher_broker;
            let is_late = is_late(bound, nature, &script, arrived, arrived + at);
            let taken = publisher_broker + at + nature.broker_subscriber;
            if taken > deadline && (!is_late || at == 0) {
                return Found::Breach(script, Breach::Late(taken - deadline));
            }
        }
    }
    Found::Nothing(tried)
}

/// Whether the machine calls an event that arrived then late when it is dispatched then.
fn is_late(bound: &Bound, nature: &Nature, script: &Script, arrived: u32, dispatched: u32) -> bool {
    let at = |units: u32| Instant::from_nanos(units.into());
    let mut shard = Shard::new(STREAM.incarnation, LIMITS);
    shard.admit(TOPIC, bound.terms(nature)).expect("there is room for a topic");
    let outputs = &mut Vec::new();
    shard.step(at(0), Input::Authority(Authority { epoch: Epoch(1), until: Instant::NEVER }), outputs);
    let subscription = shard.subscribe(TOPIC, (), Overflow::Loses).expect("there is room for a subscription");
    shard.require(at(0), subscription, Duration::from_secs(1), Attachment::New);
    let stream = shard.open_stream(&shard.permit().expect("it leads"), STREAM).expect("there is room for a stream");
    let stamp = CREATED.checked_add_signed(script.clock_ahead).expect("clocks are ahead by less than the start");
    let publication =
        Publication { epoch: Epoch::NONE, sequence: Sequence(1), created: at(stamp), is_resent: false, has_wrong_clock: false };
    shard.accept(at(arrived), shard.permit().expect("it leads"), stream, publication).expect("one event is not too much");
    let work = shard.next(at(dispatched), &mut |(), _| Wanted::Bytes(1), outputs);
    let Some(Work::Dispatch { is_late, .. }) = work else { panic!("the event is there to be dispatched: {work:?}") };
    is_late
}
