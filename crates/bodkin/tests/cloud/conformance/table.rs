//! One row of a conformance table, and the check of an answer against it.

use std::fmt::Write;

use serde_json::Value;

use super::shape::Shape;
use crate::support::cloud::{Cloud, system_of};
use crate::support::http::Answer;

/// On every answer.
const SECURITY_HEADERS: [(&str, &str); 6] = [
    ("X-Content-Type-Options", "nosniff"),
    ("X-XSS-Protection", "1; mode=block"),
    ("Cache-Control", "no-cache, no-store, max-age=0, must-revalidate"),
    ("Pragma", "no-cache"),
    ("Expires", "0"),
    ("X-Frame-Options", "DENY"),
];

/// `exceptionType` of a value that the request's shape refuses.
pub const BAD_PAYLOAD: &str = "BAD_PAYLOAD";
/// `exceptionType` of a value that refers to nothing or breaks a constraint.
pub const INVALID_PARAMETER: &str = "INVALID_PARAMETER";
/// `exceptionType` of a failure of the server.
pub const ARROWHEAD: &str = "ARROWHEAD";

enum Body {
    None,
    Typed { content_type: &'static str, bytes: Vec<u8> },
}

enum Expected {
    Json(u16),
    Text(&'static str),
    Void,
    Empty(u16),
    Error { status: u16, kind: Option<&'static str>, origin: Origin, message: Message },
}

enum Origin {
    Any,
    Absent,
    Is(String),
}

enum Message {
    Any,
    Is(String),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
}

enum Check {
    Is(String, Value),
    Missing(String),
    Present(String),
    Length(String, usize),
    Shaped(String, &'static Shape),
}

/// One request and the answer it must get.
pub struct Row {
    claim: String,
    method: &'static str,
    target: String,
    body: Body,
    expected: Expected,
    checks: Vec<Check>,
}

impl Row {
    /// A request without a body whose answer must be 200 JSON unless said otherwise.
    pub fn new(claim: impl Into<String>, method: &'static str, target: impl Into<String>) -> Self {
        let expected = Expected::Json(200);
        Self { claim: claim.into(), method, target: target.into(), body: Body::None, expected, checks: Vec::new() }
    }

    /// GET.
    pub fn get(claim: impl Into<String>, target: impl Into<String>) -> Self {
        Self::new(claim, "GET", target)
    }

    /// DELETE.
    pub fn delete(claim: impl Into<String>, target: impl Into<String>) -> Self {
        Self::new(claim, "DELETE", target)
    }

    /// POST of a JSON body.
    pub fn post(claim: impl Into<String>, target: impl Into<String>, body: &Value) -> Self {
        Self::new(claim, "POST", target).sending("application/json", body.to_string())
    }

    /// With this body as it is.
    pub fn sending(mut self, content_type: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Typed { content_type, bytes: bytes.into() };
        self
    }

    /// 201 and JSON.
    pub fn created(mut self) -> Self {
        self.expected = Expected::Json(201);
        self
    }

    /// 200 and this text.
    pub fn text(mut self, text: &'static str) -> Self {
        self.expected = Expected::Text(text);
        self
    }

    /// 200, no body, no content type.
    pub fn void(mut self) -> Self {
        self.expected = Expected::Void;
        self
    }

    /// This status and an empty body: the framework's own refusal.
    pub fn empty(mut self, status: u16) -> Self {
        self.expected = Expected::Empty(status);
        self
    }

    /// 400 BAD_PAYLOAD from a check of the controller at `origin`.
    pub fn bad_payload(self, origin: impl Into<String>) -> Self {
        self.error(400, Some(BAD_PAYLOAD), Origin::Is(origin.into()))
    }

    /// 400 INVALID_PARAMETER from the database layer, which names no origin.
    pub fn invalid_parameter(self) -> Self {
        self.error(400, Some(INVALID_PARAMETER), Origin::Absent)
    }

    /// An Arrowhead error of this type with or without an origin.
    pub fn refused(self, status: u16, kind: &'static str) -> Self {
        self.error(status, Some(kind), Origin::Any)
    }

    /// An Arrowhead error of any type with this status.
    pub fn refused_as_any(self, status: u16) -> Self {
        self.error(status, None, Origin::Any)
    }

    fn error(mut self, status: u16, kind: Option<&'static str>, origin: Origin) -> Self {
        self.expected = Expected::Error { status, kind, origin, message: Message::Any };
        self
    }

    /// With exactly this error message.
    pub fn saying(self, text: impl Into<String>) -> Self {
        self.message(Message::Is(text.into()))
    }

    /// With an error message that starts so.
    pub fn saying_first(self, text: impl Into<String>) -> Self {
        self.message(Message::StartsWith(text.into()))
    }

    /// With an error message that ends so.
    pub fn saying_last(self, text: impl Into<String>) -> Self {
        self.message(Message::EndsWith(text.into()))
    }

    /// With an error message that contains this.
    pub fn mentioning(self, text: impl Into<String>) -> Self {
        self.message(Message::Contains(text.into()))
    }

    fn message(mut self, expectation: Message) -> Self {
        let Expected::Error { message, .. } = &mut self.expected else { panic!("only an error has a message") };
        *message = expectation;
        self
    }

    /// With this value at the JSON pointer of the answer.
    pub fn is(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        self.checks.push(Check::Is(pointer.into(), value.into()));
        self
    }

    /// Without a member at the JSON pointer of the answer.
    pub fn lacks(mut self, pointer: &str) -> Self {
        self.checks.push(Check::Missing(pointer.into()));
        self
    }

    /// With a member at the JSON pointer of the answer, be it null.
    pub fn has(mut self, pointer: &str) -> Self {
        self.checks.push(Check::Present(pointer.into()));
        self
    }

    /// With a list of that length at the JSON pointer of the answer.
    pub fn has_length(mut self, pointer: &str, length: usize) -> Self {
        self.checks.push(Check::Length(pointer.into(), length));
        self
    }

    /// With a value of this shape at the JSON pointer of the answer.
    pub fn shaped(mut self, pointer: &str, shape: &'static Shape) -> Self {
        self.checks.push(Check::Shaped(pointer.into(), shape));
        self
    }

    /// The method, and the target that is asked for.
    pub fn request_line(&self) -> (&'static str, &str) {
        (self.method, &self.target)
    }

    fn send(&self, cloud: &Cloud) -> Answer {
        let (headers, bytes) = match &self.body {
            Body::None => (vec![], None),
            Body::Typed { content_type, bytes } => (vec![("Content-Type", *content_type)], Some(bytes.as_slice())),
        };
        cloud
            .connect(system_of(&self.target))
            .request(self.method, &self.target, &headers, bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", self.claim))
    }

    fn faults(&self, answer: &Answer) -> Vec<String> {
        let mut faults = header_faults(answer);
        match &self.expected {
            Expected::Json(status) => faults.extend(self.json_faults(answer, *status)),
            Expected::Text(text) => {
                faults.extend(differs("status", &answer.status, &200));
                faults.extend(differs("body", &answer.text().as_str(), text));
                let content_type = answer.header("content-type").unwrap_or_default();
                if !content_type.starts_with("text/plain") {
                    faults.push(format!("content type is {content_type:?}, not text/plain"));
                }
            }
            Expected::Void => faults.extend(emptiness_faults(answer, 200)),
            Expected::Empty(status) => faults.extend(emptiness_faults(answer, *status)),
            Expected::Error { status, kind, origin, message } => {
                faults.extend(error_faults(answer, *status, *kind, origin, message));
            }
        }
        faults
    }

    fn json_faults(&self, answer: &Answer, status: u16) -> Vec<String> {
        let mut faults: Vec<String> = differs("status", &answer.status, &status).into_iter().collect();
        let content_type = answer.header("content-type").unwrap_or_default();
        faults.extend(differs("content type", &content_type, &"application/json;charset=UTF-8"));
        let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
            faults.push("the body is not JSON".into());
            return faults;
        };
        faults.extend(self.checks.iter().flat_map(|check| check.faults(&body)));
        faults
    }
}

impl Check {
    fn faults(&self, body: &Value) -> Vec<String> {
        let fault = match self {
            Self::Is(pointer, value) => {
                (body.pointer(pointer) != Some(value)).then(|| format!("{pointer} is {:?}, not {value}", body.pointer(pointer)))
            }
            Self::Missing(pointer) => body.pointer(pointer).map(|found| format!("{pointer} is there: {found}")),
            Self::Present(pointer) => body.pointer(pointer).is_none().then(|| format!("{pointer} is not there")),
            Self::Length(pointer, length) => {
                let found = body.pointer(pointer).and_then(Value::as_array).map(Vec::len);
                (found != Some(*length)).then(|| format!("{pointer} has length {found:?}, not {length}"))
            }
            Self::Shaped(pointer, shape) => match body.pointer(pointer) {
                Some(value) => return shape.faults(pointer, value),
                None => Some(format!("{pointer} is not there")),
            },
        };
        fault.into_iter().collect()
    }
}

/// Sends every row in order and panics with all that came back wrong.
#[track_caller]
pub fn check(cloud: &Cloud, rows: &[Row]) {
    let mut report = String::new();
    let mut wrong = 0;
    for row in rows {
        let answer = row.send(cloud);
        let faults = row.faults(&answer);
        if faults.is_empty() {
            continue;
        }
        wrong += 1;
        writeln!(report, "\n- {} ({} {})", row.claim, row.method, row.target).expect("writing to a string");
        faults.iter().for_each(|fault| writeln!(report, "    {fault}").expect("writing to a string"));
        writeln!(report, "    got {} {}", answer.status, answer.text()).expect("writing to a string");
    }
    assert_eq!(wrong, 0, "{wrong} of {} rows are wrong:{report}", rows.len());
}

/// What is wrong with the headers that every answer carries.
pub fn header_faults(answer: &Answer) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, value) in SECURITY_HEADERS {
        if answer.header(name) != Some(value) {
            faults.push(format!("header {name} is {:?}, not {value:?}", answer.header(name)));
        }
    }
    if answer.header("transfer-encoding").is_some() {
        faults.push("the answer is chunked".into());
    }
    faults.extend(differs("Content-Length", &answer.header("content-length"), &Some(answer.body.len().to_string().as_str())));
    faults
}

fn emptiness_faults(answer: &Answer, status: u16) -> Vec<String> {
    let content_type = answer.header("content-type");
    [
        differs("status", &answer.status, &status),
        differs("body", &answer.text().as_str(), &""),
        differs("content type", &content_type, &None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn error_faults(answer: &Answer, status: u16, kind: Option<&str>, origin: &Origin, message: &Message) -> Vec<String> {
    let mut faults: Vec<String> = differs("status", &answer.status, &status).into_iter().collect();
    let content_type = answer.header("content-type").unwrap_or_default();
    faults.extend(differs("content type", &content_type, &"application/json"));
    let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&answer.body) else {
        faults.push("the body is not an error object".into());
        return faults;
    };
    faults.extend(differs("errorCode", &body.get("errorCode").and_then(Value::as_u64), &Some(status.into())));
    let found_kind = body.get("exceptionType").and_then(Value::as_str);
    match kind {
        Some(kind) => faults.extend(differs("exceptionType", &found_kind, &Some(kind))),
        None if found_kind.is_none() => faults.push("there is no exceptionType".into()),
        None => {}
    }
    let found_origin = body.get("origin").and_then(Value::as_str);
    match origin {
        Origin::Any => {}
        Origin::Absent => faults.extend(differs("origin", &body.get("origin"), &None)),
        Origin::Is(origin) => faults.extend(differs("origin", &found_origin, &Some(origin.as_str()))),
    }
    let text = body.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    let (fits, wanted) = match message {
        Message::Any => (!text.is_empty(), "something"),
        Message::Is(wanted) => (text == wanted, wanted.as_str()),
        Message::StartsWith(wanted) => (text.starts_with(wanted.as_str()), wanted.as_str()),
        Message::EndsWith(wanted) => (text.ends_with(wanted.as_str()), wanted.as_str()),
        Message::Contains(wanted) => (text.contains(wanted.as_str()), wanted.as_str()),
    };
    if !fits {
        faults.push(format!("errorMessage {text:?} does not say {wanted:?} as it should"));
    }
    let known = ["errorMessage", "errorCode", "exceptionType", "origin"];
    faults.extend(body.keys().filter(|key| !known.contains(&key.as_str())).map(|key| format!("unknown member {key}")));
    faults
}

fn differs<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Option<String> {
    (found != wanted).then(|| format!("{what} is {found:?}, not {wanted:?}"))
}
