//! Event-processing graphs that were deployed while the cloud ran.

use crate::{
    database::params,
    draft::{Draft, OperationError},
};

/// The table: a graph's file is kept as it came, and read anew at each start.
pub(crate) const MIGRATION: &str = "
CREATE TABLE graph (
    name TEXT PRIMARY KEY,
    file TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What has gone with an operator to another host and is not known to be there yet, and what has come with one and is not at work yet (`broker::graph::handover`).
pub(crate) const MOVES_MIGRATION: &str = "
ALTER TABLE graph ADD COLUMN given TEXT;
ALTER TABLE graph ADD COLUMN taken TEXT;
";

/// The version in front of the present one, as long as the other node of a pair may have a checkpoint of that one only.
pub(crate) const PREVIOUS_MIGRATION: &str = "
ALTER TABLE graph ADD COLUMN previous TEXT;
";

/// What is on its way of a graph: operators that are between two hosts, and the version that the other node of a pair may know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphMoves {
    /// What has gone to another host.
    pub given: Option<String>,
    /// What has come from another one.
    pub taken: Option<String>,
    /// The file whose checkpoint the other node may have, if that is not the present one.
    pub previous: Option<String>,
}

impl GraphMoves {
    /// Whether nothing is kept for another node of a pair that may not know the present version.
    pub fn is_settled(&self) -> bool {
        self.taken.is_none() && self.previous.is_none()
    }
}

impl Draft<'_> {
    /// The files of all graphs, by name.
    pub fn deployed_graphs(&mut self) -> Result<Vec<String>, OperationError> {
        self.rows("SELECT file FROM graph ORDER BY name", (), |row| row.get(0))
    }

    /// Keeps a graph, in the place of one of its name.
    pub fn deploy_graph(&mut self, name: &str, file: &str) -> Result<(), OperationError> {
        let put = "INSERT INTO graph (name, file) VALUES (?1, ?2) \
            ON CONFLICT (name) DO UPDATE SET previous = CASE WHEN file = excluded.file THEN previous ELSE COALESCE(previous, file) END, \
            file = excluded.file, given = NULL, taken = NULL";
        self.run(put, params![name, file])?;
        Ok(())
    }

    /// Keeps a graph's new version, in which an operator is on another host, with what goes there.
    pub fn give_operator(&mut self, name: &str, file: &str, given: &str) -> Result<(), OperationError> {
        self.run(
            "UPDATE graph SET previous = COALESCE(previous, file), file = ?2, given = ?3, taken = NULL WHERE name = ?1",
            params![name, file, given],
        )?;
        Ok(())
    }

    /// What was given to another host is there.
    pub fn was_taken(&mut self, name: &str) -> Result<(), OperationError> {
        self.run("UPDATE graph SET given = NULL WHERE name = ?1", [name])?;
        Ok(())
    }

    /// Keeps a graph's new version, in which an operator of another host is here, with what has come from there.
    pub fn take_operator(&mut self, name: &str, file: &str, taken: &str) -> Result<(), OperationError> {
        let put = "INSERT INTO graph (name, file, taken) VALUES (?1, ?2, ?3) \
            ON CONFLICT (name) DO UPDATE SET previous = COALESCE(previous, file), file = excluded.file, taken = excluded.taken, given = NULL";
        self.run(put, params![name, file, taken])?;
        Ok(())
    }

    /// A version is at work, with what was taken from another host: it needs nothing of what was before any more. Of a version that is not the present one nothing changes.
    pub fn is_at_work(&mut self, name: &str, file: &str) -> Result<(), OperationError> {
        self.run("UPDATE graph SET taken = NULL, previous = NULL WHERE name = ?1 AND file = ?2", [name, file])?;
        Ok(())
    }

    /// What is on its way of a graph; nothing of one that is not kept.
    pub fn graph_moves(&mut self, name: &str) -> Result<GraphMoves, OperationError> {
        let rows = self.rows("SELECT given, taken, previous FROM graph WHERE name = ?1", [name], |row| {
            Ok(GraphMoves { given: row.get(0)?, taken: row.get(1)?, previous: row.get(2)? })
        })?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Forgets a graph; false if none was kept.
    pub fn forget_graph(&mut self, name: &str) -> Result<bool, OperationError> {
        Ok(self.run("DELETE FROM graph WHERE name = ?1", [name])? > 0)
    }
}
