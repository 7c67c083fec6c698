//! `bodkin cloud sessions`: tunnels to and from other clouds.

use anyhow::bail;
use bodkin_client::{Monitor, Page, answer::GatewaySession};
use serde_json::json;

use crate::{
    DONE,
    cli::{printer::Printer, table::Table},
};

/// Shortest beginning of an id by which a session is named.
const ID_MIN: usize = 4;

/// Lists them.
pub(super) async fn list(monitor: &Monitor, printer: Printer) -> anyhow::Result<u8> {
    let sessions = monitor.gateway_sessions().await?;
    printer.rows(&sessions, &table(&sessions.data), "there are no tunnels")?;
    Ok(DONE)
}

/// Ends one.
pub(super) async fn close(monitor: &Monitor, id: &str, printer: Printer) -> anyhow::Result<u8> {
    let id = id.trim().trim_end_matches('.');
    if id.len() < ID_MIN {
        bail!("{id:?} names no session: the first {ID_MIN} letters of its id, or more, are expected");
    }
    let mut active = monitor.active_sessions(&Page::default()).await?.data;
    active.retain(|session| session.queue_id.as_deref().is_some_and(|queue_id| queue_id.starts_with(id)));
    match active.as_slice() {
        [] => bail!("no open session has an id that begins with {id}; see bodkin cloud sessions"),
        [session] => {
            monitor.close_session(session).await?;
            printer.done(&json!({"closed": session}), &format!("closed: {id}"))?;
            Ok(DONE)
        }
        several => bail!("{} open sessions have ids that begin with {id}: name more letters", several.len()),
    }
}

fn table(sessions: &[GatewaySession]) -> Table {
    let mut table =
        Table::new(&["ID", "SIDE", "STATE", "CONSUMER", "PROVIDER", "SERVICE", "RELAY", "PORT", "CONNECTIONS", "SENT", "RECEIVED", "TOLD"]);
    for session in sessions {
        let went_on = || match session.interruptions {
            0 => String::new(),
            1 => "went on behind 1 interruption at the relay".to_owned(),
            times => format!("went on behind {times} interruptions at the relay"),
        };
        let told = session.reason.clone().or_else(|| session.trouble.clone()).unwrap_or_else(went_on);
        table.push([
            session.queue_id.trim_end_matches('.').to_owned(),
            session.side.clone(),
            session.state.clone(),
            format!("{}.{}", session.consumer, session.consumer_cloud),
            format!("{}.{}", session.provider, session.provider_cloud),
            session.service.clone(),
            session.relay.clone(),
            session.port.map(|port| port.to_string()).unwrap_or_default(),
            session.connections.to_string(),
            session.bytes_to_peer.to_string(),
            session.bytes_from_peer.to_string(),
            told,
        ]);
    }
    table
}
