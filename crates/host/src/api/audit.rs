//! `GET /api/v1/audit`: what the audit log says.

use std::sync::Arc;

use bodkin_arrowhead::{
    audit::{AuditQuery, Entry, Kind},
    utc::UtcTime,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::Api;
use crate::{answer::Answer, request::Request};

/// Entries of one answer at the most.
const ENTRIES_MAX: usize = 1000;
/// Entries of an answer where nothing else is asked.
const ENTRIES_DEFAULT: usize = 100;
/// Answers that are read from the disk at the same time; further ones wait.
const READERS_MAX: usize = 2;

/// Places for those who read from the disk.
#[derive(Clone, Debug)]
pub struct AuditReaders(Arc<Semaphore>);

impl Default for AuditReaders {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READERS_MAX)))
    }
}

/// What is asked.
struct Asked {
    query: AuditQuery,
    /// Whether the first entries are wanted, and not the last.
    is_from: bool,
    count: usize,
}

impl Api {
    /// The newest entries, or those from a number on, in the order of their numbers.
    pub(super) async fn show_audit_log(&self, request: &Request) -> Answer {
        let Asked { query, is_from, count } = match Asked::parse(request) {
            Ok(asked) => asked,
            Err(told) => return Answer::problem(400, &told),
        };
        let _place = self.audit_readers.0.acquire().await.expect("the semaphore is never closed");
        let (reader, head) = (self.audit.log().reader(), self.audit.log().head());
        let read = tokio::task::spawn_blocking(move || if is_from { reader.first(&query, count) } else { reader.last(&query, count) });
        let read = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return Answer::problem(503, &format!("The audit log cannot be read: {error}.")),
            Err(_) => return Answer::problem(503, "The local cloud is shutting down."),
        };
        let data: Vec<Entry> = read.into_iter().map(|read| read.entry).collect();
        Answer::json(200, &json!({"data": data, "head": {"number": head.number, "hash": head.hash}}))
    }
}

impl Asked {
    fn parse(request: &Request) -> Result<Self, String> {
        let number = |name: &str| match request.parameter(name) {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| format!("{name} is a whole number, and '{text}' is none.")),
        };
        let time = |name: &str| match request.parameter(name) {
            None => Ok(None),
            Some(text) => UtcTime::parse(text).map(Some).map_err(|error| format!("{name} {error}")),
        };
        let kind = match request.parameter("kind") {
            None => None,
            Some(name) => Some(
                Kind::parse(name)
                    .ok_or_else(|| format!("'{name}' is no kind of entry. There are {}.", Kind::ALL.map(Kind::as_str).join(", ")))?,
            ),
        };
        let from = number("from")?;
        let count = number("count")?.map_or(ENTRIES_DEFAULT, |count| usize::try_from(count).unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX));
        let caller = request.parameter("caller").map(str::to_owned);
        let query = AuditQuery { from: from.unwrap_or_default(), since: time("since")?, until: time("until")?, kind, caller };
        Ok(Self { query, is_from: from.is_some(), count })
    }
}
