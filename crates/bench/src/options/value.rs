//! Values with a unit, as they are typed.

use std::time::Duration;

/// Least share of a processor that a kernel grants: 1 ms of each 100 ms.
const PROCESSORS_MIN: f64 = 0.01;
/// Most processors that can be asked for.
const PROCESSORS_MAX: f64 = 1024.0;

/// Requests or events a second.
pub fn rate_per_s(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e6 => Ok(rate),
        _ => Err("a rate is above 0 and at most 1000000 a second".to_string()),
    }
}

/// A number above 0, and at most a million.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("a number above 0 and at most 1000000".to_string()),
    }
}

/// A share of the machine's processors.
pub fn processors(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (PROCESSORS_MIN..=PROCESSORS_MAX).contains(&share) => Ok(share),
        _ => Err(format!("a share of processors is {PROCESSORS_MIN} to {PROCESSORS_MAX}, as 0.25")),
    }
}

/// A number of bytes: 67108864, 64M.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 1 << 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 1 << 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0).and_then(|number| number.checked_mul(factor));
    number.ok_or_else(|| format!("`{text}` is not a number of bytes, as 64M"))
}

/// A time: 10s, 100ms, 250us.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time with its unit, as 10s, 100ms or 250us");
    let at = text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let second_parts = match &text[at..] {
        "s" => 1.0,
        "ms" => 1e3,
        "us" => 1e6,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..at].parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number / second_parts).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}

/// A share of all: 10%.
pub fn percent(text: &str) -> Result<f64, String> {
    let share = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    share.filter(|share| (0.0..=90.0).contains(share)).ok_or_else(|| format!("`{text}` is not 0% to 90%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_units() {
        assert_eq!((bytes("64M"), bytes("1k"), bytes("7")), (Ok(64 << 20), Ok(1024), Ok(7)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("0.1s"), duration("100ms"));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!((percent("10%"), processors("0.25")), (Ok(10.0), Ok(0.25)));
    }

    #[test]
    fn what_has_no_unit_or_no_sense_is_refused() {
        for text in ["", "M", "0", "-1", "64X", "99999999999G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["", "10", "s", "0s", "-1s", "1h", "nans", "infs"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(percent("10").is_err() && percent("95%").is_err() && processors("0").is_err() && processors("nan").is_err());
    }
}
