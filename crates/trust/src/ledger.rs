//! What a cloud's authority has issued and revoked: a file that only grows, one JSON object a line.
//!
//! ```text
//! {"action":"issue","serial":"4f..","name":"sensor.cloud.operator.arrowhead.eu","notBefore":"..","notAfter":"..","at":".."}
//! {"action":"revoke","serial":"4f..","at":".."}
//! ```
//!
//! A line that another node of the cloud has brought names that node (`"node":".."`, [`crate::shared_ledger`]).
//!
//! A certificate's line is on disk before anybody has the certificate, so whatever exists can be revoked.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use bodkin_arrowhead::{pinned::PAIR_NODES, utc::UtcTime};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    certificate::Certificate,
    file::{self, FileError},
    revocation::Revoked,
};

/// Largest ledger: some 250,000 certificates.
pub const LEDGER_BYTES_MAX: u64 = 64 << 20;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum Entry {
    /// A certificate was issued.
    Issue {
        serial: String,
        name: String,
        #[serde(deserialize_with = "time")]
        not_before: UtcTime,
        #[serde(deserialize_with = "time")]
        not_after: UtcTime,
        #[serde(deserialize_with = "time")]
        at: UtcTime,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<String>,
    },
    /// A certificate that a line above has named was revoked.
    Revoke {
        serial: String,
        #[serde(deserialize_with = "time")]
        at: UtcTime,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<String>,
    },
}

impl Entry {
    pub(crate) fn issue(certificate: &Certificate, at: UtcTime) -> Self {
        Self::Issue {
            serial: certificate.serial_text(),
            name: certificate.told_name().to_owned(),
            not_before: certificate.not_before(),
            not_after: certificate.not_after(),
            at: at.whole_seconds(),
            node: None,
        }
    }

    pub(crate) fn revoke(serial: &str, at: UtcTime) -> Self {
        Self::Revoke { serial: serial.to_owned(), at: at.whole_seconds(), node: None }
    }
}

pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UtcTime, D::Error> {
    UtcTime::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// A line as whoever keeps an account of the authority is told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A certificate was issued.
    Issued {
        /// Serial number in hexadecimal digits.
        serial: String,
        /// Common name.
        name: String,
        /// Last second in which it counts.
        not_after: UtcTime,
        /// When.
        at: UtcTime,
    },
    /// One was revoked.
    Revoked {
        /// Serial number in hexadecimal digits.
        serial: String,
        /// When.
        at: UtcTime,
    },
}

impl From<Entry> for Action {
    fn from(entry: Entry) -> Self {
        match entry {
            Entry::Issue { serial, name, not_after, at, .. } => Self::Issued { serial, name, not_after, at },
            Entry::Revoke { serial, at, .. } => Self::Revoked { serial, at },
        }
    }
}

/// What the ledger says behind a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actions {
    /// In their order.
    pub actions: Vec<Action>,
    /// The place behind the last of them, in bytes.
    pub end: u64,
}

/// Bytes of the ledger that are read at a time.
const ACTIONS_BYTES_MAX: u64 = 1 << 20;

/// Reads on behind a place, at most [`ACTIONS_BYTES_MAX`]; `None` if the ledger does not reach so far: it is another one.
pub(crate) fn actions_behind(path: &Path, place: u64) -> Result<Option<Actions>, FileError> {
    let read = entries_behind::<Entry>(path, place)?;
    Ok(read.map(|(entries, end)| Actions { actions: entries.into_iter().map(Action::from).collect(), end }))
}

/// The entries behind a place, as [`actions_behind`], and the place behind the last of them.
pub(crate) fn entries_behind<T: for<'de> Deserialize<'de>>(path: &Path, place: u64) -> Result<Option<(Vec<T>, u64)>, FileError> {
    let system = FileError::system(path);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((place == 0).then(|| (Vec::new(), 0))),
        file => file.map_err(&system)?,
    };
    if file.metadata().map_err(&system)?.len() < place {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(place)).and_then(|_| file.take(ACTIONS_BYTES_MAX).read_to_end(&mut content)).map_err(&system)?;
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let entries = lines(&content[..whole]).map_err(|why| FileError::content(path, why))?;
    Ok(Some((entries, place + whole as u64)))
}

