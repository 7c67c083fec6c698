//! What is said of registered services by DNS-SD (RFC 6763): who browses for `_arrowhead._tcp` finds them, and who browses for a definition's subtype those of it.
//!
//! ```text
//! PTR  _heat._sub._arrowhead._tcp.local.              -> heat sensor #17 plant-example:8443._arrowhead._tcp.local.
//! SRV  heat sensor #17 plant-example:8443._arrowhead._tcp.local. -> system-9.plant-example-8443.local. 9000
//! TXT  txtvers=1 service=heat system=sensor path=/heat secure=CERTIFICATE version=1 interfaces=HTTP-SECURE-JSON
//! ```

use std::fmt;

use crate::{
    core_service::CoreSystem,
    record::{Entry, System},
    snapshot::Snapshot,
    utc::UtcTime,
};

/// The type of all services of Arrowhead.
pub const SERVICE_TYPE: &str = "_arrowhead._tcp.local.";
/// Bytes of a label of a name in DNS.
const LABEL_BYTES_MAX: usize = 63;
/// Bytes of the place in an instance's name; of a longer one its end is said.
const PLACE_BYTES_MAX: usize = 36;
/// Letters of a node's name that its announcements have; names are drawn.
const NODE_LETTERS: usize = 8;
/// Bytes of one text, its key with it.
const TEXT_BYTES_MAX: usize = 255;

/// Which services are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// The core systems', by which all others are found.
    CoreSystems,
    /// All that are registered and valid.
    Services,
}

/// What is said of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The type, with the definition's subtype in front where that can be said.
    pub service_type: String,
    /// The instance's name: no other of this cloud's has it, nor one that is announced by another node, or by a cloud at another place.
    pub instance: String,
    /// The name of the provider's host, of this announcement only.
    pub host: String,
    /// Where the provider is, as it is registered.
    pub address: String,
    /// Where it listens.
    pub port: u16,
    /// Keys and values.
    pub texts: Vec<(&'static str, String)>,
}

/// Why a service cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its {key} is longer than the {TEXT_BYTES_MAX} bytes that a text of DNS-SD has with its key")]
pub struct TooLong {
    /// Of what.
    pub key: &'static str,
}

/// The services that are said, in the order of their ids.
pub fn announced<'s>(snapshot: &'s Snapshot, which: Announced, now: UtcTime) -> impl Iterator<Item = (&'s Entry, &'s System)> {
    let with_provider = |entry: &'s Entry| Some((entry, &**snapshot.system(entry.provider)?));
    let is_core = |system: &System| CoreSystem::ALL.iter().any(|core| core.name() == system.system_name.as_str());
    let is_valid = move |entry: &Entry| entry.end_of_validity.is_none_or(|end| end > now);
    let entries = snapshot.entries().map(|entry| &**entry).filter(move |entry| is_valid(entry));
    entries.filter_map(with_provider).filter(move |(_, provider)| which == Announced::Services || is_core(provider))
}

impl Announcement {
    /// Of a registered service. `place` is that of who announces it ([`place()`]).
    ///
    /// # Errors
    /// A text would be too long.
    pub fn of(snapshot: &Snapshot, entry: &Entry, provider: &System, place: &str) -> Result<Self, TooLong> {
        let definition = snapshot.definition(entry.definition).map_or("", |definition| definition.service_definition.as_str());
        let interfaces =
            entry.interfaces.iter().filter_map(|id| snapshot.interface(*id)).map(|interface| interface.interface_name.as_str());
        let texts = [
            ("txtvers", "1".to_owned()),
            ("service", definition.to_owned()),
            ("system", provider.system_name.to_string()),
            ("path", entry.service_uri.to_string()),
            ("secure", entry.secure.as_str().to_owned()),
            ("version", entry.version.to_string()),
            ("interfaces", interfaces.collect::<Vec<_>>().join(",")),
        ];
        if let Some((key, _)) = texts.iter().find(|(key, value)| key.len() + 1 + value.len() > TEXT_BYTES_MAX) {
            return Err(TooLong { key });
        }
        let end = format!(" #{} {}", entry.id.0, place_in_names(place));
        let name = format!("{definition} {}", provider.system_name);
        let label = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        // A point would part it into two labels.
        let subtype = Some(definition).filter(|text| !text.is_empty() && text.len() < LABEL_BYTES_MAX && !text.contains(['.', '\\']));
        Ok(Self {
            service_type: subtype.map_or_else(|| SERVICE_TYPE.to_owned(), |subtype| format!("_{subtype}._sub.{SERVICE_TYPE}")),
            instance: one_label(&format!("{}{end}", first(&name, LABEL_BYTES_MAX - end.len()))),
            host: format!("system-{}.{}.local.", provider.id.0, last(&label(place), LABEL_BYTES_MAX)),
            address: provider.address.as_str().to_owned(),
            port: provider.port,
            texts: texts.into(),
        })
    }
}

