//! How late this machine wakes a thread that is due: the least lateness every deadline has to allow for.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::finding::Finding;

/// How often a wake-up is asked for.
const PERIOD: Duration = Duration::from_millis(1);
/// Lateness that deadlines of tens of milliseconds cannot bear.
const STALL_MAX: Duration = Duration::from_millis(10);

/// Measures for so long.
pub fn examine(window: Duration) -> Finding {
    let mut lateness = measure(window);
    lateness.sort_unstable();
    judge(&lateness, window)
}

fn measure(window: Duration) -> Vec<Duration> {
    let begun = Instant::now();
    let mut lateness = Vec::with_capacity((window.as_micros() / PERIOD.as_micros()) as usize);
    while begun.elapsed() < window {
        let due = Instant::now() + PERIOD;
        thread::sleep(PERIOD);
        lateness.push(due.elapsed());
    }
    lateness
}

/// `lateness` ascending, of at least one wake-up.
fn judge(lateness: &[Duration], window: Duration) -> Finding {
    let at = |share: usize| lateness[(lateness.len() - 1) * share / 100].as_micros();
    let worst = *lateness.last().expect("a window has a wake-up");
    let told = format!(
        "of {} wake-ups in {} s, half were late by {} us, one in a hundred by {} us, the worst by {} us",
        lateness.len(),
        window.as_secs(),
        at(50),
        at(99),
        worst.as_micros()
    );
    if worst > STALL_MAX {
        let advice = "look for what stops this machine (a busy host of virtual machines, a cgroup's CPU quota, power saving); events are \
            late by as much";
        Finding::warning("stalls", told, advice)
    } else {
        Finding::ok("stalls", told)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn the_worst_wake_up_counts() {
        let mut lateness = vec![Duration::from_micros(50); 999];
        assert_eq!(judge(&lateness, PERIOD).verdict, Verdict::Ok);
        lateness.push(STALL_MAX + PERIOD);
        let found = judge(&lateness, PERIOD);
        assert_eq!(found.verdict, Verdict::Warning);
        assert!(found.found.contains("half were late by 50 us") && found.found.contains("worst by 11000 us"), "{}", found.found);
    }
}
