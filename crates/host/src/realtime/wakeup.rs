//! How late this machine runs a thread that is due: under the ordinary policy and under the real-time one, in turns, so that both see the same machine.

use std::{
    io,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::kernel::{Policy, ThreadId};

/// How often a wake-up is asked for.
const PERIOD: Duration = Duration::from_millis(1);
/// Wake-ups under one policy before it is the other one's turn.
const ROUND: u32 = 25;

/// Lateness of many wake-ups, in microseconds, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// How many.
    pub wake_ups: usize,
    /// Half were no later.
    pub p50_us: u64,
    /// 99 of 100 were no later.
    pub p99_us: u64,
    /// None was later.
    pub worst_us: u64,
}

impl Figures {
    /// Of at least one.
    fn of(mut lateness: Vec<Duration>) -> Self {
        lateness.sort_unstable();
        let at = |share: usize| u64::try_from(lateness[(lateness.len() - 1) * share / 100].as_micros()).unwrap_or(u64::MAX);
        Self { wake_ups: lateness.len(), p50_us: at(50), p99_us: at(99), worst_us: at(100) }
    }
}

/// Wake-ups by a timer, and from there by another thread: what an event goes through whose time has come, or whose publisher has sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WakeUps {
    /// Behind the time that a thread asked to be woken at.
    pub timer: Figures,
    /// Behind the instant that a thread woke another one.
    pub hand_over: Figures,
}

/// What was measured under each policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Ordinary threads.
    pub default: WakeUps,
    /// Real-time threads; `None`: this process may have none.
    pub fifo: Option<WakeUps>,
}

impl Comparison {
    /// Measures how the calling thread is woken, for so long, at least one round of each; it is an ordinary one afterwards. Whoever wakes it is an
    /// ordinary one throughout, as publishers are.
    pub fn measure(window: Duration, fifo: Option<Policy>) -> io::Result<Self> {
        let waker = Waker::start()?;
        let (mut ordinary, mut real_time) = (Lateness::default(), Lateness::default());
        let begun = Instant::now();
        loop {
            waker.round(&mut ordinary);
            if let Some(policy) = fifo {
                ThreadId::current().schedule(policy)?;
                waker.round(&mut real_time);
                ThreadId::current().schedule(Policy::Default)?;
            }
            if begun.elapsed() >= window {
                return Ok(Self { default: ordinary.figures(), fifo: fifo.map(|_| real_time.figures()) });
            }
        }
    }

    /// Whether real-time threads are the better ones: woken no later by the worst of both ways, and by no means slower in most cases. A worst case that was seen once
    /// in some hundred wake-ups says little about the next one, so it decides only where the rest does not.
    pub fn prefers_fifo(&self) -> bool {
        let Some(fifo) = self.fifo else { return false };
        let sum = |of: WakeUps, figure: fn(Figures) -> u64| figure(of.timer) + figure(of.hand_over);
        let (fifo_p99_us, default_p99_us) = (sum(fifo, |of| of.p99_us), sum(self.default, |of| of.p99_us));
        let worst_us = |of: WakeUps| of.timer.worst_us.max(of.hand_over.worst_us);
        fifo_p99_us < default_p99_us || fifo_p99_us == default_p99_us && worst_us(fifo) < worst_us(self.default)
    }
}

#[derive(Default)]
struct Lateness {
    timer: Vec<Duration>,
    hand_over: Vec<Duration>,
}

impl Lateness {
    fn figures(self) -> WakeUps {
        WakeUps { timer: Figures::of(self.timer), hand_over: Figures::of(self.hand_over) }
    }
}

/// The thread that wakes when it is asked; it ends with this.
struct Waker {
    ask: Sender<()>,
    woken: Receiver<Instant>,
}

impl Waker {
    fn start() -> io::Result<Self> {
        let ((ask, asked), (wake, woken)) = (channel(), channel());
        // It ends when nobody asks any more.
        let run = move || asked.iter().all(|()| wake.send(Instant::now()).is_ok());
        thread::Builder::new().name("wake-up".into()).spawn(run)?;
        Ok(Self { ask, woken })
    }

    fn round(&self, into: &mut Lateness) {
        for _ in 0..ROUND {
            let due = Instant::now() + PERIOD;
            thread::sleep(PERIOD);
            into.timer.push(due.elapsed());
            let lives = "it lives until it is asked no more";
            self.ask.send(()).expect(lives);
            into.hand_over.push(self.woken.recv().expect(lives).elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_policies_are_measured_and_the_thread_is_an_ordinary_one_afterwards() {
        let measured = Comparison::measure(Duration::from_millis(1), None).unwrap();
        assert_eq!((measured.fifo, measured.prefers_fifo()), (None, false));
        let WakeUps { timer, hand_over } = measured.default;
        for Figures { wake_ups, p50_us, p99_us, worst_us } in [timer, hand_over] {
            assert!(wake_ups as u32 == ROUND && p50_us <= p99_us && p99_us <= worst_us);
        }
    }

    #[test]
    fn the_policy_that_wakes_sooner_is_preferred() {
        let figures = |p99_us, worst_us| Figures { wake_ups: 100, p50_us: 1, p99_us, worst_us };
        let ups = |timer, hand_over| WakeUps { timer, hand_over };
        let default = ups(figures(60, 900), figures(40, 50));
        let cases = [
            (ups(figures(30, 5_000), figures(40, 50)), true),
            (ups(figures(30, 40), figures(80, 90)), false),
            (ups(figures(50, 800), figures(50, 60)), true),
            (ups(figures(50, 900), figures(50, 60)), false),
        ];
        for (fifo, expected) in cases {
            assert_eq!(Comparison { default, fifo: Some(fifo) }.prefers_fifo(), expected, "{fifo:?}");
        }
    }
}
