//! Texts with a form of their own: instants, addresses, names.

use bodkin_arrowhead::{
    address::Address,
    name::{EventType, InterfaceName, NamingRules, ServiceDefinition, SystemName},
    utc::UtcTime,
};

/// What was accepted is accepted again, as the same value.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(time) = UtcTime::parse(text) {
        let written = time.to_string();
        assert_eq!(UtcTime::parse(&written).as_ref(), Ok(&time), "{text} was written as {written}");
    }
    let strict = NamingRules::default();
    let lenient = NamingRules { strict_service_definition: false, ..strict };
    for rules in [&strict, &lenient] {
        if let Ok(address) = Address::parse(text, rules) {
            let again = Address::parse(address.as_str(), rules).unwrap_or_else(|error| panic!("{}: {error}", address.as_str()));
            assert_eq!((again.as_str(), again.kind()), (address.as_str(), address.kind()));
            assert_eq!(Address::from_stored(address.as_str()).kind(), address.kind());
        }
        if let Ok(name) = ServiceDefinition::parse(text, rules) {
            assert_eq!(ServiceDefinition::parse(name.as_str(), rules).map(|again| again.as_str().to_owned()), Ok(name.as_str().to_owned()));
        }
        if let Ok(name) = InterfaceName::parse(text, rules) {
            assert_eq!(InterfaceName::parse(name.as_str(), rules).map(|again| again.as_str().to_owned()), Ok(name.as_str().to_owned()));
        }
    }
    if let Ok(name) = SystemName::parse(text) {
        assert_eq!(SystemName::parse(name.as_str()).map(|again| again.as_str().to_owned()), Ok(name.as_str().to_owned()));
    }
    if let Ok(name) = EventType::parse(text) {
        assert_eq!(EventType::parse(name.as_str()).map(|again| again.as_str().to_owned()), Ok(name.as_str().to_owned()));
    }
}
