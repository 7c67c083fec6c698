//! Checks of query parameters against the descriptions of operations: nothing that a client asks for is ignored silently.

use std::{collections::BTreeSet, fmt};

use bodkin_arrowhead::core_service::CoreSystem;

use super::{Description, descriptions, event_handler, fits, form::Member, monitor};
use crate::request::{Method, Request};

/// A query that an operation does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFault {
    /// No parameter of the operation has this name.
    Unknown {
        /// The name.
        name: String,
        /// The names that the operation has.
        known: Vec<&'static str>,
    },
    /// A parameter with one value has this name, and was given several times.
    Repeated(String),
}

impl fmt::Display for QueryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } if known.is_empty() => {
                write!(f, "The query parameter '{name}' is unknown: this operation has no query parameters.")
            }
            Self::Unknown { name, known } => write!(f, "The query parameter '{name}' is unknown; known are {}.", known.join(", ")),
            Self::Repeated(name) => write!(f, "The query parameter '{name}' was given several times, and counts once."),
        }
    }
}

/// Checks a request to Bodkin's own interface, whose path and method have a description.
pub fn check(request: &Request) -> Result<(), QueryFault> {
    let row = monitor::OPERATIONS.iter().find(|row| is_for(row, request.method) && fits(row.path, &request.path));
    row.map_or(Ok(()), |row| check_against(row, &[], &request.query))
}

/// Checks a request to a stream of events, or a CloudEvent that is posted.
pub fn check_events(request: &Request) -> Result<(), QueryFault> {
    let below = request.path.strip_prefix("/eventhandler/");
    let own = event_handler::OPERATIONS.iter().find(|row| is_for(row, request.method) && below == Some(row.path));
    let row = own.or_else(|| event_handler::CLOUD_EVENTS.iter().find(|row| is_for(row, request.method) && fits(row.path, &request.path)));
    let families: &[&str] = if request.method == Method::Post { &[] } else { &event_handler::FAMILIES };
    row.map_or(Ok(()), |row| check_against(row, families, &request.query))
}

/// Checks that a request to a core system repeats no parameter that the operation has. Others are ignored, as upstream's framework does.
pub fn check_repeated(system: CoreSystem, request: &Request) -> Result<(), QueryFault> {
    let Some(repeated) = repeated(&request.query) else { return Ok(()) };
    let below = request.path.strip_prefix('/').and_then(|path| path.strip_prefix(system.name())).unwrap_or_default();
    let is_at = |row: &&&Description| is_for(row, request.method) && fits(row.path, below);
    let named = |row: &Description, name: &str| row.parameters.iter().any(|line| Member::parse(line).name == name);
    let rows: Vec<&Description> = descriptions(system).iter().filter(|row| is_at(&row)).collect();
    match repeated.into_iter().find(|name| rows.iter().any(|row| named(row, name))) {
        Some(name) => Err(QueryFault::Repeated(name.to_owned())),
        None => Ok(()),
    }
}

fn is_for(row: &Description, method: Method) -> bool {
    row.method == method || (method == Method::Head && row.method == Method::Get)
}

/// `families` are beginnings of names that take any end.
fn check_against(row: &Description, families: &[&str], query: &[(String, String)]) -> Result<(), QueryFault> {
    let members: Vec<Member<'static>> = row.parameters.iter().map(|line| Member::parse(line)).collect();
    for (name, _) in query {
        let is_known = members.iter().any(|member| member.name == name) || families.iter().any(|family| name.starts_with(family));
        if !is_known {
            return Err(QueryFault::Unknown { name: name.clone(), known: members.iter().map(|member| member.name).collect() });
        }
    }
    let is_list = |name: &str| members.iter().any(|member| member.name == name && member.is_list());
    match repeated(query).and_then(|names| names.into_iter().find(|name| !is_list(name))) {
        Some(name) => Err(QueryFault::Repeated(name.to_owned())),
        None => Ok(()),
    }
}

/// Names that stand several times in a query.
fn repeated(query: &[(String, String)]) -> Option<Vec<&str>> {
    let mut seen = BTreeSet::new();
    let repeated: Vec<&str> = query.iter().map(|(name, _)| name.as_str()).filter(|name| !seen.insert(*name)).collect();
    (!repeated.is_empty()).then_some(repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Vec<(String, String)> {
        crate::request::split_target(&format!("/?{text}")).1
    }

    #[test]
    fn every_operation_refuses_unknown_and_repeated_parameters() {
        for row in monitor::OPERATIONS {
            let unknown = check_against(row, &[], &query("x-unknown=1"));
            assert!(matches!(&unknown, Err(QueryFault::Unknown { name, .. }) if name == "x-unknown"), "{}", row.path);
            for line in row.parameters {
                let member = Member::parse(line);
                let name = member.name;
                assert_eq!(check_against(row, &[], &query(&format!("{name}=1"))), Ok(()), "{} {name}", row.path);
                let twice = check_against(row, &[], &query(&format!("{name}=1&{name}=1")));
                assert_eq!(twice.is_ok(), member.is_list(), "{} {name}", row.path);
            }
        }
    }

    #[test]
    fn filters_of_streams_may_have_any_name_once() {
        let stream = event_handler::CLOUD_EVENTS.iter().find(|row| row.method == Method::Get).unwrap();
        let checked = |text: &str| check_against(stream, &event_handler::FAMILIES, &query(text)).map_err(|fault| fault.to_string());
        assert_eq!(checked("type=a&metadata.unit=x&metadata.room=y&payload.a.b=1&deadline_us=5"), Ok(()));
        assert!(checked("type=a&metadata.unit=x&metadata.unit=y").unwrap_err().contains("'metadata.unit' was given several times"));
        assert!(checked("type=a&evnttype=b").unwrap_err().contains("'evnttype' is unknown; known are type, system_name"));
    }
}
