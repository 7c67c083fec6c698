//! `bodkin audit ... --all-nodes`: the logs of all nodes that share a database, whether each of them runs or not.

use std::{collections::BTreeMap, time::Duration};

use anyhow::anyhow;
use bodkin_arrowhead::audit::AuditQuery;
use bodkin_store::shared::{DatabasePlace, NodeChain, NodeEntry, audit_at, audit_chains_at};
use bodkin_trust::tls::now;
use serde_json::{Value, json};

use super::tail::{Tailing, sentence};
use crate::{
    DONE, FAILED,
    cli::{printer::Printer, table::Table, write_out},
};

/// How often the database is asked for what has come.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// A node that was cut off brings entries that are older than others' by so much, and is heard.
const LATE_MAX: Duration = Duration::from_secs(600);
/// Entries of one look.
const ENTRIES_MAX: usize = 1_000;

/// Prints the newest entries in the order of their times; gives the exit code.
pub async fn tail(place: &DatabasePlace, options: Tailing, printer: Printer) -> anyhow::Result<u8> {
    let (count, follow) = (options.count, options.follow);
    let query = AuditQuery::from(options.wanted);
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    let newest = audit_at(place, None, &AuditQuery::default(), ENTRIES_MAX).map_err(|why| anyhow!("{place}: {why}"))?;
    newest.entries.iter().for_each(|read| note(&mut told, read));
    let found = audit_at(place, None, &query, count).map_err(|why| anyhow!("{place}: {why}"))?;
    found.entries.iter().try_for_each(|read| print(read, printer))?;
    if found.is_cut {
        eprintln!("bodkin: not all entries were looked at; ask for a shorter time with --since and --until");
    }
    if !follow {
        return Ok(DONE);
    }
    found.entries.iter().for_each(|read| note(&mut told, read));
    loop {
        tokio::time::sleep(LOOK_PERIOD).await;
        let since = Some(now().minus(LATE_MAX)).max(query.since);
        let come = audit_at(place, None, &AuditQuery { since, ..query.clone() }, ENTRIES_MAX).map_err(|why| anyhow!("{place}: {why}"))?;
        for read in &come.entries {
            if told.get(&read.node).is_none_or(|last| read.entry.number > *last) {
                print(read, printer)?;
                note(&mut told, read);
            }
        }
    }
}

/// Verifies every log and says what was found; gives the exit code.
pub fn verify(place: &DatabasePlace, printer: Printer) -> anyhow::Result<u8> {
    let chains = audit_chains_at(place).map_err(|why| anyhow!("{place}: {why}"))?;
    let mut table = Table::new(&["NODE", "WHOLE", "ENTRIES", "FROM", "TO", "SKIPPED", "BEHIND", "LAST AT"]);
    for chain in &chains {
        let whole = if chain.wrong.is_none() { "yes" } else { "no" };
        table.push([
            chain.node.clone(),
            whole.to_owned(),
            chain.entries.to_string(),
            chain.first.to_string(),
            chain.head.number.to_string(),
            chain.skipped.to_string(),
            chain.behind().to_string(),
            chain.last_at.whole_seconds().to_string(),
        ]);
    }
    let document = json!({"chains": chains.iter().map(told).collect::<Vec<Value>>()});
    printer.rows(&document, &table, "no node has copied its audit log into the database")?;
    let mut code = DONE;
    for chain in &chains {
        if let Some((number, fault)) = &chain.wrong {
            eprintln!("bodkin: the audit log of node {} is not as it was written. Entry {number}: {fault}", chain.node);
            code = FAILED;
        }
    }
    Ok(code)
}

fn told(chain: &NodeChain) -> Value {
    json!({
        "node": chain.node,
        "whole": chain.wrong.is_none(),
        "first": chain.first,
        "last": chain.head.number,
        "hash": chain.head.hash,
        "lastAt": chain.last_at,
        "entries": chain.entries,
        "skipped": chain.skipped,
        "behind": chain.behind(),
        "wrong": chain.wrong.as_ref().map(|(number, fault)| format!("entry {number}: {fault}")),
    })
}

fn note(told: &mut BTreeMap<String, u64>, read: &NodeEntry) {
    let last = told.entry(read.node.clone()).or_default();
    *last = read.entry.number.max(*last);
}

fn print(read: &NodeEntry, printer: Printer) -> std::io::Result<()> {
    let NodeEntry { node, entry, line } = read;
    // The line is as it is in the log, which can be verified; the node stands beside it.
    let text =
        if printer.is_json() { format!("{{\"node\":{},\"line\":{line}}}", json!(node)) } else { format!("{node} {}", sentence(entry)) };
    write_out(&format!("{text}\n"))
}
