//! `GET /api/v1/nodes`: the nodes that serve this cloud from a database that they share.

use std::time::{Duration, Instant};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_store::shared::{NodeRow, Nodes, SILENT_AFTER, Standing};
use serde::Serialize;

use super::{Api, list};
use crate::answer::Answer;

/// A node as it is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeView<'n> {
    node: &'n str,
    is_this: bool,
    /// `serves`, `silent`, or `unknown` while this node does not reach the database.
    state: &'static str,
    host: &'n str,
    monitor_port: u16,
    secure: bool,
    release: &'n str,
    started_at: UtcTime,
    /// By the database's clock.
    seen_at: UtcTime,
    commit: i64,
    clock_ahead_ms: i64,
    keeper: bool,
    /// Whether it has the key of the cloud's authority.
    issues: bool,
    /// When it last started from a data directory that was restored or copied.
    restored_at: Option<UtcTime>,
}

impl Api {
    /// All nodes by their names; none where the database is this node's own.
    pub(super) fn nodes(&self) -> Answer {
        let standing = self.store.standing();
        let Some(Standing { nodes: Some(nodes), away, .. }) = &standing else { return list(&[] as &[NodeView<'_>], 0) };
        let since_read = Instant::now().saturating_duration_since(nodes.read_at);
        let views: Vec<_> = nodes.rows.iter().map(|row| view(row, nodes, away.is_some(), since_read)).collect();
        list(&views, views.len() as u64)
    }
}

fn view<'n>(row: &'n NodeRow, nodes: &Nodes, is_away: bool, since_read: Duration) -> NodeView<'n> {
    let NodeRow { name, place, started, seen, commit, clock_ahead_us, is_keeper, restored, .. } = row;
    let is_this = *name == nodes.own;
    let state = match is_away {
        _ if is_this => "serves",
        true => "unknown",
        false if row.unheard + since_read > SILENT_AFTER => "silent",
        false => "serves",
    };
    NodeView {
        node: name,
        is_this,
        state,
        host: &place.host,
        monitor_port: place.monitor_port,
        secure: place.is_secure,
        release: &place.release,
        started_at: started.whole_seconds(),
        seen_at: seen.whole_seconds(),
        commit: *commit,
        clock_ahead_ms: clock_ahead_us / 1_000,
        // One that is silent has left that to another.
        keeper: *is_keeper && state != "silent",
        issues: place.issues,
        restored_at: restored.map(UtcTime::whole_seconds),
    }
}

#[cfg(test)]
mod tests {
    use bodkin_store::shared::NodePlace;

    use super::*;

    #[test]
    fn a_node_is_silent_only_where_its_row_could_have_been_read() {
        let (release, host) = ("1".into(), "h".into());
        let place = NodePlace { release, host, monitor_port: 8440, is_secure: false, authority: String::new(), issues: false };
        let (started, seen) = (UtcTime::from_unix_seconds(1), UtcTime::from_unix_seconds(2));
        let unheard = Duration::from_secs(9);
        let row = NodeRow {
            name: "b".into(),
            place,
            started,
            seen,
            unheard,
            commit: 3,
            clock_ahead_us: -2_500,
            is_keeper: false,
            restored: None,
        };
        let nodes = Nodes { rows: vec![row.clone()], read_at: Instant::now(), own: "a".into(), clock_ahead_us: 0 };
        let state = |nodes: &Nodes, is_away, s| view(&row, nodes, is_away, Duration::from_secs(s)).state;
        assert_eq!([state(&nodes, false, 0), state(&nodes, false, 2), state(&nodes, true, 2)], ["serves", "silent", "unknown"]);
        assert_eq!(state(&Nodes { own: "b".into(), ..nodes }, true, 2), "serves");
    }
}
