//! The cloud's account of certificates as its nodes bring it to each other: a line is here before anybody has the certificate, so that whatever exists
//! is known to all, and can be revoked at any node.

use bodkin_arrowhead::utc::UtcTime;

use super::session::CERTIFICATES;
use crate::{
    database::params,
    draft::{Draft, OperationError, seconds},
};

/// Lines that the account may have. A node's own ledger is full with half of them.
const LINES_MAX: i64 = 500_000;
/// Lines that are read at a time.
const LINES_READ_MAX: i64 = 2_000;

/// A line that a node brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLine {
    /// Serial number in hexadecimal digits.
    pub serial: String,
    /// Of a certificate that was issued, common name and last second in which it counts; `None`: it was revoked.
    pub issued: Option<(String, UtcTime)>,
    /// The line as ledgers have it.
    pub text: String,
}

/// A line that a node has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateLine {
    /// Its place: each commit's are behind those of all before it.
    pub number: i64,
    /// Who has brought it.
    pub node: String,
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
    pub fn bring_lines(&mut self, authority: &str, node: &str, lines: &[NewLine]) -> Result<Vec<String>, OperationError> {
        let mut taken = Vec::new();
        for line in lines {
            if !self.bring(authority, node, line)?
                && line.issued.is_some()
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
        line: &NewLine,
        is_exclusive: bool,
    ) -> Result<Result<(), NotBrought>, OperationError> {
        if is_exclusive
            && let Some((name, _)) = &line.issued
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
            Ok(CertificateLine { number: row.get(0)?, node: row.get(1)?, is_revocation: row.get(2)?, text: row.get(3)? })
        })
    }

    /// Whether a node has brought anything.
    pub fn has_certificate_lines(&self) -> Result<bool, OperationError> {
        Ok(self.id("SELECT number FROM certificate_line LIMIT 1", ())?.is_some())
    }

    /// Whether it was not there.
    fn bring(&mut self, authority: &str, node: &str, line: &NewLine) -> Result<bool, OperationError> {
        let action = if line.issued.is_some() { "issue" } else { "revoke" };
        let (name, not_after) = line.issued.as_ref().map(|(name, not_after)| (name.as_str(), seconds(*not_after))).unzip();
        let number = self.id("SELECT max(number) FROM certificate_line HAVING count(*) > 0", ())?.unwrap_or_default() + 1;
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

    /// With the commit.
    fn tell_lines(&self) -> Result<(), OperationError> {
        self.run("SELECT pg_notify(?1, '')", [CERTIFICATES])?;
        Ok(())
    }
}

const BRING: &str = "INSERT INTO certificate_line (number, authority, serial, action, name, not_after, node, line)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (authority, serial, action) DO NOTHING";
const BEHIND: &str =
    "SELECT number, node, action = 'revoke', line FROM certificate_line WHERE authority = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
const COUNTS: &str = "SELECT number FROM certificate_line AS issued WHERE authority = ?1 AND name = ?2 AND not_after >= ?3 AND NOT EXISTS
    (SELECT 1 FROM certificate_line AS revoked WHERE revoked.authority = ?1 AND revoked.serial = issued.serial AND revoked.action = 'revoke') LIMIT 1";
