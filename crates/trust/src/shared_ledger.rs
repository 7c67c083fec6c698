//! The account of one authority, kept by several nodes: each has a ledger and a file of CURVE bindings of its own, and brings its lines to the others.
//!
//! A line is named by its certificate and by what it says of it, so that it counts once wherever it comes from; a binding of a CURVE key is named by its text. What
//! another node has brought is in the file with that node's name, and revokes here as it does there; whoever has the authority's key signs the revocation list with it.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{SHA256, digest};
use bodkin_arrowhead::{
    ledger_line::{LedgerLine, LineKind},
    utc::UtcTime,
};

use crate::{
    curve::Binding,
    directory::{DirectoryError, Result, TrustDirectory},
    file::FileError,
    ledger::{self, Entry},
    lock::Lock,
};

/// Longest serial number of a line from elsewhere, in hexadecimal digits: RFC 5280 allows 20 bytes.
const SERIAL_DIGITS_MAX: usize = 40;
/// Longest common name of a line from elsewhere, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Bytes of the SHA-256 that names a binding: as many as a serial number has at most.
const BINDING_NAME_BYTES: usize = SERIAL_DIGITS_MAX / 2;

/// A file whose lines nodes give each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFile {
    /// `issued.jsonl`.
    Ledger,
    /// `curve.jsonl`.
    CurveKeys,
}

/// Reads a line that another node sends; `None` if it cannot be true. The name of a node in it is ignored.
pub fn parse(text: &str) -> Option<LedgerLine> {
    match Foreign::read(text, "")? {
        Foreign::Entry(entry) => Some(line_of_entry(&entry)),
        Foreign::Binding(binding) => Some(line_of_binding(&binding)),
    }
}

/// Returns the line of an entry of the ledger.
pub(crate) fn line_of_entry(entry: &Entry) -> LedgerLine {
    let entry = entry.clone().of_node(None);
    let text = serde_json::to_string(&entry).expect("entries are plain values");
    match entry {
        Entry::Issue { serial, name, not_after, .. } => LedgerLine { serial, kind: LineKind::Issue { name, not_after }, text },
        Entry::Revoke { serial, .. } => LedgerLine { serial, kind: LineKind::Revocation, text },
    }
}

fn line_of_binding(binding: &Binding) -> LedgerLine {
    let text = binding.text();
    let hash = digest(&SHA256, text.as_bytes());
    let name = &hash.as_ref()[..BINDING_NAME_BYTES];
    LedgerLine { serial: name.iter().map(|byte| format!("{byte:02x}")).collect(), kind: LineKind::CurveKey, text }
}

/// Lines of this node's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLines {
    /// In their order.
    pub lines: Vec<LedgerLine>,
    /// The place behind the last of them, in bytes.
    pub end: u64,
}

/// What came of lines from other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Certificates that were not known here.
    pub issued: usize,
    /// Of these and of others, those that were revoked elsewhere.
    pub revoked: usize,
    /// CURVE keys that were bound or taken away elsewhere.
    pub curve_keys: usize,
    /// Lines that say nothing that could be true; they were passed over.
    pub refused: usize,
    /// Whether the revocation list is signed with what was revoked. If not, the ledger revokes it all the same.
    pub is_signed: bool,
}

/// A line from elsewhere that can be true.
enum Foreign {
    Entry(Entry),
    Binding(Binding),
}

impl Foreign {
    fn read(text: &str, from: &str) -> Option<Self> {
        if let Some(entry) = Entry::from_elsewhere(text, from) {
            return Some(Self::Entry(entry));
        }
        let binding = Binding { node: Some(from.to_owned()), ..serde_json::from_str(text).ok()? };
        binding.is_valid().then_some(Self::Binding(binding))
    }
}

impl Entry {
    fn of_node(mut self, of: Option<String>) -> Self {
        let (Self::Issue { node, .. } | Self::Revoke { node, .. }) = &mut self;
        *node = of;
        self
    }

    /// Reads a line from elsewhere.
    fn from_elsewhere(text: &str, from: &str) -> Option<Self> {
        let entry = serde_json::from_str::<Self>(text).ok()?;
        let (serial, name) = match &entry {
            Self::Issue { serial, name, .. } => (serial, name.as_str()),
            Self::Revoke { serial, .. } => (serial, ""),
        };
        let is_serial = (2..=SERIAL_DIGITS_MAX).contains(&serial.len())
            && serial.len().is_multiple_of(2)
            && serial.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        (is_serial && name.len() <= NAME_BYTES_MAX).then(|| entry.of_node(Some(from.to_owned())))
    }

    fn is_of_here(&self) -> bool {
        let (Self::Issue { node, .. } | Self::Revoke { node, .. }) = self;
        node.is_none()
    }
}

