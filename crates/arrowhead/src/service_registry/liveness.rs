//! Whether a registered service may still be there, and when it goes if the operator chose that it does.

use std::{sync::Arc, time::Duration};

use serde::{Serialize, Serializer};

use crate::{
    name::ServiceDefinition,
    record::{EntryId, EntryView, System},
    utc::UtcTime,
};

/// What connecting to a provider has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it was tried last.
    pub at: UtcTime,
    /// The first of the attempts that failed since one succeeded; `None`: the last one succeeded.
    pub unreachable_since: Option<UtcTime>,
}

impl Probe {
    /// Takes a further attempt into account.
    pub fn after(former: Option<Self>, at: UtcTime, accepted: bool) -> Self {
        let first_failure = former.and_then(|former| former.unreachable_since).unwrap_or(at);
        Self { at, unreachable_since: (!accepted).then_some(first_failure) }
    }
}

/// After how long the operator lets services be removed without being asked. By default none ever is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deregistration {
    /// From the end of validity.
    pub expired_for: Option<Duration>,
    /// From the first failed connection of those that no success followed.
    pub unreachable_for: Option<Duration>,
}

impl Deregistration {
    /// When a service goes that has been unreachable since then.
    pub fn of_unreachable(&self, since: UtcTime) -> Option<UtcTime> {
        self.unreachable_for.map(|patience| since.plus(patience))
    }

    fn at(&self, end_of_validity: Option<UtcTime>, unreachable_since: Option<UtcTime>) -> Option<UtcTime> {
        let by_expiry = end_of_validity.zip(self.expired_for).map(|(end, patience)| end.plus(patience));
        by_expiry.into_iter().chain(unreachable_since.and_then(|since| self.of_unreachable(since))).min()
    }
}

/// What is known of a service's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceState {
    /// It is valid, or its provider accepted a connection.
    Fresh,
    /// Its end of validity is past.
    Expired,
    /// Its provider accepted no connection.
    Unreachable,
    /// It has no end of validity, and nobody has tried to connect.
    Unknown,
}

impl ServiceState {
    fn of(end_of_validity: Option<UtcTime>, probe: Option<&Probe>, now: UtcTime) -> Self {
        let is_unreachable = probe.is_some_and(|probe| probe.unreachable_since.is_some());
        match end_of_validity {
            Some(end) if end < now => Self::Expired,
            _ if is_unreachable => Self::Unreachable,
            None if probe.is_none() => Self::Unknown,
            _ => Self::Fresh,
        }
    }
}

/// A service with what is known of its life, as `GET /api/v1/services` answers it: whole seconds, and nulls are written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceLife {
    /// Row id of the entry.
    pub id: EntryId,
    /// What.
    pub service_definition: ServiceDefinition,
    /// By whom.
    pub provider: Arc<System>,
    /// Where at the provider.
    pub service_uri: Arc<str>,
    /// Until when. What is left until then is for the reader to count: an answer that told it would be another one each second.
    pub end_of_validity: Option<UtcTime>,
    /// All of it in a word.
    pub state: ServiceState,
    /// When a connection was tried last.
    pub last_probe_at: Option<UtcTime>,
    /// Whether it was accepted.
    #[serde(serialize_with = "reachability")]
    pub last_probe: Option<bool>,
    /// Since when none is.
    pub unreachable_since: Option<UtcTime>,
    /// When it is removed, if the operator chose that and nothing changes.
    pub deregister_at: Option<UtcTime>,
}

impl ServiceLife {
    /// What is known at `now`.
    pub fn new(view: EntryView, probe: Option<&Probe>, chosen: &Deregistration, now: UtcTime) -> Self {
        let end_of_validity = view.entry.end_of_validity;
        let unreachable_since = probe.and_then(|probe| probe.unreachable_since);
        Self {
            id: view.entry.id,
            service_definition: view.definition.service_definition.clone(),
            service_uri: view.entry.service_uri.clone(),
            provider: view.provider,
            end_of_validity,
            state: ServiceState::of(end_of_validity, probe, now),
            last_probe_at: probe.map(|probe| probe.at.whole_seconds()),
            last_probe: probe.map(|probe| probe.unreachable_since.is_none()),
            unreachable_since: unreachable_since.map(UtcTime::whole_seconds),
            deregister_at: chosen.at(end_of_validity, unreachable_since).map(UtcTime::whole_seconds),
        }
    }
}

fn reachability<S: Serializer>(accepted: &Option<bool>, serializer: S) -> Result<S::Ok, S::Error> {
    accepted.map(|accepted| if accepted { "reachable" } else { "unreachable" }).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> UtcTime {
        UtcTime::from_unix_seconds(seconds)
    }

    #[test]
    fn failures_count_from_the_first_until_a_success() {
        let first = Probe::after(None, at(10), false);
        let second = Probe::after(Some(first), at(20), false);
        assert_eq!((second.at, second.unreachable_since), (at(20), Some(at(10))));
        let success = Probe::after(Some(second), at(30), true);
        assert_eq!(success.unreachable_since, None);
        assert_eq!(Probe::after(Some(success), at(40), false).unreachable_since, Some(at(40)));
    }

    #[test]
    fn a_state_says_the_worst_that_is_known() {
        let (reached, missed) = (Probe::after(None, at(50), true), Probe::after(None, at(50), false));
        let check = |end: Option<u64>, probe: Option<&Probe>, expected| {
            assert_eq!(ServiceState::of(end.map(at), probe, at(100)), expected, "{end:?} {probe:?}");
        };
        check(None, None, ServiceState::Unknown);
        check(Some(101), None, ServiceState::Fresh);
        check(Some(100), None, ServiceState::Fresh);
        check(Some(99), None, ServiceState::Expired);
        check(None, Some(&reached), ServiceState::Fresh);
        check(None, Some(&missed), ServiceState::Unreachable);
        check(Some(101), Some(&missed), ServiceState::Unreachable);
        check(Some(99), Some(&reached), ServiceState::Expired);
    }

    #[test]
    fn only_what_the_operator_chose_takes_services_away() {
        let minute = Some(Duration::from_secs(60));
        let after = Deregistration { expired_for: minute, unreachable_for: minute };
        let ttl = Deregistration { expired_for: Some(Duration::ZERO), unreachable_for: None };
        let both = Deregistration { expired_for: Some(Duration::ZERO), ..after };
        let check = |chosen: Deregistration, end: Option<u64>, silent: Option<u64>, expected: Option<u64>| {
            assert_eq!(chosen.at(end.map(at), silent.map(at)), expected.map(at), "{chosen:?} {end:?} {silent:?}");
        };
        check(Deregistration::default(), Some(10), Some(10), None);
        check(ttl, Some(10), Some(5), Some(10));
        check(ttl, None, Some(5), None);
        check(after, Some(10), None, Some(70));
        check(after, Some(10), Some(5), Some(65));
        check(both, Some(10), Some(5), Some(10));
    }
}