/// What tells announcements of one cloud from those of others: where its Service Registry is. Nodes that share a database may all have the same, so that of each of
/// them has the beginning of its name (16 hexadecimal digits) too.
pub fn place(host: &str, port: u16, node: Option<&str>) -> String {
    match node {
        None => format!("{host}:{port}"),
        Some(node) => format!("{host}:{port} {}", first(node, NODE_LETTERS)),
    }
}

/// How a place stands at the end of its instances' names.
pub fn place_in_names(place: &str) -> String {
    one_label(last(place, PLACE_BYTES_MAX))
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.instance, self.service_type)
    }
}

/// A name in which nothing has to be escaped: not every resolver, and not the daemon that answers here, finds a name again whose labels have points in them.
fn one_label(text: &str) -> String {
    text.replace(['.', '\\'], "-")
}

/// So many bytes of a text's beginning at most, whole characters.
fn first(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// So many bytes of its end.
fn last(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        address::Address,
        name::{InterfaceName, ServiceDefinition, SystemName},
        record::{Definition, DefinitionId, EntryId, Interface, InterfaceId, Security, SystemId, Timestamps},
        snapshot::Change,
    };

    fn now() -> UtcTime {
        UtcTime::from_unix_seconds(1_767_225_600)
    }

    /// The Service Registry's own entry, and one of a sensor whose definition and path are these.
    fn world(definition: &str, path: &str, end_of_validity: Option<UtcTime>) -> Snapshot {
        let timestamps = Timestamps { created_at: now(), updated_at: now() };
        let mut snapshot = Snapshot::default();
        let interface_name = InterfaceName::from_stored("HTTP-SECURE-JSON");
        snapshot.apply(Change::Interface(Arc::new(Interface { id: InterfaceId(1), interface_name, timestamps })));
        for (id, definition, name, path, end_of_validity) in [
            (1, "service-register", "serviceregistry", "/serviceregistry/register", None),
            (2, definition, "sensor", path, end_of_validity),
        ] {
            let service_definition = ServiceDefinition::from_stored(definition);
            snapshot.apply(Change::Definition(Arc::new(Definition { id: DefinitionId(id), service_definition, timestamps })));
            snapshot.apply(Change::System(Arc::new(System {
                id: SystemId(id),
                system_name: SystemName::from_stored(name),
                address: Address::from_stored("10.0.0.7"),
                port: 8000,
                authentication_info: None,
                metadata: None,
                timestamps,
            })));
            snapshot.apply(Change::Entry(Arc::new(Entry {
                id: EntryId(id),
                definition: DefinitionId(id),
                provider: SystemId(id),
                service_uri: path.into(),
                end_of_validity,
                secure: Security::Certificate,
                metadata: None,
                version: 3,
                interfaces: vec![InterfaceId(1)],
                timestamps,
            })));
        }
        snapshot
    }

    fn said(snapshot: &Snapshot, which: Announced) -> Vec<Result<Announcement, TooLong>> {
        let of = |(entry, provider): (&Entry, &System)| Announcement::of(snapshot, entry, provider, "plant.example:8443");
        announced(snapshot, which, now()).map(of).collect()
    }

    #[test]
    fn a_service_is_said_with_all_that_a_consumer_needs() {
        let snapshot = world("heat", "/heat", None);
        let all = said(&snapshot, Announced::Services);
        assert_eq!(all.len(), 2);
        let text = |key, value: &str| (key, value.to_owned());
        let expected = Announcement {
            service_type: "_heat._sub._arrowhead._tcp.local.".into(),
            instance: "heat sensor #2 plant-example:8443".into(),
            host: "system-2.plant-example-8443.local.".into(),
            address: "10.0.0.7".into(),
            port: 8000,
            texts: vec![
                text("txtvers", "1"),
                text("service", "heat"),
                text("system", "sensor"),
                text("path", "/heat"),
                text("secure", "CERTIFICATE"),
                text("version", "3"),
                text("interfaces", "HTTP-SECURE-JSON"),
            ],
        };
        assert_eq!(all[1].as_ref().unwrap(), &expected);
        let core: Vec<_> = said(&snapshot, Announced::CoreSystems).into_iter().map(|said| said.unwrap().instance).collect();
        assert_eq!(core, ["service-register serviceregistry #1 plant-example:8443"]);
    }

    #[test]
    fn nodes_that_have_one_name_announce_under_names_of_their_own() {
        let snapshot = world("heat", "/heat", None);
        let of = |node: Option<&str>| {
            let (entry, provider) = announced(&snapshot, Announced::CoreSystems, now()).next().unwrap();
            Announcement::of(&snapshot, entry, provider, &place("plant.example", 8443, node)).unwrap()
        };
        let (one, other) = (of(Some("9f3c01ab00000000")), of(Some("07d2aa1400000000")));
        assert_eq!(one.instance, "service-register serviceregistry #1 plant-example:8443 9f3c01ab");
        assert_eq!(one.host, "system-1.plant-example-8443-9f3c01ab.local.");
        assert_eq!(other.instance, "service-register serviceregistry #1 plant-example:8443 07d2aa14");
        assert_eq!(of(None).instance, "service-register serviceregistry #1 plant-example:8443");
        // Of a long name the node's is what is left.
        let long = place(&format!("{}.example", "a".repeat(60)), 8443, Some("9f3c01ab00000000"));
        assert!(place_in_names(&long).ends_with("example:8443 9f3c01ab"), "{}", place_in_names(&long));
    }

    #[test]
    fn what_is_over_is_not_said() {
        for (end, count) in [(now().plus(std::time::Duration::from_secs(1)), 2), (now(), 1)] {
            assert_eq!(said(&world("heat", "/", Some(end)), Announced::Services).len(), count, "{end}");
        }
    }

    #[test]
    fn names_fit_into_labels_and_what_does_not_fit_is_told() {
        let long = "wärme".repeat(20);
        for (definition, subtype) in [(long.as_str(), ""), ("a.b", ""), (&*"d".repeat(62), "_d"), (&*"d".repeat(63), "")] {
            let announcement = said(&world(definition, "/", None), Announced::Services).remove(1).unwrap();
            assert!(
                announcement.instance.len() <= LABEL_BYTES_MAX && announcement.instance.ends_with(" #2 plant-example:8443"),
                "{announcement}"
            );
            assert!(!announcement.instance.contains('.'), "{announcement}");
            assert_eq!(announcement.service_type != SERVICE_TYPE, !subtype.is_empty(), "{announcement}");
            let labels =
                announcement.service_type.trim_end_matches('.').split('.').chain(announcement.host.trim_end_matches('.').split('.'));
            labels.for_each(|label| assert!((1..=LABEL_BYTES_MAX).contains(&label.len()), "{announcement}"));
        }
        let path = "x".repeat(TEXT_BYTES_MAX - 5);
        assert!(said(&world("heat", &path, None), Announced::Services)[1].is_ok());
        assert_eq!(said(&world("heat", &(path + "x"), None), Announced::Services)[1], Err(TooLong { key: "path" }));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        for (text, bytes_max, from_front, from_back) in
            [("härte", 2, "h", "te"), ("härte", 3, "hä", "rte"), ("härte", 4, "här", "rte"), ("a", 9, "a", "a"), ("", 0, "", "")]
        {
            assert_eq!((first(text, bytes_max), last(text, bytes_max)), (from_front, from_back), "{text} {bytes_max}");
        }
    }
}
