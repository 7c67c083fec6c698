//! What goes to the audit log: decided here and nowhere else, from an operation's route and its outcome.
//!
//! Every operation of the core systems and of Bodkin's own port is carried out inside [`Audit::carry_out`]. A change by
//! management is answered with success when its entry is on disk, and not begun while entries cannot be written; everything else waits for
//! nothing but a place in the log's queue. What the route does not tell, the operation puts into [`Answer::account`].

mod act;
mod certificates;
pub mod copies;
mod repeats;

use std::{
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bodkin_arrowhead::audit::{self, Event, Kind};
use bodkin_store::{
    Store, StoreError,
    audit::{AuditLimits, AuditLog, AuditThread, Head, NotWritten},
};
use serde::Deserialize;

pub use self::act::{Act, is_denial};
use self::{
    act::is_success,
    repeats::{Heard, Repeats},
};
use crate::{
    answer::Answer,
    control::now,
    request::{Method, Request},
    seldom::Seldom,
};

/// What is kept where nothing else is configured: two years, and a gibibyte (some three million entries).
pub const AUDIT_LIMITS: AuditLimits = AuditLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(2 * 365 * 86_400) };

/// How often the last entry is noted in the database.
const CHECKPOINT_PERIOD: Duration = Duration::from_secs(10);
/// Denials of different things to callers that are known, which are counted at the same time; further ones are told each.
const KNOWN_MAX: usize = 256;
/// The same to those who are nobody; further ones are told as one.
const STRANGERS_MAX: usize = 64;
/// Between two looks for counted denials that are to be told.
const REPEATS_PERIOD: Duration = Duration::from_secs(5);
/// Ids of rows that a change has made, in one entry.
const MADE_MAX: usize = 100;

