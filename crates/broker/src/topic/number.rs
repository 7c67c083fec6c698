//! Decimal numbers as people write them, read exactly: no number of nanoseconds is rounded.

use crate::timing::{Nanos, Span};

/// Longest text that is read as a number.
const TEXT_BYTES_MAX: usize = 64;
/// Largest power of ten, either way, that an exponent may state.
const EXPONENT_MAX: i32 = 99;

/// Why a text is no number that counts here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// It is none at all.
    #[error("must be a number such as 100 or 0.25")]
    NotANumber,
    /// There is something behind the last decimal that counts.
    #[error("must be a whole number of nanoseconds: it has more decimals than that")]
    TooFine,
    /// There is something behind the point.
    #[error("must be a whole number")]
    NotWhole,
    /// Beyond what can be counted.
    #[error("is too large")]
    TooLarge,
}

/// Reads a number of units of so many nanoseconds, a power of ten; `inf` is without end.
pub fn parse_span(text: &str, unit_ns: u64) -> Result<Span, NumberError> {
    match text.strip_prefix('+').unwrap_or(text) {
        "inf" => Ok(Span::Infinite),
        _ => {
            let nanos = scaled(text, unit_ns.ilog10() as i32, NumberError::TooFine)?;
            i64::try_from(nanos).map(|nanos| Nanos::new(nanos).into()).map_err(|_| NumberError::TooLarge)
        }
    }
}

/// Reads a whole number.
pub fn parse_whole(text: &str) -> Result<i128, NumberError> {
    scaled(text, 0, NumberError::NotWhole)
}

/// The number times `10^power`; an error where that is not whole.
fn scaled(text: &str, power: i32, not_whole: NumberError) -> Result<i128, NumberError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(NumberError::TooLarge);
    }
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let (decimal, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| NumberError::NotANumber)?;
    if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
        return Err(NumberError::TooLarge);
    }
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    if whole.is_empty() || decimal.ends_with('.') || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let shift = power + exponent - i32::try_from(fraction.len()).expect("the text is short");
    let (digits, zeros) = match u32::try_from(shift) {
        _ if digits.is_empty() => return Ok(0),
        Ok(zeros) => (digits, zeros),
        Err(_) => {
            let (kept, cut) = digits.split_at(digits.len().saturating_sub(shift.unsigned_abs() as usize));
            if cut.len() < shift.unsigned_abs() as usize || cut.bytes().any(|digit| digit != b'0') {
                return Err(not_whole);
            }
            (kept, 0)
        }
    };
    let number = digits.parse::<i128>().ok().and_then(|digits| digits.checked_mul(10i128.checked_pow(zeros)?));
    number.map(|number| sign * number).ok_or(NumberError::TooLarge)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_exact() {
        let ms = |text| parse_span(text, 1_000_000).map(|span| span.finite().map(Nanos::get));
        let cases = [
            ("0", Ok(Some(0))),
            ("-0.0", Ok(Some(0))),
            ("49.95", Ok(Some(49_950_000))),
            ("0.1", Ok(Some(100_000))),
            ("0.000001", Ok(Some(1))),
            ("0.0000010", Ok(Some(1))),
            ("0.0000001", Err(NumberError::TooFine)),
            ("0.00000123", Err(NumberError::TooFine)),
            ("1.5e3", Ok(Some(1_500_000_000))),
            ("15e-1", Ok(Some(1_500_000))),
            ("1e-6", Ok(Some(1))),
            ("1e-7", Err(NumberError::TooFine)),
            ("100e-8", Ok(Some(1))),
            ("+7", Ok(Some(7_000_000))),
            ("-7", Ok(Some(-7_000_000))),
            ("inf", Ok(None)),
            ("+inf", Ok(None)),
            ("-inf", Err(NumberError::NotANumber)),
            ("nan", Err(NumberError::NotANumber)),
            ("", Err(NumberError::NotANumber)),
            (".5", Err(NumberError::NotANumber)),
            ("5.", Err(NumberError::NotANumber)),
            ("1 ms", Err(NumberError::NotANumber)),
            ("1e", Err(NumberError::NotANumber)),
            ("--1", Err(NumberError::NotANumber)),
            ("9223372036854.775807", Ok(Some(i64::MAX))),
            ("9223372036854.775808", Err(NumberError::TooLarge)),
            ("1e99", Err(NumberError::TooLarge)),
            ("1e100", Err(NumberError::TooLarge)),
            ("0e99", Ok(Some(0))),
        ];
        for (text, expected) in cases {
            assert_eq!(ms(text), expected, "{text}");
        }
        assert_eq!(ms(&"1".repeat(65)), Err(NumberError::TooLarge));
        assert_eq!((parse_whole("12"), parse_whole("1.20e1"), parse_whole("1.5")), (Ok(12), Ok(12), Err(NumberError::NotWhole)));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(nanos in any::<i64>().prop_filter("there is no positive counterpart", |nanos| *nanos != i64::MIN)) {
            for unit_ns in [1, 1_000, 1_000_000, 1_000_000_000] {
                let text = Nanos::new(nanos).in_unit(unit_ns);
                prop_assert_eq!(parse_span(&text, unit_ns), Ok(Span::Finite(Nanos::new(nanos))), "{}", text);
            }
        }
    }
}
