//! Why the deadlines' guarantee is suspended: decided once, in one order, for the log, the monitor's port, streams and the command line.

use serde::{Serialize, Serializer};

use super::Notice;

/// What is not as deadlines were admitted with. The order is that in which they are told: a stall is the last, for a busy machine has some whatever else is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A client's clock differs from ours by more than `platform.clock_error`.
    Clock,
    /// Events come later from their publishers than `publisher_broker` of their topics, clocks included.
    Publishers,
    /// The machine, or a turn of a shard, stalls for longer than `platform.blocking`.
    Stall,
}

impl Cause {
    const ALL: [Self; 3] = [Self::Clock, Self::Publishers, Self::Stall];

    /// In words, with the figures and with what to do.
    fn told(self, notice: &Notice) -> String {
        let Notice { worst_us, blocking_us, clock_difference_us, clock_error_us, publisher_excess_us, .. } = notice;
        match self {
            Self::Clock => format!(
                "a client's clock differs from ours by {clock_difference_us} us at the least, more than the {clock_error_us} us that clock_error in [platform] states: \
                 set the clocks, or state more"
            ),
            Self::Publishers => format!(
                "events take longer from their publishers than publisher_broker of their topics states, by {publisher_excess_us} us in the last minute: \
                 look at the wire and the clocks of the publishers' hosts, or state more"
            ),
            Self::Stall => format!(
                "the longest stall of the last minute was {worst_us} us, longer than the {blocking_us} us that blocking in [platform] states: \
                 see to shorter stalls (bodkin doctor looks for what makes them), or state more"
            ),
        }
    }
}

/// All that hold at present; none: nothing is suspended. On the wire a list of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    holds: [bool; Cause::ALL.len()],
}

impl Causes {
    /// Those for which this says so.
    pub(super) fn of(holds: impl Fn(Cause) -> bool) -> Self {
        Self { holds: Cause::ALL.map(holds) }
    }

    /// In their order.
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        Cause::ALL.into_iter().filter(move |cause| self.holds[*cause as usize])
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }
}

impl Serialize for Causes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Notice {
    /// Why deadlines are not guaranteed, and what to do; `None`: nothing is suspended.
    pub fn why(&self) -> Option<String> {
        let told: Vec<_> = self.causes.iter().map(|cause| cause.told(self)).collect();
        (!told.is_empty()).then(|| told.join("; and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stall::Guarantee;

    #[test]
    fn the_cause_that_is_told_is_the_one_that_holds() {
        let notice = |causes: Causes| Notice {
            guarantee: Guarantee::Suspended,
            causes,
            worst_us: 70_000,
            blocking_us: 0,
            clock_difference_us: 9,
            clock_error_us: 5,
            publisher_excess_us: 300,
            broker_backup_us: 0,
            broker_backup_stated_us: 0,
        };
        assert_eq!(notice(Causes::default()).why(), None);
        let late = notice(Causes::of(|cause| cause == Cause::Publishers));
        let why = late.why().unwrap();
        assert!(why.contains("publisher_broker of their topics") && why.contains("by 300 us") && !why.contains("stall"), "{why}");
        assert_eq!(serde_json::to_value(late.causes).unwrap(), serde_json::json!(["publishers"]));
        let all = notice(Causes::of(|_| true));
        let why = all.why().unwrap();
        let at = ["a client's clock", "from their publishers", "the longest stall"].map(|words| why.find(words).expect("all are told"));
        assert!(at.is_sorted(), "{why}");
        assert_eq!(serde_json::to_value(all.causes).unwrap(), serde_json::json!(["clock", "publishers", "stall"]));
    }
}