/// Why the audit log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Its files cannot be read or made.
    #[error("cannot use the audit log {directory}: {error}. Repair it, or move it away to begin a new one.")]
    Files {
        /// Its directory.
        directory: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The database does not tell where it ended.
    #[error("cannot tell where the audit log ended: {0}")]
    Checkpoint(#[from] StoreError),
}

/// The way into the log.
#[derive(Clone, Debug)]
pub struct Audit {
    log: AuditLog,
    denials: Arc<Denials>,
}

/// What is denied again and again, to those who are known and to those who are not: nobody takes the places of somebody.
#[derive(Debug)]
struct Denials {
    known: Mutex<Repeats>,
    strangers: Mutex<Repeats>,
    /// Strangers' beyond those that are told apart.
    others: Seldom,
}

impl Audit {
    /// Everything goes to this log.
    pub fn new(log: AuditLog) -> Self {
        let [known, strangers] = [KNOWN_MAX, STRANGERS_MAX].map(|repeats_max| Mutex::new(Repeats::new(repeats_max)));
        Self { log, denials: Arc::new(Denials { known, strangers, others: Seldom::default() }) }
    }

    /// Opens the log of a data directory, which tells of the start, and of what is missing of what the database knows.
    pub async fn open(data: &Path, limits: AuditLimits, store: &Store, mode: &str) -> Result<(Self, AuditThread), AuditError> {
        let directory = data.join("audit");
        let checkpoint = store.read(|draft| draft.audit_checkpoint()).await?;
        let (at, start) = (directory.clone(), start_event(mode));
        let opened = tokio::task::spawn_blocking(move || AuditLog::open(&at, limits, checkpoint, now(), start)).await;
        let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (log, thread) = opened.map_err(|error| AuditError::Files { directory, error })?;
        Ok((Self::new(log), thread))
    }

    /// The log.
    pub fn log(&self) -> &AuditLog {
        &self.log
    }

    /// Carries an operation out, and has what became of it in the log's queue (an awaited one's success: on disk) before it is
    /// answered. `unavailable` makes the answer that says that the log cannot be written.
    pub async fn carry_out(
        &self,
        act: Act,
        request: &Request,
        unavailable: impl Fn(String) -> Answer,
        operation: impl Future<Output = Answer>,
    ) -> Answer {
        if act.is_awaited()
            && let Err(why) = self.log.check()
        {
            return unavailable(format!("Nothing was changed, for {why}. Make room on the disk, then try again."));
        }
        let mut answer = operation.await;
        let Some(kind) = act.kind(answer.status) else { return answer };
        let event = event(kind, act, request, &mut answer);
        if kind == Kind::Denial {
            self.note_denial(act, event).await;
            return answer;
        }
        if !act.is_awaited() || !is_success(answer.status) {
            self.log.note(now(), event).await;
            return answer;
        }
        match self.log.record(now(), event).await {
            Ok(()) => answer,
            Err(why) => unavailable(late(&why)),
        }
    }

    /// Tells of a request that was denied before it came to an operation; gives the answer back.
    pub async fn denied(&self, request: &Request, mut answer: Answer) -> Answer {
        let event = event(Kind::Denial, Act::Other, request, &mut answer);
        self.note_denial(Act::Other, event).await;
        answer
    }

    /// The same denial again is counted, and told by [`Self::tell_repeats`]. Where there are too many different ones to count, callers that are known are told of each time, those
    /// who are nobody, and could fill the log, as one. Wrong secrets are limited already.
    async fn note_denial(&self, act: Act, event: Event) {
        let is_limited = act == Act::Certificate && event.status != Some(429);
        if is_limited {
            return self.log.note(now(), event).await;
        }
        let (at, is_stranger) = (now(), event.caller == audit::ANONYMOUS);
        let repeats = if is_stranger { &self.denials.strangers } else { &self.denials.known };
        let heard = lock(repeats).hear(&event, Instant::now(), at);
        match heard {
            Heard::Counted => {}
            Heard::NoRoom if is_stranger => {
                if let Some(times) = self.denials.others.due() {
                    self.log.note(at, event.with("times", times)).await;
                }
            }
            Heard::First | Heard::NoRoom => self.log.note(at, event).await,
        }
    }

    /// Tells every so often how many denials were the same, until the task is aborted.
    pub async fn tell_repeats(self) {
        loop {
            tokio::time::sleep(REPEATS_PERIOD).await;
            self.tell(|repeats| repeats.due(Instant::now())).await;
        }
    }

    /// Tells of all of them that were not told yet, at a stop.
    pub async fn tell_rest(&self) {
        self.tell(Repeats::rest).await;
    }

    async fn tell(&self, which: impl Fn(&mut Repeats) -> Vec<Event>) {
        for repeats in [&self.denials.known, &self.denials.strangers] {
            let events = which(&mut lock(repeats));
            for event in events {
                self.log.note(now(), event).await;
            }
        }
    }

    /// Tells of a connection that was refused, the last of so many: `name` is that of the certificate it has shown, if it has. Whoever it
    /// is, it has not shown to be that: names in certificates that are refused are anybody's to choose.
    pub async fn refused_connection(&self, from: IpAddr, name: Option<&str>, port: &str, why: &str, times: u64) {
        let event = Event::new(Kind::Denial, audit::ANONYMOUS, Some(from), &format!("connect to {port}")).with("why", audit::cut(why));
        let event = name.into_iter().fold(event, |event, name| event.with("shown", audit::cut(name)));
        self.log.note(now(), event.with("times", times)).await;
    }

    /// Notes the log's last entry in the database every so often, until the task is aborted.
    pub async fn keep_checkpoint(self, store: Store) {
        let mut noted = Head::default();
        loop {
            tokio::time::sleep(CHECKPOINT_PERIOD).await;
            let head = self.log.head();
            if head != noted && note_checkpoint(&store, head).await {
                noted = head;
            }
        }
    }
}

/// Notes the log's last entry in the database; gives whether the database took it.
pub async fn note_checkpoint(store: &Store, head: Head) -> bool {
    match store.write(move |draft| draft.note_audit_checkpoint(head), |_, ()| ()).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "the audit log's last entry could not be noted in the database");
            false
        }
    }
}

