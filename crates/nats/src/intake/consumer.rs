//! What the servers say of the consumer, beside what its taker remembers and which process is noted there.

use std::time::Duration;

use super::{HEARTBEAT, Intake, Memory, NoIntake, Purpose, SETTLE_WAITS, Standing, Told};
use crate::jetstream::{ConsumerInfo, DeliverPolicy};

/// Requests to be noted at the consumer over one connection, if none has an effect.
pub(super) const CLAIMS_MAX: u32 = 3;
/// Requests to delete a consumer over one connection, if none has an effect.
pub(super) const REWINDS_MAX: u32 = 3;

impl Intake {
    /// Where nothing waits for us, what was in the stream a look ago was for others, and when it goes that is no loss of ours. The consumer's server may be behind the stream's: so nothing is done with
    /// because of that, and of the newest messages it says nothing yet.
    pub(super) fn glanced(&mut self, info: &ConsumerInfo, now: Duration, told: &mut Vec<Told>) {
        if let Some(process) = self.setup.other_process(info) {
            let why = NoIntake::AnotherProcess(process.to_owned());
            return self.displaced(why, now, told);
        }
        self.waiting = info.num_pending;
        let is_quiet = matches!(self.standing, Standing::Open) && self.taken.is_empty() && self.order.is_settled();
        if let (true, 0, 0, Some(stream)) = (is_quiet, info.num_ack_pending, info.num_pending, &self.stream) {
            self.seen_through = self.seen_through.max(Some(self.quiet_through));
            self.quiet_through = stream.state.last_seq;
        }
    }

    /// Makes the consumer behind what is remembered; a taker that remembers nothing begins with its own begin, or the present.
    pub(super) fn make(&mut self, now: Duration, told: &mut Vec<Told>) {
        let memory = self.memory.as_ref();
        let mut config = self.setup.claimed(self.setup.consumer.clone());
        (config.deliver_policy, config.opt_start_seq, config.opt_start_time) =
            match (memory.and_then(Memory::floor), memory.and_then(Memory::begin)) {
                (Some(floor), _) => (DeliverPolicy::ByStartSequence, Some(floor + 1), None),
                (None, Some(time)) => (DeliverPolicy::ByStartTime, None, Some(time.to_owned())),
                (None, None) => (DeliverPolicy::New, None, None),
            };
        let question = self.setup.api.create_consumer(&self.setup.stream, &config).expect("its names have made subjects");
        self.ask(question, Purpose::Make, now, told);
    }

    pub(super) fn consumer_is(&mut self, info: &ConsumerInfo, now: Duration, told: &mut Vec<Told>) {
        if let Some(why) = self.setup.unusable(info) {
            return self.none(why, now, told);
        }
        let stream = self.stream.as_ref().expect("it was asked before");
        let first = stream.state.first_seq;
        let Some(memory) = &self.memory else { return };
        let is_first = !std::mem::replace(&mut self.is_compared, true);
        let ahead = memory.floor().map_or(0, |floor| info.ack_floor.stream_seq.saturating_sub(floor));
        if is_first && self.setup.rewinds && ahead > 0 {
            if self.rewinds < REWINDS_MAX {
                (self.is_compared, self.rewinds) = (false, self.rewinds + 1);
                return self.rewind(now, told);
            }
            // The server does not delete the consumer, so these acknowledged messages do not arrive again.
            told.push(Told::Lost(ahead));
        }
        self.take_from(info, first, now, told);
    }

    /// Deletes the consumer, to make it behind what is remembered.
    fn rewind(&mut self, now: Duration, told: &mut Vec<Told>) {
        let consumer = &self.setup.consumer.durable_name;
        let question = self.setup.api.delete_consumer(&self.setup.stream, consumer).expect("its names have made subjects");
        self.ask(question, Purpose::Rewind, now, told);
    }

    fn take_from(&mut self, info: &ConsumerInfo, first: u64, now: Duration, told: &mut Vec<Told>) {
        let other = self.setup.other_process(info).map(str::to_owned);
        let is_unclaimed = self.setup.is_unclaimed(info);
        if !is_unclaimed {
            // It has made the consumer: whoever is noted from now on has replaced it.
            self.claimed_over.get_or_insert(None);
        }
        let is_to_claim = is_unclaimed && self.claimed_over.as_ref().is_none_or(|over| *over == other);
        if is_to_claim && self.claims < CLAIMS_MAX {
            (self.claimed_over, self.claims) = (Some(other), self.claims + 1);
            let config = self.setup.claimed(info.config.clone());
            let question = self.setup.api.create_consumer(&self.setup.stream, &config).expect("its names have made subjects");
            return self.ask(question, Purpose::Claim, now, told);
        }
        if let Some(process) = other {
            return self.displaced(NoIntake::AnotherProcess(process), now, told);
        }
        let Some(memory) = &mut self.memory else { return };
        let brought = info.ack_floor.stream_seq.max(if info.num_ack_pending == 0 { info.delivered.stream_seq } else { 0 });
        // Who remembers nothing has had nothing behind where the consumer began.
        self.seen_through.get_or_insert(memory.last().unwrap_or(info.ack_floor.stream_seq).max(self.remembered_seen));
        memory.reach(brought.max(first.saturating_sub(1)));
        self.see(first, told);
        self.is_glancing = false;
        (self.heard, self.waiting, self.standing) = (now, info.num_pending + info.num_ack_pending, Standing::Open);
        self.settle_max = SETTLE_WAITS * Duration::from_nanos(info.config.ack_wait) + HEARTBEAT;
        self.settle_until = now + self.settle_max;
        self.drop_collected();
        self.unsaid.take_again().for_each(|(reply, ack)| self.acknowledge(&reply, ack));
        self.order.begin(info.delivered, info.num_ack_pending);
        told.push(Told::Ready(self.waiting));
        self.pulls.clear();
    }

    /// Another process takes. Pulls that stand would bring its messages here, and end with their connection.
    fn displaced(&mut self, why: NoIntake, now: Duration, told: &mut Vec<Told>) {
        if self.has_pulled {
            told.push(Told::Leaving);
        }
        self.none(why, now, told);
    }
}
