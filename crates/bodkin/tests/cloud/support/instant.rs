//! Times as the wire writes them.

use std::time::SystemTime;

const SECONDS_PER_DAY: u64 = 86_400;

/// `time` as an ISO-8601 instant in whole seconds, rounded down.
pub fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let (mut day, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let mut year = 1970;
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(is_leap(year)),
        _ => 31,
    }
}
