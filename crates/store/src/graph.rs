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

impl Draft<'_> {
    /// The files of all graphs, by name.
    pub fn deployed_graphs(&mut self) -> Result<Vec<String>, OperationError> {
        self.rows("SELECT file FROM graph ORDER BY name", (), |row| row.get(0))
    }

    /// Keeps a graph, in the place of one of its name.
    pub fn deploy_graph(&mut self, name: &str, file: &str) -> Result<(), OperationError> {
        let put = "INSERT INTO graph (name, file) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET file = excluded.file";
        self.run(put, params![name, file])?;
        Ok(())
    }

    /// Forgets a graph; false if none was kept.
    pub fn forget_graph(&mut self, name: &str) -> Result<bool, OperationError> {
        Ok(self.run("DELETE FROM graph WHERE name = ?1", [name])? > 0)
    }
}
