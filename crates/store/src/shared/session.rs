//! A connection to PostgreSQL for a thread that waits: statements with a limit of their time, and a wake-up when another node has changed something.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::AcqRel},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::{Builder, Runtime},
    sync::{Notify, watch},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, NoTls, Row, SimpleQueryMessage, SimpleQueryRow, Socket, Statement,
    tls::MakeTlsConnect,
    types::{FromSql, ToSql},
};

use super::{place::DatabasePlace, tls::DatabaseTls};
use crate::database::{DatabaseError, DatabaseResult, Parameters, Value};

/// How long a statement may take.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(15);
/// How long the reading of a whole table may take.
const TABLE_TIME_MAX: Duration = Duration::from_secs(300);
/// Connecting, to all hosts that there are.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// What every connection begins with. A node that stands still inside a transaction, or is cut off, holds up the others' writes for no more than
/// `idle_in_transaction_session_timeout`. What is answered is on the server's disk and, where it has a synchronous standby, on that one's, whatever its default is.
const SETTINGS: &str =
    "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '12s'; SET client_connection_check_interval = '1s';
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET client_min_messages = 'error';
    SET standard_conforming_strings = on; SET bytea_output = 'hex';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// The channel on which nodes tell each other of their commits.
pub(crate) const CHANNEL: &str = "bodkin";
/// The channel on which they tell each other of new lines in the account of certificates.
pub(crate) const CERTIFICATES: &str = "bodkin_certificates";

/// The connection.
pub(crate) struct Session {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
    client: Client,
    /// Prepared statements by their text; there are as many as the code has.
    statements: RefCell<HashMap<Box<str>, Statement>>,
    /// Told when a notification comes, and when the connection ends.
    woken: Arc<Notify>,
    /// Whether a notification of [`CERTIFICATES`] has come.
    has_certificates: Arc<AtomicBool>,
    /// Whether a statement has not been answered in time: what comes next may be anything.
    is_stuck: Cell<bool>,
}

