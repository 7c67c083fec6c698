//! The writer's copy of the shared tables, in memory: operations are decided on it while the node holds its turn, without a message to the server for each
//! statement. It has the tables that the snapshot shows, and what the node keeps for itself of its deliveries and its audit log. The other tables are not
//! there, and statements about them go to the server ([`super::turn`]).

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use rusqlite::{Connection, types::Value as Cell};
use tokio_postgres::SimpleQueryRow;

use crate::{
    database::{DatabaseError, DatabaseResult},
    schema,
    table::Kind,
};

/// Tables that belong to no kind of the snapshot's rows and are written by this node alone.
const OWN_TABLES: [&str; 4] = ["delivery", "delivery_present", "audit_checkpoint", "audited_ledger"];

/// The copy.
pub(super) struct Mirror {
    connection: Connection,
    /// Its tables, in no order.
    tables: Vec<Table>,
    /// Statements by their texts: whether they are about its tables alone.
    known: RefCell<HashMap<Box<str>, bool>>,
}

struct Table {
    name: &'static str,
    columns: Vec<String>,
    /// Which columns are integers, and which are bytes; the others are texts.
    types: Vec<ColumnType>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Integer,
    Text,
    Bytes,
}

/// Rows of one statement, as the server writes them.
pub(super) type TextRows = Vec<SimpleQueryRow>;

impl Mirror {
    /// Makes a copy without rows.
    pub fn new() -> DatabaseResult<Self> {
        let mut connection = Connection::open_in_memory()?;
        schema::prepare(&mut connection).map_err(|error| DatabaseError::column(0, error))?;
        let members = Kind::ALL.into_iter().filter_map(|kind| kind.table().members.as_ref().map(|members| members.table));
        let names: Vec<&'static str> = Kind::ALL.into_iter().map(|kind| kind.table().name).chain(members).chain(OWN_TABLES).collect();
        connection.execute_batch("PRAGMA foreign_keys = OFF")?;
        let all = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        for name in all {
            let emptied = if names.contains(&&*name) { "DELETE FROM" } else { "DROP TABLE" };
            connection.execute_batch(&format!("{emptied} {name}"))?;
        }
        connection.execute_batch("PRAGMA foreign_keys = ON")?;
        let tables = names.into_iter().map(|name| Table::of(&connection, name)).collect::<DatabaseResult<_>>()?;
        Ok(Self { connection, tables, known: RefCell::default() })
    }

    /// Where statements are run.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns whether a statement is about the tables of the copy alone.
    pub fn knows(&self, sql: &str) -> bool {
        if let Some(is_known) = self.known.borrow().get(sql) {
            return *is_known;
        }
        let is_known = self.connection.prepare_cached(sql).is_ok();
        self.known.borrow_mut().insert(sql.into(), is_known);
        is_known
    }

    /// The queries that read all rows, one for each table.
    pub fn read_all(&self) -> String {
        self.tables.iter().map(|table| format!("SELECT {} FROM {};\n", table.columns.join(", "), table.name)).collect()
    }

    /// Takes the rows of [`Self::read_all`] into an empty copy.
    pub fn fill(&self, rows: &[TextRows]) -> DatabaseResult<()> {
        self.connection.execute_batch("PRAGMA foreign_keys = OFF; BEGIN")?;
        for (table, rows) in self.tables.iter().zip(rows) {
            table.insert(&self.connection, rows)?;
        }
        self.connection.execute_batch("COMMIT; PRAGMA foreign_keys = ON")?;
        Ok(())
    }

    /// The queries that read the rows of these kinds, and what is joined to them. `ids` is what stands in `IN (...)` for a kind.
    pub fn read_some(&self, kinds: impl Iterator<Item = Kind>, ids: impl Fn(Kind) -> String) -> String {
        let mut text = String::new();
        for kind in kinds {
            let ids = ids(kind);
            for (table, id) in self.tables_of(kind) {
                text.push_str(&format!("SELECT {} FROM {} WHERE {id} IN ({ids});\n", table.columns.join(", "), table.name));
            }
        }
        text
    }

