//! Entries for spreadsheets: RFC 4180, a line each.

use super::Entry;

/// The first line.
pub const CSV_HEADER: &str = "number,at,kind,caller,from,what,status,detail,previous\r\n";

/// An entry's line.
pub fn csv_line(entry: &Entry) -> String {
    let event = &entry.event;
    let detail = if event.detail.is_empty() { String::new() } else { serde_json::to_string(&event.detail).expect("details are JSON") };
    let fields = [
        entry.number.to_string(),
        entry.at.to_string(),
        event.kind.as_str().to_owned(),
        field(&event.caller),
        event.from.map(|from| from.to_string()).unwrap_or_default(),
        field(&event.what),
        event.status.map(|status| status.to_string()).unwrap_or_default(),
        field(&detail),
        entry.previous.to_string(),
    ];
    fields.join(",") + "\r\n"
}

/// A text in quotation marks where it needs them. What a spreadsheet would take for a formula gets an apostrophe in front:
/// callers choose their names and paths.
fn field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audit::{Event, Kind, LineHash},
        utc::UtcTime,
    };

    #[test]
    fn fields_are_quoted_and_no_formulas() {
        let event = Event::new(Kind::Denial, "=cmd()", None, "GET /a,\"b\"").answered(401).with("why", "no");
        let entry = Entry { number: 3, previous: LineHash::default(), at: UtcTime::from_unix_seconds(0), event };
        let expected = format!(
            "3,1970-01-01T00:00:00Z,denial,'=cmd(),,\"GET /a,\"\"b\"\"\",401,\"{{\"\"why\"\":\"\"no\"\"}}\",{}\r\n",
            "0".repeat(64)
        );
        assert_eq!(csv_line(&entry), expected);
        assert_eq!(CSV_HEADER.split(',').count(), 9);
    }
}
