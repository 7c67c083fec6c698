//! A node's turn, while operations are carried out: what is about the tables of the mirror is decided there, and its writes go to the server together, with the
//! commit or with the next statement that needs the server itself. Such a statement is about another table (the log, dead letters, grants, lines of
//! certificates), or has long texts, which the server may refuse; it is one round trip, with everything that is to be sent before it.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use super::{
    mirror::Mirror,
    script::{self, Script},
    session::Session,
};
use crate::database::{DatabaseError, DatabaseResult, Parameters, Row, Value};

/// Bytes of a statement's texts from which on the server decides whether it takes them: a row of an index has fewer than 2,704.
const LONG_TEXT_BYTES: usize = 2_500;

/// What operations of a turn are carried out on.
pub(crate) struct Turn<'t> {
    session: &'t Session,
    mirror: &'t Mirror,
    /// When the last message of the turn has to be sent.
    deadline: Instant,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    script: Script,
    /// Where the operation that is being carried out begins in the script.
    begin: usize,
    /// Whether the server has the operation's savepoint.
    is_sent: bool,
}

impl<'t> Turn<'t> {
    /// A turn that has begun, and whose last message is to be sent before `deadline`.
    pub(super) fn new(session: &'t Session, mirror: &'t Mirror, deadline: Instant) -> Self {
        Self { session, mirror, deadline, state: RefCell::default() }
    }

    /// The connection that holds the turn.
    pub fn session(&self) -> &'t Session {
        self.session
    }

    /// The time that is left. Gives an error when there is none.
    pub fn remaining(&self) -> DatabaseResult<Duration> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(DatabaseError::TurnOver) } else { Ok(remaining) }
    }

    /// What is to be sent before the commit.
    pub fn into_script(self) -> DatabaseResult<String> {
        let mut script = self.state.into_inner().script;
        if script.is_empty() {
            return Ok(String::new());
        }
        let counters = self.mirror.counters()?;
        let check = if counters.is_empty() { String::new() } else { script::counters_check(&counters) };
        Ok(script.take() + &check)
    }

    /// Runs a statement without rows; gives the number of changed rows.
    pub fn run<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<usize> {
        match sql {
            "SAVEPOINT operation" => self.begin(),
            "RELEASE operation" => self.release(),
            "ROLLBACK TO operation" => self.roll_back(),
            _ => return self.carry_out(sql, parameters, &mut |_| Ok(true)),
        }
        Ok(self.mirror.connection().prepare_cached(sql)?.execute([])?)
    }

    /// Runs a statement, and hands out its rows until `read` gives false; gives the number of rows that it has changed or returned.
    pub fn carry_out<'p>(
        &self,
        sql: &str,
        parameters: impl Parameters<'p>,
        read: &mut dyn FnMut(&Row<'_>) -> DatabaseResult<bool>,
    ) -> DatabaseResult<usize> {
        let values: Vec<Value<'p>> = parameters.values().into_iter().collect();
        if !self.mirror.knows(sql) {
            return self.ask(sql, &values, read);
        }
        let mut statement = self.mirror.connection().prepare_cached(sql)?;
        let is_readonly = statement.readonly();
        if !is_readonly && values.iter().any(Value::has_nul) {
            return Err(DatabaseError::Nul);
        }
        let is_long = !is_readonly && values.iter().map(text_bytes).sum::<usize>() > LONG_TEXT_BYTES;
        let rows_there = if is_long { Some(self.ask(sql, &values, &mut |_| Ok(true))?) } else { None };
        let bound = rusqlite::params_from_iter(&values);
        let rows =
            if statement.column_count() == 0 { statement.execute(bound)? } else { each(statement.query(bound)?, !is_readonly, read)? };
        match rows_there {
            Some(there) if there != rows => {
                return Err(DatabaseError::Diverged(format!("a statement changes {there} rows, and {rows} at the node")));
            }
            None if !is_readonly => self.state.borrow_mut().script.write(sql, &values, rows),
            _ => {}
        }
        Ok(rows)
    }

    /// Has the server run a statement later, of which only that it is carried out is needed.
    pub fn run_later<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<()> {
        if self.mirror.knows(sql) {
            return self.run(sql, parameters).map(drop);
        }
        let values: Vec<Value<'p>> = parameters.values().into_iter().collect();
        if values.iter().any(Value::has_nul) {
            return Err(DatabaseError::Nul);
        }
        self.state.borrow_mut().script.unchecked(sql, &values);
        Ok(())
    }

    /// Has the server run a statement, behind all that was decided before it.
    fn ask(&self, sql: &str, values: &[Value<'_>], read: &mut dyn FnMut(&Row<'_>) -> DatabaseResult<bool>) -> DatabaseResult<usize> {
        let limit = self.remaining()?.as_millis().max(1);
        let mut before = {
            let mut state = self.state.borrow_mut();
            let State { script, begin, is_sent } = &mut *state;
            if !*is_sent {
                script.plain_at(*begin, "SAVEPOINT operation");
            }
            (*begin, *is_sent) = (0, true);
            script.take()
        };
        before.push_str(&limit_text(limit));
        let (rows, changed) = self.session.answer_behind(&before, sql, values)?;
        for row in &rows {
            if !read(&Row::Postgres(row))? {
                break;
            }
        }
        Ok(changed.max(rows.len()))
    }

    fn begin(&self) {
        let mut state = self.state.borrow_mut();
        (state.begin, state.is_sent) = (state.script.len(), false);
    }

    fn release(&self) {
        let mut state = self.state.borrow_mut();
        if std::mem::take(&mut state.is_sent) {
            state.script.plain("RELEASE operation");
        }
    }

    /// Nothing of the operation counts; its savepoint stays until it is released.
    fn roll_back(&self) {
        let mut state = self.state.borrow_mut();
        let begin = state.begin;
        state.script.truncate(begin);
        if state.is_sent {
            state.script.plain("ROLLBACK TO operation");
        }
    }
}

/// Has the server end the transaction when no message comes, or a statement lasts, for so long.
pub(super) fn limit_text(ms: u128) -> String {
    format!("SET LOCAL idle_in_transaction_session_timeout = {ms}; SET LOCAL statement_timeout = {ms};\n")
}

/// Hands out rows until one is enough. `to_end`: counts the others too, which a statement that changes rows returns.
fn each(mut rows: rusqlite::Rows<'_>, to_end: bool, read: &mut dyn FnMut(&Row<'_>) -> DatabaseResult<bool>) -> DatabaseResult<usize> {
    let (mut count, mut goes_on) = (0, true);
    while goes_on || to_end {
        let Some(row) = rows.next()? else { break };
        count += 1;
        goes_on = goes_on && read(&Row::Sqlite(row))?;
    }
    Ok(count)
}

fn text_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len(),
        _ => 0,
    }
}
