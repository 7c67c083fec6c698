//! What live streams tell, made once for all that are told the same.
//!
//! A part is the answer to a `GET`, and depends on who asks and by which name of ours. Listeners who agree in both read from one sheet: whoever comes first in a period asks
//! and writes the answer down, the others wait for that and send the same bytes. So the control plane and the shard are asked as often for thirty listeners as for one.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bodkin_arrowhead::caller::Caller;
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as Turn, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{Look, PART_BYTES_MAX, PARTS, STREAMS_MAX};
use crate::{
    answer::Answer,
    request::{Method, Request},
};

/// What a listener is sent of a part.
#[derive(Clone, Debug)]
pub struct Line {
    /// The same as long as the answer is.
    pub mark: u64,
    /// The whole event of the stream, shared by all who are sent it.
    pub bytes: Arc<[u8]>,
}

/// Who listens just now, and what is told to them.
#[derive(Debug)]
pub struct Board {
    begun: Instant,
    places: Arc<Semaphore>,
    /// One for each who asks in another way; it goes with the last who reads it.
    sheets: Mutex<Vec<Weak<Sheet>>>,
    made: AtomicU64,
}

impl Default for Board {
    fn default() -> Self {
        Self { begun: Instant::now(), places: Arc::new(Semaphore::new(STREAMS_MAX)), sheets: Mutex::default(), made: AtomicU64::new(0) }
    }
}

impl Board {
    /// Lets one more listen. `None`: [`STREAMS_MAX`] do.
    pub fn enter(&self, asked: &Request) -> Option<Reader> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        let mut sheets = self.sheets.lock().unwrap_or_else(PoisonError::into_inner);
        sheets.retain(|sheet| sheet.strong_count() > 0);
        let origin = origin(asked);
        let same = |sheet: &Arc<Sheet>| sheet.caller == asked.caller && sheet.origin == origin;
        let sheet = sheets.iter().filter_map(Weak::upgrade).find(same).unwrap_or_else(|| {
            let sheet = Arc::new(Sheet {
                caller: asked.caller.clone(),
                origin: origin.to_owned(),
                parts: PARTS.iter().map(|_| Turn::default()).collect(),
            });
            sheets.push(Arc::downgrade(&sheet));
            sheet
        });
        Some(Reader { sheet, _place: place })
    }

    /// How many listen.
    pub fn listeners(&self) -> u64 {
        (STREAMS_MAX - self.places.available_permits()) as u64
    }

    /// How often parts were made since the start.
    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    /// The second that it is, counted from the start: all listeners look at the same times.
    pub fn second(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// When a second begins.
    pub fn begin_of(&self, second: u64) -> Instant {
        self.begun + Duration::from_secs(second)
    }

    /// A part as it was asked for then or later; `answer` is asked for where nobody has been told it since.
    pub async fn line(&self, reader: &Reader, look: Look, answer: impl Future<Output = Answer>) -> Line {
        let mut written = reader.sheet.parts[look.at].lock().await;
        if let Some(Written { second, line }) = &*written
            && *second >= look.since
        {
            return line.clone();
        }
        let answer = answer.await;
        self.made.fetch_add(1, Relaxed);
        let mark = mark(&answer);
        let line = match written.take() {
            Some(Written { line, .. }) if line.mark == mark => line,
            _ => Line { mark, bytes: event(PARTS[look.at].path, &answer).into() },
        };
        // The time in front of the answer: what has happened since may not be in it.
        *written = Some(Written { second: look.now, line: line.clone() });
        line
    }
}

/// One listener's place, and the sheet that it reads.
#[derive(Debug)]
pub struct Reader {
    sheet: Arc<Sheet>,
    _place: OwnedSemaphorePermit,
}

/// What those are told who ask alike.
#[derive(Debug)]
struct Sheet {
    caller: Caller,
    /// Scheme and name of ours that they call: refusals name the address.
    origin: String,
    /// In the order of [`PARTS`]. The turn is held while an answer is made.
    parts: Vec<Turn<Option<Written>>>,
}

#[derive(Debug)]
struct Written {
    /// In which it was asked for.
    second: u64,
    line: Line,
}

