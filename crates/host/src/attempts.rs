//! How often somebody may be wrong: failures counted by address, in a window of a minute.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// After this time everybody may be wrong again.
const WINDOW: Duration = Duration::from_secs(60);
/// Failures of one address within it; then even what is right is refused.
const FAILURES_MAX: u32 = 10;
/// Addresses that are counted; where there are more, those that are not among them are refused as well.
const ADDRESSES_MAX: usize = 4096;
/// Machines choose the lower half of their IPv6 address themselves.
const IPV6_NETWORK_BITS: u32 = 64;

/// Counts failures, and attempts under way as failures: those that come at once share what is left.
#[derive(Debug)]
pub struct Attempts(Mutex<Window>);

/// An attempt under way. It counts as a failure when it is dropped; [`Attempt::forgive`] takes it back.
#[derive(Debug)]
#[must_use = "an attempt that is dropped counts as a failure"]
pub struct Attempt<'a> {
    attempts: &'a Attempts,
    address: IpAddr,
    /// The window in which it is counted.
    begun: Instant,
}

impl Attempt<'_> {
    /// Takes it back: nobody was wrong.
    pub fn forgive(self) {
        let mut window = self.attempts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.begun != self.begun {
            return;
        }
        let network = network(self.address);
        if let Some(failures) = window.failures.get_mut(&network) {
            *failures -= 1;
            if *failures == 0 {
                window.failures.remove(&network);
            }
        }
    }
}

#[derive(Debug)]
struct Window {
    begun: Instant,
    failures: BTreeMap<IpAddr, u32>,
}

impl Attempts {
    /// Begins to count.
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new(Window { begun: now, failures: BTreeMap::new() }))
    }

    /// Begins an attempt of somebody at this address, which counts as a failure from now on.
    ///
    /// # Errors
    /// Returns how long it is until somebody there may try.
    pub fn begin(&self, address: IpAddr, now: Instant) -> Result<Attempt<'_>, Duration> {
        self.with(now, |window| {
            let failures = window.failures.get(&network(address)).copied();
            let is_full = failures.is_none() && window.failures.len() >= ADDRESSES_MAX;
            if is_full || failures.is_some_and(|failures| failures >= FAILURES_MAX) {
                return Err(WINDOW.saturating_sub(now.saturating_duration_since(window.begun)));
            }
            *window.failures.entry(network(address)).or_default() += 1;
            Ok(Attempt { attempts: self, address, begun: window.begun })
        })
    }

    fn with<T>(&self, now: Instant, look: impl FnOnce(&mut Window) -> T) -> T {
        // A count is whole wherever its keeper is interrupted.
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(window.begun) >= WINDOW {
            *window = Window { begun: now, failures: BTreeMap::new() };
        }
        look(&mut window)
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn fail(attempts: &Attempts, address: IpAddr, times: u32, now: Instant) {
        (0..times).for_each(|_| drop(attempts.begin(address, now).expect("it may try")));
    }

    #[test]
    fn who_is_wrong_too_often_waits_for_the_next_minute_and_others_do_not() {
        let begun = Instant::now();
        let attempts = Attempts::new(begun);
        let (wrong, other) = (address("10.0.0.7"), address("10.0.0.8"));
        fail(&attempts, wrong, FAILURES_MAX, begun);
        let later = begun + Duration::from_secs(20);
        assert_eq!(attempts.begin(wrong, later).err(), Some(Duration::from_secs(40)));
        assert!(attempts.begin(other, later).is_ok());
        assert!(attempts.begin(address("::ffff:10.0.0.7"), later).is_err(), "it is the same in another form");
        assert!(attempts.begin(wrong, begun + WINDOW).is_ok());
    }

    #[test]
    fn attempts_that_come_at_once_share_the_limit_and_those_that_are_right_give_theirs_back() {
        let begun = Instant::now();
        let attempts = Attempts::new(begun);
        let here = address("10.0.0.7");
        let mut under_way: Vec<Attempt<'_>> = (0..64).filter_map(|_| attempts.begin(here, begun).ok()).collect();
        assert_eq!(under_way.len(), FAILURES_MAX as usize);
        under_way.pop().expect("ten are under way").forgive();
        assert!(attempts.begin(here, begun).is_ok(), "one was taken back");
        assert!(attempts.begin(here, begun).is_err());
        // An attempt that is forgiven after its window does not count in the next one.
        let later = begun + WINDOW;
        fail(&attempts, here, FAILURES_MAX, later);
        under_way.into_iter().for_each(Attempt::forgive);
        assert!(attempts.begin(here, later).is_err());
    }

    #[test]
    fn a_machine_gains_nothing_by_its_many_addresses() {
        let now = Instant::now();
        let attempts = Attempts::new(now);
        (0..FAILURES_MAX).for_each(|number| fail(&attempts, address(&format!("2001:db8::{number:x}")), 1, now));
        assert!(attempts.begin(address("2001:db8::ffff:1"), now).is_err());
        assert!(attempts.begin(address("2001:db8:0:1::1"), now).is_ok());
    }

    #[test]
    fn more_addresses_than_are_counted_are_refused() {
        let now = Instant::now();
        let attempts = Attempts::new(now);
        (0..ADDRESSES_MAX as u32).for_each(|number| fail(&attempts, std::net::Ipv4Addr::from_bits(number).into(), 1, now));
        assert!(attempts.begin(address("200.0.0.1"), now).is_err());
        assert!(attempts.begin(address("0.0.0.1"), now).is_ok());
        assert!(attempts.begin(address("200.0.0.1"), now + WINDOW).is_ok());
    }
}
