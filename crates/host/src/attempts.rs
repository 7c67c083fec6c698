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

/// Counts failures.
#[derive(Debug)]
pub struct Attempts(Mutex<Window>);

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

    /// Whether somebody at this address may try; if not, how long it is until it may.
    pub fn check(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.with(now, |window| {
            let failures = window.failures.get(&network(address)).copied();
            let is_full = failures.is_none() && window.failures.len() >= ADDRESSES_MAX;
            let is_refused = is_full || failures.is_some_and(|failures| failures >= FAILURES_MAX);
            if is_refused { Err(WINDOW.saturating_sub(now.saturating_duration_since(window.begun))) } else { Ok(()) }
        })
    }

    /// Notes that somebody at this address was wrong.
    pub fn fail(&self, address: IpAddr, now: Instant) {
        self.with(now, |window| {
            if window.failures.len() < ADDRESSES_MAX || window.failures.contains_key(&network(address)) {
                *window.failures.entry(network(address)).or_default() += 1;
            }
        });
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

    #[test]
    fn who_is_wrong_too_often_waits_for_the_next_minute_and_others_do_not() {
        let begun = Instant::now();
        let attempts = Attempts::new(begun);
        let (wrong, other) = (address("10.0.0.7"), address("10.0.0.8"));
        for _ in 0..FAILURES_MAX {
            assert_eq!(attempts.check(wrong, begun), Ok(()));
            attempts.fail(wrong, begun);
        }
        let later = begun + Duration::from_secs(20);
        assert_eq!((attempts.check(wrong, later), attempts.check(other, later)), (Err(Duration::from_secs(40)), Ok(())));
        assert!(attempts.check(address("::ffff:10.0.0.7"), later).is_err(), "it is the same in another form");
        assert_eq!(attempts.check(wrong, begun + WINDOW), Ok(()));
    }

    #[test]
    fn a_machine_gains_nothing_by_its_many_addresses() {
        let now = Instant::now();
        let attempts = Attempts::new(now);
        (0..FAILURES_MAX).for_each(|number| attempts.fail(address(&format!("2001:db8::{number:x}")), now));
        assert!(attempts.check(address("2001:db8::ffff:1"), now).is_err());
        assert_eq!(attempts.check(address("2001:db8:0:1::1"), now), Ok(()));
    }

    #[test]
    fn more_addresses_than_are_counted_are_refused() {
        let now = Instant::now();
        let attempts = Attempts::new(now);
        (0..ADDRESSES_MAX as u32).for_each(|number| attempts.fail(std::net::Ipv4Addr::from_bits(number).into(), now));
        assert!(attempts.check(address("200.0.0.1"), now).is_err());
        assert_eq!(attempts.check(address("0.0.0.1"), now), Ok(()));
        attempts.fail(address("200.0.0.1"), now);
        assert_eq!(attempts.check(address("200.0.0.1"), now + WINDOW), Ok(()));
    }
}
