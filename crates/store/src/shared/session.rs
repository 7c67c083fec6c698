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
    AsyncMessage, Client, Config, Connection, NoTls, Row, Socket, Statement,
    tls::MakeTlsConnect,
    types::{FromSql, ToSql},
};

use super::place::DatabasePlace;
use crate::database::{DatabaseError, DatabaseResult, Parameters, Value};

/// How long a statement may take.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(15);
/// How long the reading of a whole table may take.
const TABLE_TIME_MAX: Duration = Duration::from_secs(300);
/// Connecting, behind the limit of each of its steps.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// What every connection begins with. A node that stands still inside a transaction, or is cut off, holds up the others' writes for no more than
/// `idle_in_transaction_session_timeout`. What is answered is on the server's disk, whatever its default is.
const SETTINGS: &str =
    "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '12s'; SET client_connection_check_interval = '1s';
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET client_min_messages = 'error';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

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
        let config = place.config(&format!("bodkin {node} {role}"));
        let (woken, has_certificates) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let told = (woken.clone(), has_certificates.clone());
        let client = match place.tls() {
            None => connected(&runtime, &config, NoTls, told)?,
            Some(tls) => {
                let connector = tls.connector().map_err(|fault| DatabaseError::Tls(fault.to_string()))?;
                connected(&runtime, &config, connector, told)?
            }
        };
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

    /// Runs statements without parameters, and gives the first column of the last row, which is a number.
    pub fn batch_number(&self, sql: &str) -> DatabaseResult<i64> {
        let messages = self.wait(STATEMENT_TIME_MAX, self.client.simple_query(sql))?;
        let texts = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let last = texts.last().ok_or(DatabaseError::NoRow)?;
        last.parse().map_err(|error| DatabaseError::column(0, error))
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
        if let Ok(answer) = self.runtime().block_on(async { timeout(time_max, answer).await }) {
            return Ok(answer?);
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

/// The schema that has what a node keeps for itself.
pub(crate) fn schema_of(node: &str) -> String {
    format!("bodkin_node_{node}")
}

fn lent<'v>(values: &'v [Value<'_>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Who is told of notifications: who sleeps, and whether it is about certificates.
type Told = (Arc<Notify>, Arc<AtomicBool>);

/// Connects, and has the connection carried.
fn connected<T>(runtime: &Runtime, config: &Config, tls: T, told: Told) -> DatabaseResult<Client>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let connected = runtime.block_on(async { timeout(CONNECT_TIME_MAX, config.connect(tls)).await });
    let (client, connection) = connected.map_err(|_| DatabaseError::Slow(CONNECT_TIME_MAX))??;
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