/// Every change leaves it whole wherever it is interrupted.
fn lock(repeats: &Mutex<Repeats>) -> MutexGuard<'_, Repeats> {
    repeats.lock().unwrap_or_else(PoisonError::into_inner)
}

fn late(why: &NotWritten) -> String {
    format!("It was done, but {why}. The entry is written when that is over; until then nothing else is changed.")
}

fn event(kind: Kind, act: Act, request: &Request, answer: &mut Answer) -> Event {
    let what = audit::what_was_asked(request.method.word(), &request.path, &request.query);
    let from = request.sender.as_ref().map(|sender| sender.peer);
    let mut event = Event::new(kind, &audit::name_of(&request.caller), from, &what).answered(answer.status);
    if let Some(account) = answer.account.take() {
        event.detail = *account;
    }
    if act == Act::Change {
        if let Some(body) = audit::body(&request.body) {
            event = event.with("body", body);
        }
        let made = if request.method == Method::Post { made(answer) } else { Vec::new() };
        if !made.is_empty() {
            event = event.with("made", made);
        }
    }
    event
}

/// The ids in an answer: its own, or those of its rows.
fn made(answer: &Answer) -> Vec<i64> {
    #[derive(Deserialize)]
    struct Row {
        id: i64,
    }
    #[derive(Deserialize)]
    struct Made {
        id: Option<i64>,
        data: Option<Vec<Row>>,
    }
    if !is_success(answer.status) {
        return Vec::new();
    }
    let Ok(made) = serde_json::from_slice::<Made>(&answer.body) else { return Vec::new() };
    made.id.into_iter().chain(made.data.into_iter().flatten().map(|row| row.id)).take(MADE_MAX).collect()
}

/// Tells of the start.
pub fn start_event(mode: &str) -> Event {
    Event::own(Kind::Start, "start").with("mode", mode).with("version", env!("CARGO_PKG_VERSION")).with("pid", std::process::id())
}

