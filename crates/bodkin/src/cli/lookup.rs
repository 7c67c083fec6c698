//! From what people write to what the registry has: a system by its name or id.

use anyhow::bail;
use bodkin_arrowhead::form::SystemRequest;
use bodkin_client::{CoreSystems, answer::System};

/// The system that `text` names. A name begins with a letter, so digits are an id.
pub async fn system(cloud: &CoreSystems, text: &str) -> anyhow::Result<System> {
    let systems = cloud.systems().await?.data;
    choose(systems, text)
}

/// As [`system`] for several names with one call.
pub async fn systems<const N: usize>(cloud: &CoreSystems, texts: [&str; N]) -> anyhow::Result<[System; N]> {
    let all = cloud.systems().await?.data;
    let mut chosen = Vec::with_capacity(N);
    for text in texts {
        chosen.push(choose(all.clone(), text)?);
    }
    Ok(chosen.try_into().expect("one system was chosen for every text"))
}

fn choose(mut systems: Vec<System>, text: &str) -> anyhow::Result<System> {
    match text.trim().parse::<i64>() {
        Ok(id) => systems.retain(|system| system.id == id),
        Err(_) => systems.retain(|system| system.system_name.eq_ignore_ascii_case(text.trim())),
    }
    match systems.len() {
        0 => bail!("no system {text} is registered; see bodkin system list"),
        1 => Ok(systems.remove(0)),
        _ => {
            let found: Vec<String> = systems.iter().map(|system| format!("{} ({})", system.id, system.host_and_port())).collect();
            bail!("several systems are named {text}: {}; name one by its id", found.join(", "))
        }
    }
}

/// The registered system as a request names it.
pub fn form(system: &System) -> SystemRequest {
    SystemRequest {
        system_name: Some(system.system_name.clone()),
        address: Some(system.address.clone()),
        port: Some(i64::from(system.port)),
        ..SystemRequest::default()
    }
}

/// `name at address:port`.
pub fn told(system: &System) -> String {
    format!("{} at {}", system.system_name, system.host_and_port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(id: i64, name: &str) -> System {
        let port = 8000 + u16::try_from(id).unwrap();
        System { id, system_name: name.into(), address: "10.0.0.1".into(), port, metadata: None }
    }

    #[test]
    fn a_name_must_mean_one_system() {
        let systems = vec![registered(1, "sensor"), registered(2, "display"), registered(3, "sensor")];
        assert_eq!(choose(systems.clone(), "Display").unwrap().id, 2);
        assert_eq!(choose(systems.clone(), "3").unwrap().id, 3);
        assert_eq!(choose(systems.clone(), "x").unwrap_err().to_string(), "no system x is registered; see bodkin system list");
        let several = choose(systems, "sensor").unwrap_err().to_string();
        assert_eq!(several, "several systems are named sensor: 1 (10.0.0.1:8001), 3 (10.0.0.1:8003); name one by its id");
    }
}
