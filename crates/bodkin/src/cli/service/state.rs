//! What is known of services' lives: how long they are valid, and whether their providers answered lately.

use bodkin_client::{
    Monitor,
    answer::{List, ServiceState},
};

use crate::{
    DONE,
    cli::{printer::Printer, table::Table},
};

/// Prints the state of every service, or of the stale ones only.
pub async fn list(monitor: &Monitor, only_stale: bool, printer: Printer) -> anyhow::Result<u8> {
    let mut states = monitor.service_states().await?;
    if only_stale {
        states = stale(states);
    }
    let none = if only_stale { "no service is expired or unreachable" } else { "no services are registered" };
    printer.rows(&states, &table(&states.data), none)?;
    Ok(DONE)
}

fn stale(states: List<ServiceState>) -> List<ServiceState> {
    let data: Vec<ServiceState> =
        states.data.into_iter().filter(|service| matches!(service.state.as_str(), "expired" | "unreachable")).collect();
    List { count: data.len() as u64, data }
}

fn table(states: &[ServiceState]) -> Table {
    let mut table = Table::new(&["ID", "SERVICE", "PROVIDER", "ADDRESS", "STATE", "ENDS", "LAST PROBE", "DEREGISTERED"]);
    for service in states {
        let probe = service.last_probe.as_deref().map(|found| format!("{found} {}", service.last_probe_at.as_deref().unwrap_or_default()));
        table.push([
            service.id.to_string(),
            service.service_definition.name().to_owned(),
            service.provider.system_name.clone(),
            service.provider.host_and_port(),
            service.state.clone(),
            service.end_of_validity.clone().unwrap_or_else(|| "never".to_owned()),
            probe.unwrap_or_else(|| "none".to_owned()),
            service.deregister_at.clone().unwrap_or_else(|| "never".to_owned()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_is_expired_or_unreachable() {
        let service = |id: i64, state: &str| ServiceState { id, state: state.into(), ..ServiceState::default() };
        let all = vec![service(1, "fresh"), service(2, "expired"), service(3, "unreachable"), service(4, "unknown")];
        let kept = stale(List { data: all, count: 4 });
        assert_eq!((kept.data.iter().map(|service| service.id).collect::<Vec<_>>(), kept.count), (vec![2, 3], 2));
    }
}
