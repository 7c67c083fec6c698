//! Whether threads of the data plane are real-time ones: decided by the configuration, by rights, and by what was measured.

use std::io;

use super::{Comparison, Rank, RealtimeConfig, Rights, Scheduling};

/// What was decided, and by what.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub is_fifo: bool,
    /// Whether shards are ordinary threads in front of others nevertheless: a real-time thread is woken on the core on which it ran last, and not on that of who wakes it.
    pub prefers: bool,
    pub why: String,
    pub measured: Option<Comparison>,
}

impl Decision {
    /// Whether there are no real-time threads although somebody wants them where they help, and nobody has found that they do not.
    pub fn denies(&self, asked: Scheduling) -> bool {
        !self.is_fifo && asked != Scheduling::Default && self.measured.is_none()
    }
}

/// What is decided without a measurement.
pub(super) fn beforehand(config: &RealtimeConfig, rights: Rights, real_time_percent: u32) -> Option<Decision> {
    let RealtimeConfig { scheduling, load_max_percent, .. } = config;
    let why = if *scheduling == Scheduling::Default {
        "scheduling is default".to_owned()
    } else if !rights.may_schedule(Rank::HIGHEST) {
        format!("neither CAP_SYS_NICE nor RLIMIT_RTPRIO of at least {} is granted", Rank::HIGHEST)
    } else if *load_max_percent > real_time_percent {
        format!(
            "topics may ask for {load_max_percent} % of a core (platform.load_max_percent), and the kernel stops real-time threads that have used {real_time_percent} % \
            of a second (kernel.sched_rt_runtime_us)"
        )
    } else {
        return None;
    };
    Some(Decision { is_fifo: false, prefers: false, why, measured: None })
}

/// What is decided by it.
pub(super) fn measured(scheduling: Scheduling, measured: io::Result<Comparison>) -> Decision {
    let comparison = match measured {
        Ok(comparison) => comparison,
        Err(error) => {
            let why = format!("the system refuses real-time threads: {error}");
            return Decision { is_fifo: false, prefers: false, why, measured: None };
        }
    };
    let is_better = comparison.prefers_fifo();
    let why = match (scheduling, is_better) {
        (_, true) => "real-time threads were woken sooner",
        (Scheduling::Fifo, false) => "scheduling is fifo, although ordinary threads were woken as soon",
        (_, false) => "ordinary threads were woken as soon as real-time ones",
    };
    let prefers = scheduling == Scheduling::Auto && Rights::of_this_process().has_sys_nice;
    Decision { is_fifo: is_better || scheduling == Scheduling::Fifo, prefers, why: why.to_owned(), measured: Some(comparison) }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Figures, WakeUps},
        *,
    };

    const ALL: Rights = Rights { has_sys_nice: true, priority_max: 0, has_ipc_lock: true, locked_bytes_max: 0 };
    const NONE: Rights = Rights { has_sys_nice: false, priority_max: 0, has_ipc_lock: false, locked_bytes_max: 0 };

    fn figures(p99_us: u64) -> WakeUps {
        let figures = Figures { wake_ups: 1, p50_us: 0, p99_us, worst_us: p99_us };
        WakeUps { timer: figures, hand_over: figures }
    }

    #[test]
    fn real_time_threads_need_the_right_room_below_the_kernels_limit_and_a_measurement() {
        let before = |scheduling, load_max_percent, rights| {
            let config = RealtimeConfig { scheduling, load_max_percent, ..RealtimeConfig::default() };
            beforehand(&config, rights, 95).map(|decision| (decision.is_fifo, decision.why))
        };
        assert_eq!(before(Scheduling::Auto, 95, ALL), None);
        assert_eq!(before(Scheduling::Fifo, 95, ALL), None);
        let refused = [
            (Scheduling::Default, 50, ALL, "scheduling is default"),
            (Scheduling::Fifo, 50, NONE, "CAP_SYS_NICE"),
            (Scheduling::Fifo, 96, ALL, "96 % of a core"),
        ];
        for (scheduling, load_max_percent, rights, expected) in refused {
            let (is_fifo, why) = before(scheduling, load_max_percent, rights).unwrap();
            assert!(!is_fifo && why.contains(expected), "{why}");
        }
        for (asked, rights, expected) in [
            (Scheduling::Auto, NONE, true),
            (Scheduling::Fifo, NONE, true),
            (Scheduling::Default, NONE, false),
            (Scheduling::Default, ALL, false),
        ] {
            let config = RealtimeConfig { scheduling: asked, ..RealtimeConfig::default() };
            assert_eq!(beforehand(&config, rights, 95).unwrap().denies(asked), expected, "{asked:?} {rights:?}");
        }
        let as_soon = measured(Scheduling::Auto, Ok(Comparison { default: figures(50), fifo: Some(figures(60)) }));
        assert!(!as_soon.denies(Scheduling::Auto), "nothing is lacking where ordinary threads do as well");
        assert!(measured(Scheduling::Auto, Err(io::ErrorKind::PermissionDenied.into())).denies(Scheduling::Auto));
        let compared = |scheduling, default, fifo| {
            measured(scheduling, Ok(Comparison { default: figures(default), fifo: Some(figures(fifo)) })).is_fifo
        };
        assert_eq!(
            (compared(Scheduling::Auto, 60, 50), compared(Scheduling::Auto, 50, 60), compared(Scheduling::Fifo, 50, 60)),
            (true, false, true)
        );
        assert!(!measured(Scheduling::Fifo, Err(io::ErrorKind::PermissionDenied.into())).is_fifo);
    }
}
