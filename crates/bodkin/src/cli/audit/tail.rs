//! `bodkin audit tail`.

use std::time::Duration;

use bodkin_arrowhead::audit::{AuditQuery, Entry};
use bodkin_store::audit::{AuditReader, ReadLine};
use clap::Args;

use super::Wanted;
use crate::{
    DONE,
    cli::{printer::Printer, write_out},
};

/// How often the log is looked at for what has come.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

#[derive(Args, Clone, Debug)]
pub struct Tailing {
    #[command(flatten)]
    pub(super) wanted: Wanted,
    /// Entries to begin with
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(super) count: usize,
    /// Go on with what comes
    #[arg(long, short = 'f')]
    pub(super) follow: bool,
}

/// Prints the end of the log; gives the exit code.
pub async fn run(reader: &AuditReader, options: Tailing, printer: Printer) -> anyhow::Result<u8> {
    let query = AuditQuery::from(options.wanted);
    // What comes while the end is read is read behind it.
    let newest = reader.last(&AuditQuery::default(), 1)?.first().map_or(0, |read| read.entry.number);
    let end = reader.last(&query, options.count)?;
    end.iter().filter(|read| read.entry.number <= newest).try_for_each(|read| print(read, printer))?;
    if !options.follow {
        return Ok(DONE);
    }
    let mut cursor = reader.cursor(newest + 1);
    loop {
        while let Some(read) = cursor.read()? {
            if query.wants(&read.entry) {
                print(&read, printer)?;
            }
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
}

fn print(read: &ReadLine, printer: Printer) -> std::io::Result<()> {
    let text = if printer.is_json() { String::from_utf8_lossy(&read.line).into_owned() } else { sentence(&read.entry) };
    write_out(&format!("{text}\n"))
}

/// An entry for people: one line. What a peer chose may hold anything: control characters become `?`.
pub(super) fn sentence(entry: &Entry) -> String {
    let event = &entry.event;
    let mut text = format!("{} {} {} {}", entry.number, entry.at, event.kind.as_str(), event.caller);
    if let Some(from) = event.from {
        text += &format!(" from {from}");
    }
    text += &format!(": {}", event.what);
    if let Some(status) = event.status {
        text += &format!(" -> {status}");
    }
    if !event.detail.is_empty() {
        text += &format!(" {}", serde_json::Value::Object(event.detail.clone()));
    }
    text.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::{
        audit::{Event, Kind, LineHash},
        utc::UtcTime,
    };

    use super::*;

    #[test]
    fn an_entry_is_one_line_for_people() {
        let event = Event::new(Kind::Denial, "a\x1b[2J", Some("10.0.0.7".parse().unwrap()), "GET /x").answered(401).with("why", "no");
        let entry = Entry { number: 3, previous: LineHash::default(), at: UtcTime::from_unix_seconds(0), event };
        assert_eq!(sentence(&entry), "3 1970-01-01T00:00:00Z denial a?[2J from 10.0.0.7: GET /x -> 401 {\"why\":\"no\"}");
    }
}
