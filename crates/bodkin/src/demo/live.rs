//! Values as they arrive: in place on a terminal, otherwise a line a second.

use std::{
    collections::BTreeMap,
    fmt::Write,
    io,
    time::{Duration, Instant},
};

use super::{
    narrator::paragraph,
    report::{Sample, Way},
};

/// Shortest time between two redrawings on a terminal.
const REDRAW_PERIOD: Duration = Duration::from_millis(100);
/// Time between two plain lines.
const PLAIN_PERIOD: Duration = Duration::from_secs(1);
/// Terminal control: a line too long for the terminal is cut, not wrapped, or it could not be redrawn in place.
const CUT_LINES: &str = "\x1b[?7l";
/// Terminal control: long lines wrap again.
const WRAP_LINES: &str = "\x1b[?7h";
/// Terminal control: clears what is left of a line.
const CLEAR_REST: &str = "\x1b[K";

/// The latest value of every service by every way.
pub struct Live {
    in_place: bool,
    rows: BTreeMap<(String, Way), Row>,
    drawn_rows: usize,
    drawn_at: Instant,
}

struct Row {
    sample: Sample,
    latency_ms: f64,
    events: u64,
}

impl Live {
    /// Nothing has arrived yet.
    pub fn new(in_place: bool) -> Self {
        Self { in_place, rows: BTreeMap::new(), drawn_rows: 0, drawn_at: Instant::now() }
    }

    /// Takes an event, and prints if it is time to.
    pub fn arrived(&mut self, way: Way, sample: Sample, latency_ms: f64) -> io::Result<()> {
        let key = (sample.service.clone(), way);
        let events = self.rows.get(&key).map_or(0, |row| row.events) + 1;
        self.rows.insert(key, Row { sample, latency_ms, events });
        let period = if self.in_place { REDRAW_PERIOD } else { PLAIN_PERIOD };
        if self.drawn_at.elapsed() < period {
            return Ok(());
        }
        self.drawn_at = Instant::now();
        let text = if self.in_place { self.redrawing() } else { self.plain_line() };
        paragraph(&text)
    }

    /// Goes back over the rows drawn before (cursor up) and draws them anew.
    fn redrawing(&mut self) -> String {
        let mut out = CUT_LINES.to_owned();
        if self.drawn_rows > 0 {
            out.push_str(&format!("\x1b[{}A", self.drawn_rows));
        }
        for ((service, way), row) in &self.rows {
            let way = match way {
                Way::ServerSentEvents => "SSE",
                Way::HttpPush => "HTTP push",
            };
            let Row { sample, latency_ms, events } = row;
            let (value, unit) = (sample.value, &sample.unit);
            let parts = parts(sample);
            writeln!(out, "  {service:<20}{way:<10}{value:>9.1} {unit:<8}{latency_ms:>7.2} ms {events:>6} events  {parts}{CLEAR_REST}")
                .expect("a String takes everything");
        }
        out.push_str(WRAP_LINES);
        self.drawn_rows = self.rows.len();
        out
    }

    fn plain_line(&self) -> String {
        let streamed = self.rows.iter().filter(|((_, way), _)| *way == Way::ServerSentEvents);
        let values: Vec<String> =
            streamed.map(|((service, _), row)| format!("{service} {:.1} {}", row.sample.value, row.sample.unit)).collect();
        format!("  {}\n", values.join(", "))
    }
}

fn parts(sample: &Sample) -> String {
    sample.parts.iter().map(|(name, value)| format!("{name} {value:.1}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: f64) -> Sample {
        let parts = (0..20).map(|core| (format!("cpu{core}"), value)).collect();
        Sample { service: "processor-load".into(), sequence: 1, value, unit: "percent".into(), time: String::new(), unix_ns: 0, parts }
    }

    #[test]
    fn rows_are_redrawn_where_they_were() {
        let mut live = Live::new(true);
        live.rows.insert(("processor-load".into(), Way::ServerSentEvents), Row { sample: sample(1.0), latency_ms: 0.5, events: 1 });
        live.rows.insert(("processor-load".into(), Way::HttpPush), Row { sample: sample(2.0), latency_ms: 0.5, events: 7 });
        let first = live.redrawing();
        assert_eq!(first.matches('\n').count(), 2);
        assert!(!first.contains("\x1b[2A") && live.redrawing().starts_with("\x1b[?7l\x1b[2A"));
        assert!(first.ends_with(WRAP_LINES));
        assert_eq!(live.plain_line(), "  processor-load 1.0 percent\n");
    }
}