/// The request that a part is the answer to, by whom and as the stream was asked for.
pub fn question(at: usize, asked: &Request) -> Request {
    let path = PARTS[at].path;
    Request {
        method: Method::Get,
        path: path.to_owned(),
        query: Vec::new(),
        url: format!("{}{path}", origin(asked)),
        if_none_match: None,
        accepts_html: false,
        is_forged: false,
        trace: None,
        bearer: None,
        ..asked.clone()
    }
}

/// Scheme and name in the address that was asked; empty where it has none.
fn origin(asked: &Request) -> &str {
    let Some((scheme, rest)) = asked.url.split_once("://") else { return "" };
    let name = rest.find('/').unwrap_or(rest.len());
    &asked.url[..scheme.len() + "://".len() + name]
}

fn mark(answer: &Answer) -> u64 {
    let mut hasher = DefaultHasher::new();
    (answer.status, &answer.body).hash(&mut hasher);
    hasher.finish()
}

/// The event that tells a part's answer.
fn event(path: &str, answer: &Answer) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + answer.body.len().min(PART_BYTES_MAX));
    out.extend_from_slice(format!("event: part\ndata: {{\"path\":\"{path}\",").as_bytes());
    push_state(&mut out, answer);
    out.extend_from_slice(b"}\n\n");
    out
}

