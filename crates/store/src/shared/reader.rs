//! The connection of those who read what the snapshot does not hold: one after the other, each in a transaction that sees one state and changes nothing.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::session::Session;
use crate::database::{DatabaseError, DatabaseResult};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The connection, and who has it.
#[derive(Default)]
pub(super) struct Reader(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    session: Option<Session>,
    /// When none could be had last, and why.
    refusal: Option<(Instant, String)>,
}

/// The connection of one who reads, until this is dropped.
pub(super) struct Reading<'r> {
    kept: MutexGuard<'r, Kept>,
    pub session: Session,
}

impl Reader {
    /// Waits for the connection, and begins a transaction. Whoever waits while another one does not get through does not try again: a database that says nothing lets each try last for seconds, and with
    /// everybody's one behind the other the last one would wait for minutes.
    pub fn begin(&self, connect: impl FnOnce() -> DatabaseResult<Session>) -> DatabaseResult<Reading<'_>> {
        let came = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, why)) = kept.refusal.as_ref().filter(|(at, _)| *at > came) {
            return Err(DatabaseError::NoHost(why.clone()));
        }
        // That the connection has ended since it was used last is found out by using it.
        let kept_session = kept.session.take().filter(|session| session.is_usable() && session.batch(BEGIN).is_ok());
        let session = kept_session.map_or_else(|| connect().and_then(|session| session.batch(BEGIN).map(|()| session)), Ok);
        kept.refusal = session.as_ref().err().map(|error| (Instant::now(), error.to_string()));
        Ok(Reading { session: session?, kept })
    }
}

impl Reading<'_> {
    /// Ends the transaction; the next one has the connection.
    pub fn end(mut self) -> DatabaseResult<()> {
        self.session.batch("ROLLBACK")?;
        self.kept.session = Some(self.session);
        Ok(())
    }
}
