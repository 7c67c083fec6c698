//! Lines of certificate ledgers and of CURVE bindings that the nodes of one cloud exchange through their database.
//!
//! A shared database (PostgreSQL) holds them for all nodes. The database of a pair (SQLite) holds them too, and the pair's replication carries them to the other
//! node. A certificate's line is here before a client has the certificate, so every node knows and can revoke each certificate.

use bodkin_arrowhead::ledger_line::{LedgerLine, LineKind};

use crate::{
    database::{Database, DatabaseResult, params},
    draft::{Draft, OperationError, seconds},
    shared::session::CERTIFICATES,
};

/// The table in SQLite. A cloud by itself leaves it empty.
pub(crate) const MIGRATION: &str = "
CREATE TABLE certificate_line (
    number INTEGER PRIMARY KEY,
    authority TEXT NOT NULL,
    serial TEXT NOT NULL,
    action TEXT NOT NULL,
    name TEXT,
    not_after INTEGER,
    node TEXT NOT NULL,
    line TEXT NOT NULL,
    UNIQUE (authority, serial, action)
) STRICT;
CREATE INDEX certificate_line_name ON certificate_line (authority, name);
";

/// Lines that the account may have. A node's own ledger is full with half of them.
const LINES_MAX: i64 = 500_000;
/// Lines that are read at a time.
const LINES_READ_MAX: i64 = 2_000;

/// The text in the column `action` for a kind of line.
fn action(kind: &LineKind) -> &'static str {
    match kind {
        LineKind::Issue { .. } => "issue",
        LineKind::Revocation => "revoke",
        LineKind::CurveKey => "curve",
    }
}

/// A line that a node has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateLine {
    /// Its place: each commit's are behind those of all before it.
    pub number: i64,
    /// Who has brought it.
    pub node: String,
    /// Serial number in hexadecimal digits.
    pub serial: String,
    /// Whether it revokes.
    pub is_revocation: bool,
    /// The line.
    pub text: String,
}

/// Why nothing may be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBrought {
    /// The name is somebody's.
    #[error("another certificate of that name counts")]
    NameTaken,
    /// Another certificate has the serial number.
    #[error("another certificate has the serial number that was drawn; draw again")]
    SerialTaken,
}

impl Draft<'_> {
    /// Brings lines of an authority's account; what is there stays as it is. Gives the serial numbers that another certificate has.
    pub fn bring_lines(&mut self, authority: &str, node: &str, lines: &[LedgerLine]) -> Result<Vec<String>, OperationError> {
        let mut taken = Vec::new();
        for line in lines {
            if !self.bring(authority, node, line)?
                && line.issued().is_some()
                && self.line_of(authority, &line.serial)?.as_ref() != Some(&line.text)
            {
                taken.push(line.serial.clone());
            }
        }
        self.tell_lines()?;
        Ok(taken)
    }

    /// Brings the line of a certificate that is issued now; `is_exclusive`: no other one of its name may count.
    pub fn bring_issue(
        &mut self,
        authority: &str,
        node: &str,
        line: &LedgerLine,
        is_exclusive: bool,
    ) -> Result<Result<(), NotBrought>, OperationError> {
        if is_exclusive
            && let Some((name, _)) = line.issued()
            && self.id(COUNTS, params![authority, name, self.now_seconds()])?.is_some()
        {
            return Ok(Err(NotBrought::NameTaken));
        }
        if !self.bring(authority, node, line)? {
            return Ok(Err(NotBrought::SerialTaken));
        }
        self.tell_lines()?;
        Ok(Ok(()))
    }

    /// The lines of an authority's account behind a number, a part of them at a time.
    pub fn lines_behind(&self, authority: &str, number: i64) -> Result<Vec<CertificateLine>, OperationError> {
        self.rows(BEHIND, params![authority, number, LINES_READ_MAX], |row| {
            Ok(CertificateLine {
                number: row.get(0)?,
                node: row.get(1)?,
                serial: row.get(2)?,
                is_revocation: row.get(3)?,
                text: row.get(4)?,
            })
        })
    }

    /// Returns those of these lines that the database lacks.
    pub fn missing_lines(&self, authority: &str, lines: Vec<LedgerLine>) -> Result<Vec<LedgerLine>, OperationError> {
        let mut missing = Vec::new();
        for line in lines {
            if self.id(KNOWN, params![authority, &*line.serial, action(&line.kind)])?.is_none() {
                missing.push(line);
            }
        }
        Ok(missing)
    }

    /// Whether a node has brought anything.
    pub fn has_certificate_lines(&self) -> Result<bool, OperationError> {
        Ok(self.id("SELECT number FROM certificate_line LIMIT 1", ())?.is_some())
    }

    /// Whether it was not there.
    fn bring(&mut self, authority: &str, node: &str, line: &LedgerLine) -> Result<bool, OperationError> {
        let action = action(&line.kind);
        let (name, not_after) = line.issued().map(|(name, not_after)| (name, seconds(not_after))).unzip();
        // A standby repeats a statement although it changes nothing, so a line that is there is not inserted again.
        if matches!(self.database(), Database::Sqlite(_)) && self.id(KNOWN, params![authority, &*line.serial, action])?.is_some() {
            return Ok(false);
        }
        let number = last(self.database())?.unwrap_or_default() + 1;
        if number > LINES_MAX {
            return Err(OperationError::invalid(format!("The account of certificates has {LINES_MAX} lines, which is the limit.")));
        }
        Ok(self.run(BRING, params![number, authority, &*line.serial, action, name, not_after, node, &*line.text])? == 1)
    }

    /// The text of the line by which a certificate was issued.
    fn line_of(&self, authority: &str, serial: &str) -> Result<Option<String>, OperationError> {
        Ok(self.row(
            "SELECT line FROM certificate_line WHERE authority = ?1 AND serial = ?2 AND action = 'issue'",
            params![authority, serial],
            |row| row.get(0),
        )?)
    }

    /// Notifies the other nodes of a shared database, with the commit.
    fn tell_lines(&self) -> Result<(), OperationError> {
        if !matches!(self.database(), Database::Sqlite(_)) {
            self.run_later("SELECT pg_notify(?1, '')", [CERTIFICATES])?;
        }
        Ok(())
    }
}