    /// Takes in which rows were touched, with the answers of [`Self::read_some`] about the same kinds in the same order.
    pub fn take_in(&self, touched: &BTreeMap<Kind, BTreeSet<i64>>, rows: &BTreeMap<Kind, Vec<TextRows>>) -> DatabaseResult<()> {
        let moved = self.deliveries(touched.get(&Kind::Subscription))?;
        // What is gone takes along what belongs to it, as at the server.
        self.connection.execute_batch("PRAGMA foreign_keys = ON; BEGIN")?;
        for (kind, ids) in touched {
            let there: BTreeSet<i64> = rows.get(kind).and_then(|rows| rows.first()).into_iter().flatten().filter_map(id_of).collect();
            self.delete(kind.table().name, "id", ids.difference(&there))?;
        }
        self.connection.execute_batch("COMMIT; PRAGMA foreign_keys = OFF; BEGIN")?;
        for (kind, ids) in touched {
            for (table, id) in self.tables_of(*kind) {
                self.delete(table.name, id, ids.iter())?;
            }
        }
        for kind in touched.keys() {
            for ((table, _), rows) in self.tables_of(*kind).zip(rows.get(kind).into_iter().flatten()) {
                table.insert(&self.connection, rows)?;
            }
        }
        for (subscription, values) in moved {
            let places = (1..=values.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
            let sql = format!(
                "INSERT OR IGNORE INTO delivery SELECT {places} WHERE EXISTS (SELECT 1 FROM subscription WHERE id = {subscription})"
            );
            self.connection.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values))?;
        }
        self.connection.execute_batch("COMMIT; PRAGMA foreign_keys = ON")?;
        Ok(())
    }

    /// Where deliveries to these subscriptions are: one whose system is gone goes with it here, though it may be another system's by then.
    fn deliveries(&self, subscriptions: Option<&BTreeSet<i64>>) -> DatabaseResult<Vec<(i64, Vec<Cell>)>> {
        let mut found = Vec::new();
        let mut read = self.connection.prepare_cached("SELECT * FROM delivery WHERE subscription_id = ?1")?;
        let columns = read.column_count();
        for id in subscriptions.into_iter().flatten() {
            let mut rows = read.query([id])?;
            while let Some(row) = rows.next()? {
                found.push((*id, (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?));
            }
        }
        Ok(found)
    }

    fn delete<'i>(&self, table: &str, column: &str, ids: impl Iterator<Item = &'i i64>) -> DatabaseResult<()> {
        let mut delete = self.connection.prepare_cached(&format!("DELETE FROM {table} WHERE {column} = ?1"))?;
        for id in ids {
            delete.execute([id])?;
        }
        Ok(())
    }

    /// Begins a group of operations, whose new rows have ids behind these.
    pub fn begin(&self, counters: &[(String, i64)]) -> DatabaseResult<()> {
        self.connection.execute_batch("BEGIN; DELETE FROM sqlite_sequence")?;
        let mut insert = self.connection.prepare_cached("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)")?;
        for (name, last) in counters {
            insert.execute((name, last))?;
        }
        Ok(())
    }

    /// Where the counters of ids of its own tables stand.
    pub fn counters(&self) -> DatabaseResult<Vec<(String, i64)>> {
        let mut read = self.connection.prepare_cached("SELECT name, seq FROM sqlite_sequence ORDER BY name")?;
        let all = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<Vec<(String, i64)>>>()?;
        Ok(all.into_iter().filter(|(name, _)| self.tables.iter().any(|table| table.name == name)).collect())
    }

    /// Ends the group.
    pub fn end(&self, is_committed: bool) -> DatabaseResult<()> {
        Ok(self.connection.execute_batch(if is_committed { "COMMIT" } else { "ROLLBACK" })?)
    }

    /// The tables that have a kind's rows, its own first, and the column that has the rows' id.
    fn tables_of(&self, kind: Kind) -> impl Iterator<Item = (&Table, &'static str)> {
        let named = |name: &str| self.tables.iter().find(|table| table.name == name).expect("the copy has a kind's tables");
        let members = kind.table().members.as_ref().map(|members| (named(members.table), members.row));
        std::iter::once((named(kind.table().name), "id")).chain(members)
    }
}

