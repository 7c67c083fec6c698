//! What other threads have to say to the shard.

use bodkin_broker::Input;

use super::{Shard, guarantee::Promise};
use crate::inbox::Message;

impl Shard {
    pub(super) fn take_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Connected(arrival) => self.take_over(*arrival),
                Message::Answer { connection, answer } => self.answered(connection, &answer),
                Message::Sent { subscription, bytes } => {
                    self.pushing_bytes -= bytes;
                    self.sent(subscription, bytes);
                }
                Message::FallBehind { subscription } => {
                    self.broker.step(self.clock.broker(), Input::FallBehind { subscription }, &mut self.outputs);
                    self.carry_out_now();
                }
                Message::CaughtUp { subscription, from } => self.caught_up(subscription, from),
                Message::Replayed { connection, chunk } => self.replayed(connection, &chunk),
                Message::ReplayFailed { connection } => self.replay_failed(connection),
                // Whoever has asked and gone needs no answer.
                Message::Admit { topic, terms, done } => {
                    let admitted = self.admit(topic, terms);
                    self.enlist();
                    let _ = done.send(admitted);
                }
                Message::Relayed { event, done } => drop(done.send(self.take_relayed(&event))),
                Message::FromNodes { events, done } => self.take_from_nodes(&events, done),
                Message::FromFleet(events) => self.take_from_fleet(*events),
                Message::Deploy { deployment, before, done } => drop(done.send(self.deploy(*deployment, before.map(|before| *before)))),
                Message::Give { deployment, operator, given, done } => drop(done.send(self.give_operator(*deployment, operator, given))),
                Message::Given { graph, is_kept, done } => {
                    self.operator_given(&graph, is_kept);
                    let _ = done.send(());
                }
                Message::HoldUp { graph, held } => self.hold_graph_up(&graph, held),
                Message::Carried { link, event } => self.take_carried(link, event),
                Message::Withdraw { graph, done } => {
                    self.withdraw(&graph);
                    let _ = done.send(());
                }
                Message::GuaranteesChanged => self.tell_guarantees(&[Promise::Deadline, Promise::LossBound]),
                Message::Asked(answer) => self.wish_answered(*answer),
                Message::Beat(asked) => drop(asked.send(())),
                Message::Topics(asked) => drop(asked.send(self.topics())),
                Message::Streams(asked) => drop(asked.send(self.streams())),
                Message::Synced { end, result } => self.synced(end, result),
                Message::Pair(news) => self.pair_tells(news),
                Message::Serve => self.serve_pushed(),
                Message::Stop { drained } => self.stop(drained),
                Message::End => self.is_ending = true,
            }
        }
        self.messages = messages;
    }
}
