//! Times on the wire: UTC, ISO 8601, ending in `Z`.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Serialize, Serializer};

/// An instant, nanoseconds since 1970-01-01T00:00:00Z; years 1970 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime(Duration);

/// Last second of the year 9999.
const UNIX_SECONDS_MAX: u64 = 253_402_300_799;

/// A text that is neither `2031-01-01T00:00:00Z` (fraction optional) nor Arrowhead 4.1.3's `2031-01-01 00:00:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a UTC time such as 2031-01-01T00:00:00Z.")]
pub struct UtcTimeError;

impl UtcTime {
    /// Parses the ISO form, or Arrowhead 4.1.3's form without `T` and `Z`.
    pub fn parse(text: &str) -> Result<Self, UtcTimeError> {
        let text = text.trim();
        let time = if text.ends_with('Z') { humantime::parse_rfc3339(text) } else { humantime::parse_rfc3339_weak(text) };
        Self::from_system_time(time.map_err(|_| UtcTimeError)?)
    }

    /// Takes the host's clock reading; the year must be 1970 to 9999.
    pub fn from_system_time(time: SystemTime) -> Result<Self, UtcTimeError> {
        let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| UtcTimeError)?;
        if since_epoch.as_secs() > UNIX_SECONDS_MAX { Err(UtcTimeError) } else { Ok(Self(since_epoch)) }
    }

    /// Whole seconds since 1970; later than year 9999 is cut there.
    pub fn from_unix_seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds.min(UNIX_SECONDS_MAX)))
    }

    /// Nanoseconds since 1970.
    pub fn from_unix_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// Nanoseconds since 1970; what is later than the year 2554 is cut there.
    pub fn unix_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whole seconds since 1970.
    pub fn unix_seconds(self) -> u64 {
        self.0.as_secs()
    }

    /// The same second without its fraction: what the database keeps.
    pub fn whole_seconds(self) -> Self {
        Self(Duration::from_secs(self.0.as_secs()))
    }

    /// Later by `duration`, at most the end of year 9999.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration).min(Duration::from_secs(UNIX_SECONDS_MAX)))
    }

    /// How much later this is than `earlier`; nothing if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Earlier by `duration`, at least 1970.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = SystemTime::UNIX_EPOCH + self.0;
        if self.0.subsec_nanos() == 0 {
            humantime::format_rfc3339_seconds(time).fmt(f)
        } else {
            humantime::format_rfc3339_nanos(time).fmt(f)
        }
    }
}

impl Serialize for UtcTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_forms_of_input_are_the_same_instant() {
        let iso = UtcTime::parse("2031-01-01T00:00:00Z").unwrap();
        assert_eq!(iso, UtcTime::parse("2031-01-01 00:00:00").unwrap());
        assert_eq!(iso, UtcTime::parse("2031-01-01T00:00:00.000Z").unwrap());
        assert_eq!(iso.to_string(), "2031-01-01T00:00:00Z");
        assert_eq!(UtcTime::parse("2026-11-20T23:41:23.742220926Z").unwrap().to_string(), "2026-11-20T23:41:23.742220926Z");
    }

    #[test]
    fn offsets_and_nonsense_are_refused() {
        for bad in [
            "",
            "tomorrow",
            "2031-01-01",
            "2031-01-01T00:00:00+01:00",
            "2031-13-01T00:00:00Z",
            "2031-02-30T00:00:00Z",
            "1960-01-01T00:00:00Z",
        ] {
            assert!(UtcTime::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0..=UNIX_SECONDS_MAX, nanos in 0u32..1_000_000_000) {
            let time = UtcTime(Duration::new(seconds, nanos));
            prop_assert_eq!(UtcTime::parse(&time.to_string()).unwrap(), time);
        }
    }
}