/// The number of the newest line, whichever authority's it is.
pub(crate) fn last(database: Database<'_>) -> DatabaseResult<Option<i64>> {
    Ok(database.row("SELECT max(number) FROM certificate_line", (), None, |row| row.get::<Option<i64>>(0))?.flatten())
}

const KNOWN: &str = "SELECT number FROM certificate_line WHERE authority = ?1 AND serial = ?2 AND action = ?3";

const BRING: &str = "INSERT INTO certificate_line (number, authority, serial, action, name, not_after, node, line)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (authority, serial, action) DO NOTHING";
const BEHIND: &str = "SELECT number, node, serial, action = 'revoke', line FROM certificate_line WHERE authority = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
const COUNTS: &str = "SELECT number FROM certificate_line AS issued WHERE authority = ?1 AND name = ?2 AND not_after >= ?3 AND NOT EXISTS
    (SELECT 1 FROM certificate_line AS revoked WHERE revoked.authority = ?1 AND revoked.serial = issued.serial AND revoked.action = 'revoke') LIMIT 1";

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::utc::UtcTime;

    use super::*;
    use crate::{
        Store,
        following::Report,
        replication::{Committed, Group},
    };
    use bodkin_broker::wire::Position;
    use std::sync::mpsc;

    fn line(serial: &str, name: Option<&str>) -> LedgerLine {
        let not_after = UtcTime::from_unix_seconds(4_000_000_000);
        let kind = name.map_or(LineKind::Revocation, |name| LineKind::Issue { name: name.to_owned(), not_after });
        LedgerLine { serial: serial.to_owned(), kind, text: format!("{serial} {}", name.unwrap_or("revoked")) }
    }

    fn texts(store: &Store) -> Vec<String> {
        store.read_now(|draft| draft.lines_behind("a", 0)).unwrap().into_iter().map(|line| line.text).collect()
    }

    #[tokio::test]
    async fn standby_repeats_new_lines_once_and_reports_them() {
        let (leader_place, standby_place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (sender, groups) = mpsc::channel();
        let outlet = Box::new(move |committed| {
            if let Committed::Group(group) = committed {
                let group: Group = group;
                sender.send(group.operations.clone()).unwrap();
                group.release();
            }
        });
        let leader = Store::open_replicated(leader_place.path(), outlet).unwrap();
        let (reporter, reports) = mpsc::channel();
        let (standby, mut following) = Store::follow(standby_place.path(), Box::new(move |report| reporter.send(report).unwrap())).unwrap();
        following.resume(1, Position(0));
        assert!(matches!(reports.recv().unwrap(), Report::Copied { .. }));
        let bring = |lines: Vec<LedgerLine>| leader.store.write(move |draft| draft.bring_lines("a", "one", &lines), |_, taken| taken);
        for (lines, expected) in [
            (vec![line("01", Some("sensor")), line("02", Some("pump"))], Some(true)),
            (vec![line("01", None)], Some(true)),
            // The leader brings all its lines again whenever it begins to lead.
            (vec![line("01", Some("sensor")), line("01", None)], None),
        ] {
            assert_eq!(bring(lines).await.unwrap(), Vec::<String>::new());
            let operations = groups.recv().unwrap();
            assert_eq!(!operations.is_empty(), expected.is_some(), "lines that are there are not sent");
            for operation in operations {
                following.operation(Position(1), None, operation).unwrap();
                let Report::Repeated { has_lines, .. } = reports.recv().unwrap() else { panic!("it is repeated") };
                assert_eq!(Some(has_lines), expected);
            }
        }
        let expected = ["01 sensor", "02 pump", "01 revoked"];
        let known = vec![line("01", None), line("02", None)];
        assert_eq!(standby.store.read_now(|draft| draft.missing_lines("a", known)).unwrap(), [line("02", None)]);
        assert_eq!(texts(&leader.store), expected);
        assert_eq!(texts(&standby.store), expected);
        drop(following);
    }

    #[tokio::test]
    async fn taken_serial_and_name_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let opened = Store::open(place.path()).unwrap();
        let issue = |line: LedgerLine| opened.store.write(move |draft| draft.bring_issue("a", "one", &line, true), |_, brought| brought);
        assert_eq!(issue(line("01", Some("sensor"))).await.unwrap(), Ok(()));
        assert_eq!(issue(line("02", Some("sensor"))).await.unwrap(), Err(NotBrought::NameTaken));
        assert_eq!(issue(line("01", Some("pump"))).await.unwrap(), Err(NotBrought::SerialTaken));
    }
}
