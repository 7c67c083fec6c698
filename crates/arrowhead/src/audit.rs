//! Entries of the audit log: what is kept of a change, a denial, a certificate, a token, an orchestration.
//!
//! An entry is a JSON object on a line of its own: members in the order of [`Entry`], maps in the order of their keys, no
//! white space. It names the hash of the line before it; hashing, numbering and writing are the store's part
//! (`docs/formats/audit.md`). Nothing secret gets in: [`what_was_asked`] and [`body`] leave it out.

mod csv;
mod redaction;

use std::{borrow::Cow, fmt, net::IpAddr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};

pub use self::{
    csv::{CSV_HEADER, csv_line},
    redaction::{BODY_BYTES_MAX, body, what_was_asked},
};
use crate::{caller::Caller, hex, utc::UtcTime};

/// Bytes of a name or path in an entry; the rest is cut off.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Who acts where nobody asked: Bodkin itself.
pub const OWN: &str = "bodkin";
/// What a caller without a certificate is called.
pub const ANONYMOUS: &str = "anonymous";
/// What stands in front of a device's name.
const DEVICE: &str = "device ";
/// What stands behind a text that was cut.
const CUT: &str = " ... (cut)";

/// SHA-256 of a line of the log; all zeros in front of the first.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LineHash(pub [u8; 32]);

impl LineHash {
    /// Takes 64 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        hex::parse(text).map(Self)
    }
}

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for LineHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        serializer.serialize_str(std::str::from_utf8(&text).expect("digits are text"))
    }
}

impl<'de> Deserialize<'de> for LineHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("64 hexadecimal digits are expected"))
    }
}

/// What an entry tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The local cloud has started.
    Start,
    /// It was stopped as it should be.
    Stop,
    /// Somebody has changed, or tried to change, what management rules over.
    Change,
    /// Somebody was refused what they have no right to.
    Denial,
    /// A certificate was issued, renewed or revoked.
    Certificate,
    /// A token was given out.
    Token,
    /// A consumer was told whom it may use.
    Orchestration,
    /// The last line was torn in the middle of a write and taken out; what was left of it stands here.
    Torn,
    /// The lines in front of this one are not as they were written.
    Damaged,
    /// Entries that were written are no longer there.
    Truncated,
    /// Entries could not be written.
    Gap,
    /// The oldest entries were removed, as configured.
    Removed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Start,
        Self::Stop,
        Self::Change,
        Self::Denial,
        Self::Certificate,
        Self::Token,
        Self::Orchestration,
        Self::Torn,
        Self::Damaged,
        Self::Truncated,
        Self::Gap,
        Self::Removed,
    ];

    /// Its name in entries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Change => "change",
            Self::Denial => "denial",
            Self::Certificate => "certificate",
            Self::Token => "token",
            Self::Orchestration => "orchestration",
            Self::Torn => "torn",
            Self::Damaged => "damaged",
            Self::Truncated => "truncated",
            Self::Gap => "gap",
            Self::Removed => "removed",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// What has happened, before it has a place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What is told.
    pub kind: Kind,
    /// Who did it: the common name of the certificate, [`ANONYMOUS`] or [`OWN`].
    pub caller: String,
    /// The address it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// Method and path, or what was done in a few words.
    pub what: String,
    /// The HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
}

impl Event {
    /// Something that somebody did.
    pub fn new(kind: Kind, caller: &str, from: Option<IpAddr>, what: &str) -> Self {
        Self { kind, caller: cut(caller), from: from.map(|from| from.to_canonical()), what: cut(what), status: None, detail: Map::new() }
    }

    /// Something that Bodkin did without being asked.
    pub fn own(kind: Kind, what: &str) -> Self {
        Self::new(kind, OWN, None, what)
    }

    /// With the answer's status.
    pub fn answered(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    /// With one more detail.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1 in steps of 1.
    pub number: u64,
    /// The hash of the line before, as it stands in the file without its end.
    pub previous: LineHash,
    /// When it happened.
    #[serde(deserialize_with = "time")]
    pub at: UtcTime,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// A line that is no JSON object with the members of an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no entry: {0}")]
pub struct LineError(String);

impl Entry {
    /// Reads a line without its end.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        serde_json::from_slice(line).map_err(|error| LineError(error.to_string()))
    }

    /// The line without its end.
    pub fn to_line(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an entry has text keys and finite numbers")
    }
}

/// Which entries are wanted; what is absent is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Nothing in front of this number.
    pub from: u64,
    /// Nothing before this time.
    pub since: Option<UtcTime>,
    /// Nothing after this time.
    pub until: Option<UtcTime>,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only by callers in whose names this text is, whatever its case.
    pub caller: Option<String>,
}

impl AuditQuery {
    /// Whether an entry is wanted.
    pub fn wants(&self, entry: &Entry) -> bool {
        let caller = |wanted: &String| entry.event.caller.to_ascii_lowercase().contains(&wanted.to_ascii_lowercase());
        entry.number >= self.from
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at <= until)
            && self.kind.is_none_or(|kind| entry.event.kind == kind)
            && self.caller.as_ref().is_none_or(caller)
    }
}