impl TrustDirectory {
    /// What this node's own work has put into a file behind a place, a part of it at a time; `None` if the file does not reach so far.
    pub fn own_lines_behind(&self, file: SharedFile, place: u64) -> Result<Option<OwnLines>> {
        let read = match file {
            SharedFile::Ledger => ledger::entries_behind::<Entry>(&self.issued(), place)?
                .map(|(entries, end)| (entries.iter().filter(|entry| entry.is_of_here()).map(line_of_entry).collect(), end)),
            SharedFile::CurveKeys => ledger::entries_behind::<Binding>(&self.curve(), place)?
                .map(|(bindings, end)| (bindings.iter().filter(|binding| binding.node.is_none()).map(line_of_binding).collect(), end)),
        };
        Ok(read.map(|(lines, end)| OwnLines { lines, end }))
    }

    /// Takes lines that other nodes have brought, each with its node: those that say something new go into the ledger, or to the CURVE bindings.
    pub fn take_lines<'l>(&self, lines: impl IntoIterator<Item = (&'l str, &'l str)>, now: UtcTime) -> Result<Taken> {
        let authority = self.authority();
        let lock = Lock::take(self.path())?;
        let mut ledger = self.ledger()?;
        let (mut entries, mut taken) = (Vec::new(), Taken::default());
        let (mut revoked, mut bindings) = (BTreeSet::new(), Vec::new());
        for (node, text) in lines {
            let entry = match Foreign::read(text, node) {
                Some(Foreign::Entry(entry)) => entry,
                Some(Foreign::Binding(binding)) => {
                    bindings.push(binding);
                    continue;
                }
                None => {
                    taken.refused += 1;
                    continue;
                }
            };
            match &entry {
                Entry::Issue { serial, .. } if ledger.find(serial).is_some() => continue,
                Entry::Issue { .. } => taken.issued += 1,
                Entry::Revoke { serial, .. } => match ledger.find(serial) {
                    Some(issued) if issued.revoked_at.is_some() => continue,
                    Some(issued) => {
                        revoked.insert(issued.serial.clone());
                    }
                    // The line that it follows was passed over.
                    None => {
                        taken.refused += 1;
                        continue;
                    }
                },
            }
            ledger.take(entry.clone()).map_err(|why| FileError::content(&self.issued(), why))?;
            entries.push(entry);
        }
        taken.revoked = revoked.len();
        match authority {
            Ok(authority) if taken.revoked > 0 => match self.revoke_all(&lock, &ledger, &entries, &authority, now) {
                Ok(()) => taken.is_signed = true,
                // What is revoked has to count here whatever the list can hold.
                Err(DirectoryError::ListTooLarge) => ledger::append(&self.issued(), &entries)?,
                Err(error) => return Err(error),
            },
            _ if !entries.is_empty() => ledger::append(&self.issued(), &entries)?,
            _ => {}
        }
        taken.curve_keys = self.take_bindings(&lock, bindings)?;
        Ok(taken)
    }

    /// Appends the bindings that are not there; gives their number.
    fn take_bindings(&self, _lock: &Lock, mut bindings: Vec<Binding>) -> Result<usize> {
        if bindings.is_empty() {
            return Ok(0);
        }
        let mut known: BTreeSet<String> = self.curve_bindings()?.iter().map(Binding::text).collect();
        bindings.retain(|binding| known.insert(binding.text()));
        if !bindings.is_empty() {
            ledger::append(&self.curve(), &bindings)?;
        }
        Ok(bindings.len())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bodkin_arrowhead::name::SystemName;

    use super::*;
    use crate::{
        curve,
        example::{DAY, directory, now},
    };

    /// Two nodes of one authority, the second without its key.
    fn two() -> (impl Drop, TrustDirectory, TrustDirectory) {
        let (place, one) = directory();
        let two = TrustDirectory::new(place.path().join("two"));
        crate::directory::make_directory(&two.systems()).unwrap();
        for file in ["root.crt", "cloud.crt", "revoked.crl", "issued.jsonl"] {
            fs::copy(one.path().join(file), two.path().join(file)).unwrap();
        }
        (place, one, two)
    }

    fn bring(from: &TrustDirectory, to: &TrustDirectory) -> Taken {
        let lines = from.own_lines_behind(SharedFile::Ledger, 0).unwrap().unwrap().lines;
        to.take_lines(lines.iter().map(|line| ("one", line.text.as_str())), now()).unwrap()
    }

    #[test]
    fn what_one_node_issues_and_revokes_counts_at_the_other_once() {
        let (_place, one, two) = two();
        let identity = one.ensure_identity(&SystemName::parse("sensor").unwrap(), &[], now(), 90 * DAY).unwrap();
        let certificate = identity.certificate();
        assert_eq!(bring(&one, &two), Taken { issued: 1, ..Taken::default() });
        let known = two.ledger().unwrap();
        assert_eq!(known.find(&certificate.serial_text()).unwrap().node.as_deref(), Some("one"));
        assert!(!two.revocations(now()).unwrap().contains(certificate));
        one.revoke(&[certificate.serial_text()], now()).unwrap();
        assert_eq!(bring(&one, &two), Taken { revoked: 1, ..Taken::default() }, "nobody signs without the key");
        assert!(two.revocations(now()).unwrap().contains(certificate), "the ledger revokes by itself");
        assert_eq!(bring(&one, &two), Taken::default());
        assert_eq!(two.own_lines_behind(SharedFile::Ledger, 0).unwrap().unwrap().lines, [], "what came from elsewhere is not brought on");
    }

    #[test]
    fn who_has_no_key_revokes_and_who_has_it_signs() {
        let (_place, one, two) = two();
        let identity = one.ensure_identity(&SystemName::parse("sensor").unwrap(), &[], now(), 90 * DAY).unwrap();
        bring(&one, &two);
        let serial = identity.certificate().serial_text();
        assert!(two.revoke(std::slice::from_ref(&serial), now()).is_err());
        two.note_revoked(std::slice::from_ref(&serial), now()).unwrap();
        let list = fs::read(one.path().join("revoked.crl")).unwrap();
        let taken = bring(&two, &one);
        assert_eq!(taken, Taken { revoked: 1, is_signed: true, ..Taken::default() });
        assert_ne!(fs::read(one.path().join("revoked.crl")).unwrap(), list);
        assert!(one.revocations(now()).unwrap().contains(identity.certificate()));
    }

    #[test]
    fn curve_keys_of_one_node_count_at_the_other_whatever_the_order() {
        let (_place, one, two) = two();
        let system = |name: &str| SystemName::parse(name).unwrap();
        let [pump, sensor] = [(); 2].map(|()| curve::generate().unwrap());
        one.bind_curve_key(&system("sensor"), Some(sensor.public()), now()).unwrap();
        let bring_keys = |from: &TrustDirectory, to: &TrustDirectory, is_reversed: bool| {
            let mut lines = from.own_lines_behind(SharedFile::CurveKeys, 0).unwrap().unwrap().lines;
            if is_reversed {
                lines.reverse();
            }
            to.take_lines(lines.iter().map(|line| ("one", line.text.as_str())), now()).unwrap().curve_keys
        };
        assert_eq!((bring_keys(&one, &two, false), bring_keys(&one, &two, false)), (1, 0), "a line counts once");
        assert_eq!(two.curve_keys().unwrap(), one.curve_keys().unwrap());
        // Both within one second.
        one.bind_curve_key(&system("pump"), Some(pump.public()), now()).unwrap();
        one.bind_curve_key(&system("sensor"), None, now()).unwrap();
        assert_eq!(bring_keys(&one, &two, true), 2);
        assert_eq!(two.curve_keys().unwrap(), [(pump.public().clone(), system("pump"))].into());
        assert_eq!(
            two.own_lines_behind(SharedFile::CurveKeys, 0).unwrap().unwrap().lines,
            [],
            "what came from elsewhere is not brought on"
        );
        // What the other node binds is later than what it has taken, although its clock is behind.
        two.bind_curve_key(&system("pump"), None, now().minus(DAY)).unwrap();
        assert_eq!(bring_keys(&two, &one, false), 1);
        assert!(one.curve_keys().unwrap().is_empty());
        let wrong = r#"{"system":"no name","publicKey":null,"at":"2031-01-01T00:00:00Z"}"#;
        assert_eq!(two.take_lines([("one", wrong)], now()).unwrap(), Taken { refused: 1, ..Taken::default() });
    }

    #[test]
    fn what_cannot_be_true_is_passed_over() {
        let (_place, one, two) = two();
        let identity = one.ensure_identity(&SystemName::parse("sensor").unwrap(), &[], now(), 90 * DAY).unwrap();
        let good = one.own_lines_behind(SharedFile::Ledger, 0).unwrap().unwrap().lines.remove(0).text;
        let serial = identity.certificate().serial_text();
        let wrong = [
            String::new(),
            "{}".to_owned(),
            good.replace(&serial, "4F"),
            good.replace(&serial, "4"),
            good.replace(&serial, &"4f".repeat(30)),
            good.replace("\"name\":\"", &format!("\"name\":\"{}", "a".repeat(300))),
            r#"{"action":"revoke","serial":"4f","at":"2031-01-01T00:00:00Z"}"#.to_owned(),
        ];
        let lines = wrong.iter().chain([&good]).map(|text| ("one", text.as_str()));
        assert_eq!(two.take_lines(lines, now()).unwrap(), Taken { issued: 1, refused: wrong.len(), ..Taken::default() });
        assert_eq!(two.ledger().unwrap().issued().len(), 1);
    }

    #[test]
    fn a_name_of_a_node_in_a_line_from_elsewhere_is_not_believed() {
        let (_place, one, two) = two();
        one.ensure_identity(&SystemName::parse("sensor").unwrap(), &[], now(), 90 * DAY).unwrap();
        let text = one.own_lines_behind(SharedFile::Ledger, 0).unwrap().unwrap().lines.remove(0).text;
        let forged = text.replace("{\"action\"", "{\"node\":\"somebody\",\"action\"");
        assert_eq!(parse(&forged).map(|line| line.text), Some(text));
        assert_eq!(parse("{}"), None);
        two.take_lines([("one", forged.as_str())], now()).unwrap();
        assert_eq!(two.ledger().unwrap().issued()[0].node.as_deref(), Some("one"));
    }
}
