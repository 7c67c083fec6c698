//! Times on the wire: read as RFC 3339 has them, with any offset, and written in UTC, ending in `Z`.

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

/// A text that is no time, or one of a year before 1970 or after 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a time of the years 1970 to 9999 such as 2031-01-01T00:00:00Z or 2031-01-01T01:00:00+01:00.")]
pub struct UtcTimeError;

impl UtcTime {
    /// Parses a `date-time` of RFC 3339, section 5.6: `T` and `Z` in either case or a blank for `T`, a fraction whose digits
    /// after the ninth are dropped, an offset of up to 23:59. Without `Z` or an offset it is UTC: that is Arrowhead 4.1.3's `2031-01-01 00:00:00`.
    ///
    /// # Errors
    /// Returns an error if the text is of another form, or its date or the instant is outside the years 1970 to 9999.
    pub fn parse(text: &str) -> Result<Self, UtcTimeError> {
        let (local, offset_seconds) = split_offset(text.trim());
        let mut local = local.to_owned();
        if local.as_bytes().get(DATE_BYTES).is_some_and(|between| matches!(between, b't' | b' ')) {
            local.replace_range(DATE_BYTES..=DATE_BYTES, "T");
        }
        // The parser ends at a `+` without looking at what follows.
        let is_local = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'T');
        if !local.bytes().all(is_local) {
            return Err(UtcTimeError);
        }
        let local = humantime::parse_rfc3339(&format!("{local}Z")).map_err(|_| UtcTimeError)?;
        let away = Duration::from_secs(offset_seconds.unsigned_abs());
        let utc = if offset_seconds >= 0 { local.checked_sub(away) } else { local.checked_add(away) };
        Self::from_system_time(utc.ok_or(UtcTimeError)?)
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

/// Bytes of `2031-01-01`.
const DATE_BYTES: usize = 10;

/// Splits a time from its zone: seconds east of UTC. What is no zone stays at the time, which is then refused.
fn split_offset(text: &str) -> (&str, i64) {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return (local, 0);
    }
    let offset = || {
        let (local, zone) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
        let (sign, clock) = zone.split_at_checked(1)?;
        let (hours, minutes) = clock.split_once(':')?;
        let number = |digits: &str, max: i64| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<i64>().ok().filter(|number| is_number && *number <= max)
        };
        let seconds = number(hours, 23)? * 3600 + number(minutes, 59)? * 60;
        match sign {
            "+" => Some((local, seconds)),
            "-" => Some((local, -seconds)),
            _ => None,
        }
    };
    offset().unwrap_or((text, 0))
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
    fn offset_is_taken_off_in_either_case_with_or_without_fraction() {
        for (text, utc) in [
            ("2031-01-01T12:00:00.5+05:00", "2031-01-01T07:00:00.500000000Z"),
            ("2031-01-01T12:00:00+05:00", "2031-01-01T07:00:00Z"),
            ("2031-01-01t12:00:00z", "2031-01-01T12:00:00Z"),
            ("2031-01-01 12:00:00-00:30", "2031-01-01T12:30:00Z"),
            ("2031-01-01T00:00:00-00:00", "2031-01-01T00:00:00Z"),
        ] {
            assert_eq!(UtcTime::parse(text).unwrap().to_string(), utc, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "tomorrow",
            "2031-01-01",
            "2031-01-01T12:00:00+05:00Z",
            "2031-01-01T12:00:00.5+05",
            "2031-01-01T12:00:00+24:00",
            "2031-01-01T12:00:00+05:60",
            "2031-01-01T12:00:00 05:00",
            "2031-01-01T12:00:00.5+",
            "1969-12-31T23:30:00-01:00",
            "1970-01-01T00:30:00+01:00",
            "9999-12-31T23:30:00-01:00",
            "2031-01-01T12:00:00\u{661}Z",
            "2031-13-01T00:00:00Z",
            "2031-02-30T00:00:00Z",
            "1960-01-01T00:00:00Z",
        ] {
            assert!(UtcTime::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_read_as_another_instant(
            seconds in 0..=UNIX_SECONDS_MAX,
            fraction in "(\\.[0-9]{1,9})?",
            zone in "[Zz]|[+-][0-9]{2}:[0-9]{2}|[+-][0-9]{0,4}|[+-][0-9]{1,2}:[0-9]{1,2}Z?",
            between in "[Tt ]",
        ) {
            let whole = UtcTime::from_unix_seconds(seconds).to_string();
            let text = format!("{}{fraction}{zone}", whole.trim_end_matches('Z').replacen('T', &between, 1));
            let offset = match zone.as_bytes() {
                [b'Z' | b'z'] => Some(0),
                [sign, h1, h2, b':', m1, m2 @ b'0'..=b'9'] => {
                    let [h, m] = [[h1, h2], [m1, m2]].map(|[tens, ones]| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'));
                    let east = if *sign == b'+' { 1 } else { -1 };
                    Some(east * (h * 3600 + m * 60)).filter(|_| h <= 23 && m <= 59)
                }
                _ => None,
            };
            let nanos = fraction.trim_start_matches('.').bytes().chain([b'0'; 9]).take(9).fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            let expected = offset.and_then(|offset| u64::try_from(i64::try_from(seconds).ok()? - offset).ok());
            let expected = expected.filter(|seconds| *seconds <= UNIX_SECONDS_MAX).map(|seconds| UtcTime(Duration::new(seconds, nanos)));
            prop_assert_eq!(UtcTime::parse(&text).ok(), expected, "{}", text);
        }

        #[test]
        fn what_is_written_is_read_back(seconds in 0..=UNIX_SECONDS_MAX, nanos in 0u32..1_000_000_000) {
            let time = UtcTime(Duration::new(seconds, nanos));
            prop_assert_eq!(UtcTime::parse(&time.to_string()).unwrap(), time);
        }
    }
}