/// What a caller is called in entries. A device has whatever name its maker has given it, be it that of a system.
pub fn name_of(caller: &Caller) -> Cow<'_, str> {
    match caller {
        Caller::Anonymous => ANONYMOUS.into(),
        Caller::Certified(name) if name.is_device => format!("{DEVICE}{}", name.common_name).into(),
        Caller::Certified(name) if name.common_name.is_empty() => ANONYMOUS.into(),
        Caller::Certified(name) => (&*name.common_name).into(),
    }
}

/// A text of at most [`TEXT_BYTES_MAX`].
pub fn cut(text: &str) -> String {
    cut_to(text, TEXT_BYTES_MAX)
}

fn cut_to(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!("{}{CUT}", &text[..text.floor_char_boundary(bytes_max - CUT.len())])
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UtcTime, D::Error> {
    UtcTime::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::common_name::CloudCommonName;

    fn entry(kind: Kind, caller: &str) -> Entry {
        let event = Event::new(kind, caller, Some(Ipv4Addr::LOCALHOST.into()), "POST /serviceregistry/mgmt").answered(201);
        let at = UtcTime::parse("2026-11-21T10:00:00.5Z").unwrap();
        Entry { number: 7, previous: LineHash([0xab; 32]), at, event: event.with("body", json!({"b": 1, "a": [true, null]})) }
    }

    #[test]
    fn an_entry_is_one_line_in_a_fixed_order() {
        let line = String::from_utf8(entry(Kind::Change, "sysop").to_line()).unwrap();
        let expected = format!(
            "{{\"number\":7,\"previous\":\"{}\",\"at\":\"2026-11-21T10:00:00.500000000Z\",\"kind\":\"change\",\"caller\":\"sysop\",\
             \"from\":\"127.0.0.1\",\"what\":\"POST /serviceregistry/mgmt\",\"status\":201,\"detail\":{{\"body\":{{\"a\":[true,null],\"b\":1}}}}}}",
            "ab".repeat(32)
        );
        assert_eq!(line, expected);
        assert_eq!(Entry::parse(line.as_bytes()).unwrap(), entry(Kind::Change, "sysop"));
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        let line = String::from_utf8(entry(Kind::Denial, "a").to_line()).unwrap();
        let bad = [
            "{}",
            "",
            "null",
            &line[..60],
            &line.replace("abab", "ABab"),
            &line.replace("denial", "deny"),
            &line.replace("10:00", "25:00"),
        ];
        bad.into_iter().for_each(|line| assert!(Entry::parse(line.as_bytes()).is_err(), "{line}"));
    }

    #[test]
    fn names_of_kinds_are_those_in_entries() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(kind.as_str()));
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::parse("Change"), None);
    }

    #[test]
    fn a_query_narrows_by_every_member() {
        let at = |text: &str| Some(UtcTime::parse(text).unwrap());
        let found = entry(Kind::Change, "Sysop.cloud");
        let all = AuditQuery::default();
        assert!(all.wants(&found));
        let early = AuditQuery { until: at("2026-11-21T10:00:00Z"), ..all.clone() };
        let late = AuditQuery { since: at("2026-11-21T10:00:01Z"), ..all.clone() };
        let other_kind = AuditQuery { kind: Some(Kind::Denial), ..all.clone() };
        let other_caller = AuditQuery { caller: Some("anon".into()), ..all.clone() };
        let behind = AuditQuery { from: 8, ..all.clone() };
        for query in [early, late, other_kind, other_caller, behind] {
            assert!(!query.wants(&found), "{query:?}");
        }
        let narrow =
            AuditQuery { from: 7, since: at("2026-11-21T10:00:00Z"), until: None, kind: Some(Kind::Change), caller: Some("sysop".into()) };
        assert!(narrow.wants(&found));
    }

    #[test]
    fn nobody_is_called_by_a_name_that_is_not_theirs() {
        let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
        let sysop = "sysop.cloud.operator.arrowhead.eu";
        for (caller, name) in [
            (Caller::Anonymous, ANONYMOUS),
            (Caller::unidentified(), ANONYMOUS),
            (Caller::certified(sysop, &cloud), sysop),
            (Caller::device(sysop), "device sysop.cloud.operator.arrowhead.eu"),
            (Caller::device(""), "device "),
        ] {
            assert_eq!(name_of(&caller), name);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let event = Event::new(Kind::Denial, &"\u{fc}".repeat(TEXT_BYTES_MAX), None, "x");
        assert!(event.caller.len() <= TEXT_BYTES_MAX && event.caller.ends_with(CUT), "{}", event.caller.len());
        assert_eq!(event.what, "x");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(number in any::<u64>(), hash in any::<[u8; 32]>(), caller in ".{0,40}", what in ".{0,40}",
            status in prop::option::of(any::<u16>()), nanos in any::<u64>(), value in ".{0,20}") {
            let mut event = Event::new(Kind::Token, &caller, None, &what).with("x", value);
            event.status = status;
            let entry = Entry { number, previous: LineHash(hash), at: UtcTime::from_unix_nanos(nanos), event };
            let line = entry.to_line();
            prop_assert!(!line.contains(&b'\n'));
            prop_assert_eq!(Entry::parse(&line).unwrap(), entry);
        }

        #[test]
        fn no_bytes_stop_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Entry::parse(&bytes).is_err());
        }
    }
}
