//! By which relay two clouds meet.
//!
//! `choose` gives any index below the count that it is given: the host's randomness, which spreads the load.

use std::sync::Arc;

use super::RelayPut;
use crate::{error::ArrowheadError, record::*, snapshot::Snapshot};

/// The relay by which a cloud's gatekeeper is called: one that is for gatekeepers only before one that is for everything.
pub fn dialogue_relay<'s>(
    snapshot: &'s Snapshot,
    cloud: &'s Cloud,
    choose: impl FnOnce(usize) -> usize,
) -> Result<&'s Arc<Relay>, ArrowheadError> {
    let of_type = |relay_type| snapshot.relays_of(cloud).filter(move |relay| relay.relay_type == relay_type).collect();
    let mut candidates: Vec<&Arc<Relay>> = of_type(RelayType::GatekeeperRelay);
    if candidates.is_empty() {
        candidates = of_type(RelayType::GeneralRelay);
    }
    one_of(candidates, choose).ok_or_else(|| {
        let message = format!("No relay is assigned to cloud {}.{} by which its gatekeeper is reached.", cloud.name, cloud.operator);
        ArrowheadError::invalid_parameter(message)
    })
}

/// The relays that the asking cloud would use for a tunnel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TunnelRelays {
    /// Those for tunnels to this cloud only.
    pub preferred: Vec<RelayPut>,
    /// Those for tunnels to any cloud.
    pub known: Vec<RelayPut>,
}

/// The relay of a tunnel to `cloud`, which the provider's side chooses: a dedicated one that both know, or a public one that both know, and of these one for
/// tunnels before one for everything.
pub fn tunnel_relay<'s>(
    snapshot: &'s Snapshot,
    cloud: &'s Cloud,
    theirs: &TunnelRelays,
    choose: impl FnOnce(usize) -> usize,
) -> Result<&'s Arc<Relay>, ArrowheadError> {
    let common = |list: &[RelayPut], relay: &Relay| list.iter().any(|theirs| theirs.is(relay));
    let dedicated: Vec<&Arc<Relay>> =
        snapshot.relays_of(cloud).filter(|relay| relay.is_dedicated() && common(&theirs.preferred, relay)).collect();
    let public = |relay_type| {
        let relays = snapshot.relays().filter(move |relay| relay.is_public_for_tunnels() && relay.relay_type == relay_type);
        relays.filter(|relay| common(&theirs.known, relay)).collect::<Vec<_>>()
    };
    let candidates = [dedicated, public(RelayType::GatewayRelay), public(RelayType::GeneralRelay)];
    let candidates = candidates.into_iter().find(|candidates| !candidates.is_empty()).unwrap_or_default();
    one_of(candidates, choose).ok_or_else(|| ArrowheadError::auth("No common communication relay was found."))
}

fn one_of(candidates: Vec<&Arc<Relay>>, choose: impl FnOnce(usize) -> usize) -> Option<&Arc<Relay>> {
    if candidates.is_empty() { None } else { Some(candidates[choose(candidates.len()) % candidates.len()]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{snapshot::Change, utc::UtcTime};

    const PUBLIC: bool = false;
    const EXCLUSIVE: bool = true;

    fn timestamps() -> Timestamps {
        let now = UtcTime::from_unix_seconds(0);
        Timestamps { created_at: now, updated_at: now }
    }

    /// Relay 1 is at port 1, and so on; those of these ids are assigned to the cloud.
    fn world(relays: &[(RelayType, bool)], assigned: &[i64]) -> (Snapshot, Arc<Cloud>) {
        let mut snapshot = Snapshot::default();
        for (id, (relay_type, exclusive)) in (1..).zip(relays) {
            snapshot.apply(Change::Relay(Arc::new(Relay {
                id: RelayId(id),
                address: "relay".into(),
                port: id as u16,
                authentication_info: Some(format!("key-{id}").into()),
                secure: true,
                exclusive: *exclusive,
                relay_type: *relay_type,
                timestamps: timestamps(),
            })));
        }
        let relays = assigned.iter().copied().map(RelayId).collect();
        let cloud = Arc::new(Cloud { relays, ..Cloud::neighbor(1, "o", "c") });
        snapshot.apply(Change::Cloud(cloud.clone()));
        (snapshot, cloud)
    }

    /// All relays that may be chosen.
    fn choices<'s>(choice: impl Fn(usize) -> Result<&'s Arc<Relay>, ArrowheadError>) -> Vec<i64> {
        let mut ids: Vec<i64> = (0..6).filter_map(|index| choice(index).ok()).map(|relay| relay.id.0).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    #[test]
    fn a_gatekeeper_is_called_by_its_own_relays_first() {
        use RelayType::{GatekeeperRelay, GatewayRelay, GeneralRelay};
        let relays = [
            (GatekeeperRelay, PUBLIC),
            (GeneralRelay, PUBLIC),
            (GatewayRelay, EXCLUSIVE),
            (GatekeeperRelay, PUBLIC),
            (GeneralRelay, PUBLIC),
        ];
        for (assigned, expected) in [(&[1, 2, 3, 4][..], &[1, 4][..]), (&[2, 3, 5], &[2, 5]), (&[3], &[]), (&[], &[])] {
            let (snapshot, cloud) = world(&relays, assigned);
            assert_eq!(choices(|index| dialogue_relay(&snapshot, &cloud, |_| index)), expected, "{assigned:?}");
        }
    }

    #[test]
    fn a_tunnel_takes_a_relay_that_both_know() {
        use RelayType::{GatekeeperRelay, GatewayRelay, GeneralRelay};
        let relays = [
            (GatewayRelay, EXCLUSIVE),
            (GatewayRelay, EXCLUSIVE),
            (GatewayRelay, PUBLIC),
            (GeneralRelay, PUBLIC),
            (GatekeeperRelay, PUBLIC),
        ];
        let (snapshot, cloud) = world(&relays, &[1, 4]);
        // By key where both know it; by place where one does not.
        let by_key = |id: i64| put("elsewhere", 9, Some(format!("key-{id}")));
        let by_place = |id: i64| put("relay", id as u16, None);
        for (preferred, known, expected) in
            [(&[1, 2][..], &[3, 4][..], &[1][..]), (&[2], &[3, 4], &[3]), (&[], &[4, 5], &[4]), (&[3, 4], &[1, 2], &[]), (&[], &[5], &[])]
        {
            for relay in [&by_key as &dyn Fn(i64) -> RelayPut, &by_place] {
                let list = |ids: &[i64]| ids.iter().map(|id| relay(*id)).collect();
                let theirs = TunnelRelays { preferred: list(preferred), known: list(known) };
                assert_eq!(choices(|index| tunnel_relay(&snapshot, &cloud, &theirs, |_| index)), expected, "{theirs:?}");
            }
        }
        let another_key = TunnelRelays { known: vec![put("relay", 3, Some("another".into()))], ..TunnelRelays::default() };
        let refused = tunnel_relay(&snapshot, &cloud, &another_key, |_| 0).unwrap_err();
        assert_eq!((refused.error_code, refused.error_message.as_str()), (401, "No common communication relay was found."));
    }

    fn put(address: &str, port: u16, key: Option<String>) -> RelayPut {
        let authentication_info = key.map(Arc::from);
        RelayPut { address: address.into(), port, authentication_info, secure: true, exclusive: false, relay_type: None }
    }
}
