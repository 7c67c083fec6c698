//! `GET /api/v1/live`: what a dashboard would ask again and again, as one event stream of what has changed.
//!
//! Each part is the answer to a `GET` of its path by the same caller, with the same rights. It is sent at the begin, and again when it has become another.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use crate::{
    answer::{self, Answer},
    request::{Method, Request},
};

/// Streams at the same time: half of the connections that the port has in insecure mode, so that whoever watches otherwise gets through.
pub const STREAMS_MAX: usize = 32;
/// Longest body of a part; a longer one is told as too long, and is to be asked for by itself.
pub const PART_BYTES_MAX: usize = 8 << 20;
/// Seconds after which something is said although nothing has changed: who hears nothing for longer knows that the connection is dead.
pub const SILENCE_S_MAX: u64 = 5;

/// What may be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it is by itself.
    pub path: &'static str,
    /// Between two looks at it, in seconds.
    pub period_s: u64,
}

const fn part(path: &'static str, period_s: u64) -> Part {
    Part { path, period_s }
}

/// Every part: lists that pages show whole, and no others.
pub const PARTS: &[Part] = &[
    part("/api/v1/overview", 1),
    part("/api/v1/topics", 2),
    part("/api/v1/graphs", 2),
    part("/api/v1/event-types", 2),
    part("/api/v1/subscriptions", 2),
    part("/api/v1/platform", 5),
    part("/api/v1/stages", 5),
    part("/api/v1/event-log", 5),
    part("/api/v1/services", 5),
    part("/api/v1/dead-letters", 5),
    part("/api/v1/onboarding/grants", 5),
    part("/api/v1/certificates", 10),
    part("/api/v1/clouds", 5),
    part("/api/v1/relays", 5),
    part("/api/v1/gateway-sessions", 2),
    part("/serviceregistry/mgmt", 5),
    part("/serviceregistry/mgmt/systems", 5),
    part("/authorization/mgmt/intracloud", 5),
    part("/orchestrator/mgmt/store", 5),
    part("/orchestrator/mgmt/store/flexible", 5),
];

/// Some of [`PARTS`], a bit each; an answer has room for them where it would have none for a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u32);

const _: () = assert!(PARTS.len() <= u32::BITS as usize, "there is a bit for each part");

impl Parts {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In the order of [`PARTS`].
    pub fn iter(self) -> impl Iterator<Item = &'static Part> {
        PARTS.iter().enumerate().filter(move |(at, _)| self.0 & (1 << at) != 0).map(|(_, part)| part)
    }
}

/// The answer to a request for a stream: its parts, or what is wrong.
pub fn answer(request: &Request) -> Answer {
    let asked = request.parameter("of").unwrap_or_default();
    let mut parts = Parts::default();
    for path in asked.split(',').map(str::trim).filter(|path| !path.is_empty()) {
        let Some(at) = PARTS.iter().position(|part| part.path == path) else {
            let known: Vec<&str> = PARTS.iter().map(|part| part.path).collect();
            return Answer::problem(400, "No such part", &format!("of names paths of {}, and not '{path}'.", known.join(", ")));
        };
        parts.0 |= 1 << at;
    }
    if parts.is_empty() {
        return Answer::problem(400, "No parts", "of is empty: name what is to be heard, such as of=/api/v1/overview,/api/v1/topics.");
    }
    let live = if request.method == Method::Head { Parts::default() } else { parts };
    Answer { content_type: Some(answer::EVENT_STREAM), live, ..Answer::empty(200) }
}

/// The answer to one stream too many.
pub fn too_many() -> Answer {
    Answer::problem(503, "Too many streams", &format!("{STREAMS_MAX} live streams are open. Ask for each path by itself, or close one."))
}

/// What one listener has been told.
pub struct Live {
    parts: Vec<(Part, Option<u64>)>,
    /// Seconds since the begin.
    second: u64,
    spoke_at: u64,
}