/// Members `status` and `body`; the latter on one line, whatever it is.
fn push_state(out: &mut Vec<u8>, answer: &Answer) {
    let is_json = answer.content_type.is_some_and(|content_type| content_type.contains("json"));
    let is_one_line = !answer.body.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    if answer.body.len() > PART_BYTES_MAX {
        let body = json!({"detail": format!("The answer is longer than {PART_BYTES_MAX} bytes. Ask for it by itself.")});
        out.extend_from_slice(format!("\"status\":413,\"body\":{body}").as_bytes());
    } else if is_json && is_one_line {
        out.extend_from_slice(format!("\"status\":{},\"body\":", answer.status).as_bytes());
        out.extend_from_slice(&answer.body);
    } else {
        let body = match serde_json::from_slice::<Value>(&answer.body) {
            Ok(body) if is_json => body,
            _ => Value::String(String::from_utf8_lossy(&answer.body).into_owned()),
        };
        out.extend_from_slice(format!("\"status\":{},\"body\":{body}", answer.status).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::common_name::CloudCommonName;
    use tokio::task::{JoinSet, yield_now};

    use super::*;
    use crate::live::tests::request;

    fn look(at: usize, now: u64) -> Look {
        Look { at, since: now, now }
    }

    fn text(line: &Line) -> &str {
        std::str::from_utf8(&line.bytes).unwrap()
    }

    #[tokio::test]
    async fn ten_listeners_have_a_part_made_once_a_period_and_are_sent_the_same_bytes() {
        let board = Arc::new(Board::default());
        for second in [0, 2, 4] {
            let mut told = JoinSet::new();
            for _ in 0..10 {
                let board = board.clone();
                told.spawn(async move {
                    let reader = board.enter(&request("/api/v1/topics")).unwrap();
                    // Everybody else comes to the part while it is made.
                    let answer = async {
                        for _ in 0..20 {
                            yield_now().await;
                        }
                        Answer::json(200, &json!({"second": second}))
                    };
                    (board.line(&reader, look(1, second), answer).await, reader)
                });
            }
            let told = told.join_all().await;
            assert_eq!(board.listeners(), 10);
            assert!(told.iter().all(|(line, _)| Arc::ptr_eq(&line.bytes, &told[0].0.bytes)), "the bytes are shared");
            assert_eq!(
                text(&told[0].0),
                format!("event: part\ndata: {{\"path\":\"{}\",\"status\":200,\"body\":{{\"second\":{second}}}}}\n\n", PARTS[1].path)
            );
            assert_eq!(board.made(), second / 2 + 1);
        }
    }

    #[tokio::test]
    async fn who_asks_otherwise_is_told_otherwise() {
        let board = Board::default();
        let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
        let operator = Request { caller: Caller::certified("sysop.cloud.operator.arrowhead.eu", &cloud), ..request("x") };
        let elsewhere = Request { url: "http://other:8440/api/v1/live".into(), ..request("x") };
        let mut readers = Vec::new();
        for (asked, body) in [(request("x"), "anybody"), (operator, "operator"), (elsewhere, "elsewhere")] {
            let reader = board.enter(&asked).unwrap();
            let line = board.line(&reader, look(0, 0), async { Answer::json(200, &body) }).await;
            assert!(text(&line).contains(body), "{}", text(&line));
            readers.push(reader);
        }
        assert_eq!(board.made(), 3);
        drop(readers);
        let reader = board.enter(&request("x")).unwrap();
        let line = board.line(&reader, look(0, 0), async { Answer::json(200, &"anew") }).await;
        assert!(text(&line).contains("anew"), "what nobody reads any more is kept for nobody");
    }

    #[tokio::test]
    async fn what_is_the_same_keeps_its_mark_and_bytes() {
        let board = Board::default();
        let reader = board.enter(&request("x")).unwrap();
        let mut lines = Vec::new();
        for (second, body) in [(0, "a"), (1, "a"), (2, "b")] {
            lines.push(board.line(&reader, look(0, second), async { Answer::json(200, &body) }).await);
        }
        assert!(lines[0].mark == lines[1].mark && Arc::ptr_eq(&lines[0].bytes, &lines[1].bytes));
        assert_ne!(lines[1].mark, lines[2].mark);
        assert_eq!(board.made(), 3);
    }

    /// The connection that asked may end amid the answer; the others must not wait for it, nor read a half.
    #[tokio::test]
    async fn an_answer_that_was_given_up_is_asked_for_by_the_next() {
        let board = Board::default();
        let (first, next) = (board.enter(&request("x")).unwrap(), board.enter(&request("x")).unwrap());
        let patience = Duration::from_millis(1);
        assert!(tokio::time::timeout(patience, board.line(&first, look(0, 0), std::future::pending())).await.is_err());
        let line = board.line(&next, look(0, 0), async { Answer::json(200, &"whole") }).await;
        assert!(text(&line).contains("whole"));
    }

    #[tokio::test]
    async fn listeners_are_bounded_and_leave_their_places() {
        let board = Board::default();
        let readers: Vec<Reader> = (0..STREAMS_MAX).map(|_| board.enter(&request("x")).unwrap()).collect();
        assert!(board.enter(&request("x")).is_none());
        assert_eq!(board.listeners(), STREAMS_MAX as u64);
        drop(readers);
        assert_eq!(board.listeners(), 0);
        assert!(board.enter(&request("x")).is_some());
    }

    #[test]
    fn a_part_is_one_line_whatever_it_is() {
        let line = |answer: &Answer| {
            let text = String::from_utf8(event(PARTS[0].path, answer)).unwrap();
            let data = text.strip_prefix("event: part\ndata: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap().to_owned();
            assert!(!data.contains('\n'), "{data}");
            serde_json::from_str::<Value>(&data).unwrap()
        };
        let pretty = Answer { body: b"{\n\"a\": 1}".to_vec(), ..Answer::json(200, &json!({})) };
        assert_eq!(line(&pretty)["body"], json!({"a": 1}));
        assert_eq!(line(&Answer::text(503, "not\nready")), json!({"path": PARTS[0].path, "status": 503, "body": "not\nready"}));
        assert_eq!(line(&Answer::problem(403, "Not for you."))["body"]["detail"], "Not for you.");
        let long = Answer { body: vec![b'1'; PART_BYTES_MAX + 1], ..Answer::json(200, &json!({})) };
        assert_eq!(line(&long)["status"], 413);
    }

    #[test]
    fn a_part_is_asked_for_as_the_stream_was() {
        let at = PARTS.iter().position(|part| part.path == "/api/v1/topics").unwrap();
        let question = question(at, &request("/api/v1/topics"));
        assert_eq!((question.path.as_str(), question.url.as_str()), ("/api/v1/topics", "http://h:8440/api/v1/topics"));
        assert!(question.query.is_empty());
        for (url, expected) in [("https://h", "https://h"), ("/api/v1/live", ""), ("http://h/x", "http://h")] {
            assert_eq!(origin(&Request { url: url.into(), ..request("x") }), expected);
        }
    }
}
