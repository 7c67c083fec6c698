//! What an operation is for, takes and answers: a row of the tables the documents are made of.

use crate::request::Method;

/// Who an operation is for, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Application systems.
    Client,
    /// Operators.
    Management,
    /// Other core systems.
    Private,
    /// Whoever watches or steers Bodkin itself.
    Bodkin,
}

impl Tag {
    /// The tag's name in the documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "Client",
            Self::Management => "Management",
            Self::Private => "Private",
            Self::Bodkin => "Bodkin",
        }
    }
}

/// What an operation answers when it does what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No body.
    Nothing,
    /// JSON of a type of the dictionary.
    Json(&'static str),
    /// Plain words.
    Text,
    /// A page (HTML).
    Page,
    /// A drawing (SVG).
    Drawing,
    /// Server-sent events, without end.
    Events,
}

/// What a caller has to show in secure mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing.
    None,
    /// The token of a sign-in link.
    Link,
    /// The secret or the certificate of a grant: a system that has no certificate of this cloud yet.
    Grant,
    /// The certificate of a system of this cloud; which ones it is for, its rules say.
    System,
    /// The operator's certificate.
    Operator,
}

/// A row: one operation.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Its method.
    pub method: Method,
    /// Its path, as in the table of routes: below the system's base path, or whole on Bodkin's own port.
    pub path: &'static str,
    /// Who it is for.
    pub tag: Tag,
    /// What it does, a sentence.
    pub summary: &'static str,
    /// Query parameters, as the dictionary writes members.
    pub parameters: &'static [&'static str],
    /// Type of the body it takes.
    pub body: Option<&'static str>,
    /// `Content-Type` of that body.
    pub media_type: &'static str,
    /// What a caller has to show. Of Bodkin's own port the path says it.
    pub credential: Credential,
    /// Status of its success.
    pub status: u16,
    /// Body of its success.
    pub content: Content,
    /// Whether it can only refuse in insecure mode: with 500 as upstream does, on Bodkin's own port with 409.
    pub needs_keys: bool,
    /// When there is no such thing, although the path names no row; empty: there always is.
    pub absent: &'static str,
    /// When it is at odds with what is there; empty: it never is, or the form of the request says so.
    pub conflict: &'static str,
}

/// A row that answers 200 with JSON.
const fn describe(tag: Tag, method: Method, path: &'static str, answer: &'static str, summary: &'static str) -> Description {
    Description {
        method,
        path,
        tag,
        summary,
        parameters: &[],
        body: None,
        media_type: "application/json",
        credential: Credential::System,
        status: 200,
        content: Content::Json(answer),
        needs_keys: false,
        absent: "",
        conflict: "",
    }
}

/// An operation that reads.
pub const fn get(tag: Tag, path: &'static str, answer: &'static str, summary: &'static str) -> Description {
    describe(tag, Method::Get, path, answer, summary)
}

/// An operation that takes a body by POST.
pub const fn post(tag: Tag, path: &'static str, body: &'static str, answer: &'static str, summary: &'static str) -> Description {
    describe(tag, Method::Post, path, answer, summary).taking(body)
}

/// An operation of Bodkin's own that does something by POST without a body.
pub const fn act(path: &'static str, answer: &'static str, summary: &'static str) -> Description {
    describe(Tag::Bodkin, Method::Post, path, answer, summary)
}

/// An operation that replaces.
pub const fn put(path: &'static str, body: &'static str, answer: &'static str, summary: &'static str) -> Description {
    describe(Tag::Management, Method::Put, path, answer, summary).taking(body)
}

/// An operation that changes.
pub const fn patch(path: &'static str, body: &'static str, answer: &'static str, summary: &'static str) -> Description {
    describe(Tag::Management, Method::Patch, path, answer, summary).taking(body)
}

/// An operation that removes, and answers nothing.
pub const fn delete(tag: Tag, path: &'static str, summary: &'static str) -> Description {
    describe(tag, Method::Delete, path, "", summary).saying(Content::Nothing)
}

impl Description {
    /// With a JSON body.
    pub const fn taking(self, body: &'static str) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Whose body is of this type.
    pub const fn of_type(self, media_type: &'static str) -> Self {
        Self { media_type, ..self }
    }

    /// For whom shows this.
    pub const fn shown(self, credential: Credential) -> Self {
        Self { credential, ..self }
    }

    /// With query parameters.
    pub const fn asking(self, parameters: &'static [&'static str]) -> Self {
        Self { parameters, ..self }
    }

    /// Answering 201.
    pub const fn created(self) -> Self {
        Self { status: 201, ..self }
    }

    /// Answering something other than JSON.
    pub const fn saying(self, content: Content) -> Self {
        Self { content, ..self }
    }

    /// Refused in insecure mode.
    pub const fn needing_keys(self) -> Self {
        Self { needs_keys: true, ..self }
    }

    /// Answers 404 in such a case.
    pub const fn absent(self, when: &'static str) -> Self {
        Self { absent: when, ..self }
    }

    /// Answers 409 in such a case.
    pub const fn at_odds(self, when: &'static str) -> Self {
        Self { conflict: when, ..self }
    }
}

/// Declares a list's query parameters: page, order, and the members it can be sorted by.
macro_rules! paging {
    ($fields:literal $($further:literal)*) => {
        &[
            $($further,)*
            "page? int32 - from 0; together with item_per_page",
            "item_per_page? int32 - below 1: all",
            "direction? ASC|DESC - the default is ASC",
            concat!("sort_field? ", $fields),
        ]
    };
}
pub(super) use paging;

/// On every core system.
pub const ON_EVERY_SYSTEM: &[Description] = &[
    get(Tag::Client, "echo", "", "Says that the system is there.").saying(Content::Text),
    get(Tag::Management, "mgmt/logs", "Page[LogEntry]", "What the system logged.").asking(paging!(
        "logId|entryDate|logger|system|logLevel - the default is logId"
        "level? TRACE|DEBUG|INFO|WARN|ERROR|FATAL|OFF - this level and more severe ones"
        "from? time - not earlier"
        "to? time - not later"
        "logger? text - a part of the logger's name"
    )),
];