impl Table {
    fn of(connection: &Connection, name: &'static str) -> DatabaseResult<Self> {
        let mut columns = Vec::new();
        let mut types = Vec::new();
        let mut read = connection.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
        let mut rows = read.query([name])?;
        while let Some(row) = rows.next()? {
            columns.push(row.get(0)?);
            types.push(match row.get::<_, String>(1)?.as_str() {
                "INTEGER" => ColumnType::Integer,
                "BLOB" => ColumnType::Bytes,
                _ => ColumnType::Text,
            });
        }
        Ok(Self { name, columns, types })
    }

    fn insert(&self, connection: &Connection, rows: &[SimpleQueryRow]) -> DatabaseResult<()> {
        let places = (1..=self.columns.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({places})", self.name, self.columns.join(", "));
        let mut insert = connection.prepare_cached(&sql)?;
        for row in rows {
            let cells = self.types.iter().enumerate().map(|(column, kind)| cell(row.get(column), *kind, column));
            insert.execute(rusqlite::params_from_iter(cells.collect::<DatabaseResult<Vec<_>>>()?))?;
        }
        Ok(())
    }
}

fn id_of(row: &SimpleQueryRow) -> Option<i64> {
    row.get(0)?.parse().ok()
}

/// A value as the server writes it.
fn cell(text: Option<&str>, kind: ColumnType, column: usize) -> DatabaseResult<Cell> {
    let Some(text) = text else { return Ok(Cell::Null) };
    Ok(match kind {
        ColumnType::Text => Cell::Text(text.to_owned()),
        ColumnType::Integer => match text {
            "t" => Cell::Integer(1),
            "f" => Cell::Integer(0),
            number => Cell::Integer(number.parse().map_err(|error| DatabaseError::column(column, error))?),
        },
        ColumnType::Bytes => Cell::Blob(bytes(text).ok_or_else(|| DatabaseError::column(column, "bytes in another form"))?),
    })
}

/// Bytes in the server's form: `\x` and two digits for each.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x").filter(|digits| digits.len().is_multiple_of(2) && digits.is_ascii())?;
    (0..digits.len()).step_by(2).map(|place| u8::from_str_radix(&digits[place..place + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_knows_statements_about_its_own_tables() {
        let mirror = Mirror::new().unwrap();
        assert!(mirror.knows("SELECT id FROM system_ WHERE system_name = ?1"));
        assert!(mirror.knows("DELETE FROM delivery WHERE cursor IS NULL AND NOT paused"));
        for unknown in
            ["SELECT max(id) FROM logs", "SELECT pg_notify(?1, '')", "SELECT number FROM certificate_line", "SELECT id FROM dead_letter"]
        {
            assert!(!mirror.knows(unknown), "{unknown}");
        }
    }

    #[test]
    fn ids_continue_behind_those_of_the_server() {
        let mirror = Mirror::new().unwrap();
        mirror.begin(&[("event_type".to_owned(), 41), ("logs".to_owned(), 7)]).unwrap();
        let insert = "INSERT INTO event_type (event_type_name, created_at, updated_at) VALUES ('a', 0, 0) RETURNING id";
        assert_eq!(mirror.connection().query_row(insert, [], |row| row.get::<_, i64>(0)).unwrap(), 42);
        assert_eq!(mirror.counters().unwrap(), [("event_type".to_owned(), 42)]);
        mirror.end(false).unwrap();
        mirror.begin(&[("event_type".to_owned(), 41)]).unwrap();
        assert_eq!(mirror.connection().query_row(insert, [], |row| row.get::<_, i64>(0)).unwrap(), 42);
    }

    #[test]
    fn values_are_read_as_the_server_writes_them() {
        assert_eq!(cell(None, ColumnType::Text, 0).unwrap(), Cell::Null);
        assert_eq!(cell(Some("t"), ColumnType::Integer, 0).unwrap(), Cell::Integer(1));
        assert_eq!(cell(Some("-7"), ColumnType::Integer, 0).unwrap(), Cell::Integer(-7));
        assert_eq!(cell(Some("t"), ColumnType::Text, 0).unwrap(), Cell::Text("t".into()));
        assert_eq!(cell(Some("\\x00ff"), ColumnType::Bytes, 0).unwrap(), Cell::Blob(vec![0, 255]));
        assert!(cell(Some("00ff"), ColumnType::Bytes, 0).is_err() && cell(Some("x"), ColumnType::Integer, 0).is_err());
    }
}