impl Session {
    /// Connects; `node` is who this node is, and `role` what the connection is for.
    pub fn connect(place: &DatabasePlace, node: &str, role: &str) -> DatabaseResult<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| DatabaseError::column(0, error))?;
        let name = format!("bodkin {node} {role}");
        let (woken, has_certificates) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let told = (woken.clone(), has_certificates.clone());
        let connector = place.tls().map(DatabaseTls::connector).transpose().map_err(|fault| DatabaseError::Tls(fault.to_string()))?;
        // One that does not answer leaves the others time.
        let time_max = CONNECT_TIME_MAX / u32::try_from(place.hosts()).unwrap_or(u32::MAX);
        let client = at_one_of(place.configs(&name), |config| match &connector {
            None => connected(&runtime, config, NoTls, told.clone(), time_max),
            Some(connector) => connected(&runtime, config, connector.clone(), told.clone(), time_max),
        })?;
        let (statements, is_stuck) = (RefCell::default(), Cell::new(false));
        let session = Self { runtime: Some(runtime), client, statements, woken, has_certificates, is_stuck };
        session.batch(SETTINGS)?;
        session.batch(&format!("SET search_path = {}, bodkin", schema_of(node)))?;
        Ok(session)
    }

    /// Whether statements may still be answered.
    pub fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.is_stuck.get()
    }

    /// Runs statements without parameters.
    pub fn batch(&self, sql: &str) -> DatabaseResult<()> {
        self.wait(STATEMENT_TIME_MAX, self.client.batch_execute(sql))
    }

    /// Runs statements without parameters, and gives the columns of the last row, which are numbers.
    pub fn batch_numbers<const COLUMNS: usize>(&self, sql: &str) -> DatabaseResult<[i64; COLUMNS]> {
        let messages = self.wait(STATEMENT_TIME_MAX, self.client.simple_query(sql))?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let last = rows.last().ok_or(DatabaseError::NoRow)?;
        let mut numbers = [0; COLUMNS];
        for (column, number) in numbers.iter_mut().enumerate() {
            let text = last.get(column).ok_or(DatabaseError::NoRow)?;
            *number = text.parse().map_err(|error| DatabaseError::column(column, error))?;
        }
        Ok(numbers)
    }

    /// Runs statements without parameters; gives the rows of each as texts.
    pub fn texts(&self, sql: &str) -> DatabaseResult<Vec<Vec<SimpleQueryRow>>> {
        self.texts_within(STATEMENT_TIME_MAX, sql)
    }

    /// As [`Self::texts`], where they read whole tables.
    pub fn tables(&self, sql: &str) -> DatabaseResult<Vec<Vec<SimpleQueryRow>>> {
        self.texts_within(TABLE_TIME_MAX, sql)
    }

    fn texts_within(&self, time_max: Duration, sql: &str) -> DatabaseResult<Vec<Vec<SimpleQueryRow>>> {
        let (mut all, mut rows) = (Vec::new(), Vec::new());
        for message in self.wait(time_max, self.client.simple_query(sql))? {
            match message {
                SimpleQueryMessage::Row(row) => rows.push(row),
                SimpleQueryMessage::CommandComplete(_) => all.push(std::mem::take(&mut rows)),
                _ => {}
            }
        }
        Ok(all)
    }

    /// Runs statements without parameters and one with them, which is sent without waiting for the others' answer; gives its rows and how many it has changed.
    pub fn answer_behind(&self, before: &str, sql: &str, values: &[Value<'_>]) -> DatabaseResult<(Vec<Row>, usize)> {
        let before = if self.statements.borrow().contains_key(sql) {
            before
        } else {
            // A transaction that has failed takes nothing before it is put back.
            self.batch(before).map_err(|error| if error.state().is_some() { DatabaseError::Diverged(error.to_string()) } else { error })?;
            ""
        };
        let statement = self.statement(sql)?;
        let has_rows = !statement.columns().is_empty();
        let lent = lent(values);
        let answer = async {
            let statements = async { self.client.batch_execute(before).await.map_err(Failed::Before) };
            let last = async {
                let answer = if has_rows {
                    self.client.query(&statement, &lent).await.map(|rows| (rows, 0))
                } else {
                    self.client.execute(&statement, &lent).await.map(|count| (Vec::new(), usize::try_from(count).unwrap_or(usize::MAX)))
                };
                answer.map_err(Failed::Last)
            };
            // Both are sent when they are polled first, in this order.
            let (before, last) = tokio::join!(statements, last);
            before.and(last)
        };
        match self.answered(STATEMENT_TIME_MAX, answer)? {
            Ok(answer) => Ok(answer),
            // What was decided before is not this operation's fault.
            Err(Failed::Before(error)) if error.as_db_error().is_some() => {
                Err(DatabaseError::Diverged(DatabaseError::from(error).to_string()))
            }
            Err(Failed::Before(error) | Failed::Last(error)) => Err(error.into()),
        }
    }

    /// Runs a statement; gives the number of changed rows.
    pub fn run<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<usize> {
        let statement = self.statement(sql)?;
        let values: Vec<Value<'p>> = parameters.values().into_iter().collect();
        let rows = self.wait(STATEMENT_TIME_MAX, self.client.execute(&statement, &lent(&values)))?;
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// Runs a statement; gives its rows.
    pub fn rows<'p>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<Vec<Row>> {
        let statement = self.statement(sql)?;
        let values: Vec<Value<'p>> = parameters.values().into_iter().collect();
        self.wait(STATEMENT_TIME_MAX, self.client.query(&statement, &lent(&values)))
    }

    /// Runs a query that is asked once; gives its rows.
    pub fn rows_once(&self, sql: &str) -> DatabaseResult<Vec<Row>> {
        self.wait(TABLE_TIME_MAX, self.client.query(sql, &[]))
    }

    /// The first column of the first row; `None` where there is no row.
    pub fn one<'p, T: for<'r> FromSql<'r>>(&self, sql: &str, parameters: impl Parameters<'p>) -> DatabaseResult<Option<T>> {
        Ok(self.rows(sql, parameters)?.first().map(|row| row.try_get(0)).transpose()?)
    }

    /// Waits for a notification or the connection's end, no longer than `time_max`; gives false if `stop` has come.
    pub fn sleep(&self, time_max: Duration, stop: &mut watch::Receiver<()>) -> bool {
        let woken = self.woken.notified();
        self.runtime().block_on(async {
            tokio::select! {
                _ = stop.changed() => false,
                _ = timeout(time_max, woken) => true,
            }
        })
    }

    /// Whether the account of certificates has new lines since this was asked last.
    pub fn take_certificates(&self) -> bool {
        self.has_certificates.swap(false, AcqRel)
    }

    fn statement(&self, sql: &str) -> DatabaseResult<Statement> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(STATEMENT_TIME_MAX, self.client.prepare(&in_dialect(sql)))?;
        self.statements.borrow_mut().insert(sql.into(), statement.clone());
        Ok(statement)
    }

    fn wait<T>(&self, time_max: Duration, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> DatabaseResult<T> {
        Ok(self.answered(time_max, answer)??)
    }

    fn answered<T>(&self, time_max: Duration, answer: impl Future<Output = T>) -> DatabaseResult<T> {
        if let Ok(answer) = self.runtime().block_on(async { timeout(time_max, answer).await }) {
            return Ok(answer);
        }
        self.is_stuck.set(true);
        Err(DatabaseError::Slow(time_max))
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("a session has its runtime until it is dropped")
    }
}