/// An issued certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Issued {
    /// Serial number in hexadecimal digits.
    pub serial: String,
    /// Common name.
    pub name: String,
    /// First second in which it counts.
    pub not_before: UtcTime,
    /// Last second in which it counts.
    pub not_after: UtcTime,
    /// When it was issued.
    pub issued_at: UtcTime,
    /// Since when it no longer counts.
    pub revoked_at: Option<UtcTime>,
    /// The node of the cloud that has brought it; `None`: the one whose ledger this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl Issued {
    /// Returns what an operator has to know who revokes it: the certificate of a node of a pair does not take the authority's key away from that node.
    pub fn revocation_warning(&self) -> Option<String> {
        let system = self.name.split('.').next().filter(|system| PAIR_NODES.contains(system))?;
        Some(format!(
            "{system} is a node of a reliable pair, and stays out until it is given another certificate. If its trust directory has cloud.key, whoever controls \
             that node can issue any certificate of this cloud: remove cloud.key there. If the node is lost or not trusted, make another authority (bodkin cert \
             init in a new directory) and issue all certificates again"
        ))
    }

    /// What becomes of it at a time, in a word.
    pub fn state(&self, now: UtcTime) -> &'static str {
        match (self.revoked_at, now > self.not_after) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "valid",
        }
    }
}

/// Everything that was issued, in the order in which it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    issued: Vec<Issued>,
    /// Where a serial number is in `issued`.
    places: BTreeMap<String, usize>,
}

impl Ledger {
    /// Reads a ledger; a file that is not there is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        match file::read(path, LEDGER_BYTES_MAX) {
            Ok(content) => Self::parse(&content).map_err(|why| FileError::content(path, why)),
            Err(error) if error.is_missing() => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// A last line without its end was being written when the power went: nobody has got what it names.
    fn parse(content: &[u8]) -> Result<Self, String> {
        let mut ledger = Self::default();
        for (entry, number) in lines::<Entry>(content)?.into_iter().zip(1..) {
            ledger.take(entry).map_err(|why| format!("line {number}: {why}"))?;
        }
        Ok(ledger)
    }

    pub(crate) fn take(&mut self, entry: Entry) -> Result<(), String> {
        match entry {
            Entry::Issue { serial, name, not_before, not_after, at, node } => {
                self.places.insert(serial.clone(), self.issued.len());
                self.issued.push(Issued { serial, name, not_before, not_after, issued_at: at, revoked_at: None, node });
            }
            Entry::Revoke { serial, at, .. } => {
                let place = *self.places.get(&serial).ok_or_else(|| format!("{serial} is revoked, but was not issued"))?;
                // Once revoked, it stays so since then.
                self.issued[place].revoked_at.get_or_insert(at);
            }
        }
        Ok(())
    }

    /// Everything that was issued.
    pub fn issued(&self) -> &[Issued] {
        &self.issued
    }

    /// The certificate of a serial number, in hexadecimal digits of either case, with leading zeros or without.
    pub fn find(&self, serial: &str) -> Option<&Issued> {
        let serial = serial.to_ascii_lowercase();
        let at = self.places.get(&serial).or_else(|| self.places.get(serial.trim_start_matches("00")))?;
        Some(&self.issued[*at])
    }

    /// What a revocation list has to name: what is revoked and would count otherwise.
    pub(crate) fn revoked(&self, now: UtcTime) -> Vec<Revoked> {
        let counts = self.issued.iter().filter(|issued| now <= issued.not_after);
        counts.filter_map(|issued| Revoked::parse(&issued.serial, issued.revoked_at?)).collect()
    }
}

/// Appends lines and syncs them, all or none. Whoever calls holds the directory's lock.
pub(crate) fn append<T: Serialize>(path: &Path, entries: &[T]) -> Result<(), FileError> {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&serde_json::to_string(entry).expect("entries are plain values"));
        text.push('\n');
    }
    let system = FileError::system(path);
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o644).open(path).map_err(&system)?;
    let kept = whole_lines(&mut file).map_err(&system)?;
    if kept + text.len() as u64 > LEDGER_BYTES_MAX {
        return Err(FileError::TooLarge { path: path.to_owned(), max: LEDGER_BYTES_MAX });
    }
    let write = |file: &mut File| {
        file.set_len(kept)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    // If taking it back fails as well, whoever appends next cuts what has no end.
    let written = write(&mut file);
    if written.is_err() {
        drop(file.set_len(kept));
    }
    written.map_err(system)
}

/// Bytes of a file up to its last end of a line.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut byte = [0];
    while end > 0 {
        file.seek(SeekFrom::Start(end - 1))?;
        file.read_exact(&mut byte)?;
        if byte[0] == b'\n' {
            break;
        }
        end -= 1;
    }
    Ok(end)
}

