//! How late this machine wakes a thread that is due: the least lateness every deadline and every lease has to allow for.

use std::time::Duration;

use bodkin_broker::{
    timing::Nanos,
    topic::{LeaseTimes, Platform},
};
use bodkin_host::realtime::{self, Comparison, Figures, WakeUps};

use super::finding::Finding;
use crate::settings::{Settings, pair};

/// Lateness that deadlines of tens of milliseconds cannot bear.
const STALL_MAX_US: u64 = 10_000;

/// Share of its processors' time that a hypervisor may take from this machine, in percent: the rest of its stalls cannot be mended from inside.
const STOLEN_MAX_PERCENT: f64 = 2.0;
const PROCESSORS_FILE: &str = "/proc/stat";

/// Measures for so long.
pub fn examine(settings: &Settings, window: Duration) -> Vec<Finding> {
    let before = Processors::read();
    let mut found = wake_ups_and_what_follows(settings, window);
    found.extend(before.zip(Processors::read()).and_then(|(before, after)| stolen(before, after)));
    found
}

/// Time of all processors since the machine's start, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processors {
    all: u64,
    /// Something would have run, and the hypervisor ran others.
    stolen: u64,
}

impl Processors {
    fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string(PROCESSORS_FILE).ok()?)
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal ...`; guests' times behind it are in user's already.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = words.by_ref().take(8).map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(Self { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }
}

/// What the hypervisor took between two looks; nothing where no time went by.
fn stolen(before: Processors, after: Processors) -> Option<Finding> {
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let percent = after.stolen.saturating_sub(before.stolen) as f64 / all as f64 * 100.0;
    let told = format!("{percent:.1} % of the processors' time was given to others by the hypervisor");
    Some(if percent > STOLEN_MAX_PERCENT {
        let advice =
            "give this virtual machine processors of its own (pinned, not shared), or move it to a quieter host: nothing inside it helps";
        Finding::warning("hypervisor", told, advice)
    } else {
        Finding::ok("hypervisor", told)
    })
}

fn wake_ups_and_what_follows(settings: &Settings, window: Duration) -> Vec<Finding> {
    let measured = match realtime::measure(window) {
        Ok(measured) => measured,
        Err(error) => {
            let advice = "see what limits the threads of this process (ulimit -u, a cgroup's pids.max)";
            return vec![Finding::warning("stalls", format!("they cannot be measured: {error}"), advice)];
        }
    };
    let best = measured.fifo.filter(|_| measured.prefers_fifo()).unwrap_or(measured.default);
    let platform = settings.platform();
    vec![wake_ups(&measured, best), blocking(&platform, best.timer), lease(settings, &platform, best.timer)]
}

fn wake_ups(measured: &Comparison, best: WakeUps) -> Finding {
    let told = |name: &str, WakeUps { timer, hand_over }: WakeUps| {
        format!(
            "{name}: of {} wake-ups by a timer half were late by {} us, one in a hundred by {} us, the worst by {} us; by another thread {}, {} and {} us",
            timer.wake_ups, timer.p50_us, timer.p99_us, timer.worst_us, hand_over.p50_us, hand_over.p99_us, hand_over.worst_us
        )
    };
    let fifo = measured.fifo.map_or_else(|| "real-time threads are not allowed".to_owned(), |fifo| told("real-time threads", fifo));
    let told = format!("{}; {fifo}", told("ordinary threads", measured.default));
    if best.timer.worst_us > STALL_MAX_US {
        let advice = "look for what stops this machine (a busy host of virtual machines, a cgroup's CPU quota, power saving); events are \
            late by as much";
        Finding::warning("stalls", told, advice)
    } else {
        Finding::ok("stalls", told)
    }
}

/// Whether deadlines are admitted with stalls as long as they are.
fn blocking(platform: &Platform, timer: Figures) -> Finding {
    let (blocking, worst) = (platform.blocking, micros(timer.worst_us));
    if blocking == Nanos::ZERO {
        return Finding::ok("deadlines", "[platform] states no blocking, so that no deadline is guaranteed against stalls");
    }
    let told = format!("deadlines are admitted with stalls of {blocking} at the most, and the worst that was measured is {worst}");
    if worst <= blocking {
        Finding::ok("deadlines", told)
    } else {
        Finding::warning("deadlines", told, "their guarantee would be suspended: raise blocking in [platform], or see to shorter stalls")
    }
}

/// Whether a pair's right to lead outlasts the stalls.
fn lease(settings: &Settings, platform: &Platform, timer: Figures) -> Finding {
    let worst = micros(timer.worst_us);
    let LeaseTimes { lease, heartbeat, detect_jitter, redirect, .. } = LeaseTimes::for_stall(allowance(timer.worst_us));
    let fit = format!(
        "lease {lease}, heartbeat {heartbeat}, detect_jitter {detect_jitter}, redirect {redirect} in [platform] fit twice the worst of {worst}"
    );
    if settings.role.as_deref().is_none_or(str::is_empty) {
        return Finding::ok("lease", format!("not a node of a pair; of one {fit}"));
    }
    let times = match pair::lease(platform) {
        Ok(times) => times,
        Err(error) => return Finding::problem("lease", error.to_string(), "correct [platform], alike on all nodes of the pair"),
    };
    let told = format!(
        "{} outlasts stalls of {}, and a fail-over takes {} at the most",
        times.lease,
        times.stall_max(),
        platform.failover.unwrap_or_default().max(times.failover())
    );
    if worst <= times.stall_max() {
        return Finding::ok("lease", told);
    }
    Finding::warning("lease", told, format!("a longer stall makes this node stop leading: {fit}"))
}

/// Twice the worst stall that was seen in some seconds, for a longer one will come: whole steps of 3 ms, of which a heartbeat is a third, and no less than 6 ms.
fn allowance(worst_us: u64) -> Nanos {
    let steps = worst_us.saturating_mul(2).div_ceil(3_000).max(2);
    micros(steps.saturating_mul(3_000))
}

fn micros(us: u64) -> Nanos {
    Nanos::from_micros(i64::try_from(us).unwrap_or(i64::MAX / 1_000))
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    fn figures(worst_us: u64) -> Figures {
        Figures { wake_ups: 1_000, p50_us: 50, p99_us: 60, worst_us }
    }

    #[test]
    fn what_a_hypervisor_takes_is_told() {
        let processors = |text: &str| Processors::parse(text);
        let before = processors("cpu  100 0 50 800 10 0 5 35 20 0\ncpu0 1 2\n").unwrap();
        assert_eq!(before, Processors { all: 1_000, stolen: 35 });
        let later = |all, stolen| super::stolen(before, Processors { all, stolen }).map(|found| (found.verdict, found.found));
        let told = |percent: &str| format!("{percent} % of the processors' time was given to others by the hypervisor");
        assert_eq!(later(1_200, 39), Some((Verdict::Ok, told("2.0"))));
        assert_eq!(later(1_200, 45), Some((Verdict::Warning, told("5.0"))));
        assert_eq!(later(1_000, 35), None, "no time went by");
        assert_eq!([processors("intr 1"), processors("cpu  1 2 3"), processors("cpu  a 0 0 0 0 0 0 0"), processors("")], [None; 4]);
    }

    #[test]
    fn the_worst_wake_up_counts() {
        let ups = |worst_us| WakeUps { timer: figures(worst_us), hand_over: figures(1) };
        let found = |worst_us| wake_ups(&Comparison { default: ups(worst_us), fifo: None }, ups(worst_us));
        assert_eq!(found(STALL_MAX_US).verdict, Verdict::Ok);
        let late = found(STALL_MAX_US + 1);
        assert_eq!(late.verdict, Verdict::Warning);
        assert!(late.found.contains("half were late by 50 us") && late.found.contains("the worst by 10001 us"), "{}", late.found);
        let stated = Platform { blocking: Nanos::from_millis(6), ..Platform::default() };
        assert_eq!([6_000, 6_001].map(|worst_us| blocking(&stated, figures(worst_us)).verdict), [Verdict::Ok, Verdict::Warning]);
    }

    #[test]
    fn a_pair_is_told_which_lease_outlasts_the_stalls() {
        let platform = Platform { lease: LeaseTimes::for_stall(Nanos::from_millis(6)), ..Platform::default() };
        let of = |role: &str, worst_us| {
            let mut settings = Settings::defaults();
            settings.role = Some(role.into());
            lease(&settings, &platform, figures(worst_us))
        };
        assert_eq!(of("", 50_000).verdict, Verdict::Ok);
        assert_eq!(of("primary", 6_000).verdict, Verdict::Ok);
        let short = of("primary", 30_000);
        assert!(
            short.verdict == Verdict::Warning && short.advice.as_ref().is_some_and(|advice| advice.contains("lease 100 ms")),
            "{short:?}"
        );
    }
}
