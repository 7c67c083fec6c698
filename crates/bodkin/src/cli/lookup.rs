//! From what people write to what the registry has: systems by their names or ids.
//!
//! Names begin with a letter, so digits are an id.

use std::fmt::Display;

use anyhow::bail;
use bodkin_arrowhead::form::SystemRequest;
use bodkin_client::{CallError, CoreSystems, Page, answer::System};

/// The system that `text` names.
pub async fn system(cloud: &CoreSystems, text: &str) -> anyhow::Result<System> {
    match id(text) {
        Some(id) => found(cloud.system(id).await, "system", text, "bodkin system list"),
        None => choose(cloud.systems(&Page::default()).await?.data, text),
    }
}

/// As [`system`] for several names with one call.
pub async fn systems<const N: usize>(cloud: &CoreSystems, texts: [&str; N]) -> anyhow::Result<[System; N]> {
    let all = cloud.systems(&Page::default()).await?.data;
    let mut chosen = Vec::with_capacity(N);
    for text in texts {
        chosen.push(choose(all.clone(), text)?);
    }
    Ok(chosen.try_into().expect("one system was chosen for every text"))
}

/// The system that `text` names, as a request names it. `NAME@HOST:PORT` is not looked up: in a secure cloud only the operator may.
pub async fn reference(cloud: &CoreSystems, text: &str) -> anyhow::Result<SystemRequest> {
    if let Some((name, address, port)) = placed(text) {
        let (system_name, address, port) = (Some(name.to_owned()), Some(address.to_owned()), Some(i64::from(port)));
        return Ok(SystemRequest { system_name, address, port, ..SystemRequest::default() });
    }
    system(cloud, text).await.map(|found| form(&found)).map_err(|error| match error.downcast_ref().is_some_and(CallError::is_denied) {
        true => error.context("only the operator looks systems up: name it NAME@HOST:PORT"),
        false => error,
    })
}

/// Name, address and port of `NAME@HOST:PORT`.
pub fn placed(text: &str) -> Option<(&str, &str, u16)> {
    let (name, place) = text.trim().split_once('@')?;
    let (address, port) = place.rsplit_once(':')?;
    let (address, port) = (address.trim_matches(['[', ']']), port.parse().ok()?);
    (!name.is_empty() && !address.is_empty()).then_some((name, address, port))
}

fn choose(mut systems: Vec<System>, text: &str) -> anyhow::Result<System> {
    systems.retain(|system| is_named(system, text));
    match systems.len() {
        0 => bail!("no system {text} is registered; see bodkin system list"),
        1 => Ok(systems.remove(0)),
        _ => {
            let found: Vec<String> = systems.iter().map(|system| format!("{} ({})", system.id, system.host_and_port())).collect();
            bail!("several systems are named {text}: {}; name one by its id", found.join(", "))
        }
    }
}

/// Whether `text` is the system's id or name.
pub fn is_named(system: &System, text: &str) -> bool {
    match id(text) {
        Some(id) => system.id == id,
        None => system.system_name.eq_ignore_ascii_case(text.trim()),
    }
}

/// The row of an id. That there is none is a refusal in Arrowhead; here it says where to look.
pub fn found<T>(answer: Result<T, CallError>, what: &str, id: impl Display, list: &str) -> anyhow::Result<T> {
    match answer {
        Ok(row) => Ok(row),
        Err(CallError::Refused(refusal)) if refusal.error_code == 400 => bail!("there is no {what} {id}; see {list}"),
        Err(CallError::Problem(problem)) if problem.status == 404 => bail!("there is no {what} {id}; see {list}"),
        Err(error) => Err(error.into()),
    }
}

/// The id that `text` is, where it is one.
pub fn id(text: &str) -> Option<i64> {
    text.trim().parse().ok()
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

/// As [`form`], with its key and metadata: a request that names a provider without them would take them away.
pub fn whole_form(system: &System) -> SystemRequest {
    let metadata = system.metadata.clone().map(|pairs| pairs.into_iter().map(|(key, value)| (key, Some(value))).collect());
    SystemRequest { authentication_info: system.authentication_info.clone(), metadata, ..form(system) }
}

/// `name at address:port`, of a request.
pub fn told_form(form: &SystemRequest) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{} at {}:{}", text(&form.system_name), text(&form.address), form.port.unwrap_or_default())
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
        System { id, system_name: name.into(), address: "10.0.0.1".into(), port, ..System::default() }
    }

    #[test]
    fn a_system_with_its_place_is_not_looked_up() {
        assert_eq!(placed(" sensor@[fe80::1]:9000"), Some(("sensor", "fe80::1", 9000)));
        assert_eq!(placed("sensor@h:1"), Some(("sensor", "h", 1)));
        for other in ["sensor", "7", "sensor@h", "@h:1", "sensor@:1", "sensor@h:x"] {
            assert_eq!(placed(other), None, "{other}");
        }
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
