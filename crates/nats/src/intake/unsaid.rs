//! What is still to be said to a consumer of messages that have come, when it is reached again.

use std::collections::BTreeMap;

use super::UNDER_WAY_MAX;
use crate::{jetstream::Ack, protocol::Message};

/// Of messages of one stream.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    /// What could not be taken yet: where each is said to come again. Otherwise it would come behind the consumer's wait, as what is lost does, and over a link that is cut more often than that never.
    again: BTreeMap<u64, String>,
    /// What was done while there was no connection: where it is acknowledged, and how.
    done: Vec<(String, Ack)>,
}

impl Unsaid {
    /// One that has come has to come again.
    pub fn comes_again(&mut self, sequence: u64, message: Message) {
        if let Some(reply) = message.reply.filter(|_| self.again.len() < UNDER_WAY_MAX) {
            self.again.insert(sequence, reply);
        }
    }

    /// One is done, and nobody can be told.
    pub fn is_done(&mut self, reply: &str, ack: Ack) {
        if self.done.len() < UNDER_WAY_MAX {
            self.done.push((reply.to_owned(), ack));
        }
    }

    /// What is to come again, which is said now.
    pub fn take_again(&mut self) -> impl Iterator<Item = (String, Ack)> + use<> {
        std::mem::take(&mut self.again).into_values().map(|reply| (reply, Ack::Again))
    }

    /// What is done, which is said now.
    pub fn take_done(&mut self) -> Vec<(String, Ack)> {
        std::mem::take(&mut self.done)
    }
}
