//! How far a database that repeats another node's has come: kept in it, in the same commits, so that a node that was away knows after a restart what it lacks.
//!
//! It is this node's own to say, and no part of the control state: its table is made where it is needed, and an older version that is given a copy with it
//! does not look at it.

use rusqlite::{Connection, OptionalExtension};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS followed (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    number INTEGER NOT NULL
) STRICT";

/// Of the leader in this epoch: its operations up to this number. No other node has led in the epoch, so the two name a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Which leader.
    pub epoch: u64,
    /// The last operation.
    pub number: u64,
}

/// Makes the table if it is not there.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLE)
}

/// What the database says.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<Followed>> {
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Followed { epoch: row.get::<_, i64>(0)?.cast_unsigned(), number: row.get::<_, i64>(1)?.cast_unsigned() })
    };
    connection.query_row("SELECT epoch, number FROM followed", [], row).optional()
}

/// Has it say nothing, if it says anything: then nothing is written.
pub(crate) fn forget(connection: &Connection) -> rusqlite::Result<()> {
    if connection.table_exists(None, "followed")? && read(connection)?.is_some() {
        write(connection, None)?;
    }
    Ok(())
}

/// Has it say this.
pub(crate) fn write(connection: &Connection, followed: Option<Followed>) -> rusqlite::Result<()> {
    match followed {
        Some(Followed { epoch, number }) => {
            let values = [epoch.cast_signed(), number.cast_signed()];
            connection.execute("INSERT OR REPLACE INTO followed VALUES (1, ?1, ?2)", values)?;
        }
        None => drop(connection.execute("DELETE FROM followed", [])?),
    }
    Ok(())
}