impl Live {
    /// Nothing yet.
    pub fn new<'p>(parts: impl IntoIterator<Item = &'p Part>) -> Self {
        Self { parts: parts.into_iter().map(|part| (*part, None)).collect(), second: 0, spoke_at: 0 }
    }

    /// The parts to look at in this second, by their places.
    pub fn due(&self) -> Vec<usize> {
        (0..self.parts.len()).filter(|at| self.second.is_multiple_of(self.parts[*at].0.period_s)).collect()
    }

    /// The request that a part is the answer to.
    pub fn question(&self, at: usize, asked: &Request) -> Request {
        let path = self.parts[at].0.path;
        let url = asked.url.split_once("://").and_then(|(scheme, rest)| Some(format!("{scheme}://{}{path}", rest.split('/').next()?)));
        Request {
            method: Method::Get,
            path: path.to_owned(),
            query: Vec::new(),
            url: url.unwrap_or_else(|| path.to_owned()),
            if_none_match: None,
            trace: None,
            bearer: None,
            ..asked.clone()
        }
    }

    /// Appends a part's answer, if it is another than the last one.
    pub fn tell(&mut self, at: usize, answer: &Answer, out: &mut Vec<u8>) {
        let (part, told) = &mut self.parts[at];
        let mut hasher = DefaultHasher::new();
        (answer.status, &answer.body).hash(&mut hasher);
        if told.replace(hasher.finish()) == Some(hasher.finish()) {
            return;
        }
        self.spoke_at = self.second;
        out.extend_from_slice(format!("event: part\ndata: {{\"path\":\"{}\",", part.path).as_bytes());
        push_state(out, answer);
        out.extend_from_slice(b"}\n\n");
    }

    /// Ends a second; appends a sign of life where nothing was said for long.
    pub fn end_second(&mut self, out: &mut Vec<u8>) {
        if self.second - self.spoke_at >= SILENCE_S_MAX {
            self.spoke_at = self.second;
            out.extend_from_slice(b"event: silence\ndata: {}\n\n");
        }
        self.second += 1;
    }
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
    use bodkin_arrowhead::caller::Caller;

    use super::*;
    use crate::document;

    fn request(of: &str) -> Request {
        Request {
            caller: Caller::Anonymous,
            sender: None,
            method: Method::Get,
            path: "/api/v1/live".into(),
            query: vec![("of".into(), of.into())],
            url: "http://h:8440/api/v1/live".into(),
            content_type: String::new(),
            bearer: None,
            if_none_match: None,
            trace: None,
            says_empty: false,
            body: Vec::new(),
        }
    }

    #[test]
    fn a_stream_has_the_parts_that_are_named_once_each() {
        let answer_to = |of: &str| answer(&request(of));
        let parts = answer_to("/api/v1/topics, /api/v1/overview,/api/v1/topics").live;
        assert_eq!(parts.iter().map(|part| part.path).collect::<Vec<_>>(), ["/api/v1/overview", "/api/v1/topics"]);
        for (of, told) in [("", "is empty"), (" , ", "is empty"), ("/metrics", "not '/metrics'"), ("/api/v1/live", "not '/api/v1/live'")] {
            let refused = answer_to(of);
            assert_eq!((refused.status, refused.live.is_empty()), (400, true), "{of}");
            assert!(String::from_utf8(refused.body).unwrap().contains(told), "{of}");
        }
    }

    #[test]
    fn every_part_can_be_asked_for_by_itself() {
        for part in PARTS.iter().filter(|part| part.path.starts_with("/api/v1/")) {
            assert!(document::methods_at(part.path).contains(&Method::Get), "{}", part.path);
        }
        assert!(PARTS.iter().all(|part| part.period_s > 0));
    }

    #[test]
    fn only_what_has_changed_is_told_and_silence_does_not_last() {
        let mut live = Live::new(&[part("/api/v1/overview", 1), part("/api/v1/topics", 2)]);
        let mut second = |body: &str| {
            let mut out = Vec::new();
            for at in live.due() {
                live.tell(at, &Answer::json(200, &json!({ "now": body })), &mut out);
            }
            live.end_second(&mut out);
            String::from_utf8(out).unwrap()
        };
        let told = |path: &str, body: &str| {
            format!("event: part\ndata: {{\"path\":\"{path}\",\"status\":200,\"body\":{{\"now\":\"{body}\"}}}}\n\n")
        };
        assert_eq!(second("a"), told("/api/v1/overview", "a") + &told("/api/v1/topics", "a"));
        assert_eq!(second("b"), told("/api/v1/overview", "b"), "the other is not due");
        assert_eq!(second("b"), told("/api/v1/topics", "b"), "the first has not changed");
        let silent: Vec<String> = (0..SILENCE_S_MAX).map(|_| second("b")).collect();
        assert_eq!(silent.concat(), "event: silence\ndata: {}\n\n");
    }

    #[test]
    fn a_part_is_one_line_whatever_it_is() {
        let line = |answer: &Answer| {
            let (mut live, mut out) = (Live::new(&PARTS[..1]), Vec::new());
            live.tell(0, answer, &mut out);
            let text = String::from_utf8(out).unwrap();
            let data = text.strip_prefix("event: part\ndata: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap().to_owned();
            assert!(!data.contains('\n'), "{data}");
            serde_json::from_str::<Value>(&data).unwrap()
        };
        let pretty = Answer { body: b"{\n\"a\": 1}".to_vec(), ..Answer::json(200, &json!({})) };
        assert_eq!(line(&pretty)["body"], json!({"a": 1}));
        assert_eq!(line(&Answer::text(503, "not\nready")), json!({"path": PARTS[0].path, "status": 503, "body": "not\nready"}));
        assert_eq!(line(&Answer::problem(403, "No", "Not for you."))["body"]["detail"], "Not for you.");
        let long = Answer { body: vec![b'1'; PART_BYTES_MAX + 1], ..Answer::json(200, &json!({})) };
        assert_eq!(line(&long)["status"], 413);
    }

    #[test]
    fn a_part_is_asked_for_as_the_stream_was() {
        let live = Live::new(&[part("/api/v1/topics", 1)]);
        let question = live.question(0, &request("/api/v1/topics"));
        assert_eq!((question.path.as_str(), question.url.as_str()), ("/api/v1/topics", "http://h:8440/api/v1/topics"));
        assert!(question.query.is_empty());
    }
}
