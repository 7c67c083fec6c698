//! How far a long computation is: a bar on a terminal, and nothing elsewhere.

use std::{
    io::{IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Characters of the bar.
const WIDTH: usize = 30;

/// The bar of some pieces of work, which threads share.
pub struct Progress {
    total: usize,
    started: Instant,
    is_watched: bool,
    done: Mutex<usize>,
}

impl Progress {
    /// Draws the empty bar, where somebody sees it.
    pub fn new(total: usize) -> Self {
        let progress = Self { total, started: Instant::now(), is_watched: std::io::stderr().is_terminal(), done: Mutex::new(0) };
        progress.draw(0);
        progress
    }

    /// A piece more is done.
    pub fn one_more(&self) {
        // Drawn under the lock, or an older bar might overwrite a newer one.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        self.draw(*done);
    }

    fn draw(&self, done: usize) {
        if self.is_watched {
            let end = if done == self.total { "\n" } else { "" };
            // What cannot be shown is not worth an error.
            let _ = write!(std::io::stderr(), "\r{}\u{1b}[K{end}", line(done, self.total, self.started.elapsed()));
        }
    }
}

/// As in `[#####-----]  50 %, 5 of 10, 12 s left`: what is left is taken to last as long as what is done, for each piece.
fn line(done: usize, total: usize, elapsed: Duration) -> String {
    let filled = (WIDTH * done).checked_div(total).unwrap_or(WIDTH);
    let share = (100 * done).checked_div(total).unwrap_or(100);
    let time = match done {
        0 => String::new(),
        done if done >= total => format!(", took {}", told(elapsed)),
        done => format!(", {} left", told(elapsed.mul_f64((total - done) as f64 / done as f64))),
    };
    format!("[{}{}] {share:>3} %, {done} of {total}{time}", "#".repeat(filled), "-".repeat(WIDTH - filled))
}

/// Seconds up to two minutes, minutes up to two hours.
fn told(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 9.95 => format!("{seconds:.1} s"),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_share_and_the_time_that_is_left() {
        let after = |done, total, seconds| line(done, total, Duration::from_secs(seconds));
        assert_eq!(after(0, 4, 0), "[------------------------------]   0 %, 0 of 4");
        assert_eq!(after(1, 4, 10), "[#######-----------------------]  25 %, 1 of 4, 30 s left");
        assert_eq!(after(5, 10, 3_600), "[###############---------------]  50 %, 5 of 10, 60 min left");
        assert_eq!(after(4, 4, 8), "[##############################] 100 %, 4 of 4, took 8.0 s");
        assert_eq!(after(1, 10_000, 4), "[------------------------------]   0 %, 1 of 10000, 11.1 h left");
    }
}
