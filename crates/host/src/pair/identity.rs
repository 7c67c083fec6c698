//! What the nodes of a pair have to have alike: compared when they greet.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use bodkin_broker::{Epoch, PairId, wire::Replication};

use crate::DeclaredTopic;

/// The settings of one node that the others have to have, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairTerms {
    /// How long the right to lead lasts.
    pub lease: Duration,
    /// Between two renewals of it.
    pub heartbeat: Duration,
    /// What a fail-over may take beyond lease and heartbeat.
    pub detect_jitter: Duration,
    /// What clients take to turn to the other node.
    pub redirect: Duration,
    /// How wrong clocks may run, in millionths.
    pub drift_ppm: u32,
    /// [`topics_digest`] of the configuration; `None`: a witness, which has no topics.
    pub topics: Option<u64>,
}

/// The digest of configured topics, whatever their order in the file.
pub fn topics_digest(topics: &[DeclaredTopic]) -> u64 {
    let line = |topic: &DeclaredTopic| format!("{}\0{:?}\0{}\n", topic.event_type.as_str(), topic.spec, topic.permitted);
    let mut lines: Vec<String> = topics.iter().map(line).collect();
    lines.sort_unstable();
    let digest = digest(&SHA256, lines.concat().as_bytes());
    let first = digest.as_ref().first_chunk().expect("a SHA-256 has 32 bytes");
    u64::from_be_bytes(*first)
}

impl PairTerms {
    /// The frame that says them.
    pub(super) fn frame(&self, epoch: Epoch, pair: Option<PairId>) -> Replication<'static> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Replication::Identity {
            epoch,
            pair,
            lease_ns: ns(self.lease),
            heartbeat_ns: ns(self.heartbeat),
            detect_jitter_ns: ns(self.detect_jitter),
            redirect_ns: ns(self.redirect),
            drift_ppm: self.drift_ppm,
            topics: self.topics,
        }
    }

    /// The settings in a frame of another node, and the pair that it has met.
    pub(super) fn read(frame: &Replication<'_>) -> Option<(Self, Option<PairId>)> {
        let Replication::Identity { pair, lease_ns, heartbeat_ns, detect_jitter_ns, redirect_ns, drift_ppm, topics, .. } = *frame else {
            return None;
        };
        let [lease, heartbeat, detect_jitter, redirect] = [lease_ns, heartbeat_ns, detect_jitter_ns, redirect_ns].map(Duration::from_nanos);
        Some((Self { lease, heartbeat, detect_jitter, redirect, drift_ppm, topics }, pair))
    }

    /// The differences to another node's settings, with both values; `None` if there are none.
    pub(super) fn differences(&self, theirs: &Self, name: &str) -> Option<String> {
        let times = [
            ("lease", self.lease, theirs.lease),
            ("heartbeat", self.heartbeat, theirs.heartbeat),
            ("detect_jitter", self.detect_jitter, theirs.detect_jitter),
            ("redirect", self.redirect, theirs.redirect),
        ];
        let times = times.into_iter().filter(|(_, ours, theirs)| ours != theirs);
        let mut differ: Vec<String> = times.map(|(key, ours, theirs)| format!("{key} is {ours:?} here and {theirs:?} there")).collect();
        if self.drift_ppm != theirs.drift_ppm {
            differ.push(format!("drift_ppm is {} here and {} there", self.drift_ppm, theirs.drift_ppm));
        }
        if let (Some(ours), Some(theirs)) = (self.topics, theirs.topics)
            && ours != theirs
        {
            differ.push(format!("the [[topic]] tables differ (digest {ours:016x} here and {theirs:016x} there)"));
        }
        let (shorter, longer) = (self.lease.min(theirs.lease), self.lease.max(theirs.lease));
        if longer > shorter.saturating_mul(2) {
            differ.push("the node with the shorter lease refuses the other's, so that NOBODY TAKES OVER when the leader fails".to_owned());
        }
        (!differ.is_empty())
            .then(|| format!("{name} runs with other settings: {}; give all nodes of the pair the same --config", differ.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, sync::Arc};

    use bodkin_arrowhead::name::EventType;
    use bodkin_broker::{
        timing::Nanos,
        topic::{Period, TopicSpec},
    };

    use super::*;
    use crate::topics::PublisherList;

    fn topic(name: &str, period_ms: i64) -> DeclaredTopic {
        let spec = TopicSpec::best_effort(Period::Every(Nanos::from_millis(period_ms)));
        DeclaredTopic { event_type: EventType::from_stored(name), spec: Arc::new(spec), permitted: PublisherList::default() }
    }

    #[test]
    fn digest_ignores_the_order_of_topics() {
        let (one, two) = (topic("A", 1), topic("B", 2));
        assert_eq!(topics_digest(&[one.clone(), two.clone()]), topics_digest(&[two.clone(), one.clone()]));
        let marked = TopicSpec { mark_every: NonZeroU32::new(7).unwrap(), ..*two.spec };
        let changed = DeclaredTopic { spec: Arc::new(marked), ..two.clone() };
        let digest_of = |other: DeclaredTopic| topics_digest(&[one.clone(), other]);
        let same = digest_of(two.clone());
        let others = [changed, topic("B", 3), topic("C", 2)].map(digest_of);
        assert!(!others.contains(&same) && topics_digest(&[]) != same);
    }

    #[test]
    fn differences_name_both_values() {
        let ours = PairTerms { lease: Duration::from_millis(400), drift_ppm: 200, topics: Some(1), ..PairTerms::default() };
        assert_eq!(ours.differences(&ours, "the witness"), None);
        assert_eq!(ours.differences(&PairTerms { topics: None, ..ours }, "the witness"), None, "a witness has no topics");
        let theirs = PairTerms { lease: Duration::from_millis(50), topics: Some(2), ..ours };
        let text = ours.differences(&theirs, "the witness").unwrap();
        assert!(text.contains("lease is 400ms here and 50ms there") && text.contains("NOBODY TAKES OVER"), "{text}");
        assert!(text.contains("[[topic]] tables differ"), "{text}");
        let near = ours.differences(&PairTerms { lease: Duration::from_millis(200), ..ours }, "the witness").unwrap();
        assert!(!near.contains("NOBODY"), "{near}");
        let frame = ours.frame(Epoch(3), Some(PairId(4)));
        assert_eq!(PairTerms::read(&frame), Some((ours, Some(PairId(4)))));
    }
}
