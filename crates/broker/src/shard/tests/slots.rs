//! Slots of a topic, while its publishers restart at any instant.

use proptest::prelude::*;

use super::*;

const PUBLISHERS: usize = 2;

/// A topic with as many slots as publishers, and the run that each of them is in.
struct Slots {
    driven: Driven,
    required: SubscriptionKey,
    runs: [u64; PUBLISHERS],
    published: [u64; PUBLISHERS],
    /// The last event of each run that the required subscriber has not acknowledged.
    owed: Vec<(usize, StreamId, u64)>,
}

impl Slots {
    fn new() -> Self {
        let mut driven = Driven::new(&[Terms { streams_max: PUBLISHERS as u32, ..roomy() }]);
        let required = driven.subscribe(0, 1_000_000);
        Self { driven, required, runs: [1; PUBLISHERS], published: [0; PUBLISHERS], owed: Vec::new() }
    }

    fn open(&mut self, publisher: usize, run: u64) -> Result<StreamId, ShardError> {
        let permit = self.driven.shard.permit().unwrap();
        self.driven.shard.open_stream(&permit, identity(publisher, run))
    }

    fn publish(&mut self, publisher: usize) {
        self.driven.now += 1_000;
        let (run, sequence) = (self.runs[publisher], self.published[publisher] + 1);
        let is_owed = self.owed.iter().filter(|(of, ..)| *of == publisher).count() >= RUNS_PER_PUBLISHER_MAX;
        match self.open(publisher, run) {
            Ok(stream) => {
                self.driven.publish(stream, sequence).unwrap();
                self.published[publisher] = sequence;
                self.owed.retain(|(_, of, _)| *of != stream);
                self.owed.push((publisher, stream, sequence));
            }
            Err(error) => assert!(is_owed && matches!(error, ShardError::Runs(_)), "publisher {publisher} in run {run}: {error}"),
        }
    }

    fn restart(&mut self, publisher: usize) {
        self.runs[publisher] += 1;
        self.published[publisher] = 0;
    }

    /// The subscriber receives and acknowledges everything.
    fn acknowledge(&mut self) {
        loop {
            self.driven.work();
            let bytes = self.driven.handed(self.required).len() as u64;
            if bytes == 0 {
                break;
            }
            self.driven.step(Input::Sent { subscription: self.required, bytes });
        }
        for (_, stream, sequence) in std::mem::take(&mut self.owed) {
            self.driven.delivered(self.required, stream, sequence);
        }
        self.driven.told();
    }
}

fn identity(publisher: usize, run: u64) -> StreamIdentity {
    StreamIdentity { topic: TopicId(0), publisher: PublisherId(publisher as u64), incarnation: Incarnation(run) }
}

proptest! {
    /// A publisher that restarts is refused only for the sake of its own earlier runs, and each of those ends when nothing of it is left.
    #[test]
    fn publisher_that_restarts_keeps_one_slot(script in prop::collection::vec((0usize..PUBLISHERS, 0u8..8), 1..120)) {
        let mut slots = Slots::new();
        for (publisher, action) in script {
            match action {
                0..2 => slots.restart(publisher),
                2..7 => slots.publish(publisher),
                _ => slots.acknowledge(),
            }
            slots.driven.told();
        }
        slots.acknowledge();
        (0..PUBLISHERS).for_each(|publisher| slots.publish(publisher));
        slots.acknowledge();
        for publisher in 0..PUBLISHERS {
            let open: Vec<u64> = (1..=slots.runs[publisher]).filter(|run| slots.driven.shard.stream(&identity(publisher, *run)).is_some()).collect();
            prop_assert_eq!(open, [slots.runs[publisher]]);
        }
        prop_assert_eq!(slots.open(PUBLISHERS, 1), Err(ShardError::Publishers(PUBLISHERS)));
    }
}