/// Tells of an orderly end.
pub fn stop_event() -> Event {
    Event::own(Kind::Stop, "stop").with("pid", std::process::id())
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::{caller::Caller, service_registry::Sender};
    use bodkin_store::audit::{AuditReader, ReadLine};
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    struct Bench {
        place: TempDir,
        audit: Audit,
        thread: AuditThread,
    }

    impl Bench {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let (log, thread) = AuditLog::open(place.path(), AUDIT_LIMITS, None, now(), start_event("test")).unwrap();
            Self { place, audit: Audit::new(log), thread }
        }

        fn carry_out(&self, act: Act, request: &Request, answer: Answer) -> Answer {
            let unavailable = |why: String| Answer::text(503, why);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(self.audit.carry_out(act, request, unavailable, async { answer }))
        }

        /// What was written between start and stop.
        fn entries(self) -> Vec<ReadLine> {
            self.thread.close(now(), stop_event());
            let read = AuditReader::new(self.place.path()).first(&Default::default(), usize::MAX).unwrap();
            read[1..read.len() - 1].to_vec()
        }
    }

    fn request(method: Method, path: &str, body: &str) -> Request {
        let peer = "10.1.2.3".parse().unwrap();
        Request {
            caller: Caller::Anonymous,
            sender: Some(Sender { peer, local: peer, forwarded: Vec::new(), forwarded_for: Vec::new() }),
            method,
            path: path.into(),
            query: vec![("token".into(), "abc".into())],
            url: String::new(),
            content_type: String::new(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: body.into(),
        }
    }

    #[test]
    fn a_change_is_told_with_what_was_asked_and_made_and_without_secrets() {
        let bench = Bench::new();
        let asked = request(Method::Post, "/authorization/mgmt/intracloud", r#"{"consumerId":7,"password":"x"}"#);
        let answer = Answer::json(201, &json!({"count": 2, "data": [{"id": 3}, {"id": 4}]}));
        assert_eq!(bench.carry_out(Act::Change, &asked, answer.clone()), answer);
        let entries = bench.entries();
        let event = &entries[0].entry.event;
        assert_eq!((event.kind, event.caller.as_str(), event.status), (Kind::Change, "anonymous", Some(201)));
        assert_eq!(
            (event.from, event.what.as_str()),
            (Some("10.1.2.3".parse().unwrap()), "POST /authorization/mgmt/intracloud?token=(left out)")
        );
        assert_eq!(
            serde_json::to_value(&event.detail).unwrap(),
            json!({"body": {"consumerId": 7, "password": "(left out)"}, "made": [3, 4]})
        );
    }

    #[test]
    fn denials_of_everything_are_told_and_refusals_of_changes_only() {
        let bench = Bench::new();
        for (act, status) in
            [(Act::Other, 401), (Act::Orchestration, 403), (Act::Change, 400), (Act::Orchestration, 400), (Act::Other, 200)]
        {
            bench.carry_out(act, &request(Method::Get, "/x", ""), Answer::empty(status));
        }
        let told: Vec<_> = bench.entries().iter().map(|read| (read.entry.event.kind, read.entry.event.status)).collect();
        assert_eq!(told, [(Kind::Denial, Some(401)), (Kind::Denial, Some(403)), (Kind::Change, Some(400))]);
    }

    #[test]
    fn the_same_denial_is_told_at_once_and_its_repetitions_with_their_number() {
        let bench = Bench::new();
        let known = Request { caller: Caller::device("d"), ..request(Method::Get, "/x", "") };
        for (act, asked, status) in [
            (Act::Other, request(Method::Get, "/x", ""), 401),
            (Act::Other, known, 401),
            (Act::Certificate, request(Method::Post, "/y", ""), 401),
            (Act::Certificate, request(Method::Post, "/y", ""), 429),
        ] {
            (0..3).for_each(|_| drop(bench.carry_out(act, &asked, Answer::empty(status))));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(bench.audit.tell_rest());
        let told: Vec<_> = bench.entries().into_iter().map(|read| read.entry.event).collect();
        let lines = |caller: &str, what: &str, status: u16| -> Vec<u64> {
            let of = told.iter().filter(|event| event.caller == caller && event.what.contains(what) && event.status == Some(status));
            of.map(|event| event.detail.get("times").map_or(1, |times| times.as_u64().unwrap())).collect()
        };
        assert_eq!((lines("anonymous", "/x", 401), lines("device d", "/x", 401)), (vec![1, 2], vec![1, 2]), "{told:?}");
        assert_eq!((lines("anonymous", "/y", 401), lines("anonymous", "/y", 429)), (vec![1, 1, 1], vec![1, 2]), "{told:?}");
        assert!(told.last().is_some_and(|event| event.detail.contains_key("last")), "{told:?}");
    }

    #[test]
    fn beyond_what_is_counted_who_is_known_is_told_each_time_and_nobody_fills_the_log() {
        let bench = Bench::new();
        for caller in [Caller::device("d"), Caller::Anonymous] {
            for thing in 0..KNOWN_MAX + 10 {
                let asked = Request { caller: caller.clone(), ..request(Method::Get, &format!("/{thing}"), "") };
                bench.carry_out(Act::Other, &asked, Answer::empty(403));
            }
        }
        let told = bench.entries();
        let of = |caller: &str| told.iter().filter(|read| read.entry.event.caller == caller).count();
        assert_eq!((of("device d"), of("anonymous")), (KNOWN_MAX + 10, STRANGERS_MAX + 1));
    }

    #[test]
    fn what_an_operation_accounts_for_is_the_entry_s_detail_and_not_sent() {
        let bench = Bench::new();
        let account = json!({"given": []}).as_object().cloned().map(Box::new);
        let answer = bench.carry_out(
            Act::Orchestration,
            &request(Method::Post, "/orchestrator/orchestration", "{}"),
            Answer { account, ..Answer::json(200, &json!({"response": []})) },
        );
        assert_eq!(answer.account, None);
        let entries = bench.entries();
        assert_eq!(entries[0].entry.event.detail["given"], json!([]));
        assert!(!entries[0].entry.event.detail.contains_key("body"));
    }
}