impl Drop for Session {
    /// Waits for nothing: it may be dropped where that must not be.
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Which of several statements has failed.
enum Failed {
    Before(tokio_postgres::Error),
    Last(tokio_postgres::Error),
}

/// The schema that has what a node keeps for itself.
pub(crate) fn schema_of(node: &str) -> String {
    format!("bodkin_node_{node}")
}

fn lent<'v>(values: &'v [Value<'_>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Who is told of notifications: who sleeps, and whether it is about certificates.
type Told = (Arc<Notify>, Arc<AtomicBool>);

/// Connects to the first host that is the database; gives why none is.
fn at_one_of<'h, T>(
    configs: impl Iterator<Item = (&'h str, Config)>,
    mut connect: impl FnMut(&Config) -> DatabaseResult<T>,
) -> DatabaseResult<T> {
    let mut failures = Vec::new();
    for (host, config) in configs {
        match connect(&config) {
            Ok(connected) => return Ok(connected),
            Err(error) => failures.push((host, error)),
        }
    }
    if failures.len() > 1 {
        let told = failures.iter().map(|(host, error)| format!("{host}: {error}")).collect::<Vec<_>>();
        return Err(DatabaseError::NoHost(told.join("; ")));
    }
    Err(failures.pop().map_or(DatabaseError::Lost, |(_, error)| error))
}

/// Connects within a time, and has the connection carried.
fn connected<T>(runtime: &Runtime, config: &Config, tls: T, told: Told, time_max: Duration) -> DatabaseResult<Client>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let connected = runtime.block_on(async { timeout(time_max, config.connect(tls)).await });
    let (client, connection) = connected.map_err(|_| DatabaseError::Slow(time_max))??;
    runtime.spawn(carry(connection, told));
    Ok(client)
}

/// Reads what the server sends, until the connection ends.
async fn carry<S: AsyncRead + AsyncWrite + Unpin>(connection: Connection<Socket, S>, (woken, has_certificates): Told) {
    let mut connection = pin!(connection);
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(news) = message {
            has_certificates.fetch_or(news.channel() == CERTIFICATES, AcqRel);
            woken.notify_one();
        }
    }
    woken.notify_one();
}

/// A statement with its parameters as PostgreSQL writes them: `$1` for `?1`. Ours have no question mark in a text.
fn in_dialect(sql: &str) -> String {
    sql.replace('?', "$")
}
