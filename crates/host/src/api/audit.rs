//! `GET /api/v1/audit`: what the audit log says; of several nodes that share a database, what the logs of all say, and whether each is whole.

use std::sync::Arc;

use bodkin_arrowhead::{
    audit::{AuditQuery, Entry, Kind, LineHash},
    utc::UtcTime,
};
use bodkin_store::shared::{NodeChain, NodeEntries, NodeEntry};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Api, list};
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
    /// `all`, or one node's name; `None`: this node's own log, from its files.
    node: Option<String>,
    /// Whether the first entries are wanted, and not the last.
    is_from: bool,
    count: usize,
}

impl Api {
    /// The newest entries, or those from a number on, in the order of their numbers.
    pub(super) async fn show_audit_log(&self, request: &Request) -> Answer {
        let Asked { query, node, is_from, count } = match Asked::parse(request) {
            Ok(asked) => asked,
            Err(told) => return Answer::problem(400, &told),
        };
        if let Some(node) = node {
            return self.show_logs_of_nodes(node, query, count).await;
        }
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

impl Api {
    /// The newest entries of all nodes, or of one, in the order of their times.
    async fn show_logs_of_nodes(&self, node: String, query: AuditQuery, count: usize) -> Answer {
        if self.store.standing().is_none() {
            return Answer::problem(409, NOT_SHARED);
        }
        let _place = self.audit_readers.0.acquire().await.expect("the semaphore is never closed");
        let node = (node != ALL_NODES).then_some(node);
        let read = self.store.read(move |draft| draft.audit_of_nodes(node.as_deref(), &query, count)).await;
        let NodeEntries { entries, is_cut } = match read {
            Ok(read) => read,
            Err(error) => return Answer::problem(503, &error.to_string()),
        };
        let data: Vec<NodeEntryView> = entries.into_iter().map(|NodeEntry { node, entry, .. }| NodeEntryView { node, entry }).collect();
        let head = self.audit.log().head();
        Answer::json(200, &json!({"data": data, "head": {"number": head.number, "hash": head.hash}, "cut": is_cut}))
    }

    /// Whether the log of each node is whole, as far as the others have it.
    pub(super) async fn verify_logs_of_nodes(&self) -> Answer {
        if self.store.standing().is_none() {
            return Answer::problem(409, NOT_SHARED);
        }
        let _place = self.audit_readers.0.acquire().await.expect("the semaphore is never closed");
        match self.store.read(|draft| draft.audit_chains()).await {
            Ok(chains) => {
                let views: Vec<ChainView> = chains.into_iter().map(ChainView::new).collect();
                list(&views, views.len() as u64)
            }
            Err(error) => Answer::problem(503, &error.to_string()),
        }
    }
}

/// Says that the logs of all nodes are meant.
const ALL_NODES: &str = "all";
const NOT_SHARED: &str = "This node has a database of its own: there are no other nodes whose audit logs it could show.";

/// An entry with its node.
#[derive(Serialize)]
struct NodeEntryView {
    node: String,
    #[serde(flatten)]
    entry: Entry,
}

/// A node's log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChainView {
    node: String,
    whole: bool,
    first: u64,
    last: u64,
    hash: LineHash,
    last_at: UtcTime,
    entries: u64,
    skipped: u64,
    behind: u64,
    wrong: Option<String>,
}

impl ChainView {
    fn new(chain: NodeChain) -> Self {
        let behind = chain.behind();
        let NodeChain { node, first, head, last_at, entries, skipped, wrong, .. } = chain;
        let wrong = wrong.map(|(number, fault)| format!("entry {number}: {fault}"));
        Self { node, whole: wrong.is_none(), first, last: head.number, hash: head.hash, last_at, entries, skipped, behind, wrong }
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
        let node = request.parameter("node").map(str::to_owned).filter(|node| !node.is_empty());
        let from = number("from")?;
        if from.is_some() && node.is_some() {
            return Err("from is a number of this node's own log: each node's has its own.".to_owned());
        }
        let count = number("count")?.map_or(ENTRIES_DEFAULT, |count| usize::try_from(count).unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX));
        let caller = request.parameter("caller").map(str::to_owned);
        let query = AuditQuery { from: from.unwrap_or_default(), since: time("since")?, until: time("until")?, kind, caller };
        Ok(Self { query, node, is_from: from.is_some(), count })
    }
}
