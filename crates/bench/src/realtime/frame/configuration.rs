//! What a row is run against.

use std::path::Path;

use crate::options::Configuration;
use crate::realtime::dialect::Speech;
use crate::realtime::listener::Hearing;
use crate::realtime::stand::Stand;
use crate::realtime::topic_file::{BACKUP_BUFFER, Order, Replication, Selection, Terms, topic_file};
use crate::realtime::workload::Workload;

impl Configuration {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodkin => "bodkin",
            Self::Frame => "frame",
            Self::FramePlus => "frame-plus",
            Self::Fcfs => "fcfs",
            Self::FcfsMinus => "fcfs-minus",
            Self::Alone => "alone",
            Self::PubSub => "pub-sub",
            Self::Nats => "nats",
            Self::JetstreamR1 => "jetstream-r1",
            Self::JetstreamR3 => "jetstream-r3",
            Self::MosquittoQos0 => "mosquitto-qos0",
            Self::MosquittoQos1 => "mosquitto-qos1",
        }
    }

    /// What it means.
    pub fn description(self) -> &'static str {
        match self {
            Self::Bodkin => "Table 3.2's N; an event is safe when its subscriber or the Backup has acknowledged it",
            Self::Frame => {
                "the paper's FRAME: Table 3.2's N; events of the topics that Proposition 1 names (categories 2 and 5) are replicated when they come, others never"
            }
            Self::FramePlus => "the paper's FRAME+: as FRAME with N = 2 in categories 2 and 5, of which Proposition 1 names none",
            Self::Fcfs => {
                "the paper's FCFS: every event is replicated, then dispatched, in order of arrival; the Backup is told what was dispatched and prunes it"
            }
            Self::FcfsMinus => {
                "the paper's FCFS-: the same, and the Backup keeps the last ten events of each topic whatever became of them"
            }
            Self::Alone => "one node, acknowledged by its subscribers: as bodkin without a Backup",
            Self::PubSub => "one node, two-frame events from PUB to SUB: deadlines, and no bound on losses",
            Self::Nats => "nats-server, core: in memory, at most once; every topic a subscription of its own",
            Self::JetstreamR1 => {
                "nats-server with JetStream, one replica in memory, each event acknowledged to its publisher; a pushed consumer for each category"
            }
            Self::JetstreamR3 => "three nodes of nats-server, three replicas in memory, otherwise as jetstream-r1",
            Self::MosquittoQos0 => "mosquitto with QoS 0, in memory; every topic a subscription of its own",
            Self::MosquittoQos1 => "mosquitto with QoS 1 both ways, in memory",
        }
    }

    /// Whether there is a Backup.
    pub fn has_pair(self) -> bool {
        matches!(self, Self::Bodkin | Self::Frame | Self::FramePlus | Self::Fcfs | Self::FcfsMinus)
    }

    /// What both sides speak.
    pub fn speech(self) -> Speech {
        match self {
            Self::PubSub => Speech::ZmtpPubSub,
            Self::Nats => Speech::Nats,
            Self::JetstreamR1 => Speech::JetStream { replicas: 1 },
            Self::JetstreamR3 => Speech::JetStream { replicas: 3 },
            Self::MosquittoQos0 => Speech::Mqtt { qos: 0 },
            Self::MosquittoQos1 => Speech::Mqtt { qos: 1 },
            Self::Bodkin | Self::Frame | Self::FramePlus | Self::Fcfs | Self::FcfsMinus | Self::Alone => Speech::ZmtpDealer,
        }
    }

    /// How subscribers take events: as the papers' they are waited for, and where a Backup is told nothing it learns nothing from them either.
    pub fn hearing(self) -> Hearing {
        Hearing { is_required: self.has_pair() || self == Self::Alone, begins_anew: self == Self::FcfsMinus, ..Hearing::default() }
    }

    fn terms(self) -> Terms {
        match self {
            Self::Bodkin => Terms::PAIR,
            Self::Frame | Self::FramePlus => Terms { replication: Replication::Eager, selection: Selection::Proposition1, ..Terms::PAIR },
            Self::Fcfs => Terms { replication: Replication::Eager, order: Order::Arrival, ..Terms::PAIR },
            Self::FcfsMinus => Terms { backup_keeps: BACKUP_BUFFER, ..Self::Fcfs.terms() },
            _ => Terms::ALONE,
        }
    }

    /// Starts its brokers, with the workload's topics.
    ///
    /// # Errors
    /// A broker does not start or does not admit the topics.
    pub fn stand(self, workload: &Workload, parent: Option<&Path>) -> anyhow::Result<Stand> {
        if let Some(peer) = Stand::peer(self.speech())? {
            return Ok(peer);
        }
        let keys = topic_file(workload, self.terms());
        if self.has_pair() { Stand::pair(workload, &keys, parent) } else { Stand::alone(workload, &keys, parent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::frame::category::workload;

    /// The categories of which the broker is told a bound on losses, and so replicates.
    fn bounded(configuration: Configuration) -> Vec<usize> {
        let workload = workload(1525, configuration == Configuration::FramePlus, 1);
        let file = topic_file(&workload, configuration.terms());
        let bounds = file.split("[[topic]]").skip(1).map(|topic| !topic.contains("loss_tolerance = \"inf\""));
        bounds.enumerate().filter_map(|(category, is_bounded)| is_bounded.then_some(category)).collect()
    }

    #[test]
    fn each_configuration_replicates_the_categories_of_the_paper() {
        assert_eq!(bounded(Configuration::Bodkin), [0, 1, 2, 3, 5]);
        assert_eq!((bounded(Configuration::Frame), bounded(Configuration::FramePlus)), (vec![2, 5], vec![]));
        assert_eq!((bounded(Configuration::Fcfs), bounded(Configuration::FcfsMinus)), (vec![0, 1, 2, 3, 4, 5], vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(bounded(Configuration::Alone), [0; 0]);
    }
}
