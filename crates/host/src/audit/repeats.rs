//! Denials that are the same again and again, told as one with their number: at once the first, then seldom how many there were.
//!
//! A page that is left open asks once a second, and would write 86,000 lines a day in which nobody finds another one. Who is denied, what, from where and how it was answered is
//! in every line as before; only lines that would be equal but for their time become one (decision 136).

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bodkin_arrowhead::{audit::Event, utc::UtcTime};

/// Until it is told how many there were; doubled each time that there were some.
const PERIOD_MIN: Duration = Duration::from_secs(60);
/// At the most; so long at the most a kill costs of their number.
const PERIOD_MAX: Duration = Duration::from_secs(3_600);

/// What becomes of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is the first of its kind: to be told now.
    First,
    /// It is counted, and told later.
    Counted,
    /// It is one too many to be told apart from others: for the caller to decide.
    NoRoom,
}

/// What is denied at present, each with how often it was since it was told last.
#[derive(Debug)]
pub struct Repeats {
    repeats: BTreeMap<String, Repeat>,
    repeats_max: usize,
}

#[derive(Debug)]
struct Repeat {
    event: Event,
    told: Instant,
    period: Duration,
    untold: u64,
    last: UtcTime,
}

impl Repeats {
    /// Tells so many different ones apart at the same time.
    pub fn new(repeats_max: usize) -> Self {
        Self { repeats: BTreeMap::new(), repeats_max }
    }

    /// Something was denied now, which is `utc` by the wall clock.
    pub fn hear(&mut self, event: &Event, now: Instant, utc: UtcTime) -> Heard {
        let key = serde_json::to_string(event).expect("an event has text keys and finite numbers");
        if let Some(repeat) = self.repeats.get_mut(&key) {
            (repeat.untold, repeat.last) = (repeat.untold + 1, utc);
            return Heard::Counted;
        }
        if self.repeats.len() >= self.repeats_max {
            return Heard::NoRoom;
        }
        self.repeats.insert(key, Repeat { event: event.clone(), told: now, period: PERIOD_MIN, untold: 0, last: utc });
        Heard::First
    }

    /// What is to be told now. Whatever was not denied for its whole period is forgotten, and would be told at once again.
    pub fn due(&mut self, now: Instant) -> Vec<Event> {
        let is_due = |repeat: &Repeat| now.saturating_duration_since(repeat.told) >= repeat.period;
        self.repeats.retain(|_, repeat| repeat.untold > 0 || !is_due(repeat));
        let due = self.repeats.values_mut().filter(|repeat| is_due(repeat));
        due.map(|repeat| {
            (repeat.told, repeat.period) = (now, PERIOD_MAX.min(2 * repeat.period));
            repeat.tell()
        })
        .collect()
    }

    /// What was not told yet, at the end.
    pub fn rest(&mut self) -> Vec<Event> {
        let repeats = std::mem::take(&mut self.repeats);
        repeats.into_values().filter(|repeat| repeat.untold > 0).map(|mut repeat| repeat.tell()).collect()
    }
}

impl Repeat {
    fn tell(&mut self) -> Event {
        self.event.clone().with("times", std::mem::take(&mut self.untold)).with("last", self.last.to_string())
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::audit::Kind;

    use super::*;

    fn denial(caller: &str, what: &str) -> Event {
        Event::new(Kind::Denial, caller, None, what).answered(401)
    }

    fn times(events: &[Event]) -> Vec<(String, u64)> {
        events.iter().map(|event| (event.caller.clone(), event.detail["times"].as_u64().unwrap())).collect()
    }

    #[test]
    fn a_day_of_one_page_is_some_thirty_lines_that_count_every_denial() {
        let (mut repeats, start) = (Repeats::new(4), Instant::now());
        let (mut lines, mut counted) = (0, 0);
        for second in 0..86_400 {
            let (now, utc) = (start + Duration::from_secs(second), UtcTime::from_unix_seconds(second));
            match repeats.hear(&denial("display", "GET /x"), now, utc) {
                Heard::First => (lines, counted) = (lines + 1, counted + 1),
                heard => assert_eq!(heard, Heard::Counted),
            }
            for event in repeats.due(now) {
                assert_eq!((&event.detail["last"], event.status), (&utc.to_string().into(), Some(401)));
                lines += 1;
                counted += event.detail["times"].as_u64().unwrap();
            }
        }
        let rest = repeats.rest();
        assert_eq!(counted + times(&rest)[0].1, 86_400, "none is lost");
        assert!((25..=35).contains(&lines), "{lines}");
        assert!(repeats.rest().is_empty());
    }

    #[test]
    fn what_differs_in_anything_is_told_apart_and_what_stops_is_new_when_it_comes_again() {
        let (mut repeats, start, utc) = (Repeats::new(3), Instant::now(), UtcTime::from_unix_seconds(1));
        let with_body = |body: &str| denial("display", "POST /x").with("body", body);
        for event in [denial("display", "GET /x"), with_body("a"), with_body("b")] {
            assert_eq!(repeats.hear(&event, start, utc), Heard::First);
        }
        assert_eq!(repeats.hear(&denial("sensor", "GET /x"), start, utc), Heard::NoRoom, "there is a limit, and it is told");
        assert_eq!(repeats.hear(&with_body("b"), start, utc), Heard::Counted);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(repeats.due(at(59)).is_empty());
        assert_eq!(times(&repeats.due(at(60))), [("display".to_owned(), 1)]);
        assert_eq!(repeats.hear(&denial("sensor", "GET /x"), at(60), utc), Heard::First, "those that have stopped made room");
        assert_eq!(repeats.hear(&with_body("b"), at(100), utc), Heard::Counted);
        assert!(repeats.due(at(179)).is_empty(), "twice as long now, from when it was told last");
        assert_eq!(times(&repeats.due(at(180))), [("display".to_owned(), 1)]);
        assert!(repeats.due(at(180 + 240)).is_empty());
        assert_eq!(repeats.hear(&with_body("b"), at(421), utc), Heard::First, "it had stopped");
    }
}