/// The lines of a file of JSON lines; what follows the last end of a line is left out.
pub(crate) fn lines<T: for<'de> Deserialize<'de>>(content: &[u8]) -> Result<Vec<T>, String> {
    let Some(end) = content.iter().rposition(|byte| *byte == b'\n') else { return Ok(Vec::new()) };
    let numbered = content[..end].split(|byte| *byte == b'\n').zip(1..);
    numbered.map(|(line, number)| serde_json::from_slice(line).map_err(|error| format!("line {number}: {error}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::example::{DAY, now, sensor};

    #[test]
    fn what_is_appended_is_read_back_in_its_order() {
        let place = TempDir::new().unwrap();
        let path = place.path().join("issued.jsonl");
        assert_eq!(Ledger::read(&path).unwrap(), Ledger::default());
        let (one, other) = (sensor(), sensor());
        append(&path, &[Entry::issue(one.certificate(), now()), Entry::issue(other.certificate(), now())]).unwrap();
        append(&path, &[Entry::revoke(&one.certificate().serial_text(), now().plus(DAY))]).unwrap();
        let ledger = Ledger::read(&path).unwrap();
        let states: Vec<_> = ledger.issued().iter().map(|issued| issued.state(now().plus(2 * DAY))).collect();
        assert_eq!(states, ["revoked", "valid"]);
        assert_eq!(ledger.issued()[1].state(now().plus(200 * DAY)), "expired");
        let serial = one.certificate().serial_text();
        for written in [serial.clone(), serial.to_uppercase(), format!("00{serial}")] {
            assert_eq!(ledger.find(&written).unwrap().name, "sensor.testcloud1.aitia.arrowhead.eu", "{written}");
        }
        assert_eq!(ledger.revoked(now()), [Revoked { serial: one.certificate().serial().to_vec(), since: now().plus(DAY) }]);
        assert_eq!(ledger.revoked(now().plus(200 * DAY)), []);
    }

    #[test]
    fn only_nodes_of_a_pair_carry_a_warning() {
        let place = TempDir::new().unwrap();
        let path = place.path().join("issued.jsonl");
        append(&path, &[Entry::issue(sensor().certificate(), now())]).unwrap();
        let sensor = Ledger::read(&path).unwrap().issued()[0].clone();
        assert_eq!(sensor.revocation_warning(), None);
        let backup = Issued { name: sensor.name.replace("sensor", PAIR_NODES[1]), ..sensor };
        assert!(backup.revocation_warning().unwrap().contains("remove cloud.key"));
    }

    #[test]
    fn a_line_without_an_end_is_left_out_and_cut_by_the_next() {
        let place = TempDir::new().unwrap();
        let path = place.path().join("issued.jsonl");
        let (one, other) = (sensor(), sensor());
        append(&path, &[Entry::issue(one.certificate(), now())]).unwrap();
        let whole = fs::read(&path).unwrap();
        for torn in ["{", r#"{"action":"issue","serial":"01"}"#] {
            fs::write(&path, [whole.as_slice(), torn.as_bytes()].concat()).unwrap();
            assert_eq!(Ledger::read(&path).unwrap().issued().len(), 1, "{torn}");
        }
        append(&path, &[Entry::issue(other.certificate(), now())]).unwrap();
        assert_eq!(Ledger::read(&path).unwrap().issued().len(), 2);
    }

    #[test]
    fn a_line_that_means_nothing_is_told() {
        for (content, told) in [
            ("{}\n", "line 1"),
            ("\n", "line 1"),
            ("{\"action\":\"revoke\",\"serial\":\"01\",\"at\":\"2031-01-01T00:00:00Z\"}\n", "line 1: 01 is revoked, but was not issued"),
            ("{\"action\":\"revoke\",\"serial\":\"01\",\"at\":\"tomorrow\"}\n", "line 1: is not a time"),
        ] {
            let error = Ledger::parse(content.as_bytes()).unwrap_err();
            assert!(error.contains(told), "{content}: {error}");
        }
    }

    #[test]
    fn what_is_behind_a_place_is_read_part_by_part() {
        let place = TempDir::new().unwrap();
        let path = place.path().join("issued.jsonl");
        assert_eq!(actions_behind(&path, 0).unwrap(), Some(Actions { actions: Vec::new(), end: 0 }));
        assert_eq!(actions_behind(&path, 7).unwrap(), None, "it was longer before");
        let certificate = sensor().certificate().clone();
        append(&path, &[Entry::issue(&certificate, now())]).unwrap();
        let first = actions_behind(&path, 0).unwrap().unwrap();
        let serial = certificate.serial_text();
        assert!(matches!(&first.actions[..], [Action::Issued { serial: issued, .. }] if *issued == serial));
        append(&path, &[Entry::revoke(&serial, now())]).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [whole.as_slice(), b"{\"action\":"].concat()).unwrap();
        let second = actions_behind(&path, first.end).unwrap().unwrap();
        assert_eq!(second, Actions { actions: vec![Action::Revoked { serial, at: now().whole_seconds() }], end: length });
        assert_eq!(actions_behind(&path, length).unwrap().unwrap().actions, [], "a line that is being written is not read");
        assert_eq!(actions_behind(&path, length + 100).unwrap(), None);
    }
}
